/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

static void
every_code_has_name_and_status(void **state)
{
    (void)state;
#define CHECK_ROW(code, lower, status)                                                         \
    assert_string_equal(error_name(ERR_##code), #lower);                                       \
    assert_int_equal(error_http_status(ERR_##code), status);
    ERR_LIST(CHECK_ROW)
#undef CHECK_ROW
}

static void
names_are_the_codes_in_lower_case(void **state)
{
#define CODE_NAME(code, lower, status) #code,
    static const char *const upper[] = {ERR_LIST(CODE_NAME)};
#undef CODE_NAME

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(upper); i++) {
        assert_int_equal(strcasecmp(error_name((err_t)i), upper[i]), 0);
        for (const char *p = error_name((err_t)i); *p != '\0'; p++) {
            assert_false(isupper((unsigned char)*p));
        }
    }
}

static void
set_fills_code_and_message(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(error_set(&e, ERR_BUSY, "%s %d", "pool", 7), ERR_BUSY);
    assert_int_equal(e.code, ERR_BUSY);
    assert_string_equal(e.msg, "pool 7");
}

static void
set_without_record_returns_the_code(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, ERR_LIMIT, "%d", 1), ERR_LIMIT);
    assert_int_equal(error_errno(NULL, ERR_IO, ENOENT, "%d", 1), ERR_IO);
}

static void
errno_text_is_appended(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(error_errno(&e, ERR_IO, ENOSPC, "cannot write %s", "a"), ERR_IO);
    assert_string_equal(e.msg, "cannot write a: No space left on device");
    (void)error_errno(&e, ERR_IO, 99999, "x");
    assert_string_equal(e.msg, "x: unknown error");
}

static void
wrap_prefixes_and_keeps_the_code(void **state)
{
    struct error e;

    (void)state;
    (void)error_set(&e, ERR_DENIED, "no");
    assert_int_equal(error_wrap(&e, "node %d", 2), ERR_DENIED);
    assert_int_equal(e.code, ERR_DENIED);
    assert_string_equal(e.msg, "node 2: no");
}

static void
arguments_may_be_the_message_itself(void **state)
{
    struct error e;

    (void)state;
    (void)error_set(&e, ERR_IO, "inner");
    (void)error_set(&e, ERR_CORRUPT, "outer %s", e.msg);
    assert_string_equal(e.msg, "outer inner");
}

/* A message of fill times 'a', a two-byte and a four-byte character, and more. */
static void
cut_message(struct error *e, int fill)
{
    (void)error_set(
        e, ERR_IO, "%.*s%s%s%s", fill,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "\xc3\xa9", "\xf0\x9f\x98\x80", "zzzzzzzzzz");
}

static void
long_message_is_cut_at_a_character(void **state)
{
    (void)state;
    for (int fill = 225; fill <= 242; fill++) {
        struct error e;
        size_t len;

        cut_message(&e, fill);
        len = strlen(e.msg);
        assert_true(len < ERROR_MSG_BYTES);
        assert_true(len >= ERROR_MSG_BYTES - 4);
        assert_true(utf8_valid(e.msg, len));
    }
}

static void
wrapping_a_full_message_cuts_its_end(void **state)
{
    (void)state;
    for (int context = 0; context < 8; context++) {
        struct error e;

        cut_message(&e, 228);
        (void)error_wrap(&e, "%.*s", context, "contexts");
        assert_true(strlen(e.msg) < ERROR_MSG_BYTES);
        assert_true(utf8_valid(e.msg, strlen(e.msg)));
        assert_memory_equal(e.msg, "contexts", (size_t)context);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_name_and_status),
        cmocka_unit_test(names_are_the_codes_in_lower_case),
        cmocka_unit_test(set_fills_code_and_message),
        cmocka_unit_test(set_without_record_returns_the_code),
        cmocka_unit_test(errno_text_is_appended),
        cmocka_unit_test(wrap_prefixes_and_keeps_the_code),
        cmocka_unit_test(arguments_may_be_the_message_itself),
        cmocka_unit_test(long_message_is_cut_at_a_character),
        cmocka_unit_test(wrapping_a_full_message_cuts_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
