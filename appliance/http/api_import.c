/* SPDX-License-Identifier: Apache-2.0 */
/* Many services and objects from one document, into the draft: all of it or nothing. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/edit.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "model/publish.h"
#include "routes_gen.h"

/* Texts of what is published; a body has at most 32 MiB. */
#define IMPORT_BYTES ((size_t)128 << 20)
#define NAME_BYTES   100 /* of one that is refused, in a problem */
/* Each is planned on top of those before, which takes its time and its share of the texts. */
#define PUBLISH_MAX 1000
#define TRIES       3

struct import {
    bool plan;
    struct arena *arena;
    struct problems *p;
    const struct snapshot_pair *base;
    struct snapshot_pair now; /* base with what has been published so far; references */
    struct change_set set;
    struct snapshot *shared, *local; /* what base becomes */
};

static void
import_fini(struct import *x)
{
    snapshot_unref(x->now.shared);
    snapshot_unref(x->now.local);
    change_set_fini(&x->set);
    snapshot_unref(x->shared);
    snapshot_unref(x->local);
    arena_free(x->arena);
}

/* ---- "publish" ---- */

/* Problems from the n-th on are of the i-th request. */
static void
place_request(struct import *x, size_t from, size_t i, const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "name"));

    for (size_t n = from; n < x->p->count; n++) {
        struct problem *item = &x->p->items[n];

        if (item->kind == NULL) {
            item->pointer = arena_printf(x->p->arena, "/publish/%zu%s", i, item->pointer);
            item->kind = "service";
            item->name =
                name != NULL
                    ? arena_printf(x->p->arena, "%.*s", problems_cut(name, NAME_BYTES), name)
                    : NULL;
        }
    }
}

/* Moves the operations of a set to the whole one. */
static err_t
move_ops(struct import *x, struct change_set *from, struct error *e)
{
    err_t code = ERR_OK;

    for (size_t i = 0; i < from->count && code == ERR_OK; i++) {
        struct change op = from->items[i];

        from->items[i].body = NULL;
        code = change_set_add(&x->set, op, e);
    }
    return code;
}

static err_t
publish_one(struct request *r, struct import *x, const json_t *item, struct error *e)
{
    CLEANUP(change_set_fini) struct change_set set = {.items = NULL};
    struct snapshot *shared = NULL, *local = NULL;
    const char *service;
    const struct publish_input in = {
        .now = &x->now,
        .now_s = clock_wall_ms(r->http->config.clock) / 1000,
        .tools = api_publish_tools(r),
    };

    change_set_init(&set);
    publish_plan(item, &in, x->arena, &set, &service, x->p);
    if (x->p->errors > 0) {
        return error_set(e, ERR_INVALID, "%s", "");
    }
    err_t code = change_apply(&set, &x->now, &shared, &local, x->p, e);
    if (code != ERR_OK) {
        return code;
    }
    snapshot_unref(x->now.shared);
    snapshot_unref(x->now.local);
    x->now = (struct snapshot_pair){shared, local};
    return move_ops(x, &set, e);
}

static err_t
publish_all(struct request *r, struct import *x, struct error *e)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(r->json, "publish"), i, item)
    {
        size_t before = x->p->count;
        err_t code = publish_one(r, x, item, e);

        place_request(x, before, i, item);
        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

/* ---- "objects" ---- */

static bool
refuse_item(struct import *x, size_t i, const char *key, const char *code, const char *message)
{
    const struct problem where = {.pointer = arena_printf(x->arena, "/objects/%zu%s", i, key)};

    problems_add(x->p, SEVERITY_ERROR, code, &where, "%s", message);
    return false;
}

/* Kind and name that an item means; false after a problem. */
static bool
read_item(struct import *x, size_t i, const json_t *item, enum kind *ret, const char **ret_name)
{
    static const char *const keys[] = {"kind", "body", NULL};
    const char *kind = json_string_value(json_object_get(item, "kind"));
    const json_t *body = json_object_get(item, "body");
    struct error e;

    if (!json_is_object(item) || json_only_keys(item, keys, &e) != ERR_OK) {
        return refuse_item(x, i, "", "format", "An item has \"kind\" and \"body\".");
    }
    if (kind == NULL) {
        return refuse_item(x, i, "/kind", "format", "An item has the kind of its object.");
    }
    if (!schema_kind_by_name(kind, ret)) {
        return refuse_item(x, i, "/kind", "format", problems_no_kind(x->arena, kind));
    }
    if (schema_kind(*ret)->direct) {
        return refuse_item(
            x, i, "/kind", "not_allowed",
            "Objects of this kind change at once, not with Apply: they cannot be imported.");
    }
    *ret_name = schema_kind(*ret)->singleton ? schema_kind(*ret)->name
                                             : json_string_value(json_object_get(body, "name"));
    if (!json_is_object(body)) {
        return refuse_item(x, i, "/body", "format", "The body is the object.");
    }
    if (*ret_name == NULL) {
        return refuse_item(x, i, "/body/name", "required", "The object needs a name.");
    }
    return true;
}

static const char *
key_of(struct import *x, enum kind kind, const char *name)
{
    return arena_printf(x->arena, "%s %s", schema_kind(kind)->name, name);
}

/* An object that is there, or stood in the document before, is changed, another one created.
 * where: kind and name -> index, for the pointers of problems. */
static err_t
add_object(struct import *x, size_t i, const json_t *item, json_t *where, struct error *e)
{
    enum kind kind = 0;
    const char *name = NULL;

    if (!read_item(x, i, item, &kind, &name)) {
        return ERR_OK;
    }
    const char *key = key_of(x, kind, name);
    bool there = json_object_get(where, key) != NULL ||
                 snapshot_by_name(snapshot_of(&x->now, kind), kind, name) != NULL;
    const struct change op = {
        .op = there ? CHANGE_MERGE : CHANGE_CREATE,
        .kind = kind,
        .name = there ? name : NULL,
        .body = json_copy(json_object_get(item, "body")),
    };

    (void)json_object_set_new(where, key, json_integer((json_int_t)i));
    return change_set_add(&x->set, op, e);
}

static err_t
add_objects(const struct request *r, struct import *x, json_t *where, struct error *e)
{
    const json_t *item;
    size_t i;
    err_t code = ERR_OK;

    json_array_foreach(json_object_get(r->json, "objects"), i, item)
    {
        code = add_object(x, i, item, where, e);
        if (code != ERR_OK) {
            break;
        }
    }
    return x->p->errors > 0 && code == ERR_OK ? error_set(e, ERR_INVALID, "%s", "") : code;
}

/* Problems of objects that stand in the document get their place in it. */
static void
place_problems(struct import *x, const json_t *where)
{
    for (size_t n = 0; n < x->p->count; n++) {
        struct problem *item = &x->p->items[n];
        enum kind kind;

        if (item->kind == NULL || item->name == NULL ||
            !schema_kind_by_name(item->kind, &kind)) {
            continue;
        }
        const json_t *at = json_object_get(where, key_of(x, kind, item->name));
        if (at != NULL) {
            item->pointer = arena_printf(
                x->p->arena, "/objects/%lld/body%s", (long long)json_integer_value(at),
                item->pointer != NULL ? item->pointer : "");
        }
    }
}

/* ---- the whole ---- */

static bool
read_import(struct request *r, struct import *x)
{
    static const char *const keys[] = {"publish", "objects", NULL};

    if (!request_flag(r, "plan", &x->plan) || !request_only_keys(r, keys)) {
        return false;
    }
    for (size_t i = 0; keys[i] != NULL; i++) {
        const json_t *list = json_object_get(r->json, keys[i]);

        if (list != NULL && !json_is_array(list)) {
            reply_problem(r, 400, error_name(ERR_SYNTAX), "\"%s\" is no array", keys[i]);
            return false;
        }
    }
    if (json_array_size(json_object_get(r->json, "publish")) > PUBLISH_MAX) {
        reply_problem(
            r, 422, error_name(ERR_LIMIT),
            "a document publishes at most %d services: make several of it", PUBLISH_MAX);
        return false;
    }
    return true;
}

static err_t
make_plan(struct request *r, struct import *x, struct error *e)
{
    const struct view *v = request_fresh_view(r);
    json_auto_t *where = json_object();

    x->base = &v->draft;
    x->now =
        (struct snapshot_pair){snapshot_ref(v->draft.shared), snapshot_ref(v->draft.local)};
    err_t code = publish_all(r, x, e);
    if (code == ERR_OK) {
        code = add_objects(r, x, where, e);
    }
    if (code == ERR_OK) {
        api_expect_present(&x->set, x->base);
        code = x->set.count == 0
                   ? change_apply(&x->set, x->base, &x->shared, &x->local, x->p, e)
                   : edit_try(r->http->config.engine, &x->set, &x->shared, &x->local, x->p, e);
    }
    place_problems(x, where);
    return code;
}

static void
reply_import(struct request *r, const struct import *x)
{
    struct snapshot_pair after = {x->shared, x->local};
    json_t *result = json_pack(
        "{s:b, s:o, s:n, s:o}", "planned", x->plan, "objects", diff_objects(x->base, &after),
        "diff", "problems", problems_json(x->p));
    json_t *diff = NULL;
    struct error e;

    if (x->plan) {
        if (api_diff(r, x->base, &after, &diff, &e) != ERR_OK) {
            json_decref(result);
            reply_error(r, &e, NULL);
            return;
        }
        (void)json_object_set_new(diff, "from", json_string("draft"));
        (void)json_object_set_new(diff, "to", json_string("plan"));
        (void)json_object_set_new(result, "diff", diff);
    }
    reply_json(r, 200, result);
}

/* One try; false: again, the draft moved since the plan was made. */
static bool
import(struct request *r, bool last_try)
{
    CLEANUP(import_fini) struct import x = {.plan = false};
    struct error e = {.code = ERR_OK};

    x.arena = arena_new(IMPORT_BYTES);
    x.p = request_problems(r);
    problems_init(x.p, r->arena);
    change_set_init(&x.set);
    if (!read_import(r, &x)) {
        return true;
    }
    err_t code = make_plan(r, &x, &e);
    if (code == ERR_OK && !x.plan && x.set.count > 0) {
        code = edit_draft(r->http->config.engine, &x.set, &r->actor, x.p, &e);
        if (code != ERR_OK && !last_try && api_has_moved(r)) {
            return false;
        }
    }
    if (code != ERR_OK) {
        reply_error(r, &e, x.p);
    } else {
        reply_import(r, &x);
    }
    return true;
}

void
http_import_create(struct request *r)
{
    for (int i = 1; i <= TRIES; i++) {
        if (import(r, i == TRIES)) {
            return;
        }
    }
}
