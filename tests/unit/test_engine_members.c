/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/members.h"
#include "tests/support/engine_lab.h"

static void
pass(struct engine_lab *l, int64_t ms)
{
    l->mono_stands_ms = clock_mono_ms(&clock_system) + ms;
    l->wall_shift_ms = ms;
}

static void
restart(struct engine_lab *l)
{
    engine_lab_close(l);
    engine_lab_start(l);
}

/* The key before. */
static struct member
make_another(struct engine_lab *l)
{
    struct member before;

    members_self(l->en, &before);
    assert_int_equal(members_new_key(l->en, &l->error), ERR_OK);
    return before;
}

static void
assert_taken(struct engine_lab *l, const struct member *former, bool taken)
{
    struct member self;

    members_self(l->en, &self);
    assert_string_not_equal(self.key, former->key);
    assert_true(members_is_key(l->en, self.key));
    assert_int_equal(members_is_key(l->en, former->key), taken);
}

static void
the_former_key_is_taken_for_its_time(void **state)
{
    struct engine_lab *l = *state;
    struct member former = make_another(l);
    int64_t for_ms = l->tunables.former_key_ms;

    assert_taken(l, &former, true);
    pass(l, for_ms - 5000);
    assert_taken(l, &former, true);
    pass(l, for_ms + 5000);
    assert_taken(l, &former, false);
}

static void
a_restart_neither_ends_nor_lengthens_that(void **state)
{
    struct engine_lab *l = *state;
    struct member former = make_another(l);
    int64_t for_ms = l->tunables.former_key_ms;

    restart(l);
    assert_taken(l, &former, true);
    pass(l, for_ms / 2);
    restart(l);
    assert_taken(l, &former, true);
    pass(l, for_ms - 5000);
    assert_taken(l, &former, true);
    pass(l, for_ms + 5000);
    assert_taken(l, &former, false);
    restart(l);
    assert_taken(l, &former, false);
}

static void
while_it_was_down_its_time_went_on(void **state)
{
    struct engine_lab *l = *state;
    struct member former = make_another(l);

    engine_lab_close(l);
    pass(l, l->tunables.former_key_ms + 5000);
    engine_lab_start(l);
    assert_taken(l, &former, false);
}

static void
a_clock_that_was_put_back_does_not_lengthen_it(void **state)
{
    struct engine_lab *l = *state;
    struct member former = make_another(l);

    engine_lab_close(l);
    l->wall_shift_ms = -3600 * (int64_t)1000;
    engine_lab_start(l);
    assert_taken(l, &former, false);
}

static void
only_the_last_one_is_taken(void **state)
{
    struct engine_lab *l = *state;
    struct member first = make_another(l);
    struct member second = make_another(l);

    for (int i = 0; i < 2; i++) {
        assert_taken(l, &first, false);
        assert_taken(l, &second, true);
        restart(l);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(the_former_key_is_taken_for_its_time),
        ENGINE_LAB_TEST(a_restart_neither_ends_nor_lengthens_that),
        ENGINE_LAB_TEST(while_it_was_down_its_time_went_on),
        ENGINE_LAB_TEST(a_clock_that_was_put_back_does_not_lengthen_it),
        ENGINE_LAB_TEST(only_the_last_one_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
