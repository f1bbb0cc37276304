/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a render against the time of "haproxy -c" on what was rendered. Each service has a
 * host, a pool, two servers and a check. Prints a line per size; medians, milliseconds.
 * Everything runs on one core. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/objects_file.h"

#define CHECKS          7
#define RENDERS         5   /* to a check */
#define WANTED_FROM     100 /* services */
#define OUT_MAX_BYTES   ((size_t)1 << 20)
#define TEXTS_MAX_BYTES ((size_t)1 << 20)

static double
now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, by_value);
    return times[count / 2];
}

static NORETURN void
give_up(const char *what, const struct error *e)
{
    (void)fprintf(stderr, "%s: %s\n", what, e->msg);
    exit(1);
}

/* The objects of service i, as the text of a JSON array. */
static void
put_service(struct buf *out, int i)
{
    buf_printf(
        out,
        ",{\"kind\":\"server\",\"name\":\"app%d.1\",\"address\":\"10.%d.%d.1\",\"port\":8080}"
        ",{\"kind\":\"server\",\"name\":\"app%d.2\",\"address\":\"10.%d.%d.2\",\"port\":8080}",
        i, i / 250, i % 250, i, i / 250, i % 250);
    buf_printf(
        out,
        ",{\"kind\":\"monitor\",\"name\":\"app%d\",\"type\":\"http\",\"path\":\"/healthz\","
        "\"host\":\"app%d.example.test\"}"
        ",{\"kind\":\"pool\",\"name\":\"app%d\",\"monitor\":\"app%d\",\"members\":"
        "[{\"server\":\"app%d.1\"},{\"server\":\"app%d.2\"}]}"
        ",{\"kind\":\"service\",\"name\":\"app%d\",\"listeners\":[\"http\"],"
        "\"hosts\":[\"app%d.example.test\"],\"pool\":\"app%d\"}",
        i, i, i, i, i, i, i, i, i);
}

static void
make_objects(int services, struct snapshot **shared, struct snapshot **local)
{
    struct buf CLEANUP(buf_fini) text;
    json_auto_t *root = NULL;
    struct error e = {0};

    buf_init(&text, (size_t)256 << 20);
    buf_puts(&text, "{\"shared\":[{\"kind\":\"listener\",\"name\":\"http\",\"port\":80}");
    for (int i = 0; i < services; i++) {
        put_service(&text, i);
    }
    buf_puts(&text, "]}");
    if (json_parse(buf_str(&text), text.len, &root, &e) != ERR_OK ||
        objects_file_parse(root, shared, local, &e) != ERR_OK) {
        give_up("objects", &e);
    }
}

static double
time_render(const struct render_input *in, struct rendered *r, struct problems *p)
{
    double start = now_ms();
    struct error e = {0};

    if (render_haproxy(in, r, p, &e) != ERR_OK) {
        give_up("render", &e);
    }
    return now_ms() - start;
}

static double
time_check(const char *config, struct buf *out)
{
    double start = now_ms();
    struct error e = {0};

    if (objects_file_check(OBJECTS_FILE_HAPROXY, config, out, &e) != ERR_OK) {
        give_up(buf_str(out), &e);
    }
    return now_ms() - start;
}

struct times {
    double cold, renders[CHECKS * RENDERS], checks[CHECKS];
};

/* By turns, so that a busy neighbour of the machine slows both. */
static void
measure(const struct render_input *in, struct rendered *r, struct times *ret)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    char dir[] = "/tmp/bench_render.XXXXXX";
    struct buf CLEANUP(buf_fini) out;
    struct problems p;
    struct error e = {0};
    char *config = NULL;

    buf_init(&out, OUT_MAX_BYTES);
    problems_init(&p, arena);
    ret->cold = time_render(in, r, &p);
    if (mkdtemp(dir) == NULL || objects_file_write(r, dir, &e) != ERR_OK ||
        asprintf(&config, "%s/haproxy.cfg", dir) < 0) {
        give_up(dir, &e);
    }
    for (int i = 0; i < CHECKS; i++) {
        for (int j = 0; j < RENDERS; j++) {
            ret->renders[i * RENDERS + j] = time_render(in, r, &p);
        }
        ret->checks[i] = time_check(config, &out);
    }
    free(config);
    if (file_remove_tree_at(AT_FDCWD, dir, &e) != ERR_OK) {
        give_up(dir, &e);
    }
}

static void
bench(int services)
{
    struct snapshot CLEANUP(snapshot_cleanup) *shared = NULL;
    struct snapshot CLEANUP(snapshot_cleanup) *local = NULL;
    struct rendered CLEANUP(rendered_fini) r;
    struct render_input in = {
        .run_dir = "/run/lockstep", .socket_group = OBJECTS_FILE_GROUP, .placeholder_pem = ""};
    struct times t;
    double warm;
    double check;

    rendered_init(&r);
    make_objects(services, &shared, &local);
    in.objects = (struct snapshot_pair){shared, local};
    measure(&in, &r, &t);
    warm = median(t.renders, ARRAY_LEN(t.renders));
    check = median(t.checks, ARRAY_LEN(t.checks));
    (void)printf(
        "%8d %10zu %9.2f %9.2f %9.1f %8.2f\n", services,
        rendered_find(&r, "haproxy.cfg")->bytes.len, t.cold, warm, check, 100 * warm / check);
    if (services >= WANTED_FROM) {
        (void)printf(
            "@ render at %d services, %% of haproxy -c|%.2f|<= 2\n", services,
            100 * warm / check);
    }
}

int
main(void)
{
    static const int sizes[] = {10, 100, 1000, 5000, 9000};
    cpu_set_t one;

    /* The cores of a virtual machine need not be equally fast. */
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        perror("sched_setaffinity");
        return 1;
    }

    (void)printf("services  cfg bytes   cold ms   warm ms  check ms  ratio %%\n");
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        bench(sizes[i]);
    }
    return 0;
}
