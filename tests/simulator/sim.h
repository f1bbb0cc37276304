/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster in one process: real engine, store and sync code of 3 to 5 nodes, with the fake
 * node of tests/support below each; links in memory in place of HTTP, clocks that stand between
 * steps. One thread drives it, so a seed is a schedule. What must never happen ends the program
 * with that schedule. */
#ifndef LOCKSTEP_SIMULATOR_SIM_H
#define LOCKSTEP_SIMULATOR_SIM_H

#include "sync/inner.h"
#include "tests/support/engine_lab.h"
#include "tests/support/gen.h"

#define SIM_NODES      5
#define SIM_MARKER     "only-here-"
#define SIM_SERVERS    4
#define SIM_ACKED      256
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
    struct hash head;  /* as seen last */
};

struct sim_message {
    size_t to;
    char *body, *from; /* id of the sender */
};

/* What happens beside the call that is about to be delivered. */
enum sim_hook { HOOK_NONE, HOOK_EDIT, HOOK_OVERWRITE, HOOK_CUT, HOOK_APPLY };

struct sim {
    struct sim_node nodes[SIM_NODES];
    size_t count;
    bool cut[SIM_NODES][SIM_NODES]; /* from, to */
    _Atomic int64_t mono_ms, wall_ms;
    struct gen *random;
    uint64_t seed;
    bool verbose, calm;
    struct buf trace;

    enum sim_hook hook;
    int hook_after; /* calls */
    size_t hook_node;
    _Atomic size_t race; /* node whose head moves while it takes a push over, + 1 */
    struct sim_message recorded[SIM_RECORDED];
    size_t recorded_next;

    struct hash acked[SIM_ACKED]; /* commits whose apply was answered well */
    size_t acked_count;
    size_t asked, refused, moved, outranked, taken, equal, applied, overwritten, diverged, died,
        full;
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
/* At once, as a power failure. */
void sim_node_die(size_t i);
/* Ends the process of a node that died, and puts back the files of that moment. */
void sim_bury(size_t i);
bool sim_up(size_t i);
struct commit sim_head(size_t i);
void sim_join(size_t i, size_t to);

/* What a refusal must leave as it was. */
struct sim_print {
    struct hash head;
    int64_t local_rev, commits, bodies, drafted, drafted_ms;
    char running[17];
};
struct sim_print sim_print_of(size_t i);
bool sim_print_equal(const struct sim_print *a, const struct sim_print *b);

/* ---- link.c ---- */

size_t sim_node_of_id(const char *id); /* SIM_NODES: none */
void sim_record_clear(void);
/* Delivers a recorded push once more; damaged: with one character of it changed. */
void sim_replay(bool damaged);

/* ---- step.c ---- */

void sim_step(void);
void sim_apply(size_t i, const char *ops); /* NULL: the draft */
void sim_edit_direct(size_t i);
/* True when every node that differed has taken it. */
bool sim_overwrite(size_t i);
void sim_hook(void);

/* ---- check.c ---- */

/* No head went where its former one is no ancestor, or of the same content. */
void sim_watch(void);
/* All links work, and everything that must hold then does. */
void sim_settle(void);
void sim_verify(size_t i);
/* Whether a, as node i knows it, is an ancestor of b, or b itself. */
bool sim_leads(size_t i, const struct hash *a, const struct hash *b);
bool sim_has(size_t i, const struct hash *commit);

#endif
