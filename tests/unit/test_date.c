/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/date.h"

static void
formats_known_times(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {4107456000000, "2100-02-28T00:00:00.000Z"},
        {1796000000123, "2026-11-30T00:53:20.123Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[DATE_TEXT_BYTES];

        date_format(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Both ends of days from year 0 to 9999, with the C library as the judge. */
static void
formats_as_the_c_library_does(void **state)
{
    (void)state;
    for (int64_t day = -719528; day <= 2932896; day += 3) {
        int64_t s = day * 86400 + (day % 2 == 0 ? 0 : 86399);
        time_t t = (time_t)s;
        char text[DATE_TEXT_BYTES];
        char want[64];
        struct tm tm;

        date_format(s * 1000 + 7, text);
        assert_non_null(gmtime_r(&t, &tm));
        (void)snprintf(
            want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d.007Z", tm.tm_year + 1900,
            tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_string_equal(text, want);
    }
}

static void
lengths_have_the_largest_unit_that_fits(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {{0, "0s"},    {1, "1s"},    {59, "59s"},   {60, "1m"},      {90, "90s"},
                {900, "15m"}, {3600, "1h"}, {5400, "90m"}, {604800, "168h"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_fini) struct buf text;

        buf_init(&text, 32);
        date_put_length(&text, rows[i].seconds);
        assert_string_equal(buf_str(&text), rows[i].text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_known_times),
        cmocka_unit_test(formats_as_the_c_library_does),
        cmocka_unit_test(lengths_have_the_largest_unit_that_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
