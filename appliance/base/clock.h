/* SPDX-License-Identifier: Apache-2.0 */
/* Time: one injectable clock, so that tests can move it. */
#ifndef LOCKSTEP_BASE_CLOCK_H
#define LOCKSTEP_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*mono_ms)(void *ctx); /* milliseconds, monotonic (CLOCK_BOOTTIME) */
    int64_t (*wall_ms)(void *ctx); /* milliseconds since 1970-01-01T00:00:00Z */
    void *ctx;
};

extern const struct clock clock_system;
/* The same, but its wall clock is *ahead_ms ahead. */
struct clock clock_ahead(int64_t *ahead_ms);

int64_t clock_mono_ms(const struct clock *c);
int64_t clock_wall_ms(const struct clock *c);
#endif
