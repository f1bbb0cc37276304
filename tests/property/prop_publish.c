/* SPDX-License-Identifier: Apache-2.0 */
/* Random services are published, changed and removed, with so few names, hosts and ports that
 * they often meet. Whatever happens to one, the others' objects stay byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/publishing.h"

#define SEEDS    25
#define STEPS    60
#define SERVICES 6

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static const char *
pick(uint32_t *random, const char *const *list, size_t count)
{
    return list[next_random(random) % count];
}

static json_t *
random_request(uint32_t *random, const char *name)
{
    static const char *const urls[] = {
        "https://%s.test%s",
        "http://%s.test%s",
        "http://%s.test:8080%s",
        "https://%s.test:9443%s",
        "tcp://:5432",
        "tcp://:5433",
        "tcp://:80",
        "http://:8080%s"};
    static const char *const hosts[] = {"a", "b", "c", "*.d", "e.d"};
    static const char *const paths[] = {"", "/x", "/x/"};
    static const char *const labels[] = {"", "", "", "s2=", "web=", "db="};
    static const char *const checks[] = {"tcp", "http:/", "http:8081/healthz"};
    char text[128];
    json_t *request = json_object();
    json_t *list = json_array();
    json_t *to = json_array();
    size_t count = 1 + next_random(random) % 3;
    const char *url = pick(random, urls, ARRAY_LEN(urls));
    const char *path = pick(random, paths, ARRAY_LEN(paths));
    bool named = strchr(url, '%') != NULL && strstr(url, "://:") == NULL;
    for (size_t i = 0; i < (named ? count : 1); i++) {
        const char *host = pick(random, hosts, ARRAY_LEN(hosts));
        CLEANUP(buf_fini) struct buf one;
        buf_init(&one, 256);
        size_t scheme = (size_t)(strstr(url, "://") - url) + 3;
        buf_put(&one, url, scheme);
        if (named) {
            buf_printf(&one, "%s.test", host);
        }
        const char *port = strchr(url + scheme, ':');
        buf_put(&one, port != NULL ? port : "", port != NULL ? strcspn(port, "%") : 0);
        buf_puts(&one, url[0] == 't' ? "" : path);
        json_array_append_new(list, json_string(buf_str(&one)));
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(
            text, sizeof(text), "%s10.0.0.%u:80", pick(random, labels, ARRAY_LEN(labels)),
            1 + next_random(random) % 5);
        json_array_append_new(to, json_string(text));
    }
    json_object_set_new(request, "urls", list);
    json_object_set_new(request, "to", to);
    json_object_set_new(request, "check", json_string(pick(random, checks, ARRAY_LEN(checks))));
    json_object_set_new(request, "name", json_string(name));
    return request;
}

/* By the names in publish.h. A listener that carries only this service is its own, too. */
static bool
is_owned(const struct object *o, const char *service)
{
    size_t len = strlen(service);
    bool same = strcmp(o->name.s, service) == 0;
    bool below = strncmp(o->name.s, service, len) == 0 && o->name.s[len] == '.' &&
                 strchr(o->name.s + len + 1, '.') == NULL;
    return o->kind == K_SERVER ? below : same && o->kind != K_LISTENER;
}

struct watch {
    const char *service;
    const struct pair *x;
};

static void
check_difference(void *ctx, const struct object *before, const struct object *after)
{
    const struct watch *w = ctx;
    const struct object *o = before != NULL ? before : after;
    if (is_owned(o, w->service)) {
        return;
    }
    /* Listeners are made, and go when nobody is left on them; none is changed. */
    assert_int_equal(o->kind, K_LISTENER);
    assert_true(before == NULL || after == NULL);
    if (after == NULL) {
        assert_int_equal(
            validate_in_use(
                &w->x->objects, K_LISTENER, before->id,
                &(struct problems){.arena = w->x->arena}),
            0);
    }
}

/* True when something was published. */
static bool
step(struct pair *x, uint32_t *random)
{
    static const char *const names[SERVICES] = {"a", "a.b", "b", "a.b.c", "web", "s1"};
    const char *name = pick(random, names, SERVICES);
    struct snapshot CLEANUP(snapshot_cleanup) *before = snapshot_ref(x->shared);
    struct watch watch = {name, x};
    size_t ops = 0;
    if (next_random(random) % 5 == 0) {
        if (pair_find(x, K_SERVICE, name) != NULL) {
            publish_remove(x, name);
        }
        snapshot_diff(before, x->shared, check_difference, &watch);
        return false;
    }
    json_t *request = random_request(random, name);
    const char *service = publish_to(x, request, &ops);
    if (service == NULL) {
        assert_true(x->problems.errors > 0);
        assert_ptr_equal(before, x->shared);
    } else {
        snapshot_diff(before, x->shared, check_difference, &watch);
        assert_string_equal(publish_to(x, request, &ops), service);
        assert_int_equal(ops, 0);
    }
    json_decref(request);
    validate_all(&x->objects, PUBLISH_NOW_S, pair_clear(x));
    assert_int_equal(x->problems.errors, 0);
    return service != NULL;
}

static void
publishing_one_leaves_the_others_alone(void **state)
{
    int published = 0;
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        uint32_t random = seed;
        struct pair x;
        const struct object *const *services;
        print_message("  seed %u\n", seed);
        pair_init(&x, NULL);
        for (int i = 0; i < STEPS; i++) {
            published += step(&x, &random);
        }
        while (snapshot_kind(x.shared, K_SERVICE, &services) > 0) {
            publish_remove(&x, services[0]->name.s);
        }
        const char *left = publish_inventory(&x);
        assert_true(
            strcmp(left, "") == 0 || strcmp(left, "listener:http") == 0 ||
            strcmp(left, "listener:https") == 0 ||
            strcmp(left, "listener:http listener:https") == 0);
        pair_fini(&x);
    }
    /* Else the rest would have proved little. */
    assert_in_range(published, SEEDS * STEPS / 4, SEEDS * STEPS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(publishing_one_leaves_the_others_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
