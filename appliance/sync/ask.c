/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of another node whose answer is waited for. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/task.h"
#include "sync/inner.h"

#define PATH_PULL "/peer/v1/config/read"
#define MOMENT_MS 200
#define TRIES     3 /* objects that are missing are asked for, and the head may move */

struct call
cluster_call_of(const struct cluster *c, const struct member *m, const struct member *self)
{
    return (struct call){
        .url = m->url,
        .key = m->key,
        .pin = m->pin,
        .node = self->id,
        .timeout_ms = c->tunables->sync_health_ms,
        .dead_ms = 2 * c->tunables->sync_health_ms,
        .answer_max = SMALL_ANSWER_BYTES,
    };
}

static err_t
error_of_status(long status)
{
    switch (status) {
    case 400: return ERR_SYNTAX;
    case 401:
    case 403: return ERR_DENIED;
    case 404: return ERR_NOT_FOUND;
    case 409: return ERR_CONFLICT;
    case 413: return ERR_LIMIT;
    case 422: return ERR_INVALID;
    case 504: return ERR_TIMEOUT;
    default: return ERR_UNAVAILABLE;
    }
}

err_t
cluster_read_answer(
    struct call_answer *a, json_t **ret, char ret_code[CODE_BYTES], struct error *e)
{
    const char *detail, *name;
    err_t code;

    ret_code[0] = '\0';
    if (a->error.code != ERR_OK) {
        return error_set(e, a->error.code, "%s", a->error.msg);
    }
    if (a->status == 204) {
        return ERR_OK;
    }
    if (json_parse(buf_str(&a->body), a->body.len, ret, e) != ERR_OK) {
        return error_set(e, ERR_UNAVAILABLE, "the answer (status %ld) is no JSON", a->status);
    }
    if (a->status < 400) {
        return ERR_OK;
    }
    detail = json_string_value(json_object_get(*ret, "detail"));
    name = json_string_value(json_object_get(*ret, "code"));
    code =
        error_set(e, error_of_status(a->status), "%.200s", detail != NULL ? detail : "refused");
    (void)snprintf(ret_code, CODE_BYTES, "%s", name != NULL ? name : "");
    return code;
}

err_t
cluster_ask(
    struct cluster *c, const struct call *call, json_t **ret, char ret_code[CODE_BYTES],
    struct error *e)
{
    struct call_answer a = {.status = 0};
    char unused[CODE_BYTES];
    json_t *j = NULL;
    err_t code;

    (void)calls_wait(c->calls, call, &a);
    code = cluster_read_answer(&a, &j, ret_code != NULL ? ret_code : unused, e);
    buf_wipe_fini(&a.body);
    if (code == ERR_OK && ret != NULL) {
        *ret = j;
    } else {
        json_decref(j);
    }
    return code;
}

/* ---- tasks ---- */

struct task_wait {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool ended;
};

static void
on_task_done(void *ctx)
{
    struct task_wait *w = ctx;

    lock_take(&w->lock);
    w->ended = true;
    ASSERT(pthread_cond_signal(&w->done) == 0);
    lock_give(&w->lock);
}

/* Whether it has ended. */
static bool
wait_a_moment(struct task_wait *w)
{
    struct timespec deadline = lock_deadline(MOMENT_MS);
    bool ended;

    lock_take(&w->lock);
    while (!w->ended && lock_wait(&w->done, &w->lock, &deadline)) {
    }
    ended = w->ended;
    lock_give(&w->lock);
    return ended;
}

static bool
is_stopping(struct cluster *c)
{
    bool stopping;

    lock_take(&c->lock);
    stopping = c->stopping;
    lock_give(&c->lock);
    return stopping;
}

err_t
cluster_wait_task(struct cluster *c, int64_t task, struct error *e)
{
    struct tasks *tasks = engine_tasks(c->en);
    struct task_wait w = {.ended = false};
    json_t *j;
    err_t code = ERR_OK;

    lock_init(&w.lock);
    lock_cond_init(&w.done);
    if (task_when_done(tasks, task, on_task_done, &w)) {
        bool ended;

        do {
            ended = wait_a_moment(&w);
        } while (!ended && !is_stopping(c));
        if (!ended && task_forget(tasks, task, on_task_done, &w)) {
            code = error_set(e, ERR_UNAVAILABLE, "the daemon stops");
        }
        while (code == ERR_OK && !wait_a_moment(&w)) {
        }
    }
    (void)pthread_cond_destroy(&w.done);
    (void)pthread_mutex_destroy(&w.lock);
    if (code != ERR_OK) {
        return code;
    }
    j = task_json(tasks, task);
    if (j == NULL || strcmp(json_string_value(json_object_get(j, "state")), "ok") != 0) {
        char reason[TASK_REASON_BYTES];

        task_reason(j, reason);
        code = error_set(e, ERR_INVALID, "%s", reason);
    }
    json_decref(j);
    return code;
}

/* ---- pull ---- */

/* What only history gets needs no content of the head, so any commit will do to start from;
 * what is taken over starts from this node's head. */
static err_t
wanted_json(
    struct cluster *c, bool history, const struct sync_result *missing, json_t **ret,
    struct error *e)
{
    struct hash have[SYNC_HAVE_MAX];
    size_t count = 0;
    err_t code = sync_have(c->en, have, &count, e);
    json_t *ids = json_array();

    for (size_t i = 0; i < (history ? count : 1); i++) {
        char hex[SHA256_HEX + 1];

        hash_hex(&have[i], hex);
        (void)json_array_append_new(ids, json_string(hex));
    }
    *ret = json_pack(
        "{s:o, s:o}", "have", ids, "objects",
        sync_entries_json(missing->missing, missing->missing_count));
    return code;
}

static err_t
fetch(
    struct cluster *c, const struct member *m, bool history, const struct sync_result *missing,
    struct sync_doc *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf body;
    struct member self;
    struct call call;
    json_t *wanted = NULL;
    json_t *j = NULL;
    err_t code = wanted_json(c, history, missing, &wanted, e);

    members_self(c->en, &self);
    buf_init(&body, SYNC_DOC_MAX);
    json_canonical(wanted, &body);
    json_decref(wanted);
    call = cluster_call_of(c, m, &self);
    call.method = "POST";
    call.path = PATH_PULL;
    call.body = buf_str(&body);
    call.body_len = body.len;
    call.timeout_ms = c->tunables->sync_read_ms;
    call.answer_max = SYNC_DOC_MAX;
    code = code == ERR_OK ? cluster_ask(c, &call, &j, NULL, e) : code;
    if (code == ERR_OK) {
        code = sync_doc_read(j, ret, e);
    }
    json_decref(j);
    crypt_wipe(&self, sizeof self);
    return code;
}

err_t
cluster_pull_head(
    struct cluster *c, const struct member *m, struct hash *ret_head, struct error *e)
{
    struct sync_result result = {.missing_count = 0};
    struct sync_doc d;
    err_t code = fetch(c, m, true, &result, &d, e);

    if (code == ERR_OK) {
        *ret_head = d.head;
        code = sync_take(
            c->en, &d, &(struct sync_origin){.how = SYNC_STORED, .from = m->name}, &result, e);
    }
    free(result.missing);
    return code;
}

err_t
cluster_pull(
    struct cluster *c, const struct member *m, const struct sync_origin *origin,
    int64_t *ret_task, struct error *e)
{
    struct sync_result result = {.missing_count = 0};
    err_t code = ERR_NOT_FOUND;

    *ret_task = 0;
    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND; i++) {
        struct sync_doc d;
        struct sync_result next;

        code = fetch(c, m, false, &result, &d, e);
        if (code != ERR_OK) {
            break;
        }
        code = sync_take(c->en, &d, origin, &next, e);
        free(result.missing);
        result = next;
    }
    free(result.missing);
    if (code == ERR_OK && result.task != 0) {
        *ret_task = result.task;
        code = cluster_wait_task(c, result.task, e);
    }
    return code;
}

err_t
cluster_check_answers(struct cluster *c, const struct member *m, struct error *e)
{
    struct error why = {.code = ERR_UNAVAILABLE, .msg = "it was not asked yet"};
    const struct peer *p;
    bool answered, newer;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    answered = p != NULL && p->answered;
    newer = answered && p->relation == REL_PEER_NEWER_RELEASE;
    if (p != NULL) {
        why = p->failure;
    }
    lock_give(&c->lock);
    if (!answered) {
        return error_set(e, ERR_UNAVAILABLE, "%s: %.180s", m->name, why.msg);
    }
    return newer ? error_set(
                       e, ERR_CONFLICT, "%s %s, which this one does not understand", m->name,
                       relation_text(REL_PEER_NEWER_RELEASE))
                 : ERR_OK;
}
