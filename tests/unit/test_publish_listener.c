/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/publishing.h"

#define APP "{'url': 'https://app.test', 'to': ['10.0.0.5:8080', '10.0.0.6:8080']}"

/* ---- ports and listeners ---- */

struct taken {
    const char *objects;
    const char *request;
    const char *code;
    const char *says;
};

#define TCP_80                                                                                 \
    "[{'kind': 'pool', 'name': 'db', 'mode': 'tcp'},"                                          \
    "{'kind': 'listener', 'name': 'raw', 'port': 80, 'mode': 'tcp'},"                          \
    "{'kind': 'service', 'name': 'db', 'listeners': ['raw'], 'pool': 'db'}]"

static const struct taken takens[] = {
    {TCP_80, "{'url': 'http://a.test', 'to': ['10.0.0.1:80']}", "listener_mode", "\"raw\""},
    {TCP_80, APP, "listener_mode", "\"raw\""},
    {TCP_80, "{'url': 'tcp://:80', 'to': ['10.0.0.1:80'], 'name': 'new'}", "listener_taken",
     "\"db\""},
    {"[{'kind': 'listener', 'name': 'web', 'port': 443, 'addresses': ['10.0.0.1']}]", APP,
     "listener_mode", "without TLS"},
    {"[{'kind': 'listener', 'name': 'web', 'port': 443, 'tls': true}]",
     "{'url': 'tcp://:443', 'to': ['10.0.0.1:80']}", "listener_mode", "\"web\""},
    {"[{'kind': 'listener', 'name': 'http', 'port': 80, 'enabled': false}]",
     "{'url': 'http://a.test', 'to': ['10.0.0.1:80']}", "listener_off", "\"http\""},
    {"[{'kind': 'pool', 'name': 'p'}, {'kind': 'listener', 'name': 'http', 'port': 80},"
     "{'kind': 'service', 'name': 'old', 'listeners': ['http'], 'pool': 'p',"
     " 'hosts': ['b.test', 'a.test'], 'path': '/x/'}]",
     "{'url': 'http://a.test/x', 'to': ['10.0.0.1:80'], 'name': 'new'}", "published_twice",
     "\"old\""},
    {"[{'kind': 'pool', 'name': 'p'}, {'kind': 'listener', 'name': 'http', 'port': 80},"
     "{'kind': 'service', 'name': 'old', 'listeners': ['http'], 'pool': 'p'}]",
     "{'url': 'http://:80', 'to': ['10.0.0.1:80'], 'name': 'new'}", "published_twice",
     "Any host"},
};

static void
places_of_others_are_not_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(takens); i++) {
        struct pair x;
        pair_init(&x, takens[i].objects);
        json_t *request = pair_json(takens[i].request);
        assert_null(publish_to(&x, request, NULL));
        assert_string_equal(pair_codes(&x), takens[i].code);
        assert_non_null(strstr(x.problems.items[0].message, takens[i].says));
        assert_string_equal(x.problems.items[0].pointer, "/url");
        json_decref(request);
        pair_fini(&x);
    }
}

static void
http_and_https_of_one_host_are_one_service(void **state)
{
    struct pair x;
    json_t *http = pair_json("{'url': 'http://app.test', 'to': ['10.0.0.5:8080']}");
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    assert_null(publish_to(&x, http, NULL));
    assert_string_equal(pair_codes(&x), "published_twice");
    json_object_set_new(http, "name", json_string("app.test"));
    assert_non_null(publish_to(&x, http, NULL));
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "listeners"), "[\"http\"]");
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "certificate"), "null");
    json_decref(http);
    pair_fini(&x);
}

static void
listeners_that_fit_are_used(void **state)
{
    static const struct {
        const char *objects;
        const char *listeners;
    } cases[] = {
        {"[{'kind': 'listener', 'name': 'public', 'port': 80, 'addresses': ['10.0.0.1']}]",
         "[\"public\"]"},
        {"[{'kind': 'listener', 'name': 'alt', 'port': 80, 'addresses': ['10.0.0.1']},"
         "{'kind': 'listener', 'name': 'http', 'port': 80, 'addresses': ['10.0.0.2']}]",
         "[\"http\"]"},
        {"[{'kind': 'listener', 'name': 'http', 'port': 8080}]", "[\"http-2\"]"},
        {"[{'kind': 'listener', 'name': 'old', 'port': 80, 'enabled': false}]", "[\"http\"]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        size_t ops = 1;
        const char *request = "{'url': 'http://a.test', 'to': ['10.0.0.1:80']}";
        pair_init(&x, cases[i].objects);
        publish_text(&x, request, NULL);
        assert_string_equal(
            publish_shown(&x, K_SERVICE, "a.test", "listeners"), cases[i].listeners);
        publish_text(&x, request, &ops);
        assert_int_equal(ops, 0);
        pair_fini(&x);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_others_are_not_taken),
        cmocka_unit_test(http_and_https_of_one_host_are_one_service),
        cmocka_unit_test(listeners_that_fit_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
