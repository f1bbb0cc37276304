/* SPDX-License-Identifier: Apache-2.0 */
/* Applying, and what is in the draft. */
#include "base/json.h"
#include "engine/confirm.h"
#include "engine/edit.h"
#include "engine/members.h"
#include "http/api.h"
#include "http/reply.h"
#include "http/wait.h"
#include "routes_gen.h"

#define ONLY_MAX 10000

static void
answer_task(struct request *r, json_t *task, bool ended)
{
    json_t *answer = TAKE(r->kept);

    if (answer != NULL) {
        (void)json_object_set_new(answer, "task", task);
    } else {
        answer = task;
    }
    reply_json(r, ended ? 200 : 202, answer);
    if (!ended) {
        reply_header(
            r, "Location",
            arena_printf(r->arena, "/api/v1/tasks/%lld", (long long)r->wait_task));
    }
}

bool
api_apply_start(struct request *r, const struct apply_request *q, int64_t *ret_task)
{
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};

    if (apply_start(r->http->config.engine, q, ret_task, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
        return false;
    }
    return true;
}

void
api_apply_answer(struct request *r, int64_t task, bool wait)
{
    if (wait) {
        wait_for_task(r, task, answer_task);
        return;
    }
    r->wait_task = task;
    answer_task(r, task_json(engine_tasks(r->http->config.engine), task), false);
}

/* ---- a part of the draft ---- */

static bool
read_object(struct request *r, const json_t *item, size_t i, struct apply_object *ret)
{
    const char *kind = json_string_value(json_object_get(item, "kind"));

    ret->name = json_string_value(json_object_get(item, "name"));
    if (kind == NULL || ret->name == NULL || json_object_size(item) != 2) {
        api_refuse(
            r, arena_printf(r->arena, "/only/objects/%zu", i), "type",
            "An object is given by \"kind\" and \"name\".");
        return false;
    }
    if (!schema_kind_by_name(kind, &ret->kind)) {
        api_refuse(
            r, arena_printf(r->arena, "/only/objects/%zu/kind", i), "no_such_kind",
            problems_no_kind(r->arena, kind));
        return false;
    }
    return true;
}

/* A list that may be left out. False: refused. */
static bool
read_list(struct request *r, const json_t *only, const char *key, const json_t **ret)
{
    *ret = json_object_get(only, key);
    if (*ret != NULL && (!json_is_array(*ret) || json_array_size(*ret) > ONLY_MAX)) {
        api_refuse(
            r, arena_printf(r->arena, "/only/%s", key), "type",
            "This is a list of at most 10000 items.");
        return false;
    }
    return true;
}

static bool
read_chosen(
    struct request *r, const json_t *objects, const json_t *authors, struct apply_only *ret)
{
    size_t object_count = json_array_size(objects);
    size_t author_count = json_array_size(authors);
    struct apply_object *list = arena_alloc(r->arena, (object_count + 1) * sizeof *list);
    const char **names = arena_alloc(r->arena, (author_count + 1) * sizeof *names);

    for (size_t i = 0; i < object_count; i++) {
        if (!read_object(r, json_array_get(objects, i), i, &list[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < author_count; i++) {
        names[i] = json_string_value(json_array_get(authors, i));
        if (names[i] == NULL) {
            api_refuse(
                r, arena_printf(r->arena, "/only/authors/%zu", i), "type",
                "An author is a text, as \"admin maria\".");
            return false;
        }
    }
    *ret = (struct apply_only){list, object_count, names, author_count};
    return true;
}

/* *ret_given: the body has it. False: refused. */
static bool
read_only(struct request *r, struct apply_only *ret, bool *ret_given)
{
    static const char *const keys[] = {"objects", "authors", NULL};
    const json_t *only = json_object_get(r->json, "only");
    const json_t *objects;
    const json_t *authors;
    struct error unused;

    *ret_given = only != NULL && !json_is_null(only);
    if (!*ret_given) {
        return true;
    }
    if (!json_is_object(only) || json_only_keys(only, keys, &unused) != ERR_OK) {
        api_refuse(r, "/only", "type", "only has the lists \"objects\" and \"authors\".");
        return false;
    }
    if (!read_list(r, only, "objects", &objects) || !read_list(r, only, "authors", &authors)) {
        return false;
    }
    if (json_array_size(objects) + json_array_size(authors) == 0) {
        api_refuse(r, "/only", "required", "Choose at least one object or author.");
        return false;
    }
    return read_chosen(r, objects, authors, ret);
}

void
http_config_apply(struct request *r)
{
    static const char *const keys[] = {"note", "base", "only", "confirm", "skip_nodes", NULL};
    struct apply_request q = {.who = &r->actor};
    struct api_nodes skipped;
    struct apply_only only;
    struct hash base;
    bool has_only = false;
    bool has_base = false;
    int64_t task = 0;
    bool wait;

    if (!request_flag(r, "wait", &wait) || !request_only_keys(r, keys) ||
        !api_read_note(r, &q.note) || !api_read_hash(r, "base", &base, &has_base) ||
        !api_read_confirm(r, &q.confirm_s) || !read_only(r, &only, &has_only) ||
        !api_read_nodes(r, "skip_nodes", &skipped)) {
        return;
    }
    q.skip_nodes = skipped.names;
    q.skip_count = skipped.count;
    q.base = has_base ? &base : NULL;
    q.only = has_only ? &only : NULL;
    if (api_apply_start(r, &q, &task)) {
        api_apply_answer(r, task, wait);
    }
}

void
http_config_confirm(struct request *r)
{
    static const char *const keys[] = {"commit", NULL};
    struct commit confirmed;
    struct hash commit;
    bool given = false;
    struct error e;

    if (!request_only_keys(r, keys) || !api_read_hash(r, "commit", &commit, &given)) {
        return;
    }
    if (confirm_now(
            r->http->config.engine, given ? &commit : NULL, &r->actor, &confirmed, &e) !=
        ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, commit_to_json(&confirmed));
}

/* ---- the draft ---- */

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
    const char *word = request_segment(r, "{kind}");
    enum kind kind;

    if (!schema_kind_by_name(word, &kind)) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "there is no kind \"%s\"", word);
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
    struct tasks *tasks = engine_tasks(r->http->config.engine);
    const char *text = request_segment(r, "{id}");
    const char *why = "";
    json_t *task = NULL;
    int64_t id = 0;

    for (const char *p = text; *p >= '0' && *p <= '9' && id < INT64_MAX / 20; p++) {
        id = id * 10 + (*p - '0');
        if (p[1] == '\0') {
            task = task_json(tasks, id);
            why = task_missing(tasks, id);
        }
    }
    if (task == NULL) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "there is no task %s%s", text, why);
        return;
    }
    reply_json(r, 200, task);
}
