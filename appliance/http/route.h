/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the route table. The table (routes_gen.c) is generated from schema/routes.json. */
#ifndef LOCKSTEP_HTTP_ROUTE_H
#define LOCKSTEP_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

struct request;
typedef void (*route_fn)(struct request *r);

enum http_method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE };

/* What the segment "{kind}" or "{singleton}" after /api/v1 stands for. PLAIN: as any other
 * "{...}", one segment of any text. */
enum route_family {
    ROUTE_PLAIN,
    ROUTE_COLLECTION, /* the plural of a kind that is no singleton */
    ROUTE_SINGLETON,  /* the plural of a singleton */
};

/* Who may call. SETUP: anybody, as long as the node has no administrator. PEER: other nodes and
 * nobody else. From SIGNED_IN on each needs more than the one before; EDIT means MANAGE for
 * kinds that say so. */
enum permission {
    PERMISSION_NONE,
    PERMISSION_SETUP,
    PERMISSION_PEER,   /* who has this node's peer key */
    PERMISSION_MEMBER, /* and is a member, as far as it says who it is */
    PERMISSION_SIGNED_IN,
    PERMISSION_OPERATE,
    PERMISSION_EDIT,
    PERMISSION_MANAGE,
};

/* Where the handler is called: on the thread of the connection (it must not block), on the
 * engine's thread, on the worker pool. */
enum runs { RUNS_INLINE, RUNS_ENGINE, RUNS_WORKER };

struct route {
    enum http_method method;
    enum route_family family;
    enum permission permission;
    enum runs runs;
    const char *path;            /* "/api/v1/{kind}/{name}" */
    const char *const *segments; /* "api", "v1", "{kind}", "{name}", NULL */
    size_t segment_count;
    size_t body_max;          /* bytes; 0: a body is refused */
    const char *const *query; /* known query parameters, then NULL */
    const char *operation;    /* "object_get"; the handler is http_object_get */
    route_fn handler;
    bool body_optional; /* no body means {} */
    bool merge;         /* application/merge-patch+json beside application/json */
    bool filters;       /* the fields of the kind are query parameters, too */
    bool if_match;      /* 428 without the header If-Match */
};

#endif
