/* SPDX-License-Identifier: Apache-2.0 */
/* simulate [--seeds N] [--first N] [--seed N] [--steps N] [--trace FILE] [--mutate NAME]:
 * schedules of faults on a cluster in this process; trace.h; a decision of relation_table
 * --list spoilt. SEEDS_TOGETHER of them run one after another on the same nodes, each from
 * where the one before has settled; --seed N begins with the first of those, and shows what
 * happens in N. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "haproxy/span.h"
#include "tests/simulator/confirm.h"
#include "tests/simulator/trace.h"
#include "tests/support/mutation.h"

#define SEEDS_TOGETHER   40
#define BEHIND_EVERY     5 /* clusters: in its first schedule a node misses very much */
#define SEED_MAX         1000000000
#define SEEDS_THAT_PROVE 200 /* so many have everything among them */
#define STEPS            14
#define BEGIN_WALL_MS    1800000000000
#define REFUSED_CONN     10000
#define SERVER                                                                                 \
    "[{'op': 'create', 'kind': 'server', 'body': {'name': 's%zu', 'address': '10.0.0.1', "     \
    "'port': 80}}]"
#define SERVER_STATE                                                                           \
    "[{'op': 'create', 'kind': 'server_state', 'body': {'name': 's%zu', 'server': 's%zu'}}]"

struct sim sim;

static uint64_t random_state;

/* ---- chance ---- */

ssize_t __wrap_getrandom(void *p, size_t bytes, unsigned flags);

/* Ids and keys follow from the seed, too: no wall clock, no entropy. */
ssize_t
__wrap_getrandom(void *p, size_t bytes, unsigned flags)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned char *to = p;

    (void)flags;
    lock_take(&lock);
    for (size_t i = 0; i < bytes; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        to[i] = (unsigned char)(random_state >> 56);
    }
    lock_give(&lock);
    return (ssize_t)bytes;
}

size_t
sim_below(size_t limit)
{
    return gen_below(sim.random, limit);
}

bool
sim_chance(unsigned percent)
{
    return gen_chance(sim.random, percent);
}

/* ---- the schedule, for people ---- */

void
sim_note(const char *fmt, ...)
{
    char text[SIM_TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_printf(&sim.trace, "%s\n", text);
    trace_note(text);
    if (sim.verbose) {
        (void)printf("%s\n", text);
    }
}

void
sim_fail(const char *fmt, ...)
{
    char text[SIM_TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)printf(
        "%sFAILED: seed %llu, %zu nodes: %s\nagain: simulate --seed %llu\n",
        buf_str(&sim.trace), (unsigned long long)sim.seed, sim.count, text,
        (unsigned long long)sim.seed);
    (void)fflush(NULL);
    _Exit(1);
}

/* ---- a cluster ---- */

static void
fill(void)
{
    char ops[SIM_TEXT_BYTES];

    for (size_t i = 0; i < SIM_SERVERS; i++) {
        (void)snprintf(ops, sizeof ops, SERVER, i);
        sim_apply(0, ops);
        (void)snprintf(ops, sizeof ops, SERVER_STATE, i, i);
        if (engine_lab_edit(sim.nodes[0].lab, ops) != ERR_OK) {
            sim_fail("%s", sim.nodes[0].lab->error.msg);
        }
    }
}

static void
begin(uint64_t batch)
{
    random_state = batch;
    sim.random = gen_new(batch);
    sim.mono_ms = SIM_ROUND_MS;
    sim.wall_ms = BEGIN_WALL_MS;
    sim.count = 0;
    sim.acked_count = 0;
    memset(sim.cut, 0, sizeof sim.cut);
    for (size_t n = 3 + batch % 3; sim.count < n;) {
        sim_node_start(sim.count++);
    }
    trace_cluster();
    for (size_t i = 0; i < sim.count; i++) {
        trace_head(i);
    }
    fill();
    sim_trials_cluster(batch % 2 == 1);
    for (size_t i = 1; i < sim.count; i++) {
        sim_join(i, 0);
    }
    sim_watch();
    gen_free(sim.random);
}

static void
end(void)
{
    sim_nothing_is_lost(0);
    for (size_t i = 0; i < sim.count; i++) {
        sim_verify(i);
        sim_look_for_strangers(i);
    }
    for (size_t i = 0; i < sim.count; i++) {
        sim_node_end(i);
    }
    sim_record_clear();
}

static void
run_seed(uint64_t seed, int steps)
{
    sim.seed = seed;
    sim.random = gen_new(seed);
    sim.acked_before = sim.acked_count;
    sim.refused_conn = REFUSED_CONN + seed % SEEDS_TOGETHER * SIM_NODES;
    sim.calm = false;
    sim_trials_seed();
    sim_refuse(true);
    buf_reset(&sim.trace);
    trace_seed(seed);
    if (seed % (SEEDS_TOGETHER * BEHIND_EVERY) == 1) {
        sim_fall_behind();
    }
    for (int i = 0; i < steps; i++) {
        sim_step();
    }
    sim_settle();
    gen_free(sim.random);
}

/* ---- all ---- */

struct options {
    uint64_t first, seeds, seed;
    int steps;
    const char *trace;
};

static void
run(const struct options *o)
{
    uint64_t first = o->seed > 0 ? o->seed : o->first;
    uint64_t last = o->seed > 0 ? o->seed : o->first + o->seeds - 1;
    int64_t from_ms = clock_mono_ms(&clock_system);

    for (uint64_t batch = (first - 1) / SEEDS_TOGETHER; batch * SEEDS_TOGETHER < last;
         batch++) {
        uint64_t end_seed = (batch + 1) * SEEDS_TOGETHER;

        sim.seed = batch * SEEDS_TOGETHER + 1;
        begin(batch);
        for (uint64_t s = sim.seed; s <= end_seed && s <= last; s++) {
            sim.verbose = s == o->seed;
            run_seed(s, o->steps);
        }
        end();
    }
    (void)printf(
        "seeds %llu to %llu held, in %lld ms: %zu calls, %zu applied, %zu taken (%zu of the same "
        "content), %zu refused (%zu moved, %zu outranked), %zu overwrites (%zu of two at once), "
        "%zu ended diverged, "
        "%zu deaths, %zu full disks, %zu held up by their check, %zu forgotten, %zu calls of no "
        "member refused, %zu undone, %zu joined again, %zu pieces of history fetched, %zu "
        "pushed, %zu gone back unconfirmed, %zu confirmed, %zu moves of the VIP\n",
        (unsigned long long)first, (unsigned long long)last,
        (long long)(clock_mono_ms(&clock_system) - from_ms), sim.asked, sim.applied, sim.taken,
        sim.equal, sim.refused, sim.moved, sim.outranked, sim.overwritten, sim.duels,
        sim.diverged, sim.died, sim.full, sim.rejected, sim.forgotten, sim.barred, sim.undone,
        sim.locked_out, sim.pieces, sim.handed, sim_trials.back, sim_trials.kept,
        sim_trials.moved);
    if (o->seed == 0 && o->seeds >= SEEDS_THAT_PROVE &&
        (sim.moved == 0 || sim.outranked == 0 || sim.duels == 0 || sim.equal == 0 ||
         sim.full == 0 || sim.rejected == 0 || sim.forgotten == 0 || sim.barred == 0 ||
         sim.undone == 0 || sim.pieces == 0 || sim.handed == 0 || sim_trials.back == 0 ||
         sim_trials.kept == 0)) {
        (void)printf("FAILED: these schedules prove too little\n");
        exit(1);
    }
}

static bool
read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t n = 0;

        if (strcmp(argv[i], "--trace") == 0) {
            o->trace = argv[i + 1];
            continue;
        }
        if (strcmp(argv[i], "--mutate") == 0) {
            if (!mutation_select(argv[i + 1])) {
                return false;
            }
            continue;
        }
        if (!span_number(span_of(argv[i + 1]), SEED_MAX, &n) || n == 0) {
            return false;
        }
        if (strcmp(argv[i], "--seeds") == 0) {
            o->seeds = (uint64_t)n;
        } else if (strcmp(argv[i], "--first") == 0) {
            o->first = (uint64_t)n;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->seed = (uint64_t)n;
        } else if (strcmp(argv[i], "--steps") == 0) {
            o->steps = (int)n;
        } else {
            return false;
        }
    }
    return argc % 2 == 1;
}

int
main(int argc, char **argv)
{
    struct options o = {.first = 1, .seeds = SEEDS_TOGETHER, .steps = STEPS};
    sigset_t full;

    if (!read_options(argc, argv, &o)) {
        (void)fprintf(
            stderr, "usage: simulate [--seeds N] [--first N] [--seed N] [--steps N] [--trace "
                    "FILE] [--mutate NAME]\n");
        return 2;
    }
    log_open("simulate", LOG_LEVEL_ERROR);
    /* Where a disk is full, the write fails, and that is all. */
    (void)sigemptyset(&full);
    (void)sigaddset(&full, SIGXFSZ);
    ASSERT(pthread_sigmask(SIG_BLOCK, &full, NULL) == 0);
    buf_init(&sim.trace, SIM_TRACE_MAX);
    if (o.trace != NULL && !trace_open(o.trace)) {
        (void)fprintf(stderr, "simulate: %s cannot be written\n", o.trace);
        return 2;
    }
    run(&o);
    trace_close();
    buf_fini(&sim.trace);
    return 0;
}
