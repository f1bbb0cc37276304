/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/quote.h"

typedef void (*quote_fn)(struct buf *out, struct text t);

struct row {
    const char *in;
    const char *out;
};

static void
check(quote_fn fn, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf CLEANUP(buf_fini) b;

        buf_init(&b, 1000);
        fn(&b, quote_text(rows[i].in));
        assert_string_equal(buf_str(&b), rows[i].out);
    }
}

static void
words_without_special_bytes_stay_bare(void **state)
{
    static const struct row rows[] = {
        {"web1", "web1"},
        {"200-399,404", "200-399,404"},
        {"/a/b_c.d~e%20f", "/a/b_c.d~e%20f"},
        {"[::1]:80", "\"[::1]:80\""},
        {"*.x.test:8080", "*.x.test:8080"},
    };

    (void)state;
    check(quote_word, rows, ARRAY_LEN(rows));
}

static void
words_cannot_leave_their_quotes(void **state)
{
    static const struct row rows[] = {
        {"", "\"\""},
        {"a b", "\"a b\""},
        {"a\"b", "\"a\\\"b\""},
        {"a'b", "\"a'b\""},
        {"a\\b", "\"a\\\\b\""},
        {"a#b", "\"a#b\""},
        {"$HOME", "\"\\$HOME\""},
        {"${X}", "\"\\${X}\""},
        {"%[src]", "\"%[src]\""},
        {"{};!&|<>()", "\"{};!&|<>()\""},
        {"\\\"", "\"\\\\\\\"\""},
        {"\xc3\xbc", "\"\xc3\xbc\""},
    };

    (void)state;
    check(quote_word, rows, ARRAY_LEN(rows));
}

static void
words_hold_no_line_end_or_control_byte(void **state)
{
    static const struct row rows[] = {
        {"x\n    http-request deny", "\"x\\x0a    http-request deny\""},
        {"\r\t\x01\x1f\x7f", "\"\\x0d\\x09\\x01\\x1f\\x7f\""},
    };

    (void)state;
    check(quote_word, rows, ARRAY_LEN(rows));
}

static void
formats_show_a_percent_sign_as_it_is(void **state)
{
    static const struct row rows[] = {
        {"app.x.test:80", "app.x.test:80"}, {"50%", "\"50%%\""}, {"%[src]", "\"%%[src]\""},
        {"%%{+Q}o$H", "\"%%%%{+Q}o\\$H\""}, {"", "\"\""},        {"a\nb", "\"a\\x0ab\""},
    };

    (void)state;
    check(quote_format, rows, ARRAY_LEN(rows));
}

static void
html_shows_markup_as_text(void **state)
{
    static const struct row rows[] = {
        {"plain \xc3\xbc", "plain \xc3\xbc"},
        {"<script>&\"'</script>", "&lt;script&gt;&amp;&quot;&#39;&lt;/script&gt;"},
        {"", ""},
    };

    (void)state;
    check(quote_html, rows, ARRAY_LEN(rows));
}

/* What HAProxy's manual, "Quoting and escaping", gives a meaning, and what is no ASCII. */
static void
only_bytes_without_a_meaning_stand_bare(void **state)
{
    static const char without[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "%*+,-./:=@_~";

    (void)state;
    for (int c = 1; c < 256; c++) {
        const char word[] = {'a', (char)c, 'z', '\0'};
        struct buf CLEANUP(buf_fini) b;

        buf_init(&b, 100);
        quote_word(&b, quote_text(word));
        assert_int_equal(buf_str(&b)[0] != '"', strchr(without, c) != NULL);
    }
}

static void
plain_is_printable_ascii_without_space(void **state)
{
    static const char *const no[] = {"", "a b", "a\tb", "a\nb", "\x7f", "\xc3\xbc", " "};

    (void)state;
    assert_true(quote_is_plain(quote_text("/a/b~!$&'()*+,;=:@%20")));
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        assert_false(quote_is_plain(quote_text(no[i])));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_without_special_bytes_stay_bare),
        cmocka_unit_test(words_cannot_leave_their_quotes),
        cmocka_unit_test(words_hold_no_line_end_or_control_byte),
        cmocka_unit_test(formats_show_a_percent_sign_as_it_is),
        cmocka_unit_test(html_shows_markup_as_text),
        cmocka_unit_test(only_bytes_without_a_meaning_stand_bare),
        cmocka_unit_test(plain_is_printable_ascii_without_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
