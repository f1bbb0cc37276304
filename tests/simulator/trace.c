/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tests/support/mutation.h"

#define COMMITS_MAX 65536
#define NO_COMMIT   COMMITS_MAX

static struct {
    FILE *file;
    struct hash *known; /* of this cluster, sorted by number */
    size_t *slots;      /* hash table of numbers + 1 */
    size_t count;
    size_t round; /* node */
    size_t saw[2];
    bool saw_pending;
    /* Of the sync_take under way. */
    bool taking, decided;
    int relation, verdict;
} trace;

/* ---- commits ---- */

static size_t *
slot_of(const struct hash *id)
{
    size_t at;

    memcpy(&at, id, sizeof at);
    at %= 2 * COMMITS_MAX;
    while (trace.slots[at] != 0 && !hash_equal(&trace.known[trace.slots[at] - 1], id)) {
        at = (at + 1) % (2 * COMMITS_MAX);
    }
    return &trace.slots[at];
}

static size_t
number_of(const struct hash *id)
{
    size_t slot = *slot_of(id);

    return slot != 0 ? slot - 1 : NO_COMMIT;
}

static void
write_commit(const struct commit *c)
{
    char id[SHA256_HEX + 1], fp[SHA256_HEX + 1];
    struct hash computed = commit_compute_id(c);

    ASSERT(hash_equal(&computed, &c->id) && trace.count < COMMITS_MAX);
    hash_hex(&c->id, id);
    hash_hex(&c->fp, fp);
    (void)fprintf(
        trace.file, "commit %zu %s %lld %d %s", trace.count, id, (long long)c->rev,
        c->schema_version, fp);
    for (size_t i = 0; i < c->parent_count; i++) {
        (void)fprintf(trace.file, " %zu", number_of(&c->parents[i]));
    }
    (void)fputc('\n', trace.file);
    trace.known[trace.count] = c->id;
    *slot_of(&c->id) = ++trace.count;
}

static bool
has_unknown_parent(const struct commit *c, struct hash *ret)
{
    for (size_t i = 0; i < c->parent_count; i++) {
        if (number_of(&c->parents[i]) == NO_COMMIT) {
            *ret = c->parents[i];
            return true;
        }
    }
    return false;
}

/* With those that it follows from, parents first; from the store of the engine. */
static size_t
add_commit(struct engine *en, const struct hash *id)
{
    struct commit *todo = NULL;
    size_t count = 0;
    struct hash next = *id;
    bool found = true;
    struct error e;

    while (number_of(id) == NO_COMMIT) {
        if (found) {
            todo = xrealloc(todo, (count + 1) * sizeof *todo);
            if (sync_commit_get(en, &next, &todo[count], &e) != ERR_OK) {
                break;
            }
            count++;
        }
        found = has_unknown_parent(&todo[count - 1], &next);
        if (!found) {
            write_commit(&todo[--count]);
        }
    }
    free(todo);
    return number_of(id);
}

void
trace_commits(size_t i)
{
    struct hash head = sim_head(i).id;

    if (trace.file != NULL) {
        (void)add_commit(sim.nodes[i].lab->en, &head);
    }
}

/* ---- files ---- */

bool
trace_open(const char *path)
{
    trace.file = fopen(path, "we");
    trace.known = xcalloc(COMMITS_MAX, sizeof *trace.known);
    trace.slots = xcalloc((size_t)2 * COMMITS_MAX, sizeof *trace.slots);
    if (trace.file != NULL) {
        (void)fprintf(trace.file, "schema %d\n", SCHEMA_VERSION);
    }
    return trace.file != NULL;
}

void
trace_close(void)
{
    if (trace.file != NULL && fclose(TAKE(trace.file)) != 0) {
        sim_fail("the trace cannot be written");
    }
    free(TAKE(trace.known));
    free(TAKE(trace.slots));
}

void
trace_cluster(void)
{
    if (trace.file != NULL) {
        trace.count = 0;
        memset(trace.slots, 0, (size_t)2 * COMMITS_MAX * sizeof *trace.slots);
        (void)fprintf(trace.file, "cluster %zu\n", sim.count);
    }
}

void
trace_seed(uint64_t seed)
{
    if (trace.file != NULL) {
        (void)fprintf(trace.file, "seed %llu\n", (unsigned long long)seed);
    }
}

void
trace_note(const char *text)
{
    if (trace.file != NULL) {
        size_t len = strcspn(text, "\n"); /* of what a checker says, its first line */

        (void)fprintf(trace.file, "note %.*s\n", (int)len, text);
    }
}

void
trace_head(size_t i)
{
    if (trace.file != NULL) {
        trace_commits(i);
        (void)fprintf(trace.file, "head %zu %zu\n", i, number_of(&sim.nodes[i].head));
    }
}

void
trace_read(size_t i)
{
    if (trace.file != NULL) {
        (void)fprintf(trace.file, "read %zu\n", i);
    }
}

void
sim_round(size_t i)
{
    trace.round = i;
    if (trace.file != NULL) {
        (void)fprintf(trace.file, "round %zu\n", i);
    }
    cluster_round(sim.nodes[i].cluster);
    if (trace.file != NULL) {
        (void)fprintf(trace.file, "done %zu\n", i);
    }
}

/* ---- decisions ---- */

struct relation_facts __real_sync_facts(
    const struct commit *own, const struct sync_head *peer, const struct sync_view *seen,
    bool leads);
struct relation_facts __wrap_sync_facts(
    const struct commit *own, const struct sync_head *peer, const struct sync_view *seen,
    bool leads);
enum relation __real_relation_of(const struct relation_facts *f);
enum relation __wrap_relation_of(const struct relation_facts *f);
enum sync_action __real_heal_action(const struct heal_facts *f);
enum sync_action __wrap_heal_action(const struct heal_facts *f);
enum push_verdict __real_push_verdict(const struct push_facts *f);
enum push_verdict __wrap_push_verdict(const struct push_facts *f);
err_t __real_sync_take(
    struct engine *en, struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e);
err_t __wrap_sync_take(
    struct engine *en, struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e);

/* Of the round: those of a push are asked for inside engine/sync.c. */
struct relation_facts
__wrap_sync_facts(
    const struct commit *own, const struct sync_head *peer, const struct sync_view *seen,
    bool leads)
{
    if (trace.file != NULL) {
        trace.saw[0] = number_of(&own->id);
        trace.saw[1] = number_of(&peer->id);
        trace.saw_pending = true;
    }
    return __real_sync_facts(own, peer, seen, leads);
}

enum relation
__wrap_relation_of(const struct relation_facts *f)
{
    int relation = mutation_relation(*f, __real_relation_of);

    if (trace.taking) {
        trace.relation = relation;
    } else if (trace.saw_pending) {
        (void)fprintf(
            trace.file, "saw %zu %zu %zu %d\n", trace.round, trace.saw[0], trace.saw[1],
            relation);
        trace.saw_pending = false;
    }
    return (enum relation)relation;
}

enum sync_action
__wrap_heal_action(const struct heal_facts *f)
{
    int action = mutation_action(f, __real_heal_action);

    if (trace.file != NULL) {
        (void)fprintf(
            trace.file, "heal %zu %d %d %d %d\n", trace.round, (int)f->relation,
            f->keep_in_step, f->backing_off, action);
    }
    return (enum sync_action)action;
}

enum push_verdict
__wrap_push_verdict(const struct push_facts *f)
{
    int verdict = mutation_verdict(*f, __real_push_verdict);

    if (trace.taking) {
        trace.verdict = verdict;
        trace.decided = true;
    }
    return (enum push_verdict)verdict;
}

static size_t
node_of_engine(const struct engine *en)
{
    size_t i = 0;

    while (i < sim.count && (sim.nodes[i].lab == NULL || sim.nodes[i].lab->en != en)) {
        i++;
    }
    return i;
}

static const char *
result_of(err_t code, const struct sync_result *r)
{
    if (code == ERR_OK) {
        return r->task != 0 ? "begun" : "same";
    }
    return code == ERR_CONFLICT && r->refusal != NULL ? "refused" : "failed";
}

static void
write_take(
    size_t i, enum sync_how how, const size_t named[3], bool outranks, const char *result)
{
    static const char *const hows[] = {
        [SYNC_PUSHED] = "pushed",
        [SYNC_PULLED] = "pulled",
        [SYNC_JOINED] = "joined",
        [SYNC_STORED] = "stored"};
    char expected[24] = "-";

    if (named[2] != SIZE_MAX) {
        (void)snprintf(expected, sizeof expected, "%zu", named[2]);
    }
    (void)fprintf(
        trace.file, "take %zu %s %zu %zu %s %d %d %d %s\n", i, hows[how], named[0], named[1],
        expected, outranks, trace.relation, trace.verdict, result);
}

err_t
__wrap_sync_take(
    struct engine *en, struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e)
{
    size_t named[3] = {0, 0, SIZE_MAX}; /* own head, offered, expected */
    size_t i = node_of_engine(en);
    struct hash own;
    err_t code;

    if (trace.file == NULL || i == sim.count) {
        return __real_sync_take(en, d, origin, ret, e);
    }
    for (size_t k = 0; k < d->commits.count; k++) {
        const struct commit *c = &d->commits.items[k].commit;
        struct hash parent;
        bool lacks = has_unknown_parent(c, &parent);

        while (lacks && add_commit(en, &parent) != NO_COMMIT) {
            lacks = has_unknown_parent(c, &parent);
        }
        if (!lacks && number_of(&c->id) == NO_COMMIT) {
            write_commit(c);
        }
    }
    trace_commits(i);
    own = sim_head(i).id;
    named[0] = number_of(&own);
    named[1] = add_commit(en, &d->head);
    named[2] = d->has_expected ? number_of(&d->expected) : SIZE_MAX;
    trace.taking = true;
    trace.decided = false;
    code = __real_sync_take(en, d, origin, ret, e);
    trace.taking = false;
    if (trace.decided) {
        write_take(i, origin->how, named, origin->outranks, result_of(code, ret));
    }
    return code;
}
