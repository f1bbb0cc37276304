/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/regex.h"
#include "model/probe_text.h"

static struct text
text_of(const char *s)
{
    return (struct text){s, (uint32_t)strlen(s)};
}

static void
escapes_stand_for_bytes(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"PING\\r\\n", "PING\r\n"},
        {"\\t\\\\\\x41\\xfF\\x0a", "\t\\A\xff\n"},
        {"a \"'#$HOME %[src] \xc3\xbc", "a \"'#$HOME %[src] \xc3\xbc"},
        {"\\\\r", "\\r"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_fini) struct buf out;
        struct error e;

        buf_init(&out, 100);
        assert_int_equal(probe_text_check(text_of(cases[i].in), &e), ERR_OK);
        probe_text_put(&out, text_of(cases[i].in));
        assert_string_equal(buf_str(&out), cases[i].out);
    }
}

static void
what_stands_for_nothing_is_refused(void **state)
{
    static const char *const bad[] = {"\\",  "a\\",  "\\q",   "\\R",
                                      "\\x", "\\x4", "\\xg0", "\\x0g"};
    struct error e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(probe_text_check(text_of(bad[i]), &e), ERR_INVALID);
        assert_non_null(strstr(e.msg, "two hexadecimal digits"));
    }
    assert_int_equal(probe_text_check(text_of("a\\x00"), &e), ERR_INVALID);
    assert_non_null(strstr(e.msg, "a byte 0"));
}

static void
hexadecimal_has_two_digits_a_byte(void **state)
{
    static const char *const bad[] = {"", "0", "000", "0g", "00 11", "0x00"};
    struct error e;

    (void)state;
    assert_int_equal(probe_text_check_hex(text_of("00ffAb"), &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(probe_text_check_hex(text_of(bad[i]), &e), ERR_INVALID);
    }
}

static void
patterns_are_those_of_pcre(void **state)
{
    static const char *const good[] = {"",      "a.b",  "^(?:a|b)+?\\d{2,}$",
                                       "(?i)x", "\xff", "\\xff"};
    static const char *const bad[] = {"(", "a)", "[", "*", "a{2,1}", "(?<n", "\\", "(?P>x)"};
    struct error e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(regex_check(good[i], strlen(good[i]), &e), ERR_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(regex_check(bad[i], strlen(bad[i]), &e), ERR_INVALID);
        assert_non_null(strstr(e.msg, "at character "));
    }
}

static void
patterns_are_found_in_bytes_within_a_limit(void **state)
{
    static const char slow[] = "^(a+)+$";
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaX";

    static const char wide[] = ".{0,600}.{0,600}[xy]";
    static char body[16000];

    (void)state;
    /* Below PCRE2's limit at each start: without one over all it is a matter of minutes. */
    memset(body, 'a', sizeof body);
    assert_false(regex_found(wide, strlen(wide), body, sizeof body));
    assert_true(regex_found("a{9000}", 7, body, sizeof body));
    assert_true(regex_found("b\\x00.", 6, "ab\0c", 4));
    assert_true(regex_found("", 0, "", 0));
    assert_false(regex_found("^b", 2, "ab", 2));
    assert_true(regex_found(slow, strlen(slow), "aaa", 3));
    assert_false(regex_found(slow, strlen(slow), text, strlen(text)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_stand_for_bytes),
        cmocka_unit_test(what_stands_for_nothing_is_refused),
        cmocka_unit_test(hexadecimal_has_two_digits_a_byte),
        cmocka_unit_test(patterns_are_those_of_pcre),
        cmocka_unit_test(patterns_are_found_in_bytes_within_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
