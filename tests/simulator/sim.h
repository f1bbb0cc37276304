/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster in one process: real engine, store and sync code of 3 to 5 nodes, the fake node of
 * tests/support below each, links in memory in place of HTTP, clocks that stand between steps.
 * One thread drives it: a seed is a schedule, with which what must never happen ends it. */
#ifndef LOCKSTEP_SIMULATOR_SIM_H
#define LOCKSTEP_SIMULATOR_SIM_H

#include <semaphore.h>

#include "store/db.h"
#include "sync/inner.h"
#include "tests/support/engine_lab.h"
#include "tests/support/gen.h"

#define SIM_NODES      5
#define SIM_MARKER     "only-here-"
#define SIM_WHO        "admin maria"
#define SIM_SERVERS    4
#define SIM_ACKED      8192
#define SIM_RECORDED   8
#define SIM_ROUND_MS   2000
#define SIM_TRACE_MAX  ((size_t)1 << 20)
#define SIM_TEXT_BYTES 400
#define SIM_KEEP_IN_STEP                                                                       \
    "[{'op': 'merge', 'kind': 'node', 'name': '%s', 'body': {'keep_in_step': %s}}]"

/* Where a node ends, or cannot write: around its next transaction. */
enum sim_point { POINT_NONE, POINT_DIE_BEFORE, POINT_DIE_AFTER, POINT_DISK_FULL };

struct sim_node {
    struct engine_lab *lab; /* ->en NULL: down */
    struct cluster *cluster;
    char name[8], url[32], pin[64];
    _Atomic int64_t clock_off_ms;
    _Atomic enum sim_point point;
    _Atomic bool dead; /* nobody hears from it; its files were set aside as they were then */
    bool away;         /* left the cluster */
    bool held;         /* is not to heal */
    bool tried;        /* goes back from a trial whenever it does, until its head moves */
    struct hash head;  /* as seen last */
    struct db *steady, *newest; /* other readers of its database, or NULL: dump.c */
};

struct sim_message {
    size_t to;
    char *body, *from; /* id of the sender */
    const char *method, *path;
};

/* What happens before a call is delivered, or before its answer is. */
enum sim_hook { HOOK_NONE, HOOK_EDIT, HOOK_OVERWRITE, HOOK_CUT, HOOK_APPLY, HOOK_ROUND };

struct sim {
    struct sim_node nodes[SIM_NODES];
    size_t count;
    unsigned lost;                  /* percent of calls, and of answers */
    bool cut[SIM_NODES][SIM_NODES]; /* from, to */
    _Atomic int64_t mono_ms, wall_ms;
    struct gen *random;
    uint64_t seed;
    bool verbose, calm, regrouped;
    struct buf trace;
    enum sim_hook hook;
    int hook_after; /* calls */
    size_t hook_node, recorded_next;
    _Atomic size_t race; /* node whose head moves while it takes a push over, + 1 */
    sem_t race_begins;   /* the push was weighed */
    struct sim_message recorded[SIM_RECORDED];
    struct hash acked[SIM_ACKED]; /* commits whose apply was answered well, of one cluster */
    size_t acked_count, acked_before;
    size_t refused_conn; /* node i refuses content with that number of connections, + i */
    size_t asked, refused, moved, outranked, taken, equal, applied, overwritten, diverged, died,
        full, rejected, forgotten, barred, undone, locked_out, pieces, handed, duels;
};

extern struct sim sim;

size_t sim_below(size_t limit);
bool sim_chance(unsigned percent);
void sim_note(const char *fmt, ...) PRINTF_LIKE(1, 2);
NORETURN void sim_fail(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* ---- node.c ---- */

void sim_node_start(size_t i); /* a node that never was */
void sim_node_open(size_t i);
void sim_node_end(size_t i);
void sim_node_die(size_t i); /* at once, as a power failure */
/* Ends the process of a node that died, and puts back the files of that moment. */
void sim_bury(size_t i);
bool sim_up(size_t i);
struct commit sim_head(size_t i);
void sim_join(size_t i, size_t to);
size_t sim_node_of_id(const char *id); /* SIM_NODES: none */

/* ---- dump.c ---- */

/* What a refusal must leave as it was: head, every row of the database, what HAProxy runs. */
struct sim_before {
    struct hash head;
    char running[17];
    int64_t version; /* of the database, another one after each transaction */
    struct tx tx;    /* sees the database as it was */
};

void sim_before(size_t i, struct sim_before *ret);
/* tried: what HAProxy runs is not looked at. */
bool sim_is_as_before(size_t i, const struct sim_before *b, bool tried);
void sim_before_end(struct sim_before *b); /* also for CLEANUP() */
void sim_readers_close(size_t i);
/* No local value of another node is in its database, its files or its answers. */
void sim_look_for_strangers(size_t i);

/* ---- link.c ---- */

void sim_record_clear(void);
/* Delivers a recorded call once more; damaged: a push with one character of it changed. */
void sim_replay(bool damaged);
void
sim_push_newer(size_t from, size_t to); /* of a newer release, on top of the head of from */

/* ---- step.c ---- */

void sim_step(void);
void sim_apply(size_t i, const char *ops); /* NULL: the draft */
void sim_edit_direct(size_t i);
/* True when every node that differed has taken it. */
bool sim_overwrite(size_t i);
void sim_hook(void);
/* A node that is cut off misses more commits than are pushed at a time. */
void sim_fall_behind(void);

/* ---- check.c ---- */

/* No head went where its former one is no ancestor, or of the same content. */
void sim_watch(void);
/* All links work, and everything that must hold then does. */
void sim_settle(void);
void sim_verify(size_t i);
/* Commits from the one at this place on that were answered well are somewhere. */
void sim_nothing_is_lost(size_t first);
/* Whether node i holds content that node by refuses. */
bool sim_is_refused(size_t i, size_t by);
void sim_refuse(bool refuse); /* nodes refuse content from now on, or no longer */
/* Whether a, as node i knows it, is an ancestor of b, or b itself. */
bool sim_leads(size_t i, const struct hash *a, const struct hash *b);
bool sim_has(size_t i, const struct hash *commit);

#endif
