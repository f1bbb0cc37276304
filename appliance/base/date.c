/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

#define MS_PER_DAY  ((int64_t)86400000)
#define WALL_MIN_MS ((int64_t)-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define WALL_MAX_MS ((int64_t)253402300799999) /* 9999-12-31T23:59:59.999Z */

static char *
put_digits(char *out, int64_t v, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + v % 10);
        v /= 10;
    }
    return out + width;
}

void
date_format(int64_t wall_ms, char *out)
{
    int64_t day;
    int64_t ms;
    int64_t era_day;
    int64_t era_year;
    int64_t year_day;
    int64_t march_month;
    int64_t month;
    int64_t year;

    if (wall_ms < WALL_MIN_MS) {
        wall_ms = WALL_MIN_MS;
    } else if (wall_ms > WALL_MAX_MS) {
        wall_ms = WALL_MAX_MS;
    }
    /* Proleptic Gregorian calendar counted from 1 March of year 0, where the leap day is the
     * last of its year: 719468 days before 1970-01-01, 146097 days in 400 years. Shifted by
     * one more period, so that year 0 does not divide negative numbers. */
    day = (wall_ms - WALL_MIN_MS) / MS_PER_DAY - 60 + 146097;
    ms = (wall_ms - WALL_MIN_MS) % MS_PER_DAY;
    era_day = day % 146097;
    era_year = (era_day - era_day / 1460 + era_day / 36524 - era_day / 146096) / 365;
    year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    march_month = (5 * year_day + 2) / 153;
    month = march_month < 10 ? march_month + 3 : march_month - 9;
    year = era_year + (day / 146097 - 1) * 400 + (month <= 2 ? 1 : 0);

    out = put_digits(out, year, 4);
    *out++ = '-';
    out = put_digits(out, month, 2);
    *out++ = '-';
    out = put_digits(out, year_day - (153 * march_month + 2) / 5 + 1, 2);
    *out++ = 'T';
    out = put_digits(out, ms / 3600000, 2);
    *out++ = ':';
    out = put_digits(out, ms / 60000 % 60, 2);
    *out++ = ':';
    out = put_digits(out, ms / 1000 % 60, 2);
    *out++ = '.';
    out = put_digits(out, ms % 1000, 3);
    *out++ = 'Z';
    *out = '\0';
}

void
date_put_length(struct buf *out, int64_t seconds)
{
    if (seconds == 0 || seconds % 60 != 0) {
        buf_printf(out, "%llds", (long long)seconds);
    } else if (seconds % 3600 != 0) {
        buf_printf(out, "%lldm", (long long)seconds / 60);
    } else {
        buf_printf(out, "%lldh", (long long)seconds / 3600);
    }
}
