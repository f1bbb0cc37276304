/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/header.h"

/* A header of up to three fields. */
static struct header
fields(const char *n1, const char *v1, const char *n2, const char *v2)
{
    struct header h = {.host = NULL};

    header_add(&h, "Host", "node");
    if (n1 != NULL) {
        header_add(&h, n1, v1);
    }
    if (n2 != NULL) {
        header_add(&h, n2, v2);
    }
    return h;
}

static void
passes(struct header h)
{
    struct error e = {.code = ERR_OK};

    if (header_check(&h, "HTTP/1.1", &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
refused(struct header h, const char *words)
{
    struct error e = {.code = ERR_OK};

    assert_int_equal(header_check(&h, "HTTP/1.1", &e), ERR_SYNTAX);
    if (strstr(e.msg, words) == NULL) {
        fail_msg("%s", e.msg);
    }
}

static void
takes_the_client_from_the_nearest_proxy_only(void **state)
{
    static const struct {
        const char *first, *second, *expected;
    } cases[] = {
        {"192.0.2.1", NULL, "192.0.2.1"},
        {"192.0.2.1, 192.0.2.2", NULL, "192.0.2.2"},
        {"192.0.2.1,2001:db8::1\t", NULL, "2001:db8::1"},
        {"192.0.2.1", "192.0.2.3", "192.0.2.3"},
        {"", NULL, NULL},
        {"192.0.2.1,", NULL, NULL},
        {"192.0.2.1 192.0.2.2", NULL, NULL},
        {"[2001:db8::1]:80", NULL, NULL},
        {"unknown", NULL, NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, NULL},
    };

    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct header h = {.host = "x"};
        const char *found;

        header_add(&h, "X-Forwarded-For", cases[i].first);
        if (cases[i].second != NULL) {
            header_add(&h, "x-forwarded-for", cases[i].second);
        }
        found = header_forwarded(&h, out);
        assert_int_equal(found == NULL, cases[i].expected == NULL);
        if (found != NULL) {
            assert_string_equal(found, cases[i].expected);
        }
    }
    assert_null(header_forwarded(&(struct header){.host = "x"}, out));
}

static void
reads_fields_without_case(void **state)
{
    struct header h = fields("CONTENT-type", "a", "lockstep-csrf", "b");

    (void)state;
    assert_string_equal(h.content_type, "a");
    assert_string_equal(h.csrf, "b");
    header_add(&h, "X-Other", "c");
    header_add(&h, "X-Other", "d");
    passes(h);
}

static void
a_message_has_one_end(void **state)
{
    (void)state;
    passes(fields("Content-Length", "12", NULL, NULL));
    passes(fields("Transfer-Encoding", "Chunked", NULL, NULL));
    refused(fields("Content-Length", "1", "Transfer-Encoding", "chunked"), "both");
    refused(fields("Content-Length", "1", "Content-Length", "1"), "more than once");
    refused(fields("Transfer-Encoding", "chunked", "transfer-encoding", "chunked"), "more");
    refused(fields("Transfer-Encoding", "gzip, chunked", NULL, NULL), "only chunked");
    refused(fields("Transfer-Encoding", "", NULL, NULL), "only chunked");
    refused(fields("Content-Length", "", NULL, NULL), "no number");
    refused(fields("Content-Length", "-1", NULL, NULL), "no number");
    refused(fields("Content-Length", "+1", NULL, NULL), "no number");
    refused(fields("Content-Length", "1 ", NULL, NULL), "no number");
    refused(fields("Content-Length", "0x1", NULL, NULL), "no number");
    refused(fields("Content-Length", "1,1", NULL, NULL), "no number");
    refused(fields("Content-Length", "9999999999999999", NULL, NULL), "no number");
}

static void
a_message_has_one_host(void **state)
{
    struct header none = {.host = NULL};
    struct error e;

    (void)state;
    refused(none, "no Host");
    refused(fields("host", "other", NULL, NULL), "Host more than once");
    assert_int_equal(header_check(&none, "HTTP/1.0", &e), ERR_OK);
}

static void
an_old_client_knows_no_chunks(void **state)
{
    struct header h = fields("Transfer-Encoding", "chunked", NULL, NULL);
    struct error e;

    (void)state;
    assert_int_equal(header_check(&h, "HTTP/1.0", &e), ERR_SYNTAX);
}

static void
names_are_tokens(void **state)
{
    (void)state;
    refused(fields("Content-Length ", "5", NULL, NULL), "broken name");
    refused(fields("", "5", NULL, NULL), "broken name");
    refused(fields("a\tb", "5", NULL, NULL), "broken name");
    refused(fields("(a)", "5", NULL, NULL), "broken name");
    refused(fields("\xc3\xa9", "5", NULL, NULL), "broken name");
    passes(fields("X-1_!#$%&'*+.^`|~", "5", NULL, NULL));
}

static void
fields_that_decide_come_once(void **state)
{
    static const char *const names[] = {"Authorization", "Content-Type",  "If-Match",
                                        "If-None-Match", "Lockstep-CSRF", "Last-Event-ID"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        refused(fields(names[i], "a", names[i], "a"), names[i]);
    }
}

static void
tells_the_length_of_the_body(void **state)
{
    struct header none = fields(NULL, NULL, NULL, NULL);
    struct header length = fields("Content-Length", "000123", NULL, NULL);
    struct header most = fields("Content-Length", "999999999999999", NULL, NULL);
    struct header chunked = fields("Transfer-Encoding", "chunked", NULL, NULL);

    (void)state;
    assert_int_equal(header_body_bytes(&none), 0);
    assert_int_equal(header_body_bytes(&length), 123);
    assert_int_equal(header_body_bytes(&most), 999999999999999);
    assert_int_equal(header_body_bytes(&chunked), -1);
}

static bool
is_json(const char *type, bool merge)
{
    struct header h = fields("Content-Type", type, NULL, NULL);

    return header_is_json(&h, merge);
}

static void
knows_json(void **state)
{
    struct header none = fields(NULL, NULL, NULL, NULL);

    (void)state;
    assert_true(is_json("application/json", false));
    assert_true(is_json("Application/JSON", false));
    assert_true(is_json("application/json; charset=utf-8", false));
    assert_true(is_json("application/json ;charset=utf-8", false));
    assert_true(is_json("application/merge-patch+json", true));
    assert_true(is_json("application/json", true));
    assert_false(is_json("application/merge-patch+json", false));
    assert_false(is_json("application/jsonx", false));
    assert_false(is_json("application/json x", false));
    assert_false(is_json("text/plain", false));
    assert_false(is_json("text/plain, application/json", true));
    assert_false(is_json("", true));
    assert_false(header_is_json(&none, true));
}

static void
cookie_is(const char *line, const char *expected)
{
    struct header h = fields("Cookie", line, NULL, NULL);
    size_t len = 0;
    const char *value = header_cookie(&h, "session_1", &len);

    if (expected == NULL) {
        assert_null(value);
    } else {
        assert_non_null(value);
        assert_int_equal(len, strlen(expected));
        assert_memory_equal(value, expected, len);
    }
}

static void
finds_a_cookie_by_its_whole_name(void **state)
{
    (void)state;
    cookie_is("session_1=abc", "abc");
    cookie_is("a=b; session_1=abc; c=d", "abc");
    cookie_is("a=b;session_1=abc", "abc");
    cookie_is("session_1=", "");
    cookie_is("session_1=a=b", "a=b");
    cookie_is("session_1=one; session_1=two", "one");
    cookie_is("session_12=abc", NULL);
    cookie_is("xsession_1=abc", NULL);
    cookie_is("a=session_1=abc", NULL);
    cookie_is("session_1", NULL);
    cookie_is("; ;", NULL);
    cookie_is("", NULL);
}

static void
looks_into_each_cookie_field(void **state)
{
    struct header h = fields("Cookie", "a=b", "Cookie", "session_1=abc");
    size_t len = 0;

    (void)state;
    assert_non_null(header_cookie(&h, "session_1", &len));
    header_add(&h, "Cookie", "c=d");
    header_add(&h, "Cookie", "e=f");
    passes(h);
    header_add(&h, "Cookie", "g=h");
    refused(h, "Cookie");
}

static void
knows_a_bearer(void **state)
{
    struct header none = fields(NULL, NULL, NULL, NULL);
    struct header key = fields("Authorization", "Bearer lsk_x", NULL, NULL);
    struct header lower = fields("Authorization", "bearer  lsk_x", NULL, NULL);
    struct header basic = fields("Authorization", "Basic eA==", NULL, NULL);
    struct header bare = fields("Authorization", "Bearer", NULL, NULL);

    (void)state;
    assert_null(header_bearer(&none));
    assert_string_equal(header_bearer(&key), "lsk_x");
    assert_string_equal(header_bearer(&lower), "lsk_x");
    assert_null(header_bearer(&basic));
    assert_null(header_bearer(&bare));
}

static bool
none_match(const char *list)
{
    struct header h = fields("If-None-Match", list, NULL, NULL);

    return header_none_match_has(&h, "\"abc\"");
}

static void
compares_tags_weakly(void **state)
{
    struct header none = fields(NULL, NULL, NULL, NULL);

    (void)state;
    assert_true(none_match("\"abc\""));
    assert_true(none_match("W/\"abc\""));
    assert_true(none_match("\"x\", W/\"abc\""));
    assert_true(none_match("*"));
    assert_false(none_match("\"abcd\""));
    assert_false(none_match("abc"));
    assert_false(none_match(""));
    assert_false(header_none_match_has(&none, "\"abc\""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_client_from_the_nearest_proxy_only),
        cmocka_unit_test(reads_fields_without_case),
        cmocka_unit_test(a_message_has_one_end),
        cmocka_unit_test(a_message_has_one_host),
        cmocka_unit_test(an_old_client_knows_no_chunks),
        cmocka_unit_test(names_are_tokens),
        cmocka_unit_test(fields_that_decide_come_once),
        cmocka_unit_test(tells_the_length_of_the_body),
        cmocka_unit_test(knows_json),
        cmocka_unit_test(finds_a_cookie_by_its_whole_name),
        cmocka_unit_test(looks_into_each_cookie_field),
        cmocka_unit_test(knows_a_bearer),
        cmocka_unit_test(compares_tags_weakly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
