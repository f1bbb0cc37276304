/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the row of the route table for a method and a path. Pure. */
#ifndef LOCKSTEP_HTTP_ROUTER_H
#define LOCKSTEP_HTTP_ROUTER_H

#include "http/route.h"
#include "http/target.h"
#include "model/schema.h"

enum router_result { ROUTER_FOUND, ROUTER_NO_PATH, ROUTER_NO_METHOD };

struct router_hit {
    const struct route *route; /* ROUTER_FOUND */
    bool head;                 /* HEAD: as GET, without a body */
    enum kind kind;            /* when the route is of a family */
    unsigned allowed;          /* bits 1 << METHOD_* that the path has */
};

/* Methods are compared with case (RFC 9110 section 9.1). */
enum router_result
router_find(const char *method, const struct target *t, struct router_hit *ret);
/* The allowed methods for the header Allow: "GET, HEAD, PUT". */
#define ROUTER_ALLOW_BYTES 48
void router_allow(unsigned allowed, char out[ROUTER_ALLOW_BYTES]);
/* The segment of t that stands where the route has name, as "{rev}"; NULL when it has none. */
const char *router_segment(const struct route *route, const struct target *t, const char *name);

#endif
