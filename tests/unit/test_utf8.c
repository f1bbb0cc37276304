/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/utf8.h"

static void
accepts_every_scalar_value_and_only_those(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x200000; c++) {
        char s[4];
        size_t n;
        uint32_t got = 0;
        size_t want;

        if (c < 0x80) {
            s[0] = (char)c;
            n = 1;
        } else if (c < 0x800) {
            s[0] = (char)(0xc0 | c >> 6);
            s[1] = (char)(0x80 | (c & 63));
            n = 2;
        } else if (c < 0x10000) {
            s[0] = (char)(0xe0 | c >> 12);
            s[1] = (char)(0x80 | (c >> 6 & 63));
            s[2] = (char)(0x80 | (c & 63));
            n = 3;
        } else {
            s[0] = (char)(0xf0 | c >> 18);
            s[1] = (char)(0x80 | (c >> 12 & 63));
            s[2] = (char)(0x80 | (c >> 6 & 63));
            s[3] = (char)(0x80 | (c & 63));
            n = 4;
        }
        want = (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff ? 0 : n;
        assert_int_equal(utf8_decode(s, n, &got), want);
        if (want > 0) {
            assert_int_equal(got, c);
            assert_int_equal(utf8_decode(s, n - 1, &got), 0);
        }
    }
}

static void
rejects_broken_sequences(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* continuation alone */
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* over U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3",
        "\xc3(",
        "\xe2\x82",
        "\xe2(\xa1",
        "\xf0\x9f\x98",
        "a\xf0\x9f\x98z",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(utf8_valid(bad[i], strlen(bad[i])));
    }
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("a\0b", 3));
    assert_true(utf8_valid("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 10));
}

static bool
control(const char *s, const char *allowed)
{
    return utf8_has_control(s, strlen(s), allowed);
}

static void
finds_control_characters(void **state)
{
    (void)state;
    assert_false(control("plain \xc3\xa9", ""));
    assert_true(control("a\nb", ""));
    assert_true(control("a\x7f", ""));
    assert_true(control("\xc2\x80", ""));
    assert_true(control("\xc2\x9f", ""));
    assert_false(control("\xc2\xa0", ""));
    assert_true(utf8_has_control("a\0b", 3, "\n"));
}

static void
allowed_control_characters_pass(void **state)
{
    (void)state;
    assert_false(control("a\nb\tc", "\n\t"));
    assert_true(control("a\rb", "\n\t"));
    assert_false(control("\x80\x81", ""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_scalar_value_and_only_those),
        cmocka_unit_test(rejects_broken_sequences),
        cmocka_unit_test(finds_control_characters),
        cmocka_unit_test(allowed_control_characters_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
