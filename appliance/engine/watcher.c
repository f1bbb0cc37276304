/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/watcher.h"

#include <string.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/facts.h"
#include "engine/members.h"
#include "engine/operator.h"
#include "engine/pages.h"
#include "engine/problems_json.h"
#include "engine/stats.h"
#include "haproxy/admin.h"

#define ANSWER_BYTES ((size_t)2 << 20)

/* ---- which commit a digest stands for ---- */

struct lookup {
    const char *digest;
    bool known;
    struct hash commit;
    int64_t rev, local_rev;
    char release[32];
};

static err_t
lookup_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct lookup *l = ctx;
    char spec[SHA256_HEX + 1];
    struct generation g;
    struct commit commit;
    err_t code = store_generation_find(en->store, l->digest, 0, &g, e);

    if (code == ERR_OK) {
        hash_hex(&g.commit, spec);
        code = store_commit_find(en->store, spec, &commit, e);
    }
    if (code == ERR_OK) {
        l->known = true;
        l->commit = g.commit;
        l->rev = commit.rev;
        l->local_rev = g.local_rev;
        memcpy(l->release, g.release, sizeof l->release);
    }
    return code == ERR_NOT_FOUND ? ERR_OK : code;
}

/* Only when something moved: the engine thread has better things to do every round. */
static void
look_up(struct engine *en, struct engine_status *s)
{
    int64_t change = atomic_load(&en->generation_changes);
    struct lookup l = {.digest = s->running_digest};
    struct error unused;

    if (strcmp(en->looked_up, s->running_digest) == 0 && en->looked_up_change == change) {
        return;
    }
    if (s->running_digest[0] != '\0' &&
        engine_run(en, lookup_on_engine, &l, &unused) != ERR_OK) {
        return;
    }
    memcpy(en->looked_up, s->running_digest, sizeof en->looked_up);
    en->looked_up_change = change;
    s->running_known = l.known;
    s->running_commit = l.commit;
    s->running_rev = l.rev;
    s->running_local_rev = l.local_rev;
    memcpy(s->running_release, l.release, sizeof s->running_release);
}

/* ---- measuring ---- */

static void
look_at_worker(struct engine *en, struct engine_status *s, struct haproxy_info *info)
{
    struct error error;

    s->looked_mono_ms = clock_mono_ms(&clock_system);
    s->seen_at_ms = clock_wall_ms(en->config->clock);
    if (admin_info(en->admin_socket, en->config->tunables->socket_ms, info, &error) != ERR_OK) {
        s->up = FACT_NO;
        foreign_text_copy(s->up_detail, sizeof s->up_detail, error.msg);
        s->running_digest[0] = '\0';
        s->haproxy_pid = s->uptime_s = s->connections = s->max_connections = 0;
        return;
    }
    s->up = FACT_YES;
    s->answered_mono_ms = s->looked_mono_ms;
    s->up_detail[0] = '\0';
    foreign_text_copy(s->haproxy_version, sizeof s->haproxy_version, info->version);
    s->haproxy_pid = info->pid;
    s->uptime_s = info->uptime_s;
    s->connections = info->connections;
    s->max_connections = info->max_connections;
    memcpy(s->running_digest, info->running, sizeof info->running);
}

static void
look_at_serving(struct engine *en, struct engine_status *s)
{
    struct error error = {.code = ERR_OK};
    err_t code = serving_probe(en, &error);

    s->serving = code == ERR_OK ? FACT_YES : FACT_NO;
    s->measured_mono_ms = clock_mono_ms(&clock_system);
    s->serving_at_ms = clock_wall_ms(en->config->clock);
    foreign_text_copy(
        s->serving_detail, sizeof s->serving_detail, code == ERR_OK ? "" : error.msg);
}

static void
look_at_old_workers(struct engine *en, struct engine_status *s)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ANSWER_BYTES);
    /* It may be busy with a check: then the number stays as it was. */
    struct helper hasty = {en->helper_socket, en->config->tunables->socket_ms, 0};
    struct helper_status status;
    struct error unused;

    if (helper_get_status(&hasty, arena, &status, &unused) == ERR_OK) {
        s->old_workers = (int64_t)status.old_worker_count;
    }
}

/* ---- the record ---- */

/* Times and counters that always move are no facts. */
static bool
same_facts(const struct engine_status *a, const struct engine_status *b)
{
    return a->started == b->started && a->up == b->up && a->haproxy_pid == b->haproxy_pid &&
           a->running_known == b->running_known && a->running_rev == b->running_rev &&
           a->running_local_rev == b->running_local_rev && a->serving == b->serving &&
           a->old_workers == b->old_workers &&
           hash_equal(&a->running_commit, &b->running_commit) &&
           strcmp(a->haproxy_version, b->haproxy_version) == 0 &&
           strcmp(a->running_digest, b->running_digest) == 0 &&
           strcmp(a->running_release, b->running_release) == 0 &&
           strcmp(a->up_detail, b->up_detail) == 0 &&
           strcmp(a->serving_detail, b->serving_detail) == 0 &&
           strcmp(a->reason, b->reason) == 0;
}

static int64_t
seconds_since(int64_t mono_ms)
{
    return mono_ms == 0 ? -1 : (clock_mono_ms(&clock_system) - mono_ms) / 1000;
}

void
engine_get_status(struct engine *en, struct engine_status *ret)
{
    lock_take(&en->lock);
    *ret = en->status;
    lock_give(&en->lock);
    ret->age_s = seconds_since(ret->looked_mono_ms);
    ret->silent_s = ret->up == FACT_NO ? seconds_since(ret->answered_mono_ms) : -1;
    confirm_look(en, &ret->waiting);
}

void
watcher_look(struct engine *en)
{
    struct haproxy_info info;
    struct engine_status s;
    bool was_up;
    bool same;

    lock_take(&en->look_lock);
    engine_get_status(en, &s);
    look_at_old_workers(en, &s); /* may wait for the helper, which makes no fact older */
    look_at_worker(en, &s, &info);
    look_at_serving(en, &s);
    look_up(en, &s);
    lock_take(&en->lock);
    /* These are not measured here. */
    s.started = en->status.started;
    memcpy(s.reason, en->status.reason, sizeof s.reason);
    s.servers = en->status.servers;
    was_up = en->told.up == FACT_YES;
    same = same_facts(&en->told, &s);
    en->status = s;
    en->told = s;
    lock_give(&en->lock);
    if (s.up == FACT_NO && was_up) {
        log_warning("HAProxy's admin socket: %s", s.up_detail);
    }
    if (!same) {
        events_publish(en->events, "status", facts_json(&s));
    }
    lock_give(&en->look_lock);
}

/* ---- following the head ---- */

/* Whether other nodes are in HAProxy's files than now, and this node's turn has come: were it
 * that of all, all would reload at once. Also the first one waits: who joins hears of the
 * others one by one, and would think itself the first of few. What the files are made anew for
 * meanwhile brings the nodes with it. Under the lock. */
static bool
is_turn(struct engine *en, const struct members_tables *tables, int64_t now_ms)
{
    struct follow *f = &en->follow;

    if (hash_equal(&tables->digest, &f->tables)) {
        f->tables_since_ms = 0;
        return false;
    }
    if (f->tables_since_ms == 0) {
        f->tables_since_ms = now_ms;
    }
    return now_ms - f->tables_since_ms >=
           ((int64_t)tables->rank + 1) * en->config->tunables->tables_turn_ms;
}

/* Whether a reconcile is due. *ret_quiet: it only repeats one that failed. */
static bool
is_due(struct engine *en, bool *ret_quiet)
{
    struct follow *f = &en->follow;
    const struct engine_status *s = &en->status;
    bool tries = standby_holds(en); /* what it runs is not the head, for so long */
    CLEANUP(members_tables_fini) struct members_tables tables;
    int64_t now_ms = clock_mono_ms(&clock_system);
    bool turn, due;

    members_tables_get(en, &tables);
    lock_take(&en->lock);
    f->down_rounds = s->up == FACT_NO ? f->down_rounds + 1 : 0;
    turn = is_turn(en, &tables, now_ms);
    due = !f->ok || f->down_rounds >= FOLLOW_DOWN_ROUNDS ||
          (s->up == FACT_YES && !tries && strcmp(s->running_digest, f->digest) != 0) || turn;
    due = due && now_ms >= f->next_ms;
    *ret_quiet = !f->ok;
    lock_give(&en->lock);
    return due && atomic_load(&en->applies) == 0;
}

void
watcher_run(void *ctx)
{
    struct engine *en = ctx;
    struct heap_watch heap = {.kept = 0};

    while (!engine_stopping(en)) {
        struct timespec deadline = lock_deadline(en->config->tunables->status_round_ms);
        bool quiet = false;

        watcher_look(en);
        if (is_due(en, &quiet)) {
            reconcile_start(en, quiet);
        }
        pages_follow(en);
        operator_follow(en);
        stats_forget_old(en);
        heap_round(&heap);
        lock_take(&en->lock);
        while (!en->stopping && !en->look_now &&
               lock_wait(&en->changed, &en->lock, &deadline)) {
        }
        en->look_now = false;
        lock_give(&en->lock);
    }
}
