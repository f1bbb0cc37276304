/* SPDX-License-Identifier: Apache-2.0 */
#include "model/publish.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/object_build.h"
#include "model/publish_plan.h"

#define MESSAGE_BYTES 512
#define RANKS         12

void
plan_problem(struct plan *pl, const char *code, const char *pointer, const char *fmt, ...)
{
    const struct problem where = {.pointer = pointer};
    char message[MESSAGE_BYTES];
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(message, sizeof(message), fmt, ap) < 0) {
        message[0] = '\0';
    }
    va_end(ap);
    problems_add(pl->p, SEVERITY_ERROR, code, &where, "%s", message);
}

static void
add_op(struct plan *pl, struct plan_op op)
{
    if (pl->op_count == pl->op_cap) {
        pl->op_cap = pl->op_cap == 0 ? 64 : pl->op_cap * 2;
        pl->ops = xrealloc(pl->ops, pl->op_cap * sizeof(pl->ops[0]));
    }
    pl->ops[pl->op_count++] = op;
}

void
plan_create(struct plan *pl, enum kind kind, const char *name, json_t *body)
{
    json_object_set_new(body, "name", json_string(name));
    add_op(pl, (struct plan_op){CHANGE_CREATE, kind, NULL, body});
}

void
plan_delete(struct plan *pl, const struct object *o)
{
    const char *name = arena_strdup(pl->arena, o->name.s);
    add_op(pl, (struct plan_op){CHANGE_DELETE, o->kind, name, NULL});
}

void
plan_shared(struct plan *pl, const struct owned *own)
{
    const char *pointer = "/to";
    if (own->o->kind == K_MONITOR) {
        pointer = "/check";
    } else if (own->o->kind == K_CERTIFICATE) {
        pointer = pl->r.url_pointer;
    }
    plan_problem(
        pl, "shared_object", pointer,
        "The %s \"%s\" would change, but the %s \"%s\" uses it too: publish under another name, "
        "or give that %s one of its own.",
        schema_kind(own->o->kind)->name, own->o->name.s, schema_kind(own->other->kind)->name,
        own->other->name.s, schema_kind(own->other->kind)->name);
}

/* Equal as sets: both lists are without duplicates. */
static bool
same_set(const json_t *a, const json_t *b)
{
    if (json_array_size(a) != json_array_size(b)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(a); i++) {
        bool found = false;
        for (size_t j = 0; j < json_array_size(b) && !found; j++) {
            found = json_equal(json_array_get(a, i), json_array_get(b, j)) != 0;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool
is_same(enum kind kind, const char *key, const json_t *now, const json_t *wanted)
{
    const struct schema_kind *k = schema_kind(kind);
    int index = schema_field_index(k->fields, k->field_count, key);
    ASSERT(index >= 0);
    if (k->fields[index].list && !k->fields[index].ordered) {
        return same_set(now, wanted);
    }
    return json_equal(now, wanted) != 0;
}

/* Takes what the object has already out of wanted. */
static void
drop_same(struct plan *pl, const struct object *o, json_t *wanted)
{
    json_t *now = object_to_json(o, &pl->refs);
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(wanted, next, key, value)
    {
        if (is_same(o->kind, key, json_object_get(now, key), value)) {
            json_object_del(wanted, key);
        }
    }
    json_decref(now);
}

void
plan_change(struct plan *pl, const struct owned *own, json_t *wanted)
{
    drop_same(pl, own->o, wanted);
    if (json_object_size(wanted) == 0) {
        json_decref(wanted);
        return;
    }
    if (own->other != NULL) {
        plan_shared(pl, own);
    }
    const char *name = arena_strdup(pl->arena, own->o->name.s);
    add_op(pl, (struct plan_op){CHANGE_MERGE, own->o->kind, name, wanted});
}

void
plan_put(struct plan *pl, enum kind kind, const char *name, json_t *wanted)
{
    const struct owned *own = owned_find(&pl->owned, kind, name);
    if (own != NULL) {
        plan_change(pl, own, wanted);
    } else {
        plan_create(pl, kind, name, wanted);
    }
}

static json_t *
hosts_json(const struct publish_request *r)
{
    json_t *hosts = json_array();
    for (size_t i = 0; i < r->host_count; i++) {
        json_array_append_new(hosts, json_string(r->hosts[i]));
    }
    return hosts;
}

static void
plan_service(struct plan *pl)
{
    json_t *body = json_pack(
        "{s:b, s:O, s:o, s:s, s:s, s:O}", "enabled", 1, "listeners", pl->listeners, "hosts",
        hosts_json(&pl->r), "path", pl->r.path, "pool", pl->name, "certificate",
        pl->certificate);
    if (pl->r.scheme == PUBLISH_HTTPS) {
        json_object_set_new(body, "redirect_https", json_true());
    }
    if (pl->owned.service != NULL) {
        const struct owned own = {.o = pl->owned.service};
        plan_change(pl, &own, body);
    } else {
        plan_create(pl, K_SERVICE, pl->name, body);
    }
}

/* An object that is used comes before its user; deletions come at the end, users first. */
static int
op_rank(const struct plan_op *op)
{
    static const enum kind order[RANKS / 2] = {K_CERTIFICATE, K_SERVER,   K_MONITOR,
                                               K_POOL,        K_LISTENER, K_SERVICE};

    int rank = 0;
    while (order[rank] != op->kind) {
        rank++;
        ASSERT(rank < RANKS / 2);
    }
    return op->op == CHANGE_DELETE ? RANKS - 1 - rank : rank;
}

/* Moves the operations to the set; all or none. */
static bool
move_ops(struct plan *pl, struct change_set *set)
{
    size_t before = set->count;
    struct error e = {0};
    err_t err = ERR_OK;
    for (int rank = 0; rank < RANKS; rank++) {
        for (size_t i = 0; i < pl->op_count && err == ERR_OK; i++) {
            struct plan_op *op = &pl->ops[i];
            if (op_rank(op) != rank) {
                continue;
            }
            json_t *body = TAKE(op->body);
            bool is_certificate = op->kind == K_CERTIFICATE; /* whose source is given */
            struct change change = {
                .op = op->op,
                .kind = op->kind,
                .name = op->name,
                .body = body,
                .by_product = is_certificate,
            };
            err = change_set_add(set, change, &e);
        }
    }
    if (err != ERR_OK) {
        while (set->count > before) {
            json_decref(set->items[--set->count].body);
        }
        plan_problem(pl, "limit", "", "This is too much for one change: %s.", e.msg);
    }
    return err == ERR_OK;
}

static void
plan_fini(struct plan *pl)
{
    for (size_t i = 0; i < pl->op_count; i++) {
        json_decref(pl->ops[i].body);
    }
    free(pl->ops);
    owned_fini(&pl->owned);
    json_decref(pl->listeners);
    json_decref(pl->certificate);
}

/* What the request asks for as operations in the plan; false after a problem. */
static bool
make_plan(struct plan *pl)
{
    size_t errors = pl->p->errors;
    pl->name = plan_service_name(pl);
    owned_init(&pl->owned, pl->shared, pl->name);
    plan_listeners(pl);
    plan_pool(pl);
    if (pl->p->errors != errors) {
        return false;
    }
    plan_certificate(pl);
    plan_service(pl);
    return pl->p->errors == errors;
}

void
publish_plan(
    const json_t *request, const struct publish_input *in, struct arena *arena,
    struct change_set *set, const char **ret_service, struct problems *p)
{
    struct plan pl = {
        .in = in,
        .shared = in->now->shared,
        .arena = arena,
        .p = p,
        .refs = snapshot_refs(in->now),
    };
    *ret_service = NULL;
    if (publish_parse(request, arena, &pl.r, p) && make_plan(&pl) && move_ops(&pl, set)) {
        *ret_service = pl.name;
    }
    plan_fini(&pl);
}
