/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/members_clash.h"
#include "engine/problems_json.h"
#include "engine/watcher.h"

#define OPS_BYTES     ((size_t)64 << 20)
#define RUN_BYTES     ((size_t)16 << 20)
#define MESSAGE_BYTES 600
#define POINTER_BYTES 40

/* Both names of a state's crash points; final states have none. */
struct crash_names {
    const char *before, *after;
};

static const struct crash_names crash_names[] = {
#define STATE_CRASH(state, text, action)                                                       \
    [AS_##state] = {"apply_" #action "_before", "apply_" #action "_after"},
    APPLY_STATES(STATE_CRASH)
#undef STATE_CRASH
};

/* ---- the job ---- */

static void
job_free(struct apply *a)
{
    if (a == NULL) {
        return;
    }
    apply_rendered_done(a->en, a->files);
    pair_cleanup(&a->candidate);
    view_unref(a->view);
    change_set_fini(&a->ops);
    only_rows_free(&a->only);
    if (a->adopt != NULL) {
        sync_doc_free(a->adopt);
    }
    free(a->adopt);
    if (a->offer != NULL) {
        sync_doc_free(a->offer);
    }
    free(a->offer);
    json_decref(a->checked);
    json_decref(a->tried);
    json_decref(a->pushed);
    free(a->skip);
    snapshot_unref(a->adopted);
    arena_free(a->ops_arena);
    arena_free(a->arena);
    free(a->author);
    free(a->note);
    free(a);
}

/* ---- running ---- */

/* Nothing is changed yet up to here, so a stop need not wait for the rest. */
static bool
is_early(enum apply_state state)
{
    return state < AS_ACTIVATE;
}

static enum apply_event
act(enum apply_state state, struct apply *a, struct error *e)
{
    enum apply_event event;

    crashpoint(crash_names[state].before);
    if (is_early(state) && engine_stopping(a->en)) {
        (void)error_set(e, ERR_UNAVAILABLE, "the daemon stops");
        event = AE_FAIL;
    } else {
        event = apply_act(state, a, e);
    }
    crashpoint(crash_names[state].after);
    return event;
}

static void
note_edge(
    struct apply *a, const struct apply_edge *edge, enum apply_event event,
    const struct error *e)
{
    struct tasks *tasks = a->en->tasks;
    const char *more = event == AE_FAIL ? e->msg : a->detail;

    task_note(tasks, a->task, "%s%s%s", edge->text, more[0] != '\0' ? ": " : "", more);
    task_step_end(tasks, a->task, event == AE_FAIL ? TASK_FAILED : TASK_OK);
    if (event == AE_FAIL && a->failed_text == NULL && a->behind == 0) {
        a->failed_text = edge->text;
        a->error = *e;
    }
}

static enum apply_state
run_states(struct apply *a)
{
    enum apply_state state = AS_PLAN;

    while (!apply_state_final(state)) {
        struct error error = {.code = ERR_OK};
        const struct apply_edge *edge;
        enum apply_event event;

        task_step(a->en->tasks, a->task, apply_state_name(state), apply_state_text(state));
        event = act(state, a, &error);
        edge = apply_next(state, event);
        ASSERT(edge->allowed);
        note_edge(a, edge, event, &error);
        if (event == AE_FAIL && (state == AS_BACK || state == AS_BACK_LOAD)) {
            a->back_failed = true;
        }
        state = edge->next;
    }
    return state;
}

/* ---- the end ---- */

static json_t *
result_json(const struct apply *a)
{
    char id[SHA256_HEX + 1];

    if (a->head.rev == 0) {
        return a->checked != NULL
                   ? json_pack("{s:O, s:O*}", "checked", a->checked, "trial", a->tried)
                   : NULL;
    }
    hash_hex(&a->head.id, id);
    return json_pack(
        "{s:I, s:s, s:I, s:o, s:O*, s:O*, s:O*}", "rev", (json_int_t)a->head.rev, "commit", id,
        "local_rev", (json_int_t)a->local_rev, "confirm_until",
        a->confirm_s > 0 ? json_time(a->head.confirm_until_ms) : json_null(), "checked",
        a->checked, "trial", a->tried, "nodes", a->pushed);
}

static void
make_message(const struct apply *a, enum apply_state end, char out[MESSAGE_BYTES])
{
    const char *tail = "nothing was changed";
    size_t bytes = strlen(a->error.msg);

    if (end == AS_DONE && a->mode == APPLY_TRIAL) {
        (void)snprintf(out, MESSAGE_BYTES, "it serves, and goes back unless it is committed");
        return;
    }
    if (end == AS_DONE) {
        if (a->head.rev == 0) {
            (void)snprintf(out, MESSAGE_BYTES, "nothing to apply");
        } else {
            (void)snprintf(
                out, MESSAGE_BYTES, "revision %lld serves%s", (long long)a->head.rev,
                a->behind > 0 ? ", but not on every node" : "");
        }
        return;
    }
    if (end != AS_FAILED) {
        tail = end == AS_BACKED ? "the former revision serves" : a->left;
    }
    /* Some reasons are sentences. */
    bytes -= bytes > 0 && a->error.msg[bytes - 1] == '.' ? 1 : 0;
    (void)snprintf(
        out, MESSAGE_BYTES, "%s: %.*s; %s", a->failed_text, (int)bytes, a->error.msg, tail);
}

/* Status first: whoever waits for the task may ask for it at once. */
static void
tell_followers(struct apply *a, enum apply_state end, const char *message)
{
    bool unchanged = end == AS_FAILED || (end == AS_BACKED && !a->back_failed);
    char unsettled[MESSAGE_BYTES];

    if (end == AS_DONE && a->failed_text != NULL) {
        (void)snprintf(unsettled, sizeof unsettled, "%s: %s", a->failed_text, a->error.msg);
        reconcile_note(a->en, FOLLOW_UNSETTLED, a, unsettled);
    } else if (end == AS_DONE && a->files != NULL && a->mode != APPLY_TRIAL) {
        reconcile_note(a->en, FOLLOW_OK, a, "");
    } else if (a->mode == APPLY_FOLLOW) {
        reconcile_note(a->en, FOLLOW_FAILED, a->files != NULL ? a : NULL, message);
    } else if (!unchanged && end != AS_DONE) {
        reconcile_note(a->en, FOLLOW_FAILED, NULL, message);
    }
    watcher_look(a->en);
}

static void
run(void *ctx)
{
    struct apply *a = ctx;
    struct engine *en = a->en;
    char message[MESSAGE_BYTES];
    enum apply_state end;

    a->arena = arena_new(RUN_BYTES);
    a->problems = arena_alloc(a->arena, sizeof *a->problems);
    problems_init(a->problems, a->arena);
    end = run_states(a);
    if (end != AS_DONE) {
        apply_end_trial(a);
    }
    make_message(a, end, message);
    if (a->mode == APPLY_BACK) {
        confirm_back_ended(en, end == AS_DONE);
    }
    /* What another node committed may be tried every few seconds: who tries says it once. */
    if (end == AS_DONE || a->mode == APPLY_ADOPT) {
        log_info("%s: %s", a->author, message);
    } else {
        log_warning("%s: %s", a->author, message);
    }
    tell_followers(a, end, message);
    atomic_fetch_sub(&en->applies, 1);
    task_end(
        en->tasks, a->task, end == AS_DONE ? ERR_OK : a->error.code, message, a->problems,
        result_json(a));
    job_free(a);
}

err_t
apply_post(struct apply *a, struct error *e)
{
    struct engine *en = a->en;
    err_t code;

    if (atomic_fetch_add(&en->applies, 1) >= APPLY_QUEUE) {
        code = error_set(e, ERR_BUSY, "%d applies are waiting", APPLY_QUEUE);
    } else {
        code = mailbox_post(en->apply_box, run, a, e);
    }
    if (code != ERR_OK) {
        atomic_fetch_sub(&en->applies, 1);
        task_end(en->tasks, a->task, code, "not started", NULL, NULL);
        job_free(a);
    }
    return code;
}

/* ---- starting ---- */

static int64_t
now_s(const struct engine *en)
{
    return clock_wall_ms(en->config->clock) / 1000;
}

static err_t
copy_ops(struct apply *a, const struct change_set *ops, struct error *e)
{
    err_t code = ERR_OK;

    a->ops_arena = arena_new(OPS_BYTES);
    for (size_t i = 0; i < ops->count && code == ERR_OK; i++) {
        struct change op = ops->items[i];

        if (op.name != NULL) {
            op.name = arena_strdup(a->ops_arena, op.name);
        }
        if (op.if_match != NULL) {
            const void *copy = arena_memdup0(a->ops_arena, op.if_match, sizeof *op.if_match);

            op.if_match = copy;
        }
        op.body = op.body != NULL ? json_deep_copy(op.body) : NULL;
        code = change_set_add(&a->ops, op, e);
    }
    return code;
}

err_t
apply_check_confirm(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p,
    struct error *e)
{
    struct hash a = snapshot_fp(before->local, SCHEMA_VERSION);
    struct hash b = snapshot_fp(after->local, SCHEMA_VERSION);

    if (hash_equal(&a, &b)) {
        return ERR_OK;
    }
    problems_add(
        p, SEVERITY_ERROR, "not_allowed", &(struct problem){.pointer = "/confirm"},
        "Only what all nodes share can go back by itself: apply changes of this node's own "
        "settings before, without confirm.");
    return error_set(
        e, ERR_INVALID, "settings of this node alone cannot go back by themselves");
}

static err_t
check_draft(
    struct engine *en, const struct view *v, const struct apply_request *q,
    struct only_rows *ret_only, struct problems *p, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    err_t code = ERR_OK;

    if (q->only != NULL) {
        code = only_find(v, q->only, ret_only, p, e);
    }
    if (code == ERR_OK) {
        code = only_check_conflicts(v, q->only != NULL ? ret_only : NULL, e);
    }
    if (code == ERR_OK && q->only == NULL) {
        after = pair_ref(&v->draft);
    } else if (code == ERR_OK) {
        code = only_candidate(v, ret_only, now_s(en), &after, p, e);
    }
    if (code == ERR_OK) {
        code = confirm_refuse(en, &v->now, &after, e);
    }
    if (code == ERR_OK) {
        code = edit_keeps_pages(&v->now, &after, p, e);
    }
    if (code == ERR_OK && q->confirm_s > 0) {
        code = apply_check_confirm(&v->now, &after, p, e);
    }
    if (code == ERR_OK) {
        code = members_check_own(en, &v->now, &after, p, e);
    }
    return code == ERR_OK ? actor_may(en, q->who, v->now.shared, after.shared, p, e) : code;
}

/* Each has to be another node. */
static err_t
check_skipped(
    struct engine *en, const struct apply_request *q, struct problems *p, struct error *e)
{
    size_t errors = p->errors;

    for (size_t i = 0; i < q->skip_count; i++) {
        char pointer[POINTER_BYTES];
        struct member found;
        struct error unused;
        err_t code = members_find(en, q->skip_nodes[i], &found, &unused);

        if (code == ERR_OK) {
            crypt_wipe(&found, sizeof found);
            continue;
        }
        (void)snprintf(pointer, sizeof pointer, "/skip_nodes/%zu", i);
        problems_add(
            p, SEVERITY_ERROR, code == ERR_CONFLICT ? "two_nodes" : "no_such_node",
            &(struct problem){.pointer = pointer}, "%s \"%.*s\"%s.",
            code == ERR_CONFLICT ? "More than one node is called" : "There is no other node",
            problems_cut(q->skip_nodes[i], COMMIT_NODE_BYTES), q->skip_nodes[i],
            code == ERR_CONFLICT ? ": say the id of one" : " in the cluster");
    }
    return p->errors > errors ? error_set(e, ERR_INVALID, "%s", edit_first_error(p)) : ERR_OK;
}

static void
copy_skipped(struct apply *a, const struct apply_request *q)
{
    a->skip = xcalloc(q->skip_count + 1, sizeof *a->skip);
    for (size_t i = 0; i < q->skip_count; i++) {
        struct member found;
        struct error unused;

        if (members_find(a->en, q->skip_nodes[i], &found, &unused) == ERR_OK) {
            memcpy(a->skip[a->skip_count++].text, found.id, sizeof found.id);
            crypt_wipe(&found, sizeof found);
        }
    }
}

/* What can be seen now, so that the caller gets it as an answer and not by the task. *ret_only:
 * the chosen rows, to be freed. */
static err_t
check_request(
    struct engine *en, const struct apply_request *q, struct only_rows *ret_only,
    struct problems *p, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    char hex[SHA256_HEX + 1];
    err_t code = check_skipped(en, q, p, e);

    if (code != ERR_OK) {
        return code;
    }
    if (q->base != NULL && !hash_equal(q->base, &v->head.id)) {
        hash_hex(&v->head.id, hex);
        return error_set(
            e, ERR_CONFLICT, "the head is revision %lld, %s", (long long)v->head.rev, hex);
    }
    if (q->note != NULL && strlen(q->note) >= COMMIT_TEXT_BYTES) {
        return error_set(e, ERR_INVALID, "a note has at most %d bytes", COMMIT_TEXT_BYTES - 1);
    }
    if (q->ops == NULL) {
        return check_draft(en, v, q, ret_only, p, e);
    }
    for (size_t i = 0; i < q->ops->count; i++) {
        if (schema_kind(q->ops->items[i].kind)->direct) {
            problems_add(
                p, SEVERITY_ERROR, "not_allowed", NULL,
                "Keys, administrators and server states change at once, without Apply.");
            return error_set(e, ERR_INVALID, "what changes at once is not applied");
        }
    }
    code = edit_check(q->ops, &v->now, now_s(en), &after, p, e);
    if (code == ERR_OK) {
        code = confirm_refuse(en, &v->now, &after, e);
    }
    if (code == ERR_OK && q->confirm_s > 0) {
        code = apply_check_confirm(&v->now, &after, p, e);
    }
    if (code == ERR_OK) {
        code = members_check_own(en, &v->now, &after, p, e);
    }
    return code == ERR_OK ? actor_may(en, q->who, v->now.shared, after.shared, p, e) : code;
}

err_t
apply_try(struct engine *en, const struct apply_request *q, struct problems *p, struct error *e)
{
    struct only_rows only = {NULL, 0};
    err_t code = check_request(en, q, &only, p, e);

    only_rows_free(&only);
    return code;
}

err_t
apply_start(
    struct engine *en, const struct apply_request *q, int64_t *ret_task, struct problems *p,
    struct error *e)
{
    struct apply *a;
    struct only_rows only = {NULL, 0};
    int64_t task;
    err_t code = check_request(en, q, &only, p, e);

    if (code == ERR_OK && atomic_load(&en->applies) >= APPLY_QUEUE) {
        code = error_set(e, ERR_BUSY, "%d applies are waiting", APPLY_QUEUE);
    }
    if (code != ERR_OK) {
        only_rows_free(&only);
        return code;
    }
    a = xcalloc(1, sizeof *a);
    a->en = en;
    a->has_only = q->only != NULL;
    a->only = only;
    a->confirm_s = q->confirm_s;
    copy_skipped(a, q);
    a->mode = q->ops != NULL ? APPLY_OPS : APPLY_DRAFT;
    a->author = xstrdup(q->who->name);
    a->note = q->note != NULL ? xstrdup(q->note) : NULL;
    a->has_base = q->base != NULL;
    a->base = q->base != NULL ? *q->base : (struct hash){{0}};
    change_set_init(&a->ops);
    if (q->ops != NULL) {
        code = copy_ops(a, q->ops, e);
    }
    if (code != ERR_OK) {
        job_free(a);
        return code;
    }
    task = task_begin(
        en->tasks, "apply", q->ops != NULL ? "Apply a change" : "Apply the draft", a->author);
    a->task = task;
    code = apply_post(a, e);
    if (code == ERR_OK) {
        *ret_task = task;
    }
    return code;
}
