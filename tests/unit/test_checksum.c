/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checksum.h"

static uint64_t
sum_of(const char *s, size_t len, size_t piece)
{
    struct checksum *c = checksum_new();

    for (size_t at = 0; at < len; at += piece) {
        checksum_add(c, s + at, len - at < piece ? len - at : piece);
    }
    return checksum_end(c);
}

/* The value that the XXH3 specification gives for no bytes and seed 0. */
static void
empty_input_has_the_specified_sum(void **state)
{
    (void)state;
    assert_true(sum_of("", 0, 1) == UINT64_C(0x2d06800538d394c2));
}

static void
pieces_do_not_matter_and_bytes_do(void **state)
{
    char text[1000];

    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i % 26);
    }
    uint64_t whole = sum_of(text, sizeof text, sizeof text);
    assert_true(sum_of(text, sizeof text, 7) == whole);
    text[500] ^= 1;
    assert_false(sum_of(text, sizeof text, 7) == whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_input_has_the_specified_sum),
        cmocka_unit_test(pieces_do_not_matter_and_bytes_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
