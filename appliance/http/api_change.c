/* SPDX-License-Identifier: Apache-2.0 */
/* Many operations in one request. */
#include "base/json.h"
#include "engine/edit.h"
#include "http/api.h"
#include "http/reply.h"
#include "routes_gen.h"

/* Names of operations are copied, and a body has at most 32 MiB of them. */
#define OPS_BYTES ((size_t)64 << 20)

struct changes {
    struct change_set set;
    struct arena *arena;
    struct api_apply_choice choice;
    struct hash base;
    bool has_base;
};

/* Passwords are hashed and keys are made where these objects have their own routes. */
static void
refuse_direct(struct request *r, const struct changes *c)
{
    for (size_t i = 0; i < c->set.count; i++) {
        if (schema_kind(c->set.items[i].kind)->direct) {
            struct problem where = {.pointer = arena_printf(r->arena, "/ops/%zu/kind", i)};

            problems_add(
                request_problems(r), SEVERITY_ERROR, "not_allowed", &where,
                "Keys, administrators and server states are changed one by one, at /api/v1/%s.",
                schema_kind(c->set.items[i].kind)->plural);
            return;
        }
    }
}

static bool
read_ops(struct request *r, struct changes *c)
{
    struct problems *p = request_problems(r);
    const json_t *ops = json_object_get(r->json, "ops");

    if (!json_is_array(ops)) {
        reply_problem(r, 400, error_name(ERR_SYNTAX), "\"ops\" is no array");
        return false;
    }
    change_set_parse(&c->set, ops, c->arena, p);
    if (p->errors == 0) {
        refuse_direct(r, c);
    }
    if (p->errors > 0) {
        reply_problems(r, p);
        return false;
    }
    return true;
}

static bool
read_changes(struct request *r, struct changes *c)
{
    static const char *const keys[] = {"base", "ops", "note", "apply", "confirm", NULL};

    return request_only_keys(r, keys) && api_read_apply(r, &c->choice) &&
           api_read_hash(r, "base", &c->base, &c->has_base) && read_ops(r, c);
}

/* On the engine's thread, so the head cannot move meanwhile. */
static void
change_draft(struct request *r, const struct changes *c)
{
    const struct view *v = request_fresh_view(r);
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};

    if (c->has_base && !hash_equal(&c->base, &v->head.id)) {
        reply_problem(
            r, 409, error_name(ERR_CONFLICT),
            "the base is not the head, which is revision %lld", (long long)v->head.rev);
        return;
    }
    if (c->set.count > 0 &&
        edit_draft(r->http->config.engine, &c->set, &r->actor, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    reply_json(r, 200, api_draft(request_fresh_view(r)));
}

static void
apply_changes(struct request *r, const struct changes *c)
{
    struct apply_request q = {
        .who = &r->actor,
        .note = c->choice.note,
        .base = c->has_base ? &c->base : NULL,
        .ops = &c->set,
        .confirm_s = c->choice.confirm_s,
    };
    int64_t task = 0;

    if (api_apply_start(r, &q, &task)) {
        api_apply_answer(r, task, c->choice.wait);
    }
}

void
http_changes_create(struct request *r)
{
    struct changes c = {.arena = arena_new(OPS_BYTES)};

    change_set_init(&c.set);
    if (read_changes(r, &c)) {
        if (c.choice.apply) {
            apply_changes(r, &c);
        } else {
            change_draft(r, &c);
        }
    }
    change_set_fini(&c.set);
    arena_free(c.arena);
}
