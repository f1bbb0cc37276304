/* SPDX-License-Identifier: Apache-2.0 */
/* What is about to be applied, checked by all other nodes at once, and tried by one. */
#include "sync/fanout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/problems_json.h"
#include "engine/task.h"
#include "sync/fan.h"
#include "sync/hand.h"
#include "sync/refusal.h"

#define PATH_TRIAL   "/peer/v1/trial"
#define PATH_BYTES   128
#define PROGRESS_MAX ((size_t)2 << 10)

struct asked {
    const struct member *member;
    json_t *row; /* what came of it; NULL: nothing yet */
};

struct asking {
    struct cluster *c;
    struct asked items[MEMBERS_MAX];
    size_t count;
};

/* ---- who is asked ---- */

static bool
is_skipped(const struct cluster_candidate *q, const struct member *m)
{
    for (size_t i = 0; i < q->skip_count; i++) {
        if (strcmp(q->skip[i].text, m->id) == 0) {
            return true;
        }
    }
    return false;
}

/* What would be applied here does not lead on from what that node has: both would be diverged.
 */
static json_t *
refuse_behind(const struct member *m, const struct peer *peer, struct problems *p)
{
    char fp[SHA256_HEX + 1];
    char text[ERROR_MSG_BYTES];

    hash_hex(&peer->head.fp, fp);
    (void)snprintf(
        text, sizeof text,
        "it has revision %lld@%.8s, which this node lacks and takes over first; until then an "
        "apply here would make the two diverge",
        (long long)peer->head.rev, fp);
    problems_add(p, SEVERITY_ERROR, "ahead", &(struct problem){.node = m->name}, "%s", text);
    return cluster_row(m, "failed", relation_name(REL_SELF_BEHIND), text);
}

/* Why the node is not asked, as a row; NULL: it is. */
static json_t *
pass_over(
    struct cluster *c, const struct cluster_candidate *q, const struct member *m,
    struct problems *problems)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    struct peer copy = {.answered = false};
    enum relation relation;
    const struct peer *p;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    if (p != NULL) {
        copy = *p;
    }
    lock_give(&c->lock);
    if (is_skipped(q, m)) {
        return cluster_row(m, "skipped", "skip_nodes", "left out on request");
    }
    if (!copy.answered) {
        return cluster_row(m, "skipped", "unreachable", copy.failure.msg);
    }
    relation = cluster_relation(&copy, &v->head);
    if (relation == REL_SELF_BEHIND) {
        return refuse_behind(m, &copy, problems);
    }
    /* What it said last may be older than what it took since: it answers for itself. */
    return relation == REL_IN_STEP || copy.relation == REL_IN_STEP
               ? NULL
               : cluster_row(m, "skipped", relation_name(relation), relation_text(relation));
}

/* ---- what they say ---- */

/* Only what the node says of the content hinders: a node that does not answer now, or turns
 * out not to be in step, is seen to later. So does one whose head moved meanwhile, which cannot
 * tell what the commits lead on from. */
static json_t *
judge(const struct member *m, struct call_answer *a, struct problems *p)
{
    char code_name[CODE_BYTES];
    struct error e = {.code = ERR_OK};
    json_t *j = NULL;
    json_t *row;
    err_t code = cluster_read_answer(a, &j, code_name, &e);

    if (code == ERR_OK) {
        const char *state = json_string_value(json_object_get(j, "state"));
        bool checked = state != NULL && strcmp(state, "missing") != 0;

        row = checked ? cluster_row(m, "ok", "", "")
                      : cluster_row(m, "skipped", "missing", "it lacks more than was sent");
    } else if (code == ERR_LIMIT || json_array_size(json_object_get(j, "errors")) > 0) {
        refusal_problems(m, j, e.msg, p);
        row = cluster_row(m, "failed", code_name, e.msg);
    } else {
        row = cluster_row(
            m, "skipped", code_name[0] != '\0' ? code_name : error_name(code), e.msg);
    }
    json_decref(j);
    return row;
}

/* ---- asking ---- */

static void
tell_progress(const struct asking *a, int64_t task)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, PROGRESS_MAX);
    for (size_t i = 0; i < a->count; i++) {
        const struct asked *x = &a->items[i];
        const char *state = json_string_value(json_object_get(x->row, "state"));

        buf_printf(
            &text, "%s%s: %s", i > 0 ? ", " : "", x->member->name,
            state != NULL ? state : "is asked");
    }
    task_note(engine_tasks(a->c->en), task, "%s", buf_str(&text));
}

/* The candidate as a body of such a call; call->body is that of body. */
static void
fill_call(
    struct cluster *c, const struct sync_doc *d, const char *path, struct buf *body,
    struct call *call)
{
    json_t *j = body->len == 0 ? sync_doc_json(d) : NULL;

    if (j != NULL) {
        json_canonical(j, body);
        json_decref(j);
    }
    call->method = "POST";
    call->path = path;
    call->body = buf_str(body);
    call->body_len = body->len;
    call->timeout_ms = c->tunables->sync_check_ms;
    call->answer_max = MEMBERS_BYTES;
}

static void
ask(struct asking *a, const struct sync_doc *d, const struct member *self, struct fan *fan)
{
    CLEANUP(buf_wipe_fini) struct buf body;

    buf_init(&body, SYNC_DOC_MAX);
    for (size_t i = 0; i < a->count; i++) {
        struct asked *x = &a->items[i];
        struct call call;

        if (x->row == NULL) {
            call = cluster_call_of(a->c, x->member, self);
            fill_call(a->c, d, PATH_CHECK, &body, &call);
            fan_ask(fan, &call, i);
        }
    }
}

json_t *
cluster_check(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    struct cluster *c = ctx;
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    struct asking asking = {.c = c};
    struct fan *fan = fan_new(c->calls);
    struct call_answer answer;
    json_t *rows = json_array();
    size_t who;

    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];

        if (i != list.self && !m->gone) {
            asking.items[asking.count++] =
                (struct asked){.member = m, .row = pass_over(c, q, m, p)};
        }
    }
    tell_progress(&asking, q->task);
    ask(&asking, q->doc, &list.items[list.self], fan);
    while (fan_next(fan, &who, &answer)) {
        struct asked *x = &asking.items[who];

        x->row = judge(x->member, &answer, p);
        buf_fini(&answer.body);
        tell_progress(&asking, q->task);
    }
    fan_free(fan);
    for (size_t i = 0; i < asking.count; i++) {
        (void)json_array_append_new(rows, asking.items[i].row);
    }
    return rows;
}

/* ---- trying ---- */

static bool
has_accepted(const json_t *checked, const struct member *m)
{
    const json_t *row;
    size_t i;

    json_array_foreach(checked, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "node")), m->name) == 0) {
            return strcmp(json_string_value(json_object_get(row, "state")), "ok") == 0;
        }
    }
    return false;
}

static bool
is_holder(struct cluster *c, const struct member *m)
{
    const struct peer *p;
    bool holds;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    holds = p != NULL && p->holds;
    lock_give(&c->lock);
    return holds;
}

/* It accepted it a moment ago, so what it says now stops the apply, silence too; only one that
 * is not in step any more is passed over. */
static json_t *
try_on(
    struct cluster *c, const struct member *m, const struct member *self,
    const struct cluster_candidate *q, struct problems *p)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    struct call call = cluster_call_of(c, m, self);
    struct call_answer a = {.status = 0};
    char code_name[CODE_BYTES];
    struct error e = {.code = ERR_OK};
    json_t *j = NULL;
    json_t *row = NULL;
    err_t code;

    buf_init(&body, SYNC_DOC_MAX);
    fill_call(c, q->doc, PATH_TRIAL, &body, &call);
    task_note(engine_tasks(c->en), q->task, "on %s", m->name);
    (void)calls_wait(c->calls, &call, &a);
    code = cluster_read_answer(&a, &j, code_name, &e);
    if (code == ERR_OK) {
        row = cluster_row(m, "ok", "", "");
    } else if (code != ERR_CONFLICT) {
        refusal_problems(m, j, e.msg, p);
        row = cluster_row(
            m, "failed", code_name[0] != '\0' ? code_name : error_name(code), e.msg);
    }
    buf_fini(&a.body);
    json_decref(j);
    return row;
}

json_t *
cluster_trial(void *ctx, const struct cluster_candidate *q, struct problems *p)
{
    struct cluster *c = ctx;
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    json_t *row = NULL;

    for (size_t i = 0; i < list.count && row == NULL; i++) {
        const struct member *m = &list.items[i];

        if (i != list.self && !m->gone && has_accepted(q->checked, m) && !is_holder(c, m)) {
            row = try_on(c, m, &list.items[list.self], q, p);
        }
    }
    return row;
}

void
cluster_trial_end(void *ctx, const char *node, const struct hash *candidate)
{
    struct cluster *c = ctx;
    char path[PATH_BYTES], hex[SHA256_HEX + 1];
    struct member m, self;
    struct call call;
    struct error e;

    if (members_find(c->en, node, &m, &e) != ERR_OK) {
        return;
    }
    members_self(c->en, &self);
    hash_hex(candidate, hex);
    (void)snprintf(path, sizeof path, PATH_TRIAL "?commit=%s", hex);
    call = cluster_call_of(c, &m, &self);
    call.method = "DELETE";
    call.path = path;
    if (cluster_ask(c, &call, NULL, NULL, &e) != ERR_OK) {
        log_info("%s goes back by itself: it could not be told, %s", node, e.msg);
    }
    crypt_wipe(&m, sizeof m);
    crypt_wipe(&self, sizeof self);
}
