/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/publishing.h"

/* ---- what is refused ---- */

struct refusal {
    const char *request;
    const char *code;
    const char *pointer;
};

static const struct refusal refusals[] = {
    {"['x']", "type", ""},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'helth': '/x'}", "unknown_field", "/helth"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'a/b~': 1}", "unknown_field", "/a~1b~0"},
    {"{'to': ['1.1.1.1:1']}", "required", "/url"},
    {"{'url': 'http://a.test'}", "required", "/to"},
    {"{'url': 'http://a.test', 'urls': ['http://a.test'], 'to': ['1.1.1.1:1']}", "url_and_urls",
     "/url"},
    {"{'url': 7, 'to': ['1.1.1.1:1']}", "type", "/url"},
    {"{'urls': [], 'to': ['1.1.1.1:1']}", "type", "/urls"},
    {"{'url': 'ftp://a.test', 'to': ['1.1.1.1:1']}", "url_scheme", "/url"},
    {"{'url': 'a.test', 'to': ['1.1.1.1:1']}", "url_scheme", "/url"},
    {"{'url': 'http://a.test/?q=1', 'to': ['1.1.1.1:1']}", "url_query", "/url"},
    {"{'url': 'http://a.test/#x', 'to': ['1.1.1.1:1']}", "url_fragment", "/url"},
    {"{'url': 'http://me:pw@a.test', 'to': ['1.1.1.1:1']}", "url_user_info", "/url"},
    {"{'url': 'http://a test', 'to': ['1.1.1.1:1']}", "characters", "/url"},
    {"{'url': 'http://', 'to': ['1.1.1.1:1']}", "host_missing", "/url"},
    {"{'url': 'https://:443', 'to': ['1.1.1.1:1']}", "host_missing", "/url"},
    {"{'url': 'http://a_.-/', 'to': ['1.1.1.1:1']}", "url_host", "/url"},
    {"{'url': 'http://[::1]/', 'to': ['1.1.1.1:1']}", "url_host", "/url"},
    {"{'url': 'http://a.test/../b', 'to': ['1.1.1.1:1']}", "url_path", "/url"},
    {"{'url': 'http://a.test/a;b', 'to': ['1.1.1.1:1']}", "url_path", "/url"},
    {"{'url': 'http://a.test/a%5cb', 'to': ['1.1.1.1:1']}", "url_path", "/url"},
    {"{'url': 'http://a.test:0', 'to': ['1.1.1.1:1']}", "port_range", "/url"},
    {"{'url': 'http://a.test:65536', 'to': ['1.1.1.1:1']}", "port_range", "/url"},
    {"{'url': 'http://a.test:', 'to': ['1.1.1.1:1']}", "port_range", "/url"},
    {"{'url': 'http://a.test:8000-8010', 'to': ['1.1.1.1:1']}", "port_range", "/url"},
    {"{'url': 'http://a.test:8443', 'to': ['1.1.1.1:1']}", "reserved_port", "/url"},
    {"{'url': 'http://a.test:8444', 'to': ['1.1.1.1:1']}", "reserved_port", "/url"},
    {"{'url': 'tcp://db.test:5432', 'to': ['1.1.1.1:1']}", "tcp_host", "/url"},
    {"{'url': 'tcp://:5432/x', 'to': ['1.1.1.1:1']}", "tcp_path", "/url"},
    {"{'url': 'tcp://', 'to': ['1.1.1.1:1']}", "port_missing", "/url"},
    {"{'urls': ['http://a.test', 'https://b.test'], 'to': ['1.1.1.1:1']}", "mixed_schemes",
     "/urls/1"},
    {"{'urls': ['http://a.test', 'http://b.test:81'], 'to': ['1.1.1.1:1']}", "mixed_ports",
     "/urls/1"},
    {"{'urls': ['http://a.test/x', 'http://b.test/y'], 'to': ['1.1.1.1:1']}", "mixed_paths",
     "/urls/1"},
    {"{'urls': ['http://:80', 'http://b.test'], 'to': ['1.1.1.1:1']}", "mixed_hosts",
     "/urls/1"},
    {"{'urls': ['http://a.test', 'http://A.test.'], 'to': ['1.1.1.1:1']}", "duplicate",
     "/urls/1"},
    {"{'url': 'http://a.test', 'to': []}", "no_targets", "/to"},
    {"{'url': 'http://a.test', 'to': '1.1.1.1:1'}", "type", "/to"},
    {"{'url': 'http://a.test', 'to': [7]}", "type", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:8x']}", "port_range", "/to/0"},
    {"{'url': 'http://a.test:1:2', 'to': ['1.1.1.1:1']}", "brackets", "/url"},
    {"{'urls': ['http://a.test?', 'http://b.test#'], 'to': ['1.1.1.1:1']}", "url_query",
     "/urls/0"},
    {"{'url': 'http://a.test', 'to': ['a=b=c']}", "target_equals", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['=1.1.1.1:1']}", "target_label", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['a.b=1.1.1.1:1']}", "target_label", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1']}", "port_missing", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:0']}", "port_range", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:65536']}", "port_range", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:080']}", "port_range", "/to/0"},
    {"{'url': 'http://a.test', 'to': [':80']}", "target_host", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['10.0.0.300:80']}", "target_host", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['[fe80::1%eth0]:80']}", "target_host", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['[a.test]:80']}", "target_host", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['2001:db8::1:80']}", "brackets", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['[2001:db8::1:80']}", "brackets", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['https://1.1.1.1:1']}", "target_https", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['pve1=https://1.1.1.1:1']}", "target_https", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['ftp://1.1.1.1:1']}", "target_scheme", "/to/0"},
    {"{'url': 'tcp://:81', 'to': ['http://1.1.1.1:1']}", "target_tcp", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1/x']}", "target_path", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['http://1.1.1.1:1/?a=b']}", "target_query", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['me@1.1.1.1:1']}", "target_user_info", "/to/0"},
    {"{'url': 'http://a.test', 'to': ['x=1.1.1.1:1', 'x=1.1.1.2:1']}", "duplicate_label",
     "/to/1"},
    /* C086: by decision also under two labels. A second entry would not be a second server,
     * only a second share of the traffic, which is what a weight is for. */
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1', 'x=1.1.1.1:1']}", "duplicate_target",
     "/to/1"},
    {"{'url': 'http://a.test', 'to': ['a=1.1.1.1:1', 'b=1.1.1.1:1']}", "duplicate_target",
     "/to/1"},
    {"{'url': 'http://a.test', 'to': ['[::1]:1', '[0:0::1]:1']}", "duplicate_target", "/to/1"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'check': 'ping'}", "check", "/check"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'check': 'http:'}", "check", "/check"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'check': 'http:0/x'}", "check_port",
     "/check"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'check': 'http:/a b'}", "characters",
     "/check"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'check': 'http://x'}", "check_path",
     "/check"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'name': '-x'}", "name", "/name"},
    {"{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'name': 'lockstep-x'}", "reserved_name",
     "/name"},
    {"{'url': 'http://a.test', 'to': ['abcdefgh=1.1.1.1:1'], 'name':"
     " 'a123456789b123456789c123456789d123456789e123456789f123456789'}",
     "too_long", "/to/0"},
};

static void
wrong_requests_are_refused_where_they_are_wrong(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        json_t *request = pair_json(refusals[i].request);
        size_t ops = 0;
        print_message("  %s\n", refusals[i].request);
        assert_null(publish_to(&x, request, &ops));
        assert_int_equal(ops, 0);
        assert_string_equal(pair_codes(&x), refusals[i].code);
        assert_string_equal(x.problems.items[0].pointer, refusals[i].pointer);
        json_decref(request);
    }
    pair_fini(&x);
}

static void
problems_quote_what_is_wrong_but_nothing_secret(void **state)
{
    static const struct {
        const char *target, *says;
    } cases[] = {
        {"10.0.0.5", "\"10.0.0.5\": The server's port is missing"},
        {"10.0.0.300:80", "\"10.0.0.300:80\": This address cannot be used: "},
        {"a23456789b123456789c123456789d123456789e123456789f123456789g123456789",
         "\"a23456789b123456789c123456789d123456789e123456789f123456789g1234...\": "},
        {"me:pw@1.1.1.1:1", "Names and passwords"},
        {"1.1.1.1:1/?key=x", "A server has no query"},
    };
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *request =
            json_pack("{s:s, s:[s]}", "url", "http://a.test", "to", cases[i].target);
        publish_to(&x, request, NULL);
        assert_ptr_equal(
            strstr(x.problems.items[0].message, cases[i].says), x.problems.items[0].message);
        json_decref(request);
    }
    pair_fini(&x);
}

static void
combinations_that_cannot_be_have_messages_of_their_own(void **state)
{
    struct pair x;
    const char *said[ARRAY_LEN(refusals)];
    (void)state;
    pair_init(&x, NULL);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        json_t *request = pair_json(refusals[i].request);
        publish_to(&x, request, NULL);
        said[i] = x.problems.items[0].message;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(refusals[i].code, refusals[j].code) != 0) {
                assert_string_not_equal(said[i], said[j]);
            }
        }
        json_decref(request);
    }
    pair_fini(&x);
}

static json_t *
long_request(const char *key, json_t *value)
{
    json_t *request = pair_json("{'url': 'http://a.test', 'to': ['1.1.1.1:1'], 'name': 'a'}");
    if (strcmp(key, "urls") == 0) {
        json_object_del(request, "url");
    }
    json_object_set_new(request, key, value);
    return request;
}

static json_t *
repeat(const char *before, size_t count)
{
    CLEANUP(buf_fini) struct buf text;
    buf_init(&text, 4096);
    buf_puts(&text, before);
    for (size_t i = 0; i < count; i++) {
        buf_putc(&text, 'x');
    }
    return json_string(buf_str(&text));
}

static json_t *
numbered(const char *format, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        char text[64];
        const char *percent = strchr(format, '%');
        (void)snprintf(
            text, sizeof(text), "%.*s%d%s", (int)(percent - format), format, i, percent + 1);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static void
sizes_are_limited(void **state)
{
    const struct {
        const char *key;
        json_t *value;
        const char *code; /* "": accepted */
    } cases[] = {
        {"urls", numbered("http://h%.test", 100), ""},
        {"urls", numbered("http://h%.test", 101), "too_many"},
        {"to", numbered("h%.test:80", 1000), ""},
        {"to", numbered("h%.test:80", 1001), "too_many"},
        {"url", repeat("http://a.test/", 1023), ""},
        {"url", repeat("http://a.test/", 1024), "too_long"},
        {"url", repeat("http://a.test/", 2048), "too_long"},
        {"check", repeat("http:/", 1024), "too_long"},
        {"name", repeat("", 61), ""},
        {"name", repeat("", 62), "too_long"}, /* NAME.s1 */
        {"name", repeat("", 65), "too_long"},
        {"to", json_pack("[o]", repeat("", 300)), "port_missing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pair x;
        pair_init(&x, NULL);
        json_t *request = long_request(cases[i].key, cases[i].value);
        publish_to(&x, request, NULL);
        assert_string_equal(pair_codes(&x), cases[i].code);
        json_decref(request);
        pair_fini(&x);
    }
}

static void
a_key_too_long_to_show_is_refused_all_the_same(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    json_t *name = repeat("k", 100);
    json_t *request = long_request(json_string_value(name), json_null());
    assert_null(publish_to(&x, request, NULL));
    assert_string_equal(pair_codes(&x), "unknown_field");
    assert_string_equal(x.problems.items[0].pointer, "");
    json_decref(name);
    json_decref(request);
    pair_fini(&x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_requests_are_refused_where_they_are_wrong),
        cmocka_unit_test(problems_quote_what_is_wrong_but_nothing_secret),
        cmocka_unit_test(combinations_that_cannot_be_have_messages_of_their_own),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(a_key_too_long_to_show_is_refused_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
