/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/clock.h"

static int64_t
fake_mono(void *ctx)
{
    const int64_t *now = ctx;

    return *now;
}

static int64_t
fake_wall(void *ctx)
{
    const int64_t *now = ctx;

    return *now + 1000;
}

static void
reads_the_clock_that_it_is_given(void **state)
{
    int64_t now = 5;
    struct clock c = {fake_mono, fake_wall, &now};

    (void)state;
    assert_int_equal(clock_mono_ms(&c), 5);
    assert_int_equal(clock_wall_ms(&c), 1005);
    now = 6;
    assert_int_equal(clock_mono_ms(&c), 6);
}

static void
system_clock_agrees_with_the_system(void **state)
{
    struct timespec before;
    struct timespec after;
    int64_t mono = clock_mono_ms(&clock_system);
    int64_t wall;

    (void)state;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
    wall = clock_wall_ms(&clock_system);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &after), 0);
    assert_true(wall >= before.tv_sec * 1000);
    assert_true(wall <= (after.tv_sec + 1) * 1000);
    assert_true(mono > 0);
    assert_true(clock_mono_ms(&clock_system) >= mono);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_clock_that_it_is_given),
        cmocka_unit_test(system_clock_agrees_with_the_system),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
