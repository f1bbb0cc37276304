/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/edit_check.h"
#include "engine/first_start.h"
#include "engine/members.h"
#include "engine/operator.h"
#include "engine/own_traffic.h"
#include "engine/stats.h"
#include "engine/watcher.h"
#include "model/validate.h"
#include "store/sessions.h"

/* ---- threads ---- */

struct run_call {
    struct engine *en;
    engine_fn fn;
    void *ctx;
    struct error *e;
    err_t code;
};

static void
run_call(void *ctx)
{
    struct run_call *call = ctx;

    call->code = call->fn(call->en, call->ctx, call->e);
}

bool
engine_on_own_thread(const struct engine *en)
{
    return pthread_equal(pthread_self(), en->own_thread) != 0;
}

err_t
engine_run(struct engine *en, engine_fn fn, void *ctx, struct error *e)
{
    struct run_call call = {.en = en, .fn = fn, .ctx = ctx, .e = e};
    err_t code;

    ASSERT(en->magic == ENGINE_MAGIC);
    if (engine_on_own_thread(en)) {
        return fn(en, ctx, e);
    }
    code = mailbox_call(en->own_box, run_call, &call, e);
    return code == ERR_OK ? call.code : code;
}

err_t
engine_post(struct engine *en, mailbox_fn fn, void *ctx, struct error *e)
{
    ASSERT(en->magic == ENGINE_MAGIC);
    return mailbox_post(en->own_box, fn, ctx, e);
}

err_t
engine_work(struct engine *en, mailbox_fn fn, void *ctx, struct error *e)
{
    ASSERT(en->magic == ENGINE_MAGIC);
    return mailbox_post(en->work_box, fn, ctx, e);
}

bool
engine_stopping(struct engine *en)
{
    bool stopping;

    lock_take(&en->lock);
    stopping = en->stopping;
    lock_give(&en->lock);
    return stopping;
}

bool
engine_pause(struct engine *en, int64_t ms)
{
    struct timespec deadline = lock_deadline(ms);
    bool stopping;

    lock_take(&en->lock);
    while (!en->stopping && lock_wait(&en->changed, &en->lock, &deadline)) {
    }
    stopping = en->stopping;
    lock_give(&en->lock);
    return stopping;
}

void
engine_wake(struct engine *en)
{
    lock_take(&en->lock);
    en->look_now = true;
    ASSERT(pthread_cond_broadcast(&en->changed) == 0);
    lock_give(&en->lock);
}

/* ---- parts ---- */

struct events *
engine_events(struct engine *en)
{
    ASSERT(en->magic == ENGINE_MAGIC);
    return en->events;
}

struct tasks *
engine_tasks(struct engine *en)
{
    ASSERT(en->magic == ENGINE_MAGIC);
    return en->tasks;
}

void
engine_audit(struct engine *en, const char *author, const char *action, const char *text)
{
    struct error error;

    /* What it tells of has happened: no reason to fail now. */
    if (store_audit(
            en->store, clock_wall_ms(en->config->clock), author, action, text, &error) !=
        ERR_OK) {
        log_warning("audit of %s by %s: %s", action, author, error.msg);
    }
}

#define BEHIND_BYTES 120

struct leveling {
    int level;
    const char *behind;
    struct problems *p;
    bool refused;
};

static void
check_level(void *ctx, const struct object *before, const struct object *after)
{
    struct leveling *l = ctx;
    size_t errors = l->p->errors;

    (void)before;
    if (after != NULL) {
        validate_level(after, l->level, l->behind, l->p);
        l->refused = l->refused || l->p->errors > errors;
    }
}

/* Every node has to understand it. */
static err_t
is_understood(
    struct engine *en, const struct snapshot *before, const struct snapshot *after,
    struct problems *p, struct error *e)
{
    char who[BEHIND_BYTES];
    struct member behind;
    struct leveling l = {members_level(en, &behind), who, p, false};

    (void)snprintf(who, sizeof who, "%s (release %s)", behind.name, behind.release);
    if (l.level < SCHEMA_VERSION) {
        snapshot_diff(before, after, check_level, &l);
    }
    return l.refused ? error_set(e, ERR_INVALID, "%s", edit_first_error(p)) : ERR_OK;
}

err_t
actor_may(
    struct engine *en, const struct actor *who, const struct snapshot *before,
    const struct snapshot *after, struct problems *p, struct error *e)
{
    struct hash a, b;

    if (after == NULL || before == after) {
        return ERR_OK;
    }
    if (who->locked != NULL) {
        a = snapshot_fp(before, SCHEMA_VERSION);
        b = snapshot_fp(after, SCHEMA_VERSION);
        if (!hash_equal(&a, &b)) {
            return error_set(e, ERR_LOCKED, "%s", who->locked);
        }
    }
    return is_understood(en, before, after, p, e);
}

void
engine_set_cluster(struct engine *en, const struct engine_cluster *ops)
{
    lock_take(&en->lock);
    en->cluster = ops;
    while (ops == NULL && en->in_cluster > 0) {
        ASSERT(pthread_cond_wait(&en->changed, &en->lock) == 0);
    }
    lock_give(&en->lock);
}

const struct engine_cluster *
engine_cluster_take(struct engine *en)
{
    const struct engine_cluster *ops;

    lock_take(&en->lock);
    ops = en->cluster;
    en->in_cluster += ops != NULL ? 1 : 0;
    lock_give(&en->lock);
    return ops;
}

void
engine_cluster_give(struct engine *en)
{
    lock_take(&en->lock);
    en->in_cluster--;
    ASSERT(pthread_cond_broadcast(&en->changed) == 0);
    lock_give(&en->lock);
}

/* The caller frees. */
static char *
path_in(const char *dir, const char *name)
{
    size_t bytes = strlen(dir) + strlen(name) + 2;
    char *path = xmalloc(bytes);

    (void)snprintf(path, bytes, "%s/%s", dir, name);
    return path;
}

/* ---- opening ---- */

static err_t
make_directories(const struct engine *en, struct error *e)
{
    err_t code = file_mkdir_at(AT_FDCWD, en->config->state_dir, 0755, e);

    if (code == ERR_OK) {
        code = file_mkdir_at(AT_FDCWD, en->data_dir, 0700, e);
    }
    if (code == ERR_OK) {
        code = file_mkdir_at(AT_FDCWD, en->stage_dir, 0700, e);
    }
    return code;
}

/* A second daemon would write past what this one keeps in memory. */
static err_t
lock_data(struct engine *en, struct error *e)
{
    err_t code = file_open_dir_at(AT_FDCWD, en->data_dir, &en->data_fd, e);

    if (code != ERR_OK || flock(en->data_fd, LOCK_EX | LOCK_NB) == 0) {
        return code;
    }
    return errno == EWOULDBLOCK
               ? error_set(e, ERR_DENIED, "another lockstepd serves %s", en->config->state_dir)
               : error_errno(e, ERR_IO, errno, "cannot lock %s", en->data_dir);
}

static err_t
load_sessions(struct engine *en, struct error *e)
{
    struct session_row *rows = NULL;
    size_t count = 0;
    err_t code = store_sessions(en->store, &rows, &count, e);

    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        sessions_add(en->sessions, &rows[i]);
    }
    free(rows);
    return code;
}

/* Generations without a database: it was lost. A new, empty one would take the services off
 * HAProxy with the first apply, so there is none. */
static err_t
refuse_lost_database(const struct engine *en, struct error *e)
{
    CLEANUP(xfree_cleanup) char *current = path_in(en->generation_dir, "current");

    if (file_exists_at(en->data_fd, STORE_DB_NAME) || !file_exists_at(AT_FDCWD, current)) {
        return ERR_OK;
    }
    return error_set(
        e, ERR_CORRUPT,
        "%s holds no database, but HAProxy has a configuration: restore it from a backup, or "
        "take it from another node: move data/ and generation/ away, set up, then "
        "lockstep join",
        en->data_dir);
}

/* The first job of the engine thread. */
static err_t
open_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct engine_config *config = en->config;
    err_t code;

    (void)ctx;
    code = refuse_lost_database(en, e);
    if (code == ERR_OK) {
        code = store_open(en->data_dir, config->node_name, config->clock, &en->store, e);
    }
    if (code == ERR_OK) {
        /* A daemon that was killed leaves files there, also private keys. */
        code = file_empty_dir_at(AT_FDCWD, en->stage_dir, e);
    }
    if (code == ERR_OK) {
        code = store_load(en->store, &en->live, e);
    }
    if (code == ERR_OK) {
        code = load_sessions(en, e);
    }
    if (code == ERR_OK) {
        code = first_start_placeholder(en, e);
    }
    if (code == ERR_OK && config->api_port != 0) {
        code = first_start_api(en, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    draft_settle(en);
    view_publish(en);
    code = members_open(en, e);
    if (code == ERR_OK) {
        code = confirm_load(en, e);
    }
    return code == ERR_OK ? first_start_token(en, e) : code;
}

static void
open_call(void *ctx)
{
    struct run_call *call = ctx;

    call->en->own_thread = pthread_self();
    run_call(ctx);
}

static err_t
close_on_engine(struct engine *en, void *ctx, struct error *e)
{
    (void)ctx;
    (void)e;
    draft_list_free(&en->live.draft);
    snapshot_unref(en->live.shared);
    snapshot_unref(en->live.local);
    store_close(en->store);
    en->store = NULL;
    return ERR_OK;
}

static struct engine *
engine_new(const struct engine_config *config)
{
    struct engine *en = xcalloc(1, sizeof *en);

    en->magic = ENGINE_MAGIC;
    en->config = config;
    en->own_thread = pthread_self(); /* until there is one */
    en->data_fd = -1;
    en->data_dir = path_in(config->state_dir, "data");
    en->stage_dir = path_in(config->state_dir, "stage");
    en->generation_dir = path_in(config->state_dir, "generation");
    en->admin_socket = path_in(config->run_dir, "haproxy.sock");
    en->probe_socket = path_in(config->run_dir, "probe.sock");
    en->helper_socket = path_in(config->run_dir, "helper.sock");
    en->helper = (struct helper){
        en->helper_socket, config->tunables->helper_ms, config->tunables->helper_wait_ms};
    lock_init(&en->lock);
    lock_init(&en->look_lock);
    lock_init(&en->check_lock);
    lock_init(&en->peer_check_lock);
    lock_cond_init(&en->changed);
    en->events = events_new();
    en->tasks = tasks_new(config->clock, en->events);
    en->sessions = sessions_new(config->clock, config->tunables);
    en->throttle = throttle_new(config->clock);
    en->operators = operators_new();
    en->stats = stats_cache_new();
    en->own_traffic = own_traffic_new();
    return en;
}

static err_t
start_threads(struct engine *en, struct error *e)
{
    err_t code = mailbox_open("engine", 1, ENGINE_QUEUE, &en->own_box, e);

    if (code == ERR_OK) {
        code = mailbox_open("apply", 1, APPLY_QUEUE + 1, &en->apply_box, e);
    }
    if (code == ERR_OK) {
        code = mailbox_open("watcher", 1, 1, &en->watch_box, e);
    }
    if (code == ERR_OK) {
        code = mailbox_open("confirm", 1, 1, &en->confirm_box, e);
    }
    if (code == ERR_OK) {
        code = mailbox_open("worker", WORK_THREADS, WORK_QUEUE, &en->work_box, e);
    }
    return code;
}

err_t
engine_open(const struct engine_config *config, struct engine **ret, struct error *e)
{
    struct engine *en = engine_new(config);
    struct run_call call = {.en = en, .fn = open_on_engine, .e = e};
    err_t code = make_directories(en, e);

    if (code == ERR_OK) {
        code = lock_data(en, e);
    }
    if (code == ERR_OK) {
        code = start_threads(en, e);
    }
    if (code == ERR_OK) {
        code = mailbox_call(en->own_box, open_call, &call, e);
    }
    if (code == ERR_OK) {
        code = call.code;
    }
    if (code != ERR_OK) {
        engine_close(en);
        return code;
    }
    reconcile_start(en, false);
    code = mailbox_post(en->watch_box, watcher_run, en, e);
    ASSERT(code == ERR_OK);
    code = mailbox_post(en->confirm_box, confirm_run, en, e);
    ASSERT(code == ERR_OK);
    *ret = en;
    return ERR_OK;
}

/* ---- closing ---- */

static void
free_parts(struct engine *en)
{
    for (size_t i = 0; i < en->spare_count; i++) {
        rendered_fini(en->spare[i]);
        free(en->spare[i]);
    }
    view_unref(en->view);
    tasks_free(en->tasks);
    events_free(en->events);
    sessions_free(en->sessions);
    throttle_free(en->throttle);
    operators_free(en->operators);
    stats_cache_free(en->stats);
    own_traffic_free(en->own_traffic);
    members_close(en);
    if (en->placeholder_pem != NULL) {
        crypt_wipe(en->placeholder_pem, strlen(en->placeholder_pem));
    }
    free(en->placeholder_pem);
    free(en->api_pem);
    fd_cleanup(&en->data_fd);
    free(en->data_dir);
    free(en->stage_dir);
    free(en->generation_dir);
    free(en->admin_socket);
    free(en->probe_socket);
    free(en->helper_socket);
    (void)pthread_cond_destroy(&en->changed);
    (void)pthread_mutex_destroy(&en->lock);
    (void)pthread_mutex_destroy(&en->look_lock);
    (void)pthread_mutex_destroy(&en->check_lock);
    (void)pthread_mutex_destroy(&en->peer_check_lock);
}

void
engine_close(struct engine *en)
{
    struct error unused;

    if (en == NULL) {
        return;
    }
    ASSERT(en->magic == ENGINE_MAGIC);
    lock_take(&en->lock);
    en->stopping = true;
    ASSERT(pthread_cond_broadcast(&en->changed) == 0);
    lock_give(&en->lock);
    /* These call the engine thread, so it goes last. */
    mailbox_close(en->watch_box);
    mailbox_close(en->confirm_box);
    mailbox_close(en->apply_box);
    mailbox_close(en->work_box);
    if (en->own_box != NULL) {
        err_t code = engine_run(en, close_on_engine, NULL, &unused);

        ASSERT(code == ERR_OK);
    }
    mailbox_close(en->own_box);
    free_parts(en);
    en->magic = 0;
    free(en);
}
