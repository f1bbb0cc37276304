/* SPDX-License-Identifier: Apache-2.0 */
/* Backends and servers that are called otherwise in the configuration to be loaded than in the
 * one that runs: HAProxy knows both by their names only. */
#ifndef LOCKSTEP_HELPER_RENAMES_H
#define LOCKSTEP_HELPER_RENAMES_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "haproxy/span.h"

struct rename {
    const char *from, *to;
};

struct rename_list {
    struct rename *items; /* sorted by from; each from and each to is there once */
    const char **taken;   /* the to of all, sorted */
    size_t count;
};

struct renames {
    struct rename_list backends, servers;
    bool stateless; /* no state is handed over */
};

/* Reads "backends", "servers" and "states" of a request (protocol.h); the texts stay the
 * request's. ERR_SYNTAX: of another form; ERR_INVALID: no name, or a name twice; ERR_LIMIT.
 * *ret is to be ended by renames_fini in either case. */
MUST_USE err_t renames_read(const json_t *request, struct renames *ret, struct error *e);
void renames_fini(struct renames *r); /* also for CLEANUP() */

/* *name becomes what it is called now. False when nothing is: the name is another one's now. */
bool rename_list_apply(const struct rename_list *l, struct span *name);

#endif
