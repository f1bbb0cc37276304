/* SPDX-License-Identifier: Apache-2.0 */
/* The store at 45,000 objects: load, one-object commits beside bare SQLite transactions that
 * write as many rows, content of an old commit, verify. Prints milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/store_lab.h"

#define OBJECT_COUNT 45000u
#define COMMIT_COUNT 256u

static int64_t
now_us(void)
{
    struct timespec ts;

    ASSERT(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int
compare_times(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void
print_spread(const char *what, int64_t *us, size_t count)
{
    size_t middle = count / 2;
    size_t high = count * 95 / 100;

    qsort(us, count, sizeof *us, compare_times);
    (void)printf(
        "%-44s median %7.2f ms, 95%% %7.2f ms, most %7.2f ms\n", what,
        (double)us[middle] / 1000, (double)us[high] / 1000, (double)us[count - 1] / 1000);
}

static void
print_once(const char *what, int64_t us)
{
    (void)printf("%-44s        %7.2f ms\n", what, (double)us / 1000);
}

static void
must(err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        (void)fprintf(stderr, "%s\n", e->msg);
        abort();
    }
}

/* Ids are random: neighbours in one order are far apart in another. */
static unsigned
spread(unsigned n)
{
    return (unsigned)((uint64_t)n * 2654435761u & 0xffffffffu);
}

static struct snapshot *
big_site(const struct snapshot *from)
{
    struct snapshot_edit *x = snapshot_edit_new(from);
    struct snapshot *site = NULL;
    struct error e;

    for (unsigned n = 1; n <= OBJECT_COUNT; n++) {
        snapshot_edit_put(x, store_lab_server(spread(n), NULL, (int)(n % 60000) + 1));
    }
    must(snapshot_seal(x, &site, &e), &e);
    return site;
}

static void
bench_commits(struct store_lab *l)
{
    struct snapshot *now = store_lab_shared(l);
    static int64_t fp_us[COMMIT_COUNT];
    static int64_t us[COMMIT_COUNT];

    for (unsigned i = 0; i < COMMIT_COUNT; i++) {
        unsigned n = spread(i * 7919 % OBJECT_COUNT + 1);
        struct snapshot *to = store_lab_with(now, store_lab_server(n, NULL, (int)i + 1));
        int64_t start = now_us();

        /* The snapshot keeps it: the commit does not compute it again. */
        (void)snapshot_fp(to, SCHEMA_VERSION);
        fp_us[i] = now_us() - start;
        start = now_us();
        (void)store_lab_commit(l, to, NULL);
        us[i] = now_us() - start;
        snapshot_unref(now);
        now = to;
    }
    print_spread("fingerprint after a change of one object", fp_us, COMMIT_COUNT);
    print_spread("commit of one object", us, COMMIT_COUNT);
    snapshot_unref(now);
}

static const char bare_tables[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;"
    "CREATE TABLE object (id INTEGER PRIMARY KEY, hash BLOB, body BLOB);"
    "CREATE TABLE log (a INTEGER PRIMARY KEY, b BLOB, c BLOB);"
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000) "
    "INSERT INTO object SELECT i, randomblob(32), randomblob(130) FROM n;";
/* Six rows: body, object, commit, parent, entry, audit. */
static const char bare_transaction[] =
    "BEGIN IMMEDIATE;"
    "UPDATE object SET hash = randomblob(32) WHERE id = abs(random()) % 45000 + 1;"
    "UPDATE object SET body = randomblob(130) WHERE id = 1;"
    "INSERT INTO log (b, c) VALUES (randomblob(32), randomblob(130));"
    "INSERT INTO log (b, c) VALUES (randomblob(32), randomblob(200));"
    "INSERT INTO log (b, c) VALUES (randomblob(32), randomblob(60));"
    "INSERT INTO log (b, c) VALUES (randomblob(32), randomblob(60));"
    "COMMIT;";

static void
bench_bare(const struct store_lab *l)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    CLEANUP(db_cleanup) struct db *d = NULL;
    static int64_t us[COMMIT_COUNT];
    struct error e;
    FILE *f;

    store_lab_path(l, "bare.db", &path);
    f = fopen(buf_str(&path), "wxe");
    ASSERT(f != NULL && fclose(f) == 0);
    must(db_open(buf_str(&path), &d, &e), &e);
    must(db_script(d, bare_tables, &e), &e);
    for (unsigned i = 0; i < COMMIT_COUNT; i++) {
        int64_t start = now_us();

        must(db_script(d, bare_transaction, &e), &e);
        us[i] = now_us() - start;
    }
    print_spread("bare SQLite transaction of six rows", us, COMMIT_COUNT);
}

static void
bench_reads(struct store_lab *l)
{
    struct snapshot *content = NULL;
    struct commit c;
    struct error e;
    int64_t checked;
    int64_t start = now_us();

    must(store_commit_find(l->store, "128", &c, &e), &e);
    must(store_commit_content(l->store, &c.id, &content, &e), &e);
    print_once("content of a commit 63 after a full index", now_us() - start);
    snapshot_unref(content);
    start = now_us();
    must(store_verify(l->store, &checked, &e), &e);
    print_once("verify", now_us() - start);
}

int
main(void)
{
    struct snapshot *first;
    struct snapshot *site;
    struct store_lab l;
    int64_t start;

    store_lab_init_in(&l, "/var/tmp");
    store_lab_open(&l);
    first = store_lab_shared(&l);
    site = big_site(first);
    (void)printf("%u objects\n", OBJECT_COUNT);
    start = now_us();
    (void)store_lab_commit(&l, site, NULL);
    print_once("commit of all of them", now_us() - start);
    snapshot_unref(first);
    snapshot_unref(site);
    for (int i = 0; i < 3; i++) {
        store_lab_close(&l);
        start = now_us();
        store_lab_open(&l);
        print_once("open (quick_check)", now_us() - start);
        start = now_us();
        snapshot_unref(store_lab_shared(&l));
        print_once("load", now_us() - start);
    }
    bench_commits(&l);
    bench_bare(&l);
    bench_reads(&l);
    store_lab_fini(&l);
    return 0;
}
