/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/confirm.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/edit.h"
#include "engine/problems_json.h"
#include "model/belong.h"

#define AUTHOR "lockstep"

static int64_t
mono_ms(const struct engine *en)
{
    return clock_mono_ms(en->config->clock);
}

/* ---- what waits ---- */

static void
copy_waiting(struct engine *en, struct waiting *ret)
{
    lock_take(&en->lock);
    *ret = en->waiting;
    lock_give(&en->lock);
}

static int64_t
left_s(const struct engine *en, const struct waiting *w)
{
    int64_t left_ms = w->due_ms - mono_ms(en);

    return left_ms > 0 ? (left_ms + 999) / 1000 : 0;
}

/* Whether it could not go back so far. */
static bool
is_stuck(const struct waiting *w)
{
    return w->back_off_ms > 0 && !w->going;
}

/* Whether the deadline decided: it may not be confirmed any more. */
static bool
is_late(const struct engine *en, const struct waiting *w)
{
    return w->going || (mono_ms(en) >= w->due_ms && !is_stuck(w));
}

void
confirm_look(struct engine *en, struct engine_waiting *ret)
{
    struct waiting w;

    copy_waiting(en, &w);
    *ret = (struct engine_waiting){.is = w.is};
    if (w.is) {
        ret->commit = w.commit.id;
        ret->rev = w.commit.rev;
        ret->back_rev = w.back_rev;
        ret->until_ms = w.commit.confirm_until_ms;
        ret->left_s = left_s(en, &w);
        ret->going_back = is_late(en, &w);
        ret->failed = is_stuck(&w);
        ret->retry_at_ms = ret->failed ? w.retry_at_ms : 0;
    }
}

json_t *
engine_waiting_json(const struct engine_waiting *w)
{
    char commit[SHA256_HEX + 1];

    if (!w->is) {
        return json_null();
    }
    hash_hex(&w->commit, commit);
    return json_pack(
        "{s:s, s:I, s:I, s:o, s:I, s:b, s:b, s:o}", "commit", commit, "rev", (json_int_t)w->rev,
        "back_to", (json_int_t)w->back_rev, "until", json_time(w->until_ms), "seconds_left",
        (json_int_t)w->left_s, "going_back", w->going_back ? 1 : 0, "failed", w->failed ? 1 : 0,
        "retry_at", w->failed ? json_time(w->retry_at_ms) : json_null());
}

static void
tell(struct engine *en)
{
    struct engine_waiting w;

    confirm_look(en, &w);
    events_publish(
        en->events, "status", json_pack("{s:o}", "confirm", engine_waiting_json(&w)));
}

err_t
confirm_refuse(struct engine *en, struct error *e)
{
    struct waiting w;

    copy_waiting(en, &w);
    if (!w.is) {
        return ERR_OK;
    }
    if (is_late(en, &w)) {
        return error_set(
            e, ERR_CONFLICT,
            "revision %lld was not confirmed in time and is going back: apply when it is back",
            (long long)w.commit.rev);
    }
    if (is_stuck(&w)) {
        return error_set(
            e, ERR_CONFLICT,
            "revision %lld was not confirmed in time and could not go back, which is tried "
            "again: apply when it is back, or keep it (lockstep confirm, or POST "
            "/api/v1/config/confirm)",
            (long long)w.commit.rev);
    }
    return error_set(
        e, ERR_CONFLICT,
        "revision %lld waits for its confirmation for another %lld s: confirm it (lockstep "
        "confirm, or POST /api/v1/config/confirm), or let it go back, and apply then",
        (long long)w.commit.rev, (long long)left_s(en, &w));
}

bool
confirm_waits_for(struct engine *en, const struct hash *commit)
{
    struct waiting w;

    copy_waiting(en, &w);
    return w.is && hash_equal(&w.commit.id, commit);
}

/* ---- begin and end ---- */

void
confirm_begin(struct engine *en, const struct commit *c, int64_t back_rev)
{
    int64_t left_ms = c->confirm_until_ms - clock_wall_ms(en->config->clock);
    int64_t most_ms = c->confirm_until_ms - c->at_ms; /* a clock that is behind adds nothing */
    struct waiting w = {.is = true, .commit = *c, .back_rev = back_rev};

    ASSERT(c->parent_count > 0);
    w.due_ms = mono_ms(en) + (left_ms < most_ms ? left_ms : most_ms);
    lock_take(&en->lock);
    en->waiting = w;
    ASSERT(pthread_cond_broadcast(&en->changed) == 0); /* confirm_run has a deadline now */
    lock_give(&en->lock);
    tell(en);
}

err_t
confirm_load(struct engine *en, struct error *e)
{
    const struct commit *c = &en->live.waiting;
    struct commit parent;
    char hex[SHA256_HEX + 1];
    err_t code;

    if (c->rev == 0) {
        return ERR_OK;
    }
    hash_hex(&c->parents[0], hex);
    code = store_commit_find(en->store, hex, &parent, e);
    if (code == ERR_OK) {
        confirm_begin(en, c, parent.rev);
    }
    return code;
}

void
confirm_end(struct engine *en)
{
    lock_take(&en->lock);
    en->waiting = (struct waiting){.is = false};
    lock_give(&en->lock);
    tell(en);
}

struct confirm_call {
    const struct hash *commit;
    const struct actor *who;
    struct commit *ret;
};

static err_t
confirm_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct confirm_call *call = ctx;
    char text[64];
    struct waiting w;
    err_t code;

    copy_waiting(en, &w);
    if (!w.is) {
        return error_set(e, ERR_CONFLICT, "no revision waits for a confirmation");
    }
    if (call->commit != NULL && !hash_equal(call->commit, &w.commit.id)) {
        return error_set(
            e, ERR_CONFLICT, "it is revision %lld that waits for its confirmation",
            (long long)w.commit.rev);
    }
    if (is_late(en, &w)) {
        return error_set(
            e, ERR_CONFLICT, "revision %lld was not confirmed in time and is going back",
            (long long)w.commit.rev);
    }
    code = store_wait_end(en->store, e);
    if (code != ERR_OK) {
        return code;
    }
    confirm_end(en);
    (void)snprintf(text, sizeof text, "revision %lld", (long long)w.commit.rev);
    engine_audit(en, call->who->name, "confirm", text);
    log_info("%s confirmed %s", call->who->name, text);
    *call->ret = w.commit;
    return ERR_OK;
}

err_t
confirm_now(
    struct engine *en, const struct hash *commit, const struct actor *who, struct commit *ret,
    struct error *e)
{
    struct confirm_call call = {commit, who, ret};

    return engine_run(en, confirm_on_engine, &call, e);
}

/* ---- the content to go back to ---- */

/* A key without the pools that go back, never with more rights than it has now: NULL when it
 * has no other, since an empty list means all. */
static struct object *
narrow_key(const struct object *key, const struct snapshot_pair *in)
{
    const struct value *pools = object_value(key, F_AUTOMATION_KEY_POOLS);
    json_auto_t *left = json_array();
    json_auto_t *patch = json_pack("{s:O}", "pools", left);
    struct object *ret = NULL;

    for (uint32_t i = 0; i < pools->count; i++) {
        const char *id = pools->u.items[i].u.text.s;

        if (snapshot_by_id(in->shared, K_POOL, id) != NULL) {
            json_array_append_new(left, json_string(id));
        }
    }
    if (json_array_size(left) > 0) {
        err_t code = object_with(key, patch, &ret, NULL);

        ASSERT(code == ERR_OK);
    }
    return ret;
}

/* Objects that change at once stay as they are, but for what they came to refer to and what
 * goes back. */
static err_t
drop_dangling(struct snapshot_pair *in, bool *ret_found, struct error *e)
{
    struct snapshot_edit *x = NULL;
    struct snapshot *made = NULL;
    size_t count = snapshot_count(in->shared);
    err_t code;

    for (size_t i = 0; i < count; i++) {
        const struct object *o = snapshot_at(in->shared, i);
        struct object *less;

        if (!schema_kind(o->kind)->direct || !view_dangles(o, in)) {
            continue;
        }
        x = x != NULL ? x : snapshot_edit_new(in->shared);
        less = o->kind == K_AUTOMATION_KEY ? narrow_key(o, in) : NULL;
        if (less != NULL) {
            snapshot_edit_put(x, less);
        } else {
            snapshot_edit_remove(x, o->kind, o->id);
        }
        log_warning(
            "going back: the %s %s %s", schema_kind(o->kind)->name, o->name.s,
            less != NULL ? "loses pools that go back" : "goes with what it was for");
    }
    *ret_found = x != NULL;
    if (x == NULL) {
        return ERR_OK;
    }
    code = snapshot_seal(x, &made, e);
    if (code == ERR_OK) {
        snapshot_unref(in->shared);
        in->shared = made;
    }
    return code;
}

err_t
confirm_content(
    struct engine *en, const struct snapshot **ret, struct commit *ret_commit, struct error *e)
{
    CLEANUP(snapshot_cleanup) struct snapshot *former = NULL;
    CLEANUP(pair_cleanup)
    struct snapshot_pair to = {NULL, snapshot_ref(en->live.local)};
    struct snapshot *merged = NULL;
    struct waiting w;
    bool found = true;
    err_t code;

    copy_waiting(en, &w);
    if (!w.is) {
        return error_set(e, ERR_CONFLICT, "it was confirmed meanwhile");
    }
    code = store_commit_content(en->store, &w.commit.parents[0], &former, e);
    if (code == ERR_OK) {
        code = edit_merge_content(en->live.shared, former, &merged, e);
        to.shared = merged;
    }
    while (code == ERR_OK && found) {
        code = drop_dangling(&to, &found, e);
    }
    if (code == ERR_OK) {
        code = belong_settle(&to, e);
    }
    if (code == ERR_OK) {
        code = belong_return(en->live.shared, former, &to.shared, e);
    }
    if (code == ERR_OK) {
        *ret = TAKE(to.shared);
        *ret_commit = w.commit;
    }
    return code;
}

/* ---- going back ---- */

static void
start(struct engine *en, const struct waiting *w)
{
    struct apply *a = xcalloc(1, sizeof *a);
    char text[COMMIT_TEXT_BYTES];
    struct error error;

    (void)snprintf(
        text, sizeof text, "not confirmed: back to revision %lld", (long long)w->back_rev);
    a->en = en;
    a->mode = APPLY_BACK;
    a->author = xstrdup(AUTHOR);
    a->note = xstrdup(text);
    change_set_init(&a->ops);
    a->task = task_begin(en->tasks, "apply", "Go back: not confirmed", a->author);
    log_warning("revision %lld was not confirmed: going back", (long long)w->commit.rev);
    tell(en);
    if (apply_post(a, &error) != ERR_OK) {
        log_warning("going back: %s", error.msg);
        confirm_back_ended(en, false);
    }
}

/* Starts to go back when that is due. Returns for how long to wait then: the clock that decides
 * also counts while the machine sleeps, that of a condition does not, so never longer than a
 * round. */
static int64_t
go_back_when_due(struct engine *en)
{
    int64_t round_ms = en->config->tunables->status_round_ms;
    int64_t left_ms = round_ms;
    int64_t now_ms = mono_ms(en);
    struct waiting w;

    lock_take(&en->lock);
    w = en->waiting;
    if (w.is && !w.going) {
        left_ms = (w.due_ms > w.next_ms ? w.due_ms : w.next_ms) - now_ms;
        en->waiting.going = left_ms <= 0;
    }
    lock_give(&en->lock);
    if (left_ms <= 0) {
        start(en, &w);
    }
    return left_ms > 0 && left_ms < round_ms ? left_ms : round_ms;
}

void
confirm_run(void *ctx)
{
    struct engine *en = ctx;

    while (!engine_stopping(en)) {
        struct timespec deadline = lock_deadline(go_back_when_due(en));

        lock_take(&en->lock);
        if (!en->stopping) {
            (void)lock_wait(&en->changed, &en->lock, &deadline);
        }
        lock_give(&en->lock);
    }
}

/* Not ok: it is tried again, and may be confirmed until then. */
void
confirm_back_ended(struct engine *en, bool ok)
{
    int64_t now_ms = mono_ms(en);
    int64_t wall_ms = clock_wall_ms(en->config->clock);

    if (ok) {
        return;
    }
    lock_take(&en->lock);
    en->waiting.going = false;
    en->waiting.back_off_ms =
        reconcile_back_off_ms(en->config->tunables, en->waiting.back_off_ms);
    en->waiting.next_ms = now_ms + en->waiting.back_off_ms;
    en->waiting.retry_at_ms = wall_ms + en->waiting.back_off_ms;
    lock_give(&en->lock);
    tell(en);
}
