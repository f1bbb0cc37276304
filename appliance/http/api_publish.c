/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing a URL, and taking it back. */
#include <string.h>

#include "base/json.h"
#include "base/x509.h"
#include "engine/edit.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "model/publish.h"
#include "routes_gen.h"

#define PLACEHOLDER_DAYS 730
#define TRIES            3

struct publish {
    json_t *request; /* what the model reads */
    bool plan;
    bool try; /* its check */
    struct api_apply_choice choice;
    const struct snapshot_pair *base;
    struct change_set set;
    const char *service;
    struct snapshot *shared, *local; /* what base becomes */
};

static void
publish_fini(struct publish *x)
{
    json_decref(x->request);
    change_set_fini(&x->set);
    snapshot_unref(x->shared);
    snapshot_unref(x->local);
}

/* ---- answers ---- */

static json_t *
result_json(const struct request *r, const struct publish *x)
{
    struct snapshot_pair after = {x->shared, x->local};

    return json_pack(
        "{s:s, s:b, s:o, s:n, s:o, s:[], s:n}", "service", x->service, "planned", x->plan,
        "objects", diff_objects(x->base, &after), "diff", "problems",
        problems_json(r->problems), "checks", "task");
}

/* The answer is complete; trial NULL: none was made. */
static void
answer_tried(struct request *r, json_t *trial, const struct api_tried_ctx *ctx)
{
    if (trial != NULL) {
        (void)json_array_append_new(json_object_get(r->kept, "checks"), trial);
    }
    if (ctx->task != 0) {
        api_apply_answer(r, ctx->task, ctx->wait);
    } else {
        reply_json(r, 200, TAKE(r->kept));
    }
}

/* Answers with the result when the check of the service's pool has been tried. task: of the
 * apply, 0: none. */
static void
answer_when_tried(struct request *r, struct publish *x, json_t *result, int64_t task)
{
    const struct api_tried_ctx ctx = {.task = task, .wait = x->choice.wait};
    const struct object *pool = snapshot_by_name(x->shared, K_POOL, x->service);

    r->kept = result;
    if (!x->try || api_try_monitor(x->shared, pool) == NULL) {
        answer_tried(r, NULL, &ctx);
    } else if (!api_try(r, x->shared, pool, answer_tried, &ctx)) {
        answer_tried(r, api_try_too_many(r, x->shared, pool), &ctx);
    }
}

static void
reply_plan(struct request *r, struct publish *x)
{
    struct snapshot_pair after = {x->shared, x->local};
    json_t *result = result_json(r, x);
    json_t *diff = NULL;
    struct error e;

    if (api_diff(r, x->base, &after, &diff, &e) != ERR_OK) {
        json_decref(result);
        reply_error(r, &e, NULL);
        return;
    }
    (void)json_object_set_new(diff, "from", json_string(x->choice.apply ? "head" : "draft"));
    (void)json_object_set_new(diff, "to", json_string("plan"));
    api_diff_sessions(r, diff);
    (void)json_object_set_new(result, "diff", diff);
    answer_when_tried(r, x, result, 0);
}

/* ---- publishing ---- */

static err_t
make_placeholder(
    void *ctx, const char *const *names, struct buf *chain, struct buf *key, struct error *e)
{
    const struct request *r = ctx;
    int64_t now_s = clock_wall_ms(r->http->config.clock) / 1000;

    return x509_selfsigned(names, now_s, PLACEHOLDER_DAYS, chain, key, e);
}

struct publish_tools
api_publish_tools(struct request *r)
{
    return (struct publish_tools){make_placeholder, r};
}

/* False: refused. */
static bool
read_request(struct request *r, struct publish *x)
{
    x->try = request_param(r, "try") == NULL;
    if (!request_flag(r, "plan", &x->plan) || (!x->try && !request_flag(r, "try", &x->try)) ||
        !api_read_apply(r, &x->choice)) {
        return false;
    }
    x->request = json_copy(r->json);
    (void)json_object_del(x->request, "apply");
    (void)json_object_del(x->request, "note");
    (void)json_object_del(x->request, "confirm");
    return true;
}

void
api_expect_present(struct change_set *set, const struct snapshot_pair *base)
{
    for (size_t i = 0; i < set->count; i++) {
        struct change *op = &set->items[i];
        const struct object *o =
            op->op != CHANGE_CREATE && op->name != NULL
                ? snapshot_by_name(snapshot_of(base, op->kind), op->kind, op->name)
                : NULL;

        op->if_match = o != NULL ? &o->objhash : NULL;
    }
}

/* Operations, and what they would make. ERR_INVALID with problems. */
static err_t
make_plan(struct request *r, struct publish *x, struct error *e)
{
    struct problems *p = request_problems(r);
    const struct view *v = request_fresh_view(r);
    struct publish_input in = {
        .now_s = clock_wall_ms(r->http->config.clock) / 1000,
        .tools = api_publish_tools(r),
    };

    x->base = x->choice.apply ? &v->now : &v->draft;
    in.now = x->base;
    publish_plan(x->request, &in, r->arena, &x->set, &x->service, p);
    if (p->errors > 0 || x->service == NULL) {
        return error_set(e, ERR_INVALID, "%s", "");
    }
    api_expect_present(&x->set, x->base);
    if (x->choice.apply || x->set.count == 0) {
        return change_apply(&x->set, x->base, &x->shared, &x->local, p, e);
    }
    return edit_try(r->http->config.engine, &x->set, &x->shared, &x->local, p, e);
}

static struct apply_request
request_of(const struct request *r, const struct publish *x)
{
    return (struct apply_request){
        .who = &r->actor,
        .note = x->choice.note,
        .ops = &x->set,
        .confirm_s = x->choice.confirm_s,
    };
}

static void
plan(struct request *r, struct publish *x)
{
    struct apply_request q = request_of(r, x);
    struct problems *p = request_problems(r);
    struct error e;

    if (x->choice.apply && apply_try(r->http->config.engine, &q, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
    } else {
        reply_plan(r, x);
    }
}

static void
start_apply(struct request *r, struct publish *x)
{
    struct apply_request q = request_of(r, x);
    int64_t task = 0;

    if (api_apply_start(r, &q, &task)) {
        answer_when_tried(r, x, result_json(r, x), task);
    }
}

bool
api_has_moved(struct request *r)
{
    int64_t version = request_view(r)->version;
    CLEANUP(view_cleanup) struct view *present = engine_view(r->http->config.engine);

    return present->version != version;
}

/* False: refused because the draft moved since the plan was made. */
static bool
edit_as_planned(struct request *r, struct publish *x, bool last_try)
{
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};

    if (x->set.count > 0 &&
        edit_draft(r->http->config.engine, &x->set, &r->actor, p, &e) != ERR_OK) {
        if (!last_try && api_has_moved(r)) {
            return false;
        }
        reply_error(r, &e, p);
        return true;
    }
    answer_when_tried(r, x, result_json(r, x), 0);
    return true;
}

/* One try; false: again, on the draft as it is by then. */
static bool
publish(struct request *r, bool last_try)
{
    struct publish x = {.plan = false};
    struct error e = {.code = ERR_OK};
    bool done = true;

    change_set_init(&x.set);
    problems_init(request_problems(r), r->arena);
    if (!read_request(r, &x)) {
        publish_fini(&x);
        return true;
    }
    if (make_plan(r, &x, &e) != ERR_OK) {
        reply_error(r, &e, r->problems);
    } else if (x.plan) {
        plan(r, &x);
    } else if (x.choice.apply) {
        start_apply(r, &x);
    } else {
        done = edit_as_planned(r, &x, last_try);
    }
    publish_fini(&x);
    return done;
}

void
http_publish_create(struct request *r)
{
    for (int i = 1; i <= TRIES; i++) {
        if (publish(r, i == TRIES)) {
            return;
        }
    }
}

/* No name of a service has a colon. */
static err_t
find_service(struct request *r, struct publish *x, struct error *e)
{
    x->service = request_segment(r, "{service}");
    return strstr(x->service, "://") == NULL
               ? ERR_OK
               : publish_find(x->service, x->base, r->arena, &x->service, e);
}

/* On the engine's thread: nothing comes between the plan and the edit. */
void
http_publish_delete(struct request *r)
{
    const struct view *v = request_fresh_view(r);
    struct publish x = {.base = &v->draft};
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};
    err_t code;

    if (!request_flag(r, "plan", &x.plan)) {
        return;
    }
    change_set_init(&x.set);
    code = find_service(r, &x, &e);
    if (code == ERR_OK) {
        code = publish_remove_plan(x.service, x.base, r->arena, &x.set, &e);
    }
    if (code == ERR_OK) {
        code = edit_try(r->http->config.engine, &x.set, &x.shared, &x.local, p, &e);
    }
    if (code == ERR_OK && !x.plan) {
        code = edit_draft(r->http->config.engine, &x.set, &r->actor, p, &e);
    }
    if (code == ERR_OK) {
        reply_json(r, 200, result_json(r, &x));
    } else {
        reply_error(r, &e, p);
    }
    publish_fini(&x);
}
