/* SPDX-License-Identifier: Apache-2.0 */
/* Time of what the model does at 9,000 services: 45,002 objects. Prints a line per operation:
 * the best of some runs, microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "model/change.h"

#define SERVICES    9000
#define RUNS        15
#define PARSES      20000
#define ARENA_BYTES ((size_t)256 << 20)

struct bench {
    struct arena *arena;
    struct problems p;
    struct snapshot *shared, *local;
    struct snapshot_pair pair;
};

static double
now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
print(const char *what, double *times, double per)
{
    qsort(times, RUNS, sizeof *times, by_value);
    (void)printf("%-46s %10.3f us\n", what, times[0] / per);
}

static void
must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void
add(struct change_set *set, enum kind kind, const char *body)
{
    struct change c = {.op = CHANGE_CREATE, .kind = kind};

    must(json_parse(body, strlen(body), &c.body, NULL) == ERR_OK, body);
    must(change_set_add(set, c, NULL) == ERR_OK, "add");
}

static void
add_service(struct bench *b, struct change_set *set, int i)
{
    add(set, K_SERVICE,
        arena_printf(
            b->arena,
            "{\"name\":\"app%d\",\"listeners\":[\"http\"],\"hosts\":[\"app%d.example.test\"],"
            "\"pool\":\"app%d\"}",
            i, i, i));
    add(set, K_POOL,
        arena_printf(
            b->arena,
            "{\"name\":\"app%d\",\"monitor\":\"app%d\",\"members\":[{\"server\":\"app%d.1\"},"
            "{\"server\":\"app%d.2\"}]}",
            i, i, i, i));
    add(set, K_MONITOR, arena_printf(b->arena, "{\"name\":\"app%d\",\"type\":\"http\"}", i));
    for (int j = 1; j <= 2; j++) {
        add(set, K_SERVER,
            arena_printf(
                b->arena, "{\"name\":\"app%d.%d\",\"address\":\"10.%d.%d.%d\",\"port\":8080}",
                i, j, i / 250, i % 250, j));
    }
}

static void
bench_create(struct bench *b)
{
    struct snapshot_pair before = {
        snapshot_initial(SCOPE_SHARED), snapshot_initial(SCOPE_LOCAL)};
    struct change_set set;
    double start;

    change_set_init(&set);
    add(&set, K_LISTENER, "{\"name\":\"http\",\"port\":80}");
    for (int i = 0; i < SERVICES; i++) {
        add_service(b, &set, i);
    }
    start = now_us();
    must(change_apply(&set, &before, &b->shared, &b->local, &b->p, NULL) == ERR_OK, "apply");
    (void)printf("%-46s %10.3f us\n", "change_apply, creates all (once)", now_us() - start);
    change_set_fini(&set);
    b->pair = (struct snapshot_pair){b->shared, b->local};
    snapshot_unref(before.shared);
    snapshot_unref(before.local);
    (void)printf("%-46s %10zu\n", "objects", snapshot_count(b->shared));
}

static void
bench_parse(struct bench *b)
{
    const struct object *o = snapshot_by_name(b->shared, K_SERVER, "app77.1");
    struct object_refs refs = snapshot_refs(&b->pair);
    json_auto_t *body = object_to_json(o, &refs);
    double parse[RUNS];
    double canonical[RUNS];

    for (int r = 0; r < RUNS; r++) {
        double start = now_us();

        for (int i = 0; i < PARSES; i++) {
            object_unref(object_parse(K_SERVER, o->id, body, o, &refs, &b->p));
        }
        parse[r] = now_us() - start;
        start = now_us();
        for (int i = 0; i < PARSES; i++) {
            struct object *x = NULL;

            must(
                object_from_canonical(
                    K_SERVER, o->id, o->canonical, o->canonical_len, &x, NULL) == ERR_OK,
                "canonical");
            object_unref(x);
        }
        canonical[r] = now_us() - start;
    }
    print("object_parse of a server, with hash", parse, PARSES);
    print("object_from_canonical of a server, with hash", canonical, PARSES);
}

static void
ignore_difference(void *ctx, const struct object *before, const struct object *after)
{
    (void)ctx;
    (void)before;
    (void)after;
}

static void
bench_edit(struct bench *b)
{
    json_auto_t *patch = json_pack("{s:i}", "port", 1234);
    double seal[RUNS];
    double release[RUNS];
    double diff[RUNS];
    double fp[RUNS];

    for (int r = 0; r < RUNS; r++) {
        const struct object *const *servers;
        size_t count = snapshot_kind(b->shared, K_SERVER, &servers);
        struct snapshot_edit *x = snapshot_edit_new(b->shared);
        struct snapshot *after = NULL;
        struct object *o = NULL;
        double start;

        must(object_with(servers[(size_t)r * 997 % count], patch, &o, NULL) == ERR_OK, "with");
        start = now_us();
        snapshot_edit_put(x, o);
        must(snapshot_seal(x, &after, NULL) == ERR_OK, "seal");
        seal[r] = now_us() - start;
        start = now_us();
        snapshot_diff(b->shared, after, ignore_difference, NULL);
        diff[r] = now_us() - start;
        start = now_us();
        (void)snapshot_fp(after, SCHEMA_VERSION);
        fp[r] = now_us() - start;
        start = now_us();
        snapshot_unref(after);
        release[r] = now_us() - start;
    }
    print("snapshot_seal of one edit", seal, 1);
    print("snapshot_unref of it", release, 1);
    print("snapshot_diff of the two", diff, 1);
    print("snapshot_fp", fp, 1);
}

static void
count_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    size_t *found = ctx;

    (void)kind;
    (void)id;
    (void)pointer;
    ++*found;
}

static void
find_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct snapshot *s = ctx;

    (void)pointer;
    must(snapshot_by_id(s, kind, id) != NULL, "by_id");
}

/* As a render goes about it: kind by kind in the order of names. */
static void
bench_read(struct bench *b)
{
    double refs[RUNS];
    double ids[RUNS];
    double names[RUNS];
    double fields[RUNS];
    const struct object *const *pools;
    const struct object *const *servers;
    size_t pool_count = snapshot_kind(b->shared, K_POOL, &pools);
    size_t server_count = snapshot_kind(b->shared, K_SERVER, &servers);
    size_t found = 0;
    int64_t sum = 0;

    for (int r = 0; r < RUNS; r++) {
        double start = now_us();

        found = 0;
        for (size_t i = 0; i < pool_count; i++) {
            object_each_ref(pools[i], count_ref, &found);
        }
        refs[r] = now_us() - start;
        start = now_us();
        for (size_t i = 0; i < pool_count; i++) {
            object_each_ref(pools[i], find_ref, b->shared);
        }
        ids[r] = now_us() - start;
        start = now_us();
        for (size_t i = 0; i < server_count; i++) {
            must(snapshot_by_name(b->shared, K_SERVER, servers[i]->name.s) != NULL, "by_name");
        }
        names[r] = now_us() - start;
        start = now_us();
        for (size_t i = 0; i < server_count; i++) {
            const struct object *o = servers[i];

            sum += object_int(o, F_SERVER_PORT) + object_int(o, F_SERVER_MAXCONN) +
                   object_text(o, F_SERVER_ADDRESS).len;
        }
        fields[r] = now_us() - start;
    }
    print("object_each_ref, per reference of a pool", refs, (double)found);
    print("the same with snapshot_by_id", ids, (double)found);
    print("snapshot_by_name", names, (double)server_count);
    print("three fields of a server", fields, (double)server_count);
    must(sum > 0, "sum");
}

static void
bench_change(struct bench *b)
{
    double merge[RUNS];
    double delete[RUNS];

    for (int r = 0; r < RUNS; r++) {
        struct change_set set;
        struct snapshot *shared = NULL;
        struct snapshot *local = NULL;
        struct change c = {.op = CHANGE_MERGE, .kind = K_SERVER, .name = "app4500.1"};
        double start;

        change_set_init(&set);
        c.body = json_pack("{s:i}", "port", r + 1);
        must(change_set_add(&set, c, NULL) == ERR_OK, "add");
        start = now_us();
        must(change_apply(&set, &b->pair, &shared, &local, &b->p, NULL) == ERR_OK, "apply");
        merge[r] = now_us() - start;
        snapshot_unref(shared);
        snapshot_unref(local);
        change_set_fini(&set);
        c = (struct change){.op = CHANGE_DELETE, .kind = K_SERVICE, .name = "app4500"};
        must(change_set_add(&set, c, NULL) == ERR_OK, "add");
        c = (struct change){.op = CHANGE_DELETE, .kind = K_POOL, .name = "app4500"};
        must(change_set_add(&set, c, NULL) == ERR_OK, "add");
        start = now_us();
        must(change_apply(&set, &b->pair, &shared, &local, &b->p, NULL) == ERR_OK, "apply");
        delete[r] = now_us() - start;
        snapshot_unref(shared);
        snapshot_unref(local);
        change_set_fini(&set);
    }
    print("change_apply, merges one server", merge, 1);
    print("change_apply, deletes a service and its pool", delete, 1);
}

int
main(void)
{
    struct bench b = {.arena = arena_new(ARENA_BYTES)};

    problems_init(&b.p, b.arena);
    bench_create(&b);
    bench_parse(&b);
    bench_edit(&b);
    bench_read(&b);
    bench_change(&b);
    snapshot_unref(b.shared);
    snapshot_unref(b.local);
    arena_free(b.arena);
    return 0;
}
