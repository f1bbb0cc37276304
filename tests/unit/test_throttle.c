/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/throttle.h"

struct fixture {
    int64_t now_ms;
    struct clock clock;
    struct throttle *t;
};

static int64_t
now(void *ctx)
{
    const struct fixture *f = ctx;

    return f->now_ms;
}

static int
set_up(void **state)
{
    static struct fixture f;

    f.now_ms = 1000000;
    f.clock = (struct clock){now, now, &f};
    f.t = throttle_new(&f.clock);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    throttle_free(f->t);
    return 0;
}

static void
allows(struct fixture *f, const char *account, const char *client)
{
    int64_t wait_s = 0;

    assert_true(throttle_try(f->t, account, client, &wait_s));
}

static void
refuses(struct fixture *f, const char *account, const char *client, int64_t wanted_s)
{
    int64_t wait_s = 0;

    assert_false(throttle_try(f->t, account, client, &wait_s));
    assert_int_equal(wait_s, wanted_s);
}

static void
fail_five(struct fixture *f, const char *account, const char *client)
{
    for (int i = 0; i < THROTTLE_FREE; i++) {
        allows(f, account, client);
    }
}

static void
waits_double_after_five_failures_up_to_a_minute(void **state)
{
    static const int64_t waits_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct fixture *f = *state;

    fail_five(f, "maria", "192.0.2.1");
    for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++) {
        refuses(f, "maria", "192.0.2.1", waits_s[i]);
        f->now_ms += waits_s[i] * 1000 - 1;
        refuses(f, "maria", "192.0.2.1", 1);
        f->now_ms += 1;
        allows(f, "maria", "192.0.2.1");
    }
}

static void
other_clients_and_other_accounts_are_not_held_up(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "192.0.2.1");
    refuses(f, "maria", "192.0.2.1", 1);
    allows(f, "maria", "192.0.2.2");
    allows(f, "otto", "192.0.2.1");
}

static void
the_right_password_clears(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "192.0.2.1");
    f->now_ms += 1000;
    allows(f, "maria", "192.0.2.1");
    throttle_clear(f->t, "maria", "192.0.2.1");
    fail_five(f, "maria", "192.0.2.1");
    refuses(f, "maria", "192.0.2.1", 1);
    throttle_clear(f->t, "nobody", "192.0.2.1");
}

static void
many_tries_at_once_are_no_way_around(void **state)
{
    struct fixture *f = *state;
    int allowed = 0;

    /* None of them has failed yet. */
    for (int i = 0; i < 100; i++) {
        int64_t wait_s;

        allowed += throttle_try(f->t, "maria", "192.0.2.1", &wait_s) ? 1 : 0;
    }
    assert_int_equal(allowed, THROTTLE_FREE);
}

static void
an_ipv6_network_counts_as_one_client(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < THROTTLE_FREE; i++) {
        char client[64];

        (void)snprintf(client, sizeof client, "2001:db8:1:2:%d::%d", i, i);
        allows(f, "maria", client);
    }
    refuses(f, "maria", "2001:db8:1:2:ffff::1", 1);
    allows(f, "maria", "2001:db8:1:3::1");
}

static void
a_mapped_address_is_its_ipv4_address(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "::ffff:192.0.2.1");
    refuses(f, "maria", "192.0.2.1", 1);
    allows(f, "maria", "::ffff:192.0.2.2");
}

static void
what_is_no_address_is_a_client_too(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "unix");
    refuses(f, "maria", "unix", 1);
}

static void
failures_are_forgotten_after_an_hour(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "192.0.2.1");
    f->now_ms += (int64_t)THROTTLE_FORGET_S * 1000 + 1;
    fail_five(f, "maria", "192.0.2.1");
    refuses(f, "maria", "192.0.2.1", 1);
}

/* C266 */
static void
a_flood_of_clients_neither_grows_the_table_nor_frees_a_lock(void **state)
{
    struct fixture *f = *state;

    fail_five(f, "maria", "192.0.2.1");
    for (int i = 0; i < 3 * THROTTLE_ENTRIES; i++) {
        char client[64];

        (void)snprintf(client, sizeof client, "10.%d.%d.%d", i >> 16, (i >> 8) & 255, i & 255);
        allows(f, "maria", client);
    }
    assert_int_equal(throttle_count(f->t), THROTTLE_ENTRIES);
    refuses(f, "maria", "192.0.2.1", 1);
}

static void
when_all_are_locked_the_one_that_failed_first_goes(void **state)
{
    struct fixture *f = *state;
    char client[64];

    for (int i = 0; i < THROTTLE_ENTRIES; i++) {
        (void)snprintf(client, sizeof client, "10.0.%d.%d", i >> 8, i & 255);
        fail_five(f, "maria", client);
        f->now_ms += i == 0 ? 1 : 0;
    }
    allows(f, "maria", "192.0.2.1");
    refuses(f, "maria", "10.0.0.1", 1);
    allows(f, "maria", "10.0.0.0");
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(waits_double_after_five_failures_up_to_a_minute),
        WITH(other_clients_and_other_accounts_are_not_held_up),
        WITH(the_right_password_clears),
        WITH(many_tries_at_once_are_no_way_around),
        WITH(an_ipv6_network_counts_as_one_client),
        WITH(a_mapped_address_is_its_ipv4_address),
        WITH(what_is_no_address_is_a_client_too),
        WITH(failures_are_forgotten_after_an_hour),
        WITH(a_flood_of_clients_neither_grows_the_table_nor_frees_a_lock),
        WITH(when_all_are_locked_the_one_that_failed_first_goes),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
