/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of HAProxy, read when somebody asks: at 10,000 pools they take HAProxy 250 ms.
 * Whoever asks within a second gets the same ones. */
#ifndef LOCKSTEP_ENGINE_STATS_H
#define LOCKSTEP_ENGINE_STATS_H

#include "engine/engine.h"
#include "haproxy/server_states.h"
#include "haproxy/stat.h"

#define STATS_FRESH_MS    1000
#define STATS_KEPT_MS     3000 /* then the memory is given back */
#define STATS_ARENA_BYTES ((size_t)256 << 20)

/* Immutable, reference counted. */
struct stats {
    _Atomic unsigned refs;
    int64_t mono_ms;    /* when they were asked for */
    int64_t seen_at_ms; /* Unix time */
    struct arena *arena;
    struct stat_table stat;
    struct server_table states;
    size_t parse_errors; /* of both */
};

struct stats_cache;

struct stats_cache *stats_cache_new(void);
void stats_cache_free(struct stats_cache *c);

/* Of all pools and listeners, or of the pool of that name alone. Waits for HAProxy, at most
 * socket_ms for each of two answers: worker threads only. ERR_UNAVAILABLE with the reason
 * (also for the next second); ERR_NOT_FOUND: HAProxy has no such pool. *ret: a reference. */
MUST_USE err_t
stats_get(struct engine *en, const char *pool, struct stats **ret, struct error *e);
void stats_unref(struct stats *s); /* NULL is allowed */
void stats_cleanup(struct stats **s);
/* The next who asks gets new ones. */
void stats_forget(struct engine *en);
/* Gives back the memory of old ones. Never waits. */
void stats_forget_old(struct engine *en);

/* "show servers state" of all pools (NULL) or of one, without the cache; configured weights are
 * those of shared. */
MUST_USE err_t stats_read_states(
    struct engine *en, const struct snapshot *shared, const char *pool, struct arena *a,
    struct server_table *ret, struct error *e);

/* Frontends and backends of our own, which nobody published. */
bool stats_is_own(const char *name);

#endif
