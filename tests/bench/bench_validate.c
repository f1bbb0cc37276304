/* SPDX-License-Identifier: Apache-2.0 */
/* validate_all and publish_plan at 9,000 services, diff_text at 3.5 MB with 10 changed lines.
 * Medians of processor time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/x509.h"
#include "model/diff.h"
#include "model/validate.h"
#include "tests/support/publishing.h"

#define SERVICES    9000
#define ROUNDS      51
#define LINES       80000
#define DIFF_BYTES  (1 << 20)
#define CONF_BYTES  (8 << 20)
#define CHANGE_STEP (LINES / 10)
#define PEM_BYTES   65536
#define NOW_S       1800000000

static long long
now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int
by_value(const void *a, const void *b)
{
    long long x = *(const long long *)a;
    long long y = *(const long long *)b;
    return (x > y) - (x < y);
}

static long long
median(long long *times)
{
    qsort(times, ROUNDS, sizeof(times[0]), by_value);
    return times[ROUNDS / 2];
}

static void
add(json_t *list, json_t *object)
{
    ASSERT(object != NULL);
    json_array_append_new(list, object);
}

static void
add_service(json_t *list, int i)
{
    char name[3][32];
    char host[64];
    char address[32];
    (void)snprintf(name[0], sizeof(name[0]), "svc%d", i);
    (void)snprintf(name[1], sizeof(name[1]), "svc%d.s1", i);
    (void)snprintf(name[2], sizeof(name[2]), "svc%d.s2", i);
    (void)snprintf(host, sizeof(host), "host%d.example.test", i);
    for (int j = 1; j <= 2; j++) {
        (void)snprintf(address, sizeof(address), "10.%d.%d.%d", i / 250, i % 250, j);
        add(list, json_pack(
                      "{s:s, s:s, s:s, s:i}", "kind", "server", "name", name[j], "address",
                      address, "port", 8080));
    }
    add(list, json_pack("{s:s, s:s, s:s}", "kind", "monitor", "name", name[0], "type", "http"));
    add(list, json_pack(
                  "{s:s, s:s, s:s, s:[{s:s}, {s:s}]}", "kind", "pool", "name", name[0],
                  "monitor", name[0], "members", "server", name[1], "server", name[2]));
    add(list, json_pack(
                  "{s:s, s:s, s:[s, s], s:[s], s:s}", "kind", "service", "name", name[0],
                  "listeners", "http", "https", "hosts", host, "pool", name[0]));
}

static void
add_certificate(json_t *list)
{
    static const char *const names[] = {"*.example.test", NULL};
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    struct error e;
    buf_init(&chain, PEM_BYTES);
    buf_init(&key, PEM_BYTES);
    ASSERT(x509_selfsigned(names, NOW_S, 90, &chain, &key, &e) == ERR_OK);
    add(list, json_pack(
                  "{s:s, s:s, s:s, s:s}", "kind", "certificate", "name", "all", "chain",
                  buf_str(&chain), "key", buf_str(&key)));
}

static void
plan(struct pair *x, const json_t *request)
{
    struct publish_input in = {.now = &x->objects, .now_s = NOW_S};
    struct change_set set;
    const char *service = NULL;
    change_set_init(&set);
    publish_plan(request, &in, x->arena, &set, &service, pair_clear(x));
    ASSERT(service != NULL);
    change_set_fini(&set);
}

static void
bench_objects(void)
{
    json_t *list = json_array();
    long long times[ROUNDS];
    struct pair x;
    add_certificate(list);
    add(list, json_pack("{s:s, s:s, s:i}", "kind", "listener", "name", "http", "port", 80));
    add(list, json_pack(
                  "{s:s, s:s, s:i, s:b, s:[s]}", "kind", "listener", "name", "https", "port",
                  443, "tls", 1, "certificates", "all"));
    for (int i = 0; i < SERVICES; i++) {
        add_service(list, i);
    }
    pair_init_json(&x, list);
    json_decref(list);
    for (int i = 0; i < ROUNDS; i++) {
        long long start_us = now_us();
        validate_all(&x.objects, NOW_S, pair_clear(&x));
        times[i] = now_us() - start_us;
    }
    (void)printf(
        "validate_all, %zu objects: %lld us (%zu problems)\n", snapshot_count(x.shared),
        median(times), x.problems.count + x.problems.dropped);
    for (int i = 0; i < ROUNDS; i++) {
        char text[128];
        (void)snprintf(
            text, sizeof(text), "{'url': 'https://new%d.example.test', 'to': ['10.1.1.1:80']}",
            i);
        json_t *request = pair_json(text);
        long long start_us = now_us();
        plan(&x, request);
        times[i] = now_us() - start_us;
        json_decref(request);
    }
    (void)printf("publish_plan: %lld us\n", median(times));
    pair_fini(&x);
}

static void
bench_diff(void)
{
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    long long times[ROUNDS];
    buf_init(&a, CONF_BYTES);
    buf_init(&b, CONF_BYTES);
    buf_init(&out, DIFF_BYTES);
    for (int i = 0; i < LINES; i++) {
        buf_printf(&a, "    server svc%d.s1 10.%d.%d.1:8080 check\n", i, i / 250, i % 250);
        buf_printf(
            &b, "    server svc%d.s1 10.%d.%d.1:%d check\n", i, i / 250, i % 250,
            i % CHANGE_STEP == CHANGE_STEP / 2 ? 8081 : 8080);
    }
    for (int i = 0; i < ROUNDS; i++) {
        long long start_us = now_us();
        buf_reset(&out);
        ASSERT(diff_text("haproxy.cfg", buf_str(&a), buf_str(&b), &out, &e) == ERR_OK);
        times[i] = now_us() - start_us;
    }
    (void)printf(
        "diff_text, %zu bytes, 10 lines: %lld us (%zu bytes of diff)\n", a.len, median(times),
        out.len);
}

int
main(void)
{
    bench_objects();
    bench_diff();
    return 0;
}
