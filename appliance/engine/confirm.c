/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/confirm.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/commit.h"
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

static bool
is_due(const struct engine *en, const struct waiting *w)
{
    return mono_ms(en) >= w->due_ms;
}

/* Whether it could not go back so far. */
static bool
is_stuck(const struct engine *en, const struct waiting *w)
{
    return !w->going && (w->back_off_ms > 0 || (w->nobody && is_due(en, w)));
}

/* Whether the deadline decided: it may not be confirmed any more. */
static bool
is_late(const struct engine *en, const struct waiting *w)
{
    return w->going || (is_due(en, w) && !is_stuck(en, w));
}

void
confirm_look(struct engine *en, struct engine_waiting *ret)
{
    struct waiting w;

    copy_waiting(en, &w);
    *ret = (struct engine_waiting){.is = w.is};
    if (w.is) {
        ret->commit = w.commit.id;
        memcpy(ret->node, w.commit.node, sizeof ret->node);
        ret->rev = w.commit.rev;
        ret->back_rev = w.back_rev;
        ret->until_ms = w.commit.confirm_until_ms;
        ret->left_s = left_s(en, &w);
        ret->going_back = is_late(en, &w);
        ret->failed = is_stuck(en, &w);
        ret->retry_at_ms = ret->failed && w.back_off_ms > 0 ? w.retry_at_ms : 0;
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
        "{s:s, s:o, s:I, s:I, s:o, s:I, s:b, s:b, s:o}", "commit", commit, "node",
        json_foreign_text(w->node), "rev", (json_int_t)w->rev, "back_to",
        (json_int_t)w->back_rev, "until", json_time(w->until_ms), "seconds_left",
        (json_int_t)w->left_s, "going_back", w->going_back ? 1 : 0, "failed", w->failed ? 1 : 0,
        "retry_at", w->retry_at_ms > 0 ? json_time(w->retry_at_ms) : json_null());
}

static void
tell(struct engine *en)
{
    struct engine_waiting w;

    confirm_look(en, &w);
    events_publish(
        en->events, "status", json_pack("{s:o}", "confirm", engine_waiting_json(&w)));
}

static bool
is_equal(const struct snapshot *a, const struct snapshot *b)
{
    struct hash one = snapshot_fp(a, SCHEMA_VERSION);
    struct hash other = snapshot_fp(b, SCHEMA_VERSION);

    return hash_equal(&one, &other);
}

static const char *
node_name(const struct snapshot *local)
{
    return snapshot_singleton(local, K_NODE)->name.s;
}

/* By that name every node finds the one that is to go back. */
static bool
renames(const struct waiting *w, const struct snapshot *before, const struct snapshot *after)
{
    return strcmp(w->commit.node, node_name(before)) == 0 &&
           strcmp(node_name(before), node_name(after)) != 0;
}

err_t
confirm_refuse(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    struct error *e)
{
    struct waiting w;
    bool is_local = before != NULL && is_equal(before->shared, after->shared) &&
                    !is_equal(before->local, after->local);

    copy_waiting(en, &w);
    if (!w.is || (is_local && !renames(&w, before->local, after->local))) {
        return ERR_OK;
    }
    if (is_local) {
        return error_set(
            e, ERR_CONFLICT,
            "revision %lld, applied here, waits for its confirmation, and this node is known "
            "by its name until that has ended: confirm it, or let it go back, and rename then",
            (long long)w.commit.rev);
    }
    if (is_late(en, &w)) {
        return error_set(
            e, ERR_CONFLICT,
            "revision %lld was not confirmed in time and is going back: apply when it is back",
            (long long)w.commit.rev);
    }
    if (is_stuck(en, &w)) {
        return error_set(
            e, ERR_CONFLICT,
            "revision %lld was not confirmed in time and could not go back, %s: apply when it "
            "is back, or keep it (lockstep confirm, or POST /api/v1/config/confirm)",
            (long long)w.commit.rev,
            w.back_off_ms > 0 ? "which is tried again"
                              : "for the node that is to do so does not answer, or diverged");
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

static void
begin(struct engine *en, const struct commit *c, int64_t back_rev)
{
    int64_t left_ms = c->confirm_until_ms - clock_wall_ms(en->config->clock);
    int64_t most_ms = c->confirm_until_ms - c->at_ms; /* a clock that is behind adds nothing */
    struct waiting w = {.is = true, .commit = *c, .back_rev = back_rev};

    w.due_ms = mono_ms(en) + (left_ms < most_ms ? left_ms : most_ms);
    lock_take(&en->lock);
    en->waiting = w;
    ASSERT(pthread_cond_broadcast(&en->changed) == 0); /* confirm_run has a deadline now */
    lock_give(&en->lock);
    tell(en);
}

static void
end(struct engine *en)
{
    lock_take(&en->lock);
    en->waiting = (struct waiting){.is = false};
    lock_give(&en->lock);
    tell(en);
}

err_t
confirm_load(struct engine *en, struct error *e)
{
    struct commit c, parent;
    struct waiting w;
    char hex[SHA256_HEX + 1];
    err_t code = store_waiting(en->store, &c, e);

    copy_waiting(en, &w);
    if (code != ERR_OK || (c.rev == 0 && !w.is) || (w.is && hash_equal(&c.id, &w.commit.id))) {
        return code;
    }
    if (c.rev == 0) {
        end(en);
        return ERR_OK;
    }
    parent.rev = 0;
    if (c.parent_count > 0) { /* else another node made it up */
        hash_hex(&c.parents[0], hex);
        code = store_commit_find(en->store, hex, &parent, e);
    }
    if (code == ERR_OK) {
        begin(en, &c, parent.rev);
    }
    return code;
}

void
confirm_follow(struct engine *en)
{
    struct error e;

    if (confirm_load(en, &e) != ERR_OK) {
        log_warning("cannot see which revision waits for its confirmation: %s", e.msg);
    }
}

struct confirm_call {
    const struct hash *commit;
    const struct actor *who;
    struct commit *ret;
};

/* A commit on top, of the same content: it reaches every node, as any does. */
static err_t
keep(struct engine *en, const struct waiting *w, const struct actor *who, struct error *e)
{
    CLEANUP(pair_cleanup)
    struct snapshot_pair to = {snapshot_ref(en->live.shared), NULL};
    struct hash head = en->live.head.id;
    char text[COMMIT_TEXT_BYTES];
    err_t code;

    (void)snprintf(text, sizeof text, "confirmed revision %lld", (long long)w->commit.rev);
    code = commit_write(
        en,
        &(struct commit_plan){
            .to = to, .author = who->name, .summary = text, .ends_wait = true},
        e);
    if (code == ERR_OK) {
        commit_carry_generation(en, &head, en->live.local_rev);
    }
    return code;
}

static err_t
confirm_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct confirm_call *call = ctx;
    struct waiting w;
    err_t code;

    if (call->who->locked != NULL) {
        return error_set(e, ERR_LOCKED, "%s", call->who->locked);
    }
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
    code = keep(en, &w, call->who, e);
    if (code == ERR_OK) {
        log_info("%s confirmed revision %lld", call->who->name, (long long)w.commit.rev);
        *call->ret = w.commit;
    }
    return code;
}

/* Whoever confirmed may lose this node at once: the one that goes back then has to know. */
static void
hand_on(struct engine *en)
{
    const struct engine_cluster *cluster = engine_cluster_take(en);

    if (cluster != NULL) {
        cluster->hand_on(cluster->ctx);
        engine_cluster_give(en);
    }
}

err_t
confirm_now(
    struct engine *en, const struct hash *commit, const struct actor *who, struct commit *ret,
    struct error *e)
{
    struct confirm_call call = {commit, who, ret};
    err_t code = engine_run(en, confirm_on_engine, &call, e);

    if (code == ERR_OK) {
        hand_on(en);
    }
    return code;
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
        return error_set(e, ERR_CONFLICT, "it does not wait for its confirmation any more");
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

static enum back_by
who_goes_back(struct engine *en, const struct waiting *w)
{
    const struct engine_cluster *cluster = engine_cluster_take(en);
    enum back_by by;

    if (cluster == NULL) {
        return members_peers(en) == 0 ? BACK_SELF : BACK_OTHER; /* the daemon starts, or ends */
    }
    by = cluster->goes_back(cluster->ctx, w->commit.node, mono_ms(en) - w->due_ms);
    engine_cluster_give(en);
    return by;
}

/* Whether it starts now. */
static bool
note_who(struct engine *en, const struct waiting *w, enum back_by by)
{
    struct waiting *now = &en->waiting;
    bool starts = false, is_news = false;

    lock_take(&en->lock);
    if (now->is && !now->going && hash_equal(&now->commit.id, &w->commit.id)) {
        starts = now->going = by == BACK_SELF;
        is_news = now->nobody != (by == BACK_NOBODY);
        now->nobody = by == BACK_NOBODY;
    }
    lock_give(&en->lock);
    if (is_news) {
        tell(en);
    }
    return starts;
}

int64_t
confirm_go_back_when_due(struct engine *en)
{
    int64_t round_ms = en->config->tunables->status_round_ms;
    int64_t left_ms;
    struct waiting w;

    copy_waiting(en, &w);
    if (!w.is || w.going) {
        return round_ms;
    }
    left_ms = (w.due_ms > w.next_ms ? w.due_ms : w.next_ms) - mono_ms(en);
    if (left_ms <= 0 && note_who(en, &w, who_goes_back(en, &w))) {
        start(en, &w);
    }
    return left_ms > 0 && left_ms < round_ms ? left_ms : round_ms;
}

void
confirm_run(void *ctx)
{
    struct engine *en = ctx;

    while (!engine_stopping(en)) {
        struct timespec deadline = lock_deadline(confirm_go_back_when_due(en));

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
    if (!en->waiting.going) { /* it was settled meanwhile */
        lock_give(&en->lock);
        return;
    }
    en->waiting.going = false;
    en->waiting.back_off_ms =
        reconcile_back_off_ms(en->config->tunables, en->waiting.back_off_ms);
    en->waiting.next_ms = now_ms + en->waiting.back_off_ms;
    en->waiting.retry_at_ms = wall_ms + en->waiting.back_off_ms;
    lock_give(&en->lock);
    tell(en);
}
