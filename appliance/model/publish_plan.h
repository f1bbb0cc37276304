/* SPDX-License-Identifier: Apache-2.0 */
/* A publish in the making, and what a service owns. Only for publish*.c. */
#ifndef LOCKSTEP_MODEL_PUBLISH_PLAN_H
#define LOCKSTEP_MODEL_PUBLISH_PLAN_H

#include "model/publish.h"
#include "model/publish_parse.h"

/* An object that belongs to a service by its name (servers, pool, monitor, certificate), or a
 * listener that the service is on. */
struct owned {
    const struct object *o;
    const struct object *other; /* one that uses it and is not the service or its pool */
    bool claimed;               /* a server that stays */
};

struct owned_set {
    const struct object *service; /* NULL: there is none of that name */
    const struct object *pool;    /* the one with the service's name, or NULL */
    struct owned *items;          /* sorted by kind and id */
    size_t count;
};

void owned_init(struct owned_set *set, const struct snapshot *shared, const char *name);
void owned_fini(struct owned_set *set);
/* True when a new service of that name would find nothing that looks like its own. */
bool owned_is_free(const struct snapshot *shared, const char *name);
/* By kind and name; NULL when there is none. */
struct owned *owned_find(const struct owned_set *set, enum kind kind, const char *name);
/* A listener that was made for its port alone. */
bool owned_is_port_listener(const struct object *listener);

/* What becomes operations at the end, when there was no problem. */
struct plan_op {
    enum change_op op;
    enum kind kind;
    const char *name;
    json_t *body;
};

struct plan {
    const struct publish_input *in;
    const struct snapshot *shared;
    struct arena *arena;
    struct problems *p;
    struct object_refs refs;
    struct publish_request r;
    const char *name; /* of the service */
    struct owned_set owned;
    json_t *listeners;   /* names, for the service */
    json_t *certificate; /* name or null, for the service */
    struct plan_op *ops;
    size_t op_count, op_cap;
};

void plan_problem(struct plan *pl, const char *code, const char *pointer, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Takes over body, whose "name" is set here. */
void plan_create(struct plan *pl, enum kind kind, const char *name, json_t *body);
/* The problem that another object uses this one too. */
void plan_shared(struct plan *pl, const struct owned *own);
/* Changes the fields of o in wanted (taken over) that differ; an object that others use too
 * is a problem when any does. */
void plan_change(struct plan *pl, const struct owned *own, json_t *wanted);
/* plan_change when the service owns such an object, else plan_create. */
void plan_put(struct plan *pl, enum kind kind, const char *name, json_t *wanted);
void plan_delete(struct plan *pl, const struct object *o);

/* The listener that a request asks for. */
struct want {
    int64_t mode; /* V_LISTENER_MODE_... */
    bool tls;
    int port;
    const char *name; /* of a new one */
};

struct want plan_want(const struct plan *pl);
bool plan_fits(const struct want *want, const struct object *listener);
/* True when the service names the host; "" stands for a service without any. */
bool plan_has_host(const struct object *service, const char *host);
bool plan_same_path(const char *a, const char *b);

/* Parts of publish_plan. The name of the service that the request means: given, found by its
 * first URL, or made. Certificates come last, and only when there was no problem before. */
const char *plan_service_name(const struct plan *pl);
void plan_pool(struct plan *pl);
void plan_listeners(struct plan *pl);
void plan_certificate(struct plan *pl);

#endif
