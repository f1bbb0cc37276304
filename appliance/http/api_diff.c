/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two configurations, as objects and as haproxy.cfg; the full check. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/edit.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "routes_gen.h"

#define CFG_NAME      "haproxy.cfg"
#define DIFF_MAX      ((size_t)64 << 20)
#define LONG_WORK_MAX 2

err_t
api_render_text(
    struct request *r, const struct snapshot_pair *pair, struct problems *p, char **ret,
    struct error *e)
{
    struct engine *en = r->http->config.engine;
    const struct artefact *cfg;
    struct rendered *files = NULL;
    err_t code = apply_render(en, pair, p, &files, e);

    *ret = NULL;
    if (code != ERR_OK) {
        return code == ERR_INVALID ? ERR_OK : code;
    }
    cfg = rendered_find(files, CFG_NAME);
    ASSERT(cfg != NULL);
    *ret = xstrdup(buf_str(&cfg->bytes));
    apply_rendered_done(en, files);
    return ERR_OK;
}

/* Too many differences are no failure: then the text says so. */
static json_t *
text_diff(const char *before, const char *after)
{
    json_t *json;
    struct buf out;
    struct error e;
    err_t code;

    if (before == NULL || after == NULL) {
        return json_null();
    }
    buf_init(&out, DIFF_MAX);
    code = diff_text(CFG_NAME, before, after, &out, &e);
    json = code == ERR_OK || code == ERR_LIMIT ? json_foreign_text(buf_str(&out)) : json_null();
    buf_fini(&out);
    return json;
}

err_t
api_diff(
    struct request *r, const struct snapshot_pair *before, const struct snapshot_pair *after,
    json_t **ret, struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems *unused = arena_alloc(arena, sizeof *unused);
    struct problems *p = request_problems(r);
    CLEANUP(xfree_cleanup) char *before_text = NULL;
    CLEANUP(xfree_cleanup) char *after_text = NULL;
    json_t *objects;
    err_t code;

    problems_init(unused, arena);
    code = api_render_text(r, before, unused, &before_text, e);
    if (code == ERR_OK) {
        code = api_render_text(r, after, p, &after_text, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    objects = diff_objects(before, after);
    *ret = json_pack(
        "{s:o, s:o, s:o, s:o}", "effect", api_effects(objects), "objects", objects,
        "haproxy_cfg", text_diff(before_text, after_text), "problems", problems_json(p));
    return ERR_OK;
}

void
api_diff_sessions(struct request *r, json_t *diff)
{
    const struct object *settings = snapshot_singleton(request_view(r)->now.shared, K_HAPROXY);
    json_t *sessions = json_null();
    struct engine_status s;

    engine_get_status(r->http->config.engine, &s);
    if (s.up == FACT_YES && api_has_effect(diff, "haproxy:reload")) {
        sessions = json_pack(
            "{s:I, s:I}", "open", (json_int_t)s.connections, "at_most_s",
            (json_int_t)object_int(settings, F_HAPROXY_HARD_STOP_AFTER_S));
    }
    (void)json_object_set_new(diff, "sessions", sessions);
}

void
http_config_diff(struct request *r)
{
    const struct view *v = request_view(r);
    json_t *diff = NULL;
    struct error e;

    if (api_diff(r, &v->now, &v->draft, &diff, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    (void)json_object_set_new(diff, "from", api_commit_name(&v->head));
    (void)json_object_set_new(diff, "to", json_string("draft"));
    api_diff_sessions(r, diff);
    reply_json(r, 200, diff);
}

err_t
api_long_begin(struct request *r, struct error *e)
{
    struct http *h = r->http;

    if (atomic_fetch_add(&h->long_work, 1) < LONG_WORK_MAX) {
        return ERR_OK;
    }
    api_long_end(r);
    return error_set(e, ERR_BUSY, "%d long requests run already: try again", LONG_WORK_MAX);
}

void
api_long_end(struct request *r)
{
    (void)atomic_fetch_sub(&r->http->long_work, 1);
}

err_t
api_check(
    struct request *r, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e)
{
    err_t code = api_long_begin(r, e);

    *ret = NULL;
    if (code == ERR_OK) {
        code = apply_check(r->http->config.engine, candidate, p, ret, e);
        api_long_end(r);
    }
    return code;
}

void
http_config_check(struct request *r)
{
    struct engine *en = r->http->config.engine;
    const struct view *v = request_view(r);
    struct problems *p = request_problems(r);
    struct rendered *files = NULL;
    struct error e;
    err_t code = api_check(r, &v->draft, p, &files, &e);

    apply_rendered_done(en, files);
    if (code != ERR_OK && code != ERR_INVALID) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(
        r, 200,
        json_pack(
            "{s:b, s:o}", "ok", code == ERR_OK && p->errors == 0, "problems",
            problems_json(p)));
}

void
http_config_text(struct request *r)
{
    const struct view *v = request_view(r);
    struct problems *p = request_problems(r);
    CLEANUP(xfree_cleanup) char *text = NULL;
    struct buf body;
    struct error e;
    bool draft;

    if (!request_flag(r, "draft", &draft)) {
        return;
    }
    if (api_render_text(r, draft ? &v->draft : &v->now, p, &text, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (text == NULL) {
        reply_problems(r, p);
        return;
    }
    buf_init(&body, RENDER_MAX_BYTES);
    buf_puts(&body, text);
    reply_text(r, 200, "text/plain; charset=utf-8", &body);
    buf_fini(&body);
}
