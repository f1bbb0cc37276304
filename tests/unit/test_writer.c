/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "render/writer.h"

static void
check_int(int64_t v, size_t room)
{
    struct buf CLEANUP(buf_fini) b;
    char wanted[32];

    (void)snprintf(wanted, sizeof wanted, "x%" PRId64, v);
    buf_init(&b, 1000);
    assert_true(buf_reserve(&b, room));
    buf_putc(&b, 'x');
    writer_put_int(&b, v);
    assert_string_equal(buf_str(&b), wanted);
    assert_int_equal(b.len, strlen(wanted));
}

static void
numbers_are_decimal_at_every_length(void **state)
{
    static const int64_t others[] = {
        INT64_MIN, -1, UINT32_MAX, (int64_t)UINT32_MAX + 1, INT64_MAX};
    int64_t power = 1;

    (void)state;
    for (int digits = 1; digits <= 12; digits++, power *= 10) {
        for (int64_t v = power - 2; v <= power + 2; v++) {
            check_int(v, 1);
            check_int(v, 500);
        }
        check_int(power * 7 + power / 3, 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_int(others[i], 1);
    }
}

static void
durations_are_written_as_people_do(void **state)
{
    static const struct {
        int64_t ms;
        const char *out;
    } rows[] = {
        {0, "0ms"},        {1, "1ms"},     {1500, "1500ms"}, {1000, "1s"},
        {90000, "90s"},    {60000, "1m"},  {5400000, "90m"}, {3600000, "1h"},
        {86400000, "24h"}, {999, "999ms"}, {61000, "61s"},   {100, "100ms"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf CLEANUP(buf_fini) b;

        buf_init(&b, 100);
        writer_put_ms(&b, rows[i].ms);
        assert_string_equal(buf_str(&b), rows[i].out);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_decimal_at_every_length),
        cmocka_unit_test(durations_are_written_as_people_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
