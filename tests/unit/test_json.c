/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "tests/support/self.h"

static json_t *
parsed(const char *text)
{
    json_t *v = NULL;
    struct error e = {.msg = ""};

    if (json_parse(text, strlen(text), &v, &e) != ERR_OK) {
        fail_msg("%s: %s", text, e.msg);
    }
    return v;
}

static void
refused(const char *text, size_t len, const char *reason)
{
    json_t *v = NULL;
    struct error e = {.msg = ""};

    assert_int_equal(json_parse(text, len, &v, &e), ERR_SYNTAX);
    assert_null(v);
    if (strstr(e.msg, reason) == NULL) {
        fail_msg("%s: wanted \"%s\", got \"%s\"", text, reason, e.msg);
    }
}

static void
canonical_is(const char *text, const char *want)
{
    CLEANUP(buf_fini) struct buf b;
    json_t *v = parsed(text);

    buf_init(&b, 1 << 20);
    json_canonical(v, &b);
    assert_string_equal(buf_str(&b), want);
    json_decref(v);
}

static void
any_value_is_a_text(void **state)
{
    (void)state;
    canonical_is("null", "null");
    canonical_is(" true ", "true");
    canonical_is("false", "false");
    canonical_is("\"x\"", "\"x\"");
    canonical_is("-5", "-5");
    canonical_is("[ ]", "[]");
    canonical_is("{ }", "{}");
    canonical_is("\r\n\t [1,\n\"a\",{\"b\":[null]}]\n", "[1,\"a\",{\"b\":[null]}]");
}

static void
rejects_what_is_not_json(void **state)
{
    static const char *const bad[] = {
        "",    " ",        "{",         "[1,]",      "{\"a\":1,}", "{a:1}", "'a'",
        "nul", "[1 2]",    "{\"a\" 1}", "//x",       "[1]]",       "1 2",   "\xef\xbb\xbf{}",
        "+1",  "01",       "-",         "--1",       "0x10",       "NaN",   "Infinity",
        ".5",  "\"a\nb\"", "\"\\x\"",   "\"\\u12\"", "\"abc",      "\"a\\", "[\"a\\\"]",
        "}",   "]",        ",",         ":",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refused(bad[i], strlen(bad[i]), "line 1");
    }
}

static void
rejects_trailing_bytes(void **state)
{
    (void)state;
    refused("{} x", 4, "end of file expected");
    refused("{}\0", 3, "");
    refused(NULL, 0, "line 1");
}

static void
rejects_duplicate_keys(void **state)
{
    (void)state;
    refused("{\"a\":1,\"a\":1}", 13, "duplicate");
    refused("{\"a\":1,\"\\u0061\":1}", 18, "duplicate");
}

static void
rejects_nul_in_text_strings_and_keys(void **state)
{
    (void)state;
    refused("\"a\\u0000b\"", 10, "\\u0000");
    refused("{\"a\\u0000b\":1}", 14, "\\u0000");
    refused("\"a\0b\"", 5, "");
    refused("[1,\0]", 5, "");
}

static void
rejects_invalid_utf8(void **state)
{
    static const char *const bad[] = {
        "\"\xff\"",    "\"\xc0\x80\"", "\"\xed\xa0\x80\"",   "\"\xf4\x90\x80\x80\"", "\"\xc3\"",
        "\"\\ud800\"", "\"\\udc00\"",  "\"\\ud800\\ud800\"", "{\"\xff\":1}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refused(bad[i], strlen(bad[i]), "");
    }
}

static void
accepts_integers_that_all_readers_agree_on(void **state)
{
    (void)state;
    canonical_is("9007199254740991", "9007199254740991");
    canonical_is("-9007199254740991", "-9007199254740991");
    canonical_is("0", "0");
    canonical_is("-0", "0");
    refused("9007199254740992", 16, "integer is too large");
    refused("-9007199254740992", 17, "integer is too large");
    refused("[1,99999999999999999999]", 24, "column 4: integer is too large");
    refused("9223372036854775808", 19, "integer is too large");
}

static void
rejects_real_numbers(void **state)
{
    static const char *const bad[] = {"1.0", "[1e3]", "-1E2", "{\"a\":0.5}", "1.", "1e"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        refused(bad[i], strlen(bad[i]), "not an integer");
    }
    canonical_is("\"1.5\"", "\"1.5\"");
    canonical_is("{\"1e5\":\"\\\"2.5\"}", "{\"1e5\":\"\\\"2.5\"}");
}

static void
nested(char *out, size_t depth)
{
    memset(out, '[', depth);
    memset(out + depth, ']', depth);
    out[2 * depth] = '\0';
}

static void
depth_is_limited(void **state)
{
    static char text[20001];

    (void)state;
    nested(text, JSON_MAX_DEPTH);
    canonical_is(text, text);
    nested(text, JSON_MAX_DEPTH + 1);
    refused(text, strlen(text), "line 1, column 33: nested too deeply");
    nested(text, 10000);
    refused(text, strlen(text), "nested too deeply");
    memset(text, '{', 20000);
    refused(text, 20000, "nested too deeply");
    canonical_is(
        "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"",
        "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"");
}

static void
a_short_text_does_not_become_very_many_values(void **state)
{
    CLEANUP(buf_fini) struct buf text;
    struct error e;
    json_t *v = NULL;

    (void)state;
    buf_init(&text, 3 * JSON_MAX_VALUES + 2);
    buf_putc(&text, '[');
    for (size_t i = 0; i + 1 < JSON_MAX_VALUES / 2; i++) {
        buf_puts(&text, "[],");
    }
    buf_puts(&text, "1]");
    assert_int_equal(json_parse(buf_str(&text), text.len, &v, &e), ERR_OK);
    json_decref(v);
    text.len--;
    buf_puts(&text, ",[],1]");
    assert_int_equal(json_parse(buf_str(&text), text.len, &v, &e), ERR_SYNTAX);
    assert_non_null(strstr(e.msg, "too many values"));
}

static void
errors_name_line_and_column_in_characters(void **state)
{
    (void)state;
    refused("{\n \"\xc3\xa9\": 1.5}", 12, "line 2, column 7: ");
    refused("[\n1,\n\"\\\"\", 2.5]", 14, "line 3, column 7: ");
    refused("{\"a\":\n \"\xc3\xa9\" x}", 14, "line 2, column 6: ");
}

static void
errors_quote_no_odd_bytes(void **state)
{
    struct error e;
    json_t *v = NULL;

    (void)state;
    assert_int_equal(json_parse("[\x1b[2J]", 6, &v, &e), ERR_SYNTAX);
    for (const char *p = e.msg; *p != '\0'; p++) {
        assert_in_range(*p, ' ', '~');
    }
}

static void
canonical_sorts_by_code_point(void **state)
{
    (void)state;
    /* U+FFFD sorts before U+1F600, which UTF-16 order would turn round. */
    canonical_is(
        "{\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbd\":2,\"b\":3,\"\":4,\"a\":5,\"ab\":6,"
        "\"B\":7,\"a\\n\":8}",
        "{\"\":4,\"B\":7,\"a\":5,\"a\\n\":8,\"ab\":6,\"b\":3,\"\xef\xbf\xbd\":2,"
        "\"\xf0\x9f\x98\x80\":1}");
}

static void
canonical_escapes_only_what_must_be(void **state)
{
    (void)state;
    canonical_is(
        "\"\\/\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\\\u007f\\u00e9\\ud83d\\ude00\"",
        "\"/\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\\x7f\xc3\xa9\xf0\x9f\x98\x80\"");
}

static void
canonical_does_not_depend_on_the_order_of_insertion(void **state)
{
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;
    json_t *up = json_object();
    json_t *down = json_object();

    (void)state;
    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(json_object_set_new(up, key, json_integer(i)), 0);
        (void)snprintf(key, sizeof key, "k%d", 999 - i);
        assert_int_equal(json_object_set_new(down, key, json_integer(999 - i)), 0);
    }
    json_canonical(up, &a);
    json_canonical(down, &b);
    assert_string_equal(buf_str(&a), buf_str(&b));
    json_decref(up);
    json_decref(down);
}

static void
canonical_bytes_parse_to_themselves(void **state)
{
    static const char text[] =
        "{\"a\":[{\"x\":[[],{},\"\"]},-1],\"b\":{\"c\":null,\"d\":true}}";

    (void)state;
    canonical_is(text, text);
}

static void
pretty_keeps_the_order_and_indents(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    json_t *v = parsed("{\"b\":[1,{\"x\":[]}],\"a\":{}}");

    (void)state;
    buf_init(&b, 1000);
    json_pretty(v, &b);
    assert_string_equal(
        buf_str(&b), "{\n"
                     "  \"b\": [\n"
                     "    1,\n"
                     "    {\n"
                     "      \"x\": []\n"
                     "    }\n"
                     "  ],\n"
                     "  \"a\": {}\n"
                     "}\n");
    json_decref(v);
}

static void
dump_obeys_the_maximum_of_the_buffer(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    json_t *v = parsed("[1,2,3,4,5]");

    (void)state;
    buf_init(&b, 5);
    json_canonical(v, &b);
    assert_int_equal(buf_status(&b, NULL), ERR_LIMIT);
    json_decref(v);
}

static void
readers_return_values(void **state)
{
    json_t *v = parsed("{\"s\":\"x\",\"i\":5,\"b\":true,\"n\":null}");
    const char *s = NULL;
    int64_t i = 0;
    bool b = false;
    struct error e;

    (void)state;
    assert_int_equal(json_get_str(v, "s", &s, &e), ERR_OK);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_int(v, "i", 5, 5, &i, &e), ERR_OK);
    assert_int_equal(i, 5);
    assert_int_equal(json_get_bool(v, "b", &b, &e), ERR_OK);
    assert_true(b);
    i = 0;
    b = false;
    assert_int_equal(json_opt_str(v, "s", &s, &e), ERR_OK);
    assert_int_equal(json_opt_int(v, "i", 0, 9, &i, &e), ERR_OK);
    assert_int_equal(i, 5);
    assert_int_equal(json_opt_bool(v, "b", &b, &e), ERR_OK);
    assert_true(b);
    json_decref(v);
}

static void
optional_readers_leave_absent_and_null_alone(void **state)
{
    json_t *v = parsed("{\"n\":null}");
    const char *s = "kept";
    int64_t i = 7;
    bool b = true;
    struct error e;

    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *key = k == 0 ? "n" : "absent";

        assert_int_equal(json_opt_str(v, key, &s, &e), ERR_OK);
        assert_int_equal(json_opt_int(v, key, 0, 1, &i, &e), ERR_OK);
        assert_int_equal(json_opt_bool(v, key, &b, &e), ERR_OK);
    }
    assert_string_equal(s, "kept");
    assert_int_equal(i, 7);
    assert_true(b);
    json_decref(v);
}

static void
readers_name_the_key_that_is_wrong(void **state)
{
    json_t *v = parsed("{\"x\":[],\"i\":5,\"n\":null}");
    const char *s = "kept";
    int64_t i = 7;
    bool b = true;
    struct error e;

    (void)state;
    assert_int_equal(json_get_str(v, "x", &s, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "\"x\" is not a string");
    assert_int_equal(json_get_int(v, "x", 0, 9, &i, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "\"x\" is not an integer");
    assert_int_equal(json_opt_bool(v, "x", &b, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "\"x\" is not true or false");
    assert_int_equal(json_get_str(v, "gone", &s, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "\"gone\" is missing");
    assert_int_equal(json_get_bool(v, "n", &b, &e), ERR_SYNTAX);
    assert_int_equal(json_get_int(v, "i", 6, 9, &i, &e), ERR_INVALID);
    assert_string_equal(e.msg, "\"i\" is 5, not within 6 to 9");
    assert_int_equal(json_opt_int(v, "i", 0, 4, &i, &e), ERR_INVALID);
    assert_int_equal(json_get_int(json_object_get(v, "x"), "i", 0, 9, &i, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "expected an object with \"i\"");
    assert_int_equal(json_get_str(NULL, "x", &s, &e), ERR_SYNTAX);
    assert_string_equal(s, "kept");
    assert_int_equal(i, 7);
    json_decref(v);
}

static void
unknown_keys_are_named(void **state)
{
    static const char *const keys[] = {"a", "b", NULL};
    json_t *good = parsed("{\"b\":1}");
    json_t *bad = parsed("{\"b\":1,\"c\":1,\"d\":1}");
    json_t *array = parsed("[]");
    struct error e;

    (void)state;
    assert_int_equal(json_only_keys(good, keys, &e), ERR_OK);
    assert_int_equal(json_only_keys(bad, keys, &e), ERR_SYNTAX);
    assert_string_equal(e.msg, "\"c\" is not known here");
    assert_int_equal(json_only_keys(array, keys, &e), ERR_SYNTAX);
    json_decref(good);
    json_decref(bad);
    json_decref(array);
}

static void
dumping_what_is_not_of_the_model_aborts(void **state)
{
    (void)state;
    self_aborts("real", "!json_is_real(v)");
    self_aborts("deep", "d->depth < DUMP_MAX_DEPTH");
}

static int
child(const char *how)
{
    struct buf b;
    json_t *v = json_real(1.5);

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 65 && strcmp(how, "deep") == 0; i++) {
        json_t *outer = json_array();

        (void)json_array_append_new(outer, i == 0 ? json_null() : v);
        v = outer;
    }
    json_canonical(v, &b);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_value_is_a_text),
        cmocka_unit_test(rejects_what_is_not_json),
        cmocka_unit_test(rejects_trailing_bytes),
        cmocka_unit_test(rejects_duplicate_keys),
        cmocka_unit_test(rejects_nul_in_text_strings_and_keys),
        cmocka_unit_test(rejects_invalid_utf8),
        cmocka_unit_test(accepts_integers_that_all_readers_agree_on),
        cmocka_unit_test(rejects_real_numbers),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(a_short_text_does_not_become_very_many_values),
        cmocka_unit_test(errors_name_line_and_column_in_characters),
        cmocka_unit_test(errors_quote_no_odd_bytes),
        cmocka_unit_test(canonical_sorts_by_code_point),
        cmocka_unit_test(canonical_escapes_only_what_must_be),
        cmocka_unit_test(canonical_does_not_depend_on_the_order_of_insertion),
        cmocka_unit_test(canonical_bytes_parse_to_themselves),
        cmocka_unit_test(pretty_keeps_the_order_and_indents),
        cmocka_unit_test(dump_obeys_the_maximum_of_the_buffer),
        cmocka_unit_test(readers_return_values),
        cmocka_unit_test(optional_readers_leave_absent_and_null_alone),
        cmocka_unit_test(readers_name_the_key_that_is_wrong),
        cmocka_unit_test(unknown_keys_are_named),
        cmocka_unit_test(dumping_what_is_not_of_the_model_aborts),
    };

    return argc > 1 ? child(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
