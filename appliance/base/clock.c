/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#include "base/attr.h"

static int64_t
read_clock(clockid_t id)
{
    struct timespec ts;

    ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t
system_mono_ms(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_BOOTTIME);
}

static int64_t
system_wall_ms(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

const struct clock clock_system = {system_mono_ms, system_wall_ms, NULL};

static int64_t
ahead_wall_ms(void *ctx)
{
    const int64_t *ahead_ms = ctx;

    return system_wall_ms(NULL) + *ahead_ms;
}

struct clock
clock_ahead(int64_t *ahead_ms)
{
    return (struct clock){system_mono_ms, ahead_wall_ms, ahead_ms};
}

int64_t
clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c->ctx);
}

int64_t
clock_wall_ms(const struct clock *c)
{
    return c->wall_ms(c->ctx);
}
