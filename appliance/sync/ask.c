/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of another node whose answer is waited for. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash_json.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/sync_piece.h"
#include "engine/task.h"
#include "sync/hand.h"

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

/* As our codes are: it is from outside. */
static bool
is_word(const char *text)
{
    return text != NULL && strlen(text) < CODE_BYTES &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0';
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
    if (a->status >= 300 && a->status < 400) {
        return error_set(
            e, ERR_UNAVAILABLE, "it redirects (status %ld), which is not followed", a->status);
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
    (void)snprintf(ret_code, CODE_BYTES, "%s", is_word(name) ? name : "");
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
cluster_wait_task(struct cluster *c, int64_t task, bool in_round, struct error *e)
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
            if (!ended && in_round) {
                cluster_look_meanwhile(c);
            }
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
        /* This node refuses the content, unless there is no place for it. */
        code = error_set(e, task_code(j) == ERR_IO ? ERR_IO : ERR_INVALID, "%s", reason);
    }
    json_decref(j);
    return code;
}

/* ---- pull ---- */

struct fetching {
    const struct sync_origin *origin;
    struct sync_ends ends;
    struct sync_result missing;
};

/* What only history gets needs no content of the head, so any commit will do to start from;
 * what is taken over starts from this node's head. */
static err_t
wanted_json(struct cluster *c, const struct fetching *f, json_t **ret, struct error *e)
{
    struct hash have[SYNC_HAVE_MAX];
    size_t count = 0;
    err_t code = sync_have(c->en, have, &count, e);

    *ret = json_pack(
        "{s:b, s:o, s:o, s:o}", "index", f->origin->how == SYNC_STORED, "have",
        hashes_json(have, f->origin->how == SYNC_STORED ? count : 1), "stored",
        hashes_json(f->ends.items, f->ends.count), "objects",
        sync_entries_json(f->missing.missing, f->missing.missing_count));
    return code;
}

static err_t
fetch(
    struct cluster *c, const struct member *m, const struct fetching *f, struct sync_doc *ret,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf body;
    struct member self;
    struct call call;
    json_t *wanted = NULL;
    json_t *j = NULL;
    err_t code = wanted_json(c, f, &wanted, e);

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

/* Said of the other node, it would be looked for there. */
static err_t
own_error(struct cluster *c, err_t code, struct error *e)
{
    struct member self;

    if (code != ERR_IO && code != ERR_BUSY) {
        return code;
    }
    members_self(c->en, &self);
    crypt_wipe(self.key, sizeof self.key);
    return error_wrap(e, "its history is not stored on %s", self.name);
}

/* Stores the pieces before the last document. */
static err_t
fetch_last(
    struct cluster *c, const struct member *m, struct fetching *f, struct sync_doc *ret,
    struct error *e)
{
    struct sync_doc d = {.more = true};
    size_t stored = 0;
    err_t code = ERR_OK;

    for (int i = 0; code == ERR_OK && d.more; i++) {
        struct sync_result unused = {.task = 0};

        code = i == SYNC_PIECES_MAX ? error_set(e, ERR_LIMIT, "its history does not end")
                                    : fetch(c, m, f, &d, e);
        if (code != ERR_OK || !d.more) {
            continue;
        }
        code = sync_ends_follow(&f->ends, &d, e);
        if (code == ERR_OK) {
            code = own_error(c, sync_piece_take(c->en, &d, f->origin, &unused, e), e);
            stored += d.commits.count;
        }
        sync_doc_free(&d);
        d.more = true;
    }
    if (stored > 0) {
        log_info("%zu revisions of the history of %s were fetched", stored, m->name);
    }
    if (code == ERR_OK) {
        *ret = d;
    }
    return code;
}

err_t
cluster_pull_head(
    struct cluster *c, const struct member *m, struct hash *ret_head, struct error *e)
{
    const struct sync_origin origin = {.how = SYNC_STORED, .from = m->name};
    struct fetching f = {.origin = &origin};
    err_t code = sync_ends_get(c->en, &f.ends, e);

    code = code == ERR_OK ? ERR_NOT_FOUND : code;
    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND; i++) {
        struct sync_doc d;
        struct sync_result next;

        code = fetch_last(c, m, &f, &d, e);
        if (code != ERR_OK) {
            break;
        }
        *ret_head = d.head;
        code = sync_take(c->en, &d, &origin, &next, e);
        code = code != ERR_NOT_FOUND ? own_error(c, code, e) : code;
        free(f.missing.missing);
        f.missing = next;
    }
    free(f.missing.missing);
    return code;
}

err_t
cluster_pull(
    struct cluster *c, const struct member *m, const struct sync_origin *origin,
    int64_t *ret_task, struct error *e)
{
    struct fetching f = {.origin = origin};
    err_t code = sync_ends_get(c->en, &f.ends, e);

    *ret_task = 0;
    code = code == ERR_OK ? ERR_NOT_FOUND : code;
    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND; i++) {
        struct sync_doc d;
        struct sync_result next;

        code = fetch_last(c, m, &f, &d, e);
        if (code != ERR_OK) {
            break;
        }
        code = sync_take(c->en, &d, origin, &next, e);
        free(f.missing.missing);
        f.missing = next;
    }
    free(f.missing.missing);
    if (code == ERR_OK && f.missing.task != 0) {
        *ret_task = f.missing.task;
        code = cluster_wait_task(c, f.missing.task, origin->how == SYNC_PULLED, e);
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
