/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/session.h"
#include "store/sessions.h"

struct fixture {
    int64_t now_ms;
    int64_t wall_shift_ms;
    struct clock clock;
    struct tunables tunables;
    struct sessions *s;
};

static int64_t
now(void *ctx)
{
    const struct fixture *f = ctx;

    return f->now_ms;
}

static int64_t
wall(void *ctx)
{
    const struct fixture *f = ctx;

    return f->now_ms + f->wall_shift_ms;
}

static int
set_up(void **state)
{
    static struct fixture f;

    f.now_ms = 1796000000000;
    f.wall_shift_ms = 0;
    f.clock = (struct clock){now, wall, &f};
    tunables_default(&f.tunables);
    f.s = sessions_new(&f.clock, &f.tunables);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    sessions_free(f->s);
    return 0;
}

static struct hash
token_of(int n)
{
    return sha256(&n, sizeof n);
}

static void
add(struct fixture *f, int n, const char *admin)
{
    struct session_row row = {
        .token = token_of(n), .created_ms = f->now_ms, .used_ms = f->now_ms};

    (void)snprintf(row.admin, sizeof row.admin, "%s", admin);
    (void)snprintf(row.csrf, sizeof row.csrf, "csrf%d", n);
    sessions_add(f->s, &row);
}

static bool
is_open(struct fixture *f, int n)
{
    struct hash token = token_of(n);
    struct session_row row;
    bool store;

    return sessions_use(f->s, &token, &row, &store);
}

static void
a_session_is_found_by_its_token(void **state)
{
    struct fixture *f = *state;
    struct hash token = token_of(2);
    struct session_row row;
    bool store = true;

    add(f, 1, "maria");
    add(f, 2, "otto");
    assert_true(sessions_use(f->s, &token, &row, &store));
    assert_string_equal(row.admin, "otto");
    assert_string_equal(row.csrf, "csrf2");
    assert_false(store);
    assert_false(is_open(f, 3));
}

static void
use_keeps_it_open_up_to_its_longest_life(void **state)
{
    struct fixture *f = *state;
    int64_t end_ms = f->now_ms + f->tunables.session_max_ms;

    add(f, 1, "maria");
    while (f->now_ms + f->tunables.session_idle_ms < end_ms) {
        f->now_ms += f->tunables.session_idle_ms;
        assert_true(is_open(f, 1));
    }
    f->now_ms = end_ms;
    assert_true(is_open(f, 1));
    f->now_ms++;
    assert_false(is_open(f, 1));
}

static void
idle_too_long_ends_it(void **state)
{
    struct fixture *f = *state;
    struct hash first = token_of(1);
    struct hash token;

    add(f, 1, "maria");
    f->now_ms += f->tunables.session_idle_ms + 1;
    add(f, 2, "maria");
    assert_false(is_open(f, 1));
    assert_true(sessions_drop(f->s, &token));
    assert_true(hash_equal(&token, &first));
    assert_false(sessions_drop(f->s, &token));
    assert_true(is_open(f, 2));
}

static void
a_clock_that_is_set_back_extends_nothing(void **state)
{
    struct fixture *f = *state;

    add(f, 1, "maria");
    f->wall_shift_ms = -86400 * (int64_t)1000;
    assert_true(is_open(f, 1));
    add(f, 2, "maria");
    f->now_ms += f->tunables.session_idle_ms + 1;
    assert_false(is_open(f, 1));
    assert_false(is_open(f, 2));
}

static void
one_from_the_future_is_over(void **state)
{
    struct fixture *f = *state;
    struct session_row row = {
        .token = token_of(1), .created_ms = f->now_ms + 60000, .used_ms = f->now_ms + 60000};
    struct hash token;

    sessions_add(f->s, &row);
    assert_false(is_open(f, 1));
    f->now_ms += 120000;
    assert_false(is_open(f, 1));
    assert_true(sessions_drop(f->s, &token));
}

static void
last_use_is_worth_storing_once_a_minute(void **state)
{
    struct fixture *f = *state;
    struct hash token = token_of(1);
    struct session_row row;
    bool store = true;

    add(f, 1, "maria");
    f->now_ms += SESSIONS_STORE_USE_MS - 1;
    assert_true(sessions_use(f->s, &token, &row, &store));
    assert_false(store);
    f->now_ms += 1;
    assert_true(sessions_use(f->s, &token, &row, &store));
    assert_true(store);
    assert_int_equal(row.used_ms, f->now_ms);
    assert_true(sessions_use(f->s, &token, &row, &store));
    assert_false(store);
}

static void
sessions_end_one_by_one_or_all_of_an_administrator(void **state)
{
    struct fixture *f = *state;
    struct hash token = token_of(1);

    add(f, 1, "maria");
    add(f, 2, "maria");
    add(f, 3, "otto");
    add(f, 4, "maria");
    sessions_remove(f->s, &token);
    sessions_remove(f->s, &token);
    assert_false(is_open(f, 1));
    assert_true(is_open(f, 2));
    sessions_remove_admin(f->s, "maria");
    assert_false(is_open(f, 2));
    assert_false(is_open(f, 4));
    assert_true(is_open(f, 3));
    assert_int_equal(sessions_count(f->s), 1);
}

static void
of_too_many_the_one_not_used_for_longest_goes(void **state)
{
    struct fixture *f = *state;
    struct hash token;
    struct hash first = token_of(0);

    for (int i = 0; i < SESSIONS_MAX; i++) {
        add(f, i, "maria");
        f->now_ms++;
    }
    assert_false(sessions_drop(f->s, &token));
    add(f, SESSIONS_MAX, "maria");
    assert_true(sessions_drop(f->s, &token));
    assert_true(hash_equal(&token, &first));
    assert_false(sessions_drop(f->s, &token));
}

static void
asking_whether_it_lives_does_not_keep_it_alive(void **state)
{
    struct fixture *f = *state;
    struct hash token = token_of(1);

    add(f, 1, "maria");
    for (int64_t at_ms = 0; at_ms < f->tunables.session_idle_ms; at_ms += 60000) {
        assert_true(sessions_alive(f->s, &token));
        f->now_ms += 60000;
    }
    f->now_ms += 60000;
    assert_false(sessions_alive(f->s, &token));
}

static void
unlocked_until_it_is_not_used_or_nobody_may_be(void **state)
{
    struct fixture *f = *state;
    struct hash one = token_of(1);
    struct hash other = token_of(2);

    assert_false(sessions_unlock(f->s, &one, true));
    add(f, 1, "maria");
    add(f, 2, "otto");
    assert_false(sessions_unlocked(f->s, &one));
    assert_true(sessions_unlock(f->s, &one, true));
    assert_false(sessions_unlocked(f->s, &other));
    for (int i = 0; i < 3; i++) {
        f->now_ms += f->tunables.unlock_idle_ms - 1;
        assert_true(sessions_unlocked(f->s, &one));
    }
    f->now_ms += f->tunables.unlock_idle_ms;
    assert_false(sessions_unlocked(f->s, &one));
    assert_true(sessions_unlock(f->s, &one, true));
    assert_true(sessions_unlock(f->s, &other, true));
    sessions_lock_all(f->s);
    assert_false(sessions_unlocked(f->s, &one));
    assert_false(sessions_unlocked(f->s, &other));
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(a_session_is_found_by_its_token),
        WITH(use_keeps_it_open_up_to_its_longest_life),
        WITH(idle_too_long_ends_it),
        WITH(a_clock_that_is_set_back_extends_nothing),
        WITH(one_from_the_future_is_over),
        WITH(asking_whether_it_lives_does_not_keep_it_alive),
        WITH(last_use_is_worth_storing_once_a_minute),
        WITH(sessions_end_one_by_one_or_all_of_an_administrator),
        WITH(of_too_many_the_one_not_used_for_longest_goes),
        WITH(unlocked_until_it_is_not_used_or_nobody_may_be),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
