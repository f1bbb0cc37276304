/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/configured.h"
#include "engine/inner.h"
#include "engine/own_traffic.h"
#include "haproxy/admin.h"

#define ANSWER_MAX_BYTES ((size_t)64 << 20) /* at 10,000 pools it has 12 MB */
#define COMMAND_BYTES    256
#define BACKENDS         2 /* types of "show stat" */
#define SERVERS          4
#define NAME_BYTES       128
#define OWN_PREFIX       "lockstep."

/* The newest ones, of one question. */
struct slot {
    char pool[NAME_BYTES]; /* "": of all */
    struct stats *stats;   /* NULL: none */
    int64_t failed_ms;     /* monotonic; 0: did not fail */
    struct error failure;
};

struct stats_cache {
    pthread_mutex_t lock; /* held while HAProxy answers: who comes then waits for it */
    struct slot all, one;
    _Atomic int64_t stale_ms; /* monotonic: what was asked for before is not to be given out */
};

struct stats_cache *
stats_cache_new(void)
{
    struct stats_cache *c = xcalloc(1, sizeof *c);

    lock_init(&c->lock);
    return c;
}

static void
slot_empty(struct slot *s)
{
    stats_unref(s->stats);
    *s = (struct slot){.stats = NULL};
}

void
stats_cache_free(struct stats_cache *c)
{
    slot_empty(&c->all);
    slot_empty(&c->one);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void
stats_unref(struct stats *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    stat_table_fini(&s->stat);
    server_table_fini(&s->states);
    arena_free(s->arena);
    free(s);
}

void
stats_cleanup(struct stats **s)
{
    stats_unref(*s);
}

bool
stats_is_own(const char *name)
{
    return strncmp(name, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0;
}

/* ---- reading ---- */

static err_t
ask(struct engine *en, const char *command, struct buf *out, struct error *e)
{
    return admin_ask(en->admin_socket, command, en->config->tunables->socket_ms, out, e);
}

err_t
stats_read_states(
    struct engine *en, const struct snapshot *shared, const char *pool, struct arena *a,
    struct server_table *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf out;
    char command[COMMAND_BYTES];
    err_t code;

    buf_init(&out, ANSWER_MAX_BYTES);
    (void)snprintf(
        command, sizeof command, "show servers state%s%s", pool != NULL ? " " : "",
        pool != NULL ? pool : "");
    code = ask(en, command, &out, e);
    if (code == ERR_OK && pool != NULL &&
        strcmp(buf_str(&out), "Can't find backend.\n\n") == 0) {
        return error_set(e, ERR_NOT_FOUND, "HAProxy does not run the pool \"%s\"", pool);
    }
    if (code == ERR_OK) {
        code = server_table_parse(buf_str(&out), out.len, a, ret, e);
    }
    if (code == ERR_OK) {
        configured_weights(shared, ret);
    }
    return code;
}

/* A listener may have the name of a pool, so that HAProxy is told the number. A pool without
 * servers has none in the table. */
static void
stat_command(const struct stats *s, const char *pool, char out[COMMAND_BYTES])
{
    if (pool == NULL) {
        (void)snprintf(out, COMMAND_BYTES, "show stat");
    } else if (s->states.count > 0) {
        (void)snprintf(
            out, COMMAND_BYTES, "show stat %lld %d -1",
            (long long)s->states.lines[0].backend_id, BACKENDS | SERVERS);
    } else {
        (void)snprintf(out, COMMAND_BYTES, "show stat -1 %d -1", BACKENDS);
    }
}

static void
keep_pool(struct stat_table *t, const char *pool)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->rows[i].pxname, pool) == 0) {
            t->rows[kept++] = t->rows[i];
        }
    }
    t->count = kept;
}

static err_t
read_stat(struct engine *en, const char *pool, struct stats *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf out;
    char command[COMMAND_BYTES];
    err_t code;

    buf_init(&out, ANSWER_MAX_BYTES);
    stat_command(s, pool, command);
    code = ask(en, command, &out, e);
    if (code == ERR_OK) {
        code = stat_parse(buf_str(&out), out.len, s->arena, &s->stat, e);
    }
    if (code == ERR_OK && pool != NULL) {
        keep_pool(&s->stat, pool);
    }
    return code;
}

static void
take_off_own(struct engine *en, struct stats *s)
{
    pid_t pid;

    lock_take(&en->lock);
    pid = (pid_t)en->status.haproxy_pid;
    lock_give(&en->lock);
    own_traffic_take_off(en->own_traffic, pid, &s->stat);
}

static err_t
read_all(struct engine *en, const char *pool, struct stats **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct stats *s = xcalloc(1, sizeof *s);
    err_t code;

    atomic_init(&s->refs, 1);
    s->mono_ms = clock_mono_ms(&clock_system);
    s->seen_at_ms = clock_wall_ms(en->config->clock);
    s->arena = arena_new(STATS_ARENA_BYTES);
    code = stats_read_states(en, v->now.shared, pool, s->arena, &s->states, e);
    if (code == ERR_OK) {
        code = read_stat(en, pool, s, e);
    }
    if (code != ERR_OK) {
        stats_unref(s);
        return code;
    }
    take_off_own(en, s);
    s->parse_errors = s->stat.parse_errors + s->states.parse_errors;
    *ret = s;
    return ERR_OK;
}

/* ---- counting ---- */

static void
count_server(const struct stats *s, const struct stat_row *row, struct engine_servers *ret)
{
    const struct server_line *line = server_table_find(&s->states, row->pxname, row->svname);
    const char *by = server_taken_out_by(row->status, line);

    switch (server_state_of(row->status)) {
    case SERVER_UP:
    case SERVER_NO_CHECK: ret->up++; break;
    case SERVER_DOWN: ret->down++; break;
    case SERVER_MAINT:
        ret->no_address += by != NULL && strcmp(by, "dns") == 0 ? 1 : 0;
        ret->maint += by != NULL && strcmp(by, "dns") == 0 ? 0 : 1;
        break;
    case SERVER_DRAIN:
    case SERVER_NOLB: ret->maint++; break;
    case SERVER_UNKNOWN: break;
    }
}

static void
note_servers(struct engine *en, const struct stats *s)
{
    struct engine_servers servers = {.seen_at_ms = s->seen_at_ms};

    for (size_t i = 0; i < s->stat.count; i++) {
        const struct stat_row *row = &s->stat.rows[i];

        if (row->type == STAT_SERVER && !stats_is_own(row->pxname)) {
            count_server(s, row, &servers);
        }
    }
    lock_take(&en->lock);
    en->status.servers = servers;
    lock_give(&en->lock);
}

/* ---- the cache ---- */

static bool
is_fresh(const struct stats_cache *c, const struct slot *slot, int64_t now_ms)
{
    return slot->stats != NULL && now_ms - slot->stats->mono_ms < STATS_FRESH_MS &&
           slot->stats->mono_ms > atomic_load(&c->stale_ms);
}

static err_t
fill(struct engine *en, const char *pool, struct slot *slot, struct error *e)
{
    struct stats *read = NULL;
    struct error error;
    err_t code = read_all(en, pool, &read, &error);

    slot_empty(slot);
    if (code == ERR_NOT_FOUND) {
        return error_set(e, code, "%s", error.msg);
    }
    (void)snprintf(slot->pool, sizeof slot->pool, "%s", pool != NULL ? pool : "");
    if (code != ERR_OK) {
        slot->failed_ms = clock_mono_ms(&clock_system);
        return error_set(
            &slot->failure, ERR_UNAVAILABLE, "HAProxy's statistics are unknown: %s", error.msg);
    }
    slot->stats = read;
    if (pool == NULL) {
        note_servers(en, read);
    }
    return ERR_OK;
}

static err_t
get(struct engine *en, const char *pool, struct stats **ret, struct error *e)
{
    struct stats_cache *c = en->stats;
    struct slot *slot = pool != NULL ? &c->one : &c->all;
    int64_t now_ms = clock_mono_ms(&clock_system);
    bool same = pool == NULL || strcmp(slot->pool, pool) == 0;
    err_t code = ERR_OK;

    if (same && slot->failed_ms != 0 && now_ms - slot->failed_ms < SOCKET_AGAIN_MS) {
        code = ERR_UNAVAILABLE;
    } else if (!same || !is_fresh(c, slot, now_ms)) {
        code = fill(en, pool, slot, e);
    }
    if (code == ERR_UNAVAILABLE) {
        return error_set(e, code, "%s", slot->failure.msg);
    }
    if (code == ERR_OK) {
        (void)atomic_fetch_add(&slot->stats->refs, 1);
        *ret = slot->stats;
    }
    return code;
}

err_t
stats_get(struct engine *en, const char *pool, struct stats **ret, struct error *e)
{
    err_t code;

    /* It would not fit into a command either. */
    if (pool != NULL && strlen(pool) >= NAME_BYTES) {
        return error_set(e, ERR_NOT_FOUND, "there is no pool of that name");
    }
    lock_take(&en->stats->lock);
    code = get(en, pool, ret, e);
    lock_give(&en->stats->lock);
    return code;
}

void
stats_forget(struct engine *en)
{
    atomic_store(&en->stats->stale_ms, clock_mono_ms(&clock_system));
}

static void
drop_old(struct slot *s, int64_t now_ms)
{
    if (s->stats != NULL && now_ms - s->stats->mono_ms > STATS_KEPT_MS) {
        slot_empty(s);
    }
}

void
stats_forget_old(struct engine *en)
{
    struct stats_cache *c = en->stats;
    int64_t now_ms = clock_mono_ms(&clock_system);

    if (pthread_mutex_trylock(&c->lock) == 0) {
        drop_old(&c->all, now_ms);
        drop_old(&c->one, now_ms);
        lock_give(&c->lock);
    }
}
