/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/members.h"
#include "tests/support/engine_lab.h"
#include "tests/support/member_lab.h"

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

/* The n-th other node; gone: since when, or 0. */
static struct member
other(int n, int64_t gone_at_ms)
{
    struct member m = member_lab_of((unsigned)n, 1);

    m.gone = gone_at_ms > 0;
    m.gone_at_ms = gone_at_ms;
    return m;
}

static err_t
hear(struct engine_lab *l, const struct member *m)
{
    struct members_taken unused;

    return members_merge(
        l->en, &(struct members_offer){.items = m, .count = 1, .how = MEMBERS_TOLD}, &unused,
        &l->error);
}

static bool
is_known(struct engine_lab *l, int n)
{
    CLEANUP(member_list_free) struct member_list list = members_get(l->en);
    struct member wanted = other(n, 0);
    bool found = false;

    for (size_t i = 0; i < list.count; i++) {
        found = found || strcmp(list.items[i].id, wanted.id) == 0;
    }
    return found;
}

static void
what_others_say_of_it_lets_it_start_again(void **state)
{
    struct engine_lab *l = *state;
    struct member self, after;

    members_self(l->en, &self);
    self.seq = ((int64_t)1 << 53) - 1;
    assert_int_equal(hear(l, &self), ERR_OK);
    assert_int_equal(members_new_key(l->en, &l->error), ERR_OK);
    restart(l);
    members_self(l->en, &after);
    assert_string_equal(after.id, self.id);
    assert_string_not_equal(after.key, self.key);
}

static void
who_was_forgotten_longest_ago_gives_its_place(void **state)
{
    struct engine_lab *l = *state;
    int last = MEMBERS_MAX + 3;
    struct member m;

    /* In any order; this node is one of them. */
    for (int n = last; n >= 1; n--) {
        m = other(n, 1000 + n);
        assert_int_equal(hear(l, &m), ERR_OK);
    }
    for (int n = 1; n <= last; n++) {
        assert_int_equal(is_known(l, n), n > last - (MEMBERS_MAX - 1));
    }
    m = other(last + 1, 0);
    assert_int_equal(hear(l, &m), ERR_OK);
    assert_true(is_known(l, last + 1));
    assert_false(is_known(l, last - (MEMBERS_MAX - 2)));
    restart(l);
    assert_true(is_known(l, last + 1));
}

static void
no_more_nodes_than_there_may_be(void **state)
{
    struct engine_lab *l = *state;
    struct member m;

    for (int n = 1; n < MEMBERS_MAX; n++) {
        m = other(n, 0);
        assert_int_equal(hear(l, &m), ERR_OK);
    }
    m = other(MEMBERS_MAX, 0);
    assert_int_equal(hear(l, &m), ERR_LIMIT);
    m = other(MEMBERS_MAX, 1000);
    assert_int_equal(hear(l, &m), ERR_OK);
    assert_false(is_known(l, MEMBERS_MAX));
    m = other(1, 1000);
    assert_int_equal(hear(l, &m), ERR_OK);
    m = other(MEMBERS_MAX, 0);
    assert_int_equal(hear(l, &m), ERR_OK);
    assert_true(is_known(l, MEMBERS_MAX));
    assert_false(is_known(l, 1));
}

static void
where_it_was_forgotten_a_joining_node_takes_only_that_first(void **state)
{
    struct engine_lab *l = *state;
    struct member said[] = {other(1, 0), other(2, 0)};
    struct members_offer joins = {
        .items = said, .count = 2, .from = said[0].id, .how = MEMBERS_JOINING};
    struct members_taken unused;
    struct member self;

    members_self(l->en, &self);
    said[1] = self;
    said[1].gone = true;
    said[1].seq = self.seq + 1000;
    assert_int_equal(members_merge(l->en, &joins, &unused, &l->error), ERR_OK);
    members_self(l->en, &said[1]);
    assert_int_equal(said[1].seq, self.seq + 1001);
    assert_false(said[1].gone);
    assert_false(is_known(l, 1));
    assert_int_equal(members_merge(l->en, &joins, &unused, &l->error), ERR_OK);
    assert_true(is_known(l, 1));
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
        ENGINE_LAB_TEST(what_others_say_of_it_lets_it_start_again),
        ENGINE_LAB_TEST(who_was_forgotten_longest_ago_gives_its_place),
        ENGINE_LAB_TEST(where_it_was_forgotten_a_joining_node_takes_only_that_first),
        ENGINE_LAB_TEST(no_more_nodes_than_there_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
