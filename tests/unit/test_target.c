/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "http/target.h"

static int
arena_set(void **state)
{
    *state = arena_new(ARENA_DEFAULT_BYTES);
    return 0;
}

static int
arena_done(void **state)
{
    arena_free(*state);
    return 0;
}

/* Segments joined by '|', then after '?' the parameters as name=value joined by '&'. */
static void
parses(struct arena *arena, const char *raw, const char *expected)
{
    CLEANUP(buf_fini) struct buf out;
    struct target t;
    struct error e = {.code = ERR_OK};

    buf_init(&out, 4096);
    if (target_parse(raw, arena, &t, &e) != ERR_OK) {
        fail_msg("%s: %s", raw, e.msg);
    }
    for (size_t i = 0; i < t.segment_count; i++) {
        buf_printf(&out, "%s%s", i > 0 ? "|" : "", t.segments[i]);
    }
    for (size_t i = 0; i < t.param_count; i++) {
        buf_printf(&out, "%c%s=%s", i > 0 ? '&' : '?', t.params[i].name, t.params[i].value);
    }
    assert_string_equal(buf_str(&out), expected);
}

static void
refuses(struct arena *arena, const char *raw, err_t code, const char *words)
{
    struct target t = {.segment_count = 77};
    struct error e = {.code = ERR_OK};

    if (target_parse(raw, arena, &t, &e) != code) {
        fail_msg("%s: not refused with %s but %s", raw, error_name(code), error_name(e.code));
    }
    if (strstr(e.msg, words) == NULL) {
        fail_msg("%s: %s", raw, e.msg);
    }
    assert_int_equal(t.segment_count, 77);
}

static void
splits_a_path(void **state)
{
    parses(*state, "/", "");
    parses(*state, "/a", "a");
    parses(*state, "/api/v1/servers/web1", "api|v1|servers|web1");
    parses(*state, "/1/2/3/4/5/6/7/8", "1|2|3|4|5|6|7|8");
}

static void
keeps_a_final_slash_as_an_empty_segment(void **state)
{
    parses(*state, "/a/", "a|");
}

static void
decodes_after_splitting(void **state)
{
    parses(*state, "/a%2fb/c", "a/b|c");
    parses(*state, "/a%2Fb%3fc%26d", "a/b?c&d");
    parses(*state, "/a%25%32%66", "a%2f");
    parses(*state, "/a+b;c=d", "a+b;c=d");
    parses(*state, "/%c3%a9", "\xc3\xa9");
}

static void
takes_an_absolute_form(void **state)
{
    parses(*state, "http://node:8443/a/b?q=1", "a|b?q=1");
    parses(*state, "HTTPS://[2001:db8::1]/a", "a");
    parses(*state, "http://node", "");
    parses(*state, "http://node?q=1", "?q=1");
}

static void
refuses_what_is_no_path(void **state)
{
    refuses(*state, "", ERR_SYNTAX, "no target");
    refuses(*state, "*", ERR_SYNTAX, "no path");
    refuses(*state, "node:443", ERR_SYNTAX, "no path");
    refuses(*state, "ftp://node/a", ERR_SYNTAX, "no path");
}

static void
refuses_characters_that_no_target_has(void **state)
{
    refuses(*state, "/a b", ERR_SYNTAX, "character");
    refuses(*state, "/a\tb", ERR_SYNTAX, "character");
    refuses(*state, "/a#b", ERR_SYNTAX, "character");
    refuses(*state, "/a\x7f", ERR_SYNTAX, "character");
    refuses(*state, "/\xc3\xa9", ERR_SYNTAX, "character");
    refuses(*state, "/a?b\x01", ERR_SYNTAX, "character");
}

static void
refuses_empty_and_dot_segments(void **state)
{
    refuses(*state, "//", ERR_SYNTAX, "empty segment");
    refuses(*state, "//a", ERR_SYNTAX, "empty segment");
    refuses(*state, "/a//b", ERR_SYNTAX, "empty segment");
    refuses(*state, "/a/./b", ERR_SYNTAX, "\".\"");
    refuses(*state, "/a/../b", ERR_SYNTAX, "\"..\"");
    refuses(*state, "/a/..", ERR_SYNTAX, "\"..\"");
    refuses(*state, "/%2e%2E/b", ERR_SYNTAX, "\"..\"");
    refuses(*state, "/.%2e", ERR_SYNTAX, "\"..\"");
    parses(*state, "/.../..a", "...|..a");
}

static void
refuses_broken_escapes(void **state)
{
    refuses(*state, "/%", ERR_SYNTAX, "escape");
    refuses(*state, "/%2", ERR_SYNTAX, "escape");
    refuses(*state, "/%2/a", ERR_SYNTAX, "escape");
    refuses(*state, "/%zz", ERR_SYNTAX, "escape");
    refuses(*state, "/%2z", ERR_SYNTAX, "escape");
    refuses(*state, "/%%41", ERR_SYNTAX, "escape");
    refuses(*state, "/a?q=%2", ERR_SYNTAX, "escape");
    refuses(*state, "/a?%=1", ERR_SYNTAX, "escape");
}

static void
refuses_what_is_no_text(void **state)
{
    refuses(*state, "/a%00", ERR_SYNTAX, "no text");
    refuses(*state, "/a%00b", ERR_SYNTAX, "no text");
    refuses(*state, "/%0a", ERR_SYNTAX, "no text");
    refuses(*state, "/%7f", ERR_SYNTAX, "no text");
    refuses(*state, "/%ff", ERR_SYNTAX, "no text");
    refuses(*state, "/%c0%af", ERR_SYNTAX, "no text");
    refuses(*state, "/%ed%a0%80", ERR_SYNTAX, "no text");
    refuses(*state, "/a?q=%00", ERR_SYNTAX, "no text");
}

static void
knows_no_path_that_is_longer_than_any_route(void **state)
{
    refuses(*state, "/1/2/3/4/5/6/7/8/9", ERR_NOT_FOUND, "no such path");
}

static void
reads_the_query_once(void **state)
{
    parses(*state, "/a?", "a");
    parses(*state, "/a?limit=5&q=b%20c+d", "a?limit=5&q=b c d");
    parses(*state, "/a?x", "a?x=");
    parses(*state, "/a?&x=1&&y=2&", "a?x=1&y=2");
    parses(*state, "/a?x=1=2?3", "a?x=1=2?3");
}

static void
refuses_an_ambiguous_query(void **state)
{
    refuses(*state, "/a?x=1&x=2", ERR_SYNTAX, "twice");
    refuses(*state, "/a?x=1&%78=2", ERR_SYNTAX, "twice");
    refuses(*state, "/a?=1", ERR_SYNTAX, "without name");
    refuses(
        *state, "/a?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", ERR_SYNTAX, "too many parameters");
}

static void
finds_a_parameter(void **state)
{
    struct target t;

    assert_int_equal(target_parse("/a?x=1&y=", *state, &t, NULL), ERR_OK);
    assert_string_equal(target_param(&t, "x"), "1");
    assert_string_equal(target_param(&t, "y"), "");
    assert_null(target_param(&t, "z"));
}

static void
puts_segments_that_parse_back(void **state)
{
    static const char *const texts[] = {"web1",    "a/b",      "a b",      "%41",
                                        "x;y=?&#", "\xc3\xa9", "a.b-c_d~e"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(buf_fini) struct buf path;
        struct target t;

        buf_init(&path, 256);
        buf_puts(&path, "/");
        target_put_segment(&path, texts[i]);
        assert_int_equal(target_parse(buf_str(&path), *state, &t, NULL), ERR_OK);
        assert_int_equal(t.segment_count, 1);
        assert_string_equal(t.segments[0], texts[i]);
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, arena_set, arena_done)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(splits_a_path),
        CASE(keeps_a_final_slash_as_an_empty_segment),
        CASE(decodes_after_splitting),
        CASE(takes_an_absolute_form),
        CASE(refuses_what_is_no_path),
        CASE(refuses_characters_that_no_target_has),
        CASE(refuses_empty_and_dot_segments),
        CASE(refuses_broken_escapes),
        CASE(refuses_what_is_no_text),
        CASE(knows_no_path_that_is_longer_than_any_route),
        CASE(reads_the_query_once),
        CASE(refuses_an_ambiguous_query),
        CASE(finds_a_parameter),
        CASE(puts_segments_that_parse_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
