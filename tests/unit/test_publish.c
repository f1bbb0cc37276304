/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/x509.h"
#include "model/validate.h"
#include "tests/support/publishing.h"

#define APP "{'url': 'https://app.test', 'to': ['10.0.0.5:8080', '10.0.0.6:8080']}"

/* ---- what is made ---- */

static void
assert_valid(struct pair *x)
{
    validate_all(&x->objects, PUBLISH_NOW_S, pair_clear(x));
    assert_string_equal(pair_codes(x), "");
}

static void
https_makes_everything_that_serves_it(void **state)
{
    struct pair x;
    struct x509_info info;
    (void)state;
    pair_init(&x, NULL);
    const char *name = publish_text(
        &x,
        "{'urls': ['https://app.test', 'https://www.app.test'], 'to': ['10.0.0.5:8080',"
        " '[2001:DB8:0::5]:8080', 'web-1=10.0.0.6:80', 'http://web.test:81/'],"
        " 'check': 'http:8081/healthz'}",
        NULL);
    assert_string_equal(name, "app.test");
    assert_string_equal(
        publish_inventory(&x),
        "certificate:app.test listener:http listener:https monitor:app.test pool:app.test "
        "server:app.test.s1 server:app.test.s2 server:app.test.s3 server:app.test.web-1 "
        "service:app.test");
    assert_string_equal(
        publish_shown(&x, K_SERVER, "app.test.s2", "address"), "\"2001:db8::5\"");
    assert_string_equal(
        publish_shown(&x, K_SERVER, "app.test.web-1", "address"), "\"10.0.0.6\"");
    assert_string_equal(publish_shown(&x, K_SERVER, "app.test.s3", "address"), "\"web.test\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "app.test", "type"), "\"http\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "app.test", "port"), "8081");
    assert_string_equal(publish_shown(&x, K_MONITOR, "app.test", "path"), "\"/healthz\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "app.test", "host"), "\"app.test\"");
    assert_string_equal(publish_shown(&x, K_POOL, "app.test", "monitor"), "\"app.test\"");
    assert_string_equal(publish_shown(&x, K_LISTENER, "https", "tls"), "true");
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "redirect_https"), "true");
    assert_string_equal(
        publish_shown(&x, K_CERTIFICATE, "app.test", "source"), "\"placeholder\"");
    struct text chain =
        object_text(pair_find(&x, K_CERTIFICATE, "app.test"), F_CERTIFICATE_CHAIN);
    assert_int_equal(x509_read(chain.s, chain.len, &info, NULL), ERR_OK);
    assert_string_equal(info.names, "app.test www.app.test");
    assert_valid(&x);
    pair_fini(&x);
}

static void
each_scheme_has_its_listeners(void **state)
{
    static const struct {
        const char *url;
        const char *listeners;
        const char *mode;
    } cases[] = {
        {"http://a.test", "[\"http\"]", "\"http\""},
        {"HTTP://a.test:8080/x", "[\"http-8080\"]", "\"http\""},
        {"http://:8080", "[\"http-8080\"]", "\"http\""},
        {"https://a.test:9443", "[\"https-9443\"]", "\"http\""},
        {"tcp://:5432", "[\"tcp-5432\"]", "\"tcp\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        pair_init(&x, NULL);
        const char *request = arena_printf(
            x.arena, "{'url': '%s', 'to': ['10.0.0.1:80'], 'name': 'x'}", cases[i].url);
        publish_text(&x, request, NULL);
        assert_string_equal(publish_shown(&x, K_SERVICE, "x", "listeners"), cases[i].listeners);
        assert_string_equal(publish_shown(&x, K_POOL, "x", "mode"), cases[i].mode);
        assert_valid(&x);
        pair_fini(&x);
    }
}

static void
check_is_independent_of_the_mode(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(
        &x, "{'url': 'tcp://:5432', 'to': ['10.0.0.1:5432'], 'check': 'http:8008/primary'}",
        NULL);
    assert_string_equal(publish_shown(&x, K_MONITOR, "tcp-5432", "type"), "\"http\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "tcp-5432", "port"), "8008");
    assert_string_equal(publish_shown(&x, K_POOL, "tcp-5432", "mode"), "\"tcp\"");
    assert_valid(&x);
    pair_fini(&x);
}

static void
a_check_that_is_left_out_stays(void **state)
{
    static const char again[] = "{'url': 'http://a.test', 'to': ['10.0.0.2:80']}";
    struct pair x;
    size_t ops = 0;
    (void)state;
    pair_init(&x, "[{'kind': 'monitor', 'name': 'other', 'type': 'tcp'}]");
    publish_text(
        &x, "{'url': 'http://a.test', 'to': ['10.0.0.1:80'], 'check': 'http:81/up'}", NULL);
    publish_text(&x, again, NULL);
    assert_string_equal(publish_shown(&x, K_MONITOR, "a.test", "path"), "\"/up\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "a.test", "port"), "81");
    publish_text(&x, "{'url': 'http://a.test', 'to': ['10.0.0.2:80'], 'check': 'tcp'}", NULL);
    assert_string_equal(publish_shown(&x, K_MONITOR, "a.test", "type"), "\"tcp\"");
    /* Also another one, or none. */
    pair_set(
        &x, K_POOL, "a.test",
        arena_printf(x.arena, "{'monitor': '%s'}", pair_find(&x, K_MONITOR, "other")->id));
    publish_text(&x, again, &ops);
    assert_int_equal(ops, 0);
    pair_set(&x, K_POOL, "a.test", "{'monitor': null}");
    publish_text(&x, again, &ops);
    assert_int_equal(ops, 0);
    pair_remove(&x, K_MONITOR, "a.test");
    publish_text(&x, again, &ops);
    assert_int_equal(ops, 0);
    publish_text(&x, "{'url': 'http://new.test', 'to': ['10.0.0.2:80']}", NULL);
    assert_string_equal(publish_shown(&x, K_POOL, "new.test", "monitor"), "\"new.test\"");
    assert_valid(&x);
    pair_fini(&x);
}

static void
names_are_made_from_the_first_url(void **state)
{
    static const struct {
        const char *url;
        const char *name;
    } cases[] = {
        {"http://App.test", "app.test"},
        {"http://app.test/shop/a~b/", "app.test-shop-a-b"},
        {"http://*.app.test", "any.app.test"},
        {"http://lockstep.test", "site-lockstep.test"},
        {"http://:8080", "http-8080"},
        {"tcp://:22", "tcp-22"},
        {"http://a123456789.b123456789.c123456789.d123456789.e123456789.f123456789.test",
         "a123456789.b123456789.c123456789.d123456789.e12345678"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        pair_init(&x, NULL);
        const char *request =
            arena_printf(x.arena, "{'url': '%s', 'to': ['10.0.0.1:80']}", cases[i].url);
        assert_string_equal(publish_text(&x, request, NULL), cases[i].name);
        assert_valid(&x);
        pair_fini(&x);
    }
}

static void
made_name_avoids_what_is_there(void **state)
{
    struct pair x;
    (void)state;
    pair_init(
        &x, "[{'kind': 'server', 'name': 'app.test.x', 'address': '10.9.9.9', 'port': 1}]");
    assert_string_equal(publish_text(&x, APP, NULL), "app.test-2");
    assert_string_equal(publish_text(&x, APP, NULL), "app.test-2");
    pair_fini(&x);
}

/* ---- publishing again ---- */

static void
the_same_request_changes_nothing(void **state)
{
    static const char *const requests[] = {
        APP,
        "{'urls': ['https://b.test/x', 'https://a.test/x'], 'check': 'http:/', 'to': ['h.t:1']}",
        "{'url': 'http://b.test', 'to': ['w=10.0.0.5:80', 'h.test:1', '[::1]:1']}",
        "{'url': 'tcp://:5432', 'to': ['10.0.0.1:5432'], 'name': 'db'}",
        "{'url': 'http://:8080', 'to': ['10.0.0.1:5432']}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct pair x;
        size_t ops = 0;
        pair_init(&x, NULL);
        const char *first = publish_text(&x, requests[i], &ops);
        assert_true(ops > 0);
        assert_string_equal(publish_text(&x, requests[i], &ops), first);
        assert_int_equal(ops, 0);
        pair_fini(&x);
    }
}

static void
order_of_targets_does_not_matter(void **state)
{
    struct pair x;
    size_t ops = 1;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    publish_text(
        &x, "{'url': 'https://app.test', 'to': ['10.0.0.6:8080', '10.0.0.5:8080']}", &ops);
    assert_int_equal(ops, 0);
    pair_fini(&x);
}

static void
what_the_request_does_not_speak_of_stays(void **state)
{
    struct pair x;
    size_t ops = 1;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    const char *id = pair_find(&x, K_SERVER, "app.test.s1")->id;
    const char *patch = arena_printf(
        x.arena, "{'retries': 7, 'members': [{'server': '%s', 'weight': 5, 'role': 'active'}]}",
        id);
    pair_set(&x, K_POOL, "app.test", patch);
    pair_set(&x, K_SERVICE, "app.test", "{'note': 'mine'}");
    pair_set(&x, K_MONITOR, "app.test", "{'interval_ms': 9000}");
    publish_text(&x, "{'url': 'https://app.test', 'to': ['10.0.0.5:8080']}", &ops);
    assert_int_equal(ops, 1); /* the orphan app.test.s2 */
    publish_text(&x, APP, NULL);
    assert_string_equal(
        publish_shown(&x, K_POOL, "app.test", "members"),
        "[{\"role\":\"active\",\"server\":\"app.test.s1\",\"weight\":5},"
        "{\"role\":\"active\",\"server\":\"app.test.s2\",\"weight\":100}]");
    assert_string_equal(publish_shown(&x, K_POOL, "app.test", "retries"), "7");
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "note"), "\"mine\"");
    assert_string_equal(publish_shown(&x, K_MONITOR, "app.test", "interval_ms"), "9000");
    pair_fini(&x);
}

static void
targets_are_a_set(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, "{'url': 'http://a.test', 'to': ['10.0.0.1:80']}", NULL);
    const char *id = arena_strdup(x.arena, pair_find(&x, K_SERVER, "a.test.s1")->id);
    publish_text(&x, "{'url': 'http://a.test', 'to': ['10.0.0.2:80']}", NULL);
    assert_string_equal(
        publish_inventory(&x),
        "listener:http monitor:a.test pool:a.test server:a.test.s1 service:a.test");
    assert_string_equal(publish_shown(&x, K_SERVER, "a.test.s1", "address"), "\"10.0.0.2\"");
    assert_string_equal(pair_find(&x, K_SERVER, "a.test.s1")->id, id);
    pair_fini(&x);
}

static void
a_target_keeps_its_server_when_others_come_and_go(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    const char *id = arena_strdup(x.arena, pair_find(&x, K_SERVER, "app.test.s2")->id);
    publish_text(
        &x,
        "{'url': 'https://app.test', 'to': ['10.0.0.9:8080', '10.0.0.6:8080', 'x=1.1.1.1:1']}",
        NULL);
    assert_string_equal(publish_shown(&x, K_SERVER, "app.test.s2", "address"), "\"10.0.0.6\"");
    assert_string_equal(pair_find(&x, K_SERVER, "app.test.s2")->id, id);
    assert_string_equal(publish_shown(&x, K_SERVER, "app.test.s1", "address"), "\"10.0.0.9\"");
    publish_text(&x, "{'url': 'https://app.test', 'to': ['x=10.0.0.6:8080']}", NULL);
    assert_string_equal(publish_shown(&x, K_SERVER, "app.test.x", "address"), "\"10.0.0.6\"");
    assert_null(pair_find(&x, K_SERVER, "app.test.s2"));
    assert_valid(&x);
    pair_fini(&x);
}

static void
a_new_url_under_the_same_name_keeps_the_service(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, "{'url': 'https://a.test', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    const char *before = publish_inventory(&x);
    const char *id = arena_strdup(x.arena, pair_find(&x, K_SERVICE, "x")->id);
    size_t count = snapshot_count(x.shared);
    publish_text(&x, "{'url': 'https://b.test/y', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    assert_string_equal(publish_inventory(&x), before);
    assert_int_equal(snapshot_count(x.shared), count);
    assert_string_equal(pair_find(&x, K_SERVICE, "x")->id, id);
    assert_string_equal(publish_shown(&x, K_SERVICE, "x", "hosts"), "[\"b.test\"]");
    assert_valid(&x);
    pair_fini(&x);
}

/* Edits one thing after the other; what was there before must be all there is at the end. */
static void
editing_each_part_leaves_nothing_behind(void **state)
{
    static const char *const edits[] = {
        "{'url': 'https://a.test', 'to': ['10.0.0.1:80'], 'name': 'x', 'check': 'http:/a'}",
        "{'url': 'https://a.test', 'to': ['10.0.0.1:80'], 'name': 'x', 'check': 'http:81/b'}",
        "{'url': 'https://a.test/p', 'to': ['10.0.0.1:80'], 'name': 'x'}",
        "{'urls': ['https://a.test', 'https://b.test'], 'to': ['10.0.0.1:80'], 'name': 'x'}",
        "{'url': 'https://a.test', 'to': ['10.0.0.7:70'], 'name': 'x'}",
        "{'url': 'https://a.test', 'to': ['w=10.0.0.7:70'], 'name': 'x'}",
        "{'url': 'https://a.test', 'to': ['10.0.0.1:80'], 'name': 'x'}",
    };
    struct pair x;
    (void)state;
    pair_init(
        &x, "[{'kind': 'listener', 'name': 'http', 'port': 80},"
            "{'kind': 'listener', 'name': 'https', 'port': 443, 'tls': true}]");
    const char *empty = publish_inventory(&x);
    publish_text(&x, "{'url': 'https://a.test', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    size_t count = snapshot_count(x.shared);
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        publish_text(&x, edits[i], NULL);
        assert_int_equal(snapshot_count(x.shared), count);
        assert_valid(&x);
    }
    publish_text(&x, "{'url': 'http://a.test', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    assert_null(pair_find(&x, K_CERTIFICATE, "x"));
    publish_text(&x, "{'url': 'tcp://:5432', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    publish_text(&x, "{'url': 'tcp://:5433', 'to': ['10.0.0.1:80'], 'name': 'x'}", NULL);
    assert_null(pair_find(&x, K_LISTENER, "tcp-5432"));
    assert_valid(&x);
    publish_remove(&x, "x");
    assert_string_equal(publish_inventory(&x), empty);
    pair_fini(&x);
}

/* ---- others ---- */

static void
equal_labels_of_two_services_are_two_servers(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, "{'url': 'http://a.test', 'to': ['web1=10.0.0.1:80']}", NULL);
    struct hash before = pair_find(&x, K_SERVER, "a.test.web1")->objhash;
    publish_text(&x, "{'url': 'http://b.test', 'to': ['web1=10.0.0.99:80']}", NULL);
    assert_true(hash_equal(&before, &pair_find(&x, K_SERVER, "a.test.web1")->objhash));
    publish_remove(&x, "b.test");
    assert_true(hash_equal(&before, &pair_find(&x, K_SERVER, "a.test.web1")->objhash));
    pair_fini(&x);
}

static void
own_objects_that_others_use_are_not_rewritten(void **state)
{
    static const struct {
        const char *user;    /* object that uses one of app.test's */
        const char *request; /* that would change it */
        const char *says;
    } cases[] = {
        {"{'kind': 'pool', 'name': 'other', 'monitor': 'x'}",
         "{'url': 'http://a.test', 'to': ['10.0.0.1:80'], 'name': 'x', 'check': 'http:/'}",
         "monitor \"x\" would change, but the pool \"other\""},
        {"{'kind': 'pool', 'name': 'other', 'members': [{'server': 'x.w'}]}",
         "{'url': 'http://a.test', 'to': ['w=10.0.0.2:80'], 'name': 'x'}",
         "server \"x.w\" would change, but the pool \"other\""},
        {"{'kind': 'service', 'name': 'other', 'listeners': ['http'], 'pool': 'x',"
         " 'hosts': ['o.test']}",
         "{'url': 'http://a.test', 'to': ['w=10.0.0.1:80', '10.0.0.2:80'], 'name': 'x'}",
         "pool \"x\" would change, but the service \"other\""},
        {"{'kind': 'service', 'name': 'other', 'listeners': ['http'], 'pool': 'x',"
         " 'hosts': ['o.test']}",
         "{'url': 'http://a.test', 'to': ['w=10.0.0.2:80'], 'name': 'x'}",
         "server \"x.w\" would change, but the service \"other\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        size_t ops = 1;
        pair_init(&x, NULL);
        const char *same = "{'url': 'http://a.test', 'to': ['w=10.0.0.1:80'], 'name': 'x'}";
        publish_text(&x, same, NULL);
        struct change_set set;
        struct error e;
        change_set_init(&set);
        struct change op = {.op = CHANGE_CREATE, .body = pair_json(cases[i].user)};
        const char *kind = json_string_value(json_object_get(op.body, "kind"));
        assert_true(schema_kind_by_name(kind, &op.kind));
        assert_int_equal(change_set_add(&set, op, &e), ERR_OK);
        pair_apply(&x, &set);
        change_set_fini(&set);
        json_t *request = pair_json(cases[i].request);
        assert_null(publish_to(&x, request, &ops));
        assert_int_equal(ops, 0);
        assert_non_null(pair_problem(&x, "shared_object"));
        assert_non_null(strstr(pair_problem(&x, "shared_object")->message, cases[i].says));
        publish_text(&x, same, &ops);
        assert_int_equal(ops, 0);
        json_decref(request);
        pair_fini(&x);
    }
}

static void
removal_leaves_what_others_use(void **state)
{
    struct pair x;
    struct change_set set;
    struct error e;
    (void)state;
    pair_init(
        &x, "[{'kind': 'server', 'name': 'x.s1', 'address': '10.0.0.1', 'port': 80},"
            "{'kind': 'server', 'name': 'x.s2', 'address': '10.0.0.2', 'port': 80},"
            "{'kind': 'server', 'name': 'x.y.s1', 'address': '10.0.0.3', 'port': 80},"
            "{'kind': 'monitor', 'name': 'x'},"
            "{'kind': 'pool', 'name': 'x', 'monitor': 'x', 'members': [{'server': 'x.s1'},"
            " {'server': 'x.s2'}]},"
            "{'kind': 'pool', 'name': 'other', 'members': [{'server': 'x.s2'}]},"
            "{'kind': 'listener', 'name': 'http', 'port': 80},"
            "{'kind': 'service', 'name': 'x', 'listeners': ['http'], 'pool': 'x'}]");
    publish_remove(&x, "x");
    assert_string_equal(
        publish_inventory(&x), "listener:http pool:other server:x.s2 server:x.y.s1");
    change_set_init(&set);
    assert_int_equal(publish_remove_plan("x", &x.objects, x.arena, &set, &e), ERR_NOT_FOUND);
    assert_int_equal(set.count, 0);
    change_set_fini(&set);
    pair_fini(&x);
}

static void
listeners_of_a_port_go_with_their_last_service(void **state)
{
    struct pair x;
    const char *found = NULL;
    struct error e;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, "{'url': 'http://a.test:8080', 'to': ['10.0.0.1:80']}", NULL);
    publish_text(&x, "{'url': 'http://b.test:8080', 'to': ['10.0.0.1:80']}", NULL);
    publish_text(&x, "{'url': 'tcp://:5432', 'to': ['10.0.0.1:80']}", NULL);
    publish_text(&x, "{'url': 'http://a.test', 'to': ['10.0.0.1:80'], 'name': 'c'}", NULL);
    assert_int_equal(
        publish_find("http://A.test:8080/", &x.objects, x.arena, &found, &e), ERR_OK);
    assert_string_equal(found, "a.test");
    assert_int_equal(
        publish_find("https://a.test", &x.objects, x.arena, &found, &e), ERR_NOT_FOUND);
    assert_int_equal(
        publish_find("ftp://a.test", &x.objects, x.arena, &found, &e), ERR_INVALID);
    publish_text(
        &x, "{'urls': ['http://d.test', 'http://e.test'], 'to': ['10.0.0.1:80']}", NULL);
    assert_int_equal(
        publish_find("http://e.test", &x.objects, x.arena, &found, &e), ERR_CONFLICT);
    assert_string_equal(
        e.msg,
        "e.test is one of 2 hosts of the service d.test: give its name to remove it with "
        "all of them, or change its hosts to remove only this one");
    publish_remove(&x, "d.test");
    publish_remove(&x, "a.test");
    assert_non_null(pair_find(&x, K_LISTENER, "http-8080"));
    publish_remove(&x, "b.test");
    publish_remove(&x, "tcp-5432");
    publish_remove(&x, "c");
    assert_string_equal(publish_inventory(&x), "listener:http");
    pair_fini(&x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(https_makes_everything_that_serves_it),
        cmocka_unit_test(each_scheme_has_its_listeners),
        cmocka_unit_test(check_is_independent_of_the_mode),
        cmocka_unit_test(a_check_that_is_left_out_stays),
        cmocka_unit_test(names_are_made_from_the_first_url),
        cmocka_unit_test(made_name_avoids_what_is_there),
        cmocka_unit_test(the_same_request_changes_nothing),
        cmocka_unit_test(order_of_targets_does_not_matter),
        cmocka_unit_test(what_the_request_does_not_speak_of_stays),
        cmocka_unit_test(targets_are_a_set),
        cmocka_unit_test(a_target_keeps_its_server_when_others_come_and_go),
        cmocka_unit_test(a_new_url_under_the_same_name_keeps_the_service),
        cmocka_unit_test(editing_each_part_leaves_nothing_behind),
        cmocka_unit_test(equal_labels_of_two_services_are_two_servers),
        cmocka_unit_test(own_objects_that_others_use_are_not_rewritten),
        cmocka_unit_test(removal_leaves_what_others_use),
        cmocka_unit_test(listeners_of_a_port_go_with_their_last_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
