/* SPDX-License-Identifier: Apache-2.0 */
/* Applying, and what is in the draft. */
#include "base/json.h"
#include "engine/edit.h"
#include "http/api.h"
#include "http/reply.h"
#include "http/wait.h"
#include "routes_gen.h"

static void
answer_task(struct request *r, json_t *task, bool ended)
{
    reply_json(r, ended ? 200 : 202, task);
    if (!ended) {
        reply_header(
            r, "Location",
            arena_printf(r->arena, "/api/v1/tasks/%lld", (long long)r->wait_task));
    }
}

void
api_apply(struct request *r, const struct apply_request *q, bool wait)
{
    struct engine *en = r->http->config.engine;
    struct problems *p = request_problems(r);
    int64_t task = 0;
    struct error e = {.code = ERR_OK};

    if (apply_start(en, q, &task, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    if (wait) {
        wait_for_task(r, task, answer_task);
        return;
    }
    r->wait_task = task;
    answer_task(r, task_json(engine_tasks(en), task), false);
}

void
http_config_apply(struct request *r)
{
    static const char *const keys[] = {"note", "base", NULL};
    struct apply_request q = {.who = &r->actor};
    struct hash base;
    bool has_base = false;
    bool wait;

    if (!request_flag(r, "wait", &wait) || !request_only_keys(r, keys) ||
        !api_read_note(r, &q.note) || !api_read_hash(r, "base", &base, &has_base)) {
        return;
    }
    q.base = has_base ? &base : NULL;
    api_apply(r, &q, wait);
}

/* ---- the draft ---- */

void
api_draft_reply(struct request *r)
{
    reply_json(r, 200, api_draft(request_fresh_view(r)));
}

void
http_draft_get(struct request *r)
{
    reply_json(r, 200, api_draft(request_view(r)));
}

void
http_draft_discard_all(struct request *r)
{
    struct error e;

    if (edit_discard_all(r->http->config.engine, &r->actor, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_none(r, 204);
}

void
http_draft_discard(struct request *r)
{
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};
    enum kind kind;

    if (!schema_kind_by_name(request_segment(r, "{kind}"), &kind)) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "there is no such kind of object");
        return;
    }
    if (edit_discard(
            r->http->config.engine, kind, request_segment(r, "{name}"), &r->actor, p, &e) !=
        ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    reply_none(r, 204);
}

/* ---- tasks ---- */

void
http_task_list(struct request *r)
{
    reply_json(
        r, 200, json_pack("{s:o}", "items", tasks_json(engine_tasks(r->http->config.engine))));
}

void
http_task_get(struct request *r)
{
    const char *text = request_segment(r, "{id}");
    json_t *task = NULL;
    int64_t id = 0;

    for (const char *p = text; *p >= '0' && *p <= '9' && id < INT64_MAX / 20; p++) {
        id = id * 10 + (*p - '0');
        if (p[1] == '\0') {
            task = task_json(engine_tasks(r->http->config.engine), id);
        }
    }
    if (task == NULL) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "there is no such task");
        return;
    }
    reply_json(r, 200, task);
}
