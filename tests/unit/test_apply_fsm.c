/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/apply_fsm.h"
#include "tests/support/self.h"

#define NEVER (-1)

/* The whole matrix, written down a second time: what each event of each state leads to, in the
 * order of enum apply_event. */
static const int expected[APPLY_STATE_COUNT][APPLY_EVENT_COUNT] = {
    [AS_PLAN] = {AS_RENDER, AS_FAILED, NEVER, AS_DONE, NEVER},
    [AS_RENDER] = {AS_CHECK, AS_FAILED, AS_PEERS, AS_COMMIT, AS_DONE},
    [AS_CHECK] = {AS_BIND, AS_FAILED, NEVER, NEVER, NEVER},
    [AS_BIND] = {AS_PEERS, AS_FAILED, NEVER, AS_ACTIVATE, NEVER},
    [AS_PEERS] = {AS_TRIAL, AS_FAILED, AS_COMMIT, AS_ACTIVATE, NEVER},
    [AS_TRIAL] = {AS_ACTIVATE, AS_FAILED, NEVER, AS_ACTIVATE, NEVER},
    [AS_ACTIVATE] = {AS_LOAD, AS_BACK, NEVER, NEVER, NEVER},
    [AS_LOAD] = {AS_VERIFY, AS_BACK, NEVER, NEVER, NEVER},
    [AS_VERIFY] = {AS_COMMIT, AS_BACK, NEVER, NEVER, AS_DONE},
    [AS_COMMIT] = {AS_SETTLE, AS_BACK, NEVER, NEVER, NEVER},
    [AS_SETTLE] = {AS_PUSH, AS_PUSH, NEVER, AS_DONE, NEVER},
    [AS_PUSH] = {AS_DONE, AS_DONE, NEVER, AS_DONE, NEVER},
    [AS_BACK] = {AS_BACK_LOAD, AS_BACK_VERIFY, NEVER, NEVER, NEVER},
    [AS_BACK_LOAD] = {AS_BACK_VERIFY, AS_BACK_VERIFY, NEVER, NEVER, NEVER},
    [AS_BACK_VERIFY] = {AS_BACKED, AS_BROKEN, NEVER, NEVER, NEVER},
    [AS_DONE] = {NEVER, NEVER, NEVER, NEVER, NEVER},
    [AS_FAILED] = {NEVER, NEVER, NEVER, NEVER, NEVER},
    [AS_BACKED] = {NEVER, NEVER, NEVER, NEVER, NEVER},
    [AS_BROKEN] = {NEVER, NEVER, NEVER, NEVER, NEVER},
};

static void
every_event_of_every_state_leads_where_it_should(void **state)
{
    (void)state;
    for (int s = 0; s < APPLY_STATE_COUNT; s++) {
        for (int event = 0; event < APPLY_EVENT_COUNT; event++) {
            const struct apply_edge *edge =
                apply_next((enum apply_state)s, (enum apply_event)event);

            assert_int_equal(edge->allowed, expected[s][event] != NEVER);
            if (edge->allowed) {
                assert_int_equal(edge->next, expected[s][event]);
                assert_non_null(edge->text);
                assert_true(strlen(edge->text) > 0);
            }
        }
    }
}

static void
every_state_that_is_not_final_can_succeed_and_fail(void **state)
{
    (void)state;
    for (int s = 0; s < APPLY_STATE_COUNT; s++) {
        bool final = apply_state_final((enum apply_state)s);

        assert_int_equal(apply_next((enum apply_state)s, AE_OK)->allowed, !final);
        assert_int_equal(apply_next((enum apply_state)s, AE_FAIL)->allowed, !final);
    }
}

static void
every_state_is_reached_and_none_is_passed_twice(void **state)
{
    bool reached[APPLY_STATE_COUNT] = {[AS_PLAN] = true};

    (void)state;
    /* Edges only lead to states that stand later in the list, so one pass finds all, and no
     * way can go in a circle. */
    for (int s = 0; s < APPLY_STATE_COUNT; s++) {
        assert_true(reached[s]);
        for (int event = 0; event < APPLY_EVENT_COUNT; event++) {
            const struct apply_edge *edge =
                apply_next((enum apply_state)s, (enum apply_event)event);

            if (edge->allowed) {
                assert_true((int)edge->next > s);
                reached[edge->next] = true;
            }
        }
    }
}

/* Where the way ends when one state fails and all others succeed. */
static enum apply_state
end_of(enum apply_state failing)
{
    enum apply_state s = AS_PLAN;

    while (!apply_state_final(s)) {
        s = apply_next(s, s == failing ? AE_FAIL : AE_OK)->next;
    }
    return s;
}

static void
a_failure_before_the_switch_changes_nothing(void **state)
{
    (void)state;
    for (enum apply_state s = AS_PLAN; s < AS_ACTIVATE; s++) {
        assert_int_equal(end_of(s), AS_FAILED);
    }
}

static void
a_failure_after_the_switch_puts_the_former_back(void **state)
{
    (void)state;
    for (enum apply_state s = AS_ACTIVATE; s <= AS_COMMIT; s++) {
        assert_int_equal(end_of(s), AS_BACKED);
    }
    assert_int_equal(end_of(AS_SETTLE), AS_DONE);
    assert_int_equal(end_of(AS_DONE), AS_DONE);
}

static void
a_way_back_that_does_not_serve_is_broken(void **state)
{
    enum apply_state s = AS_BACK;

    (void)state;
    s = apply_next(s, AE_FAIL)->next;
    s = apply_next(s, AE_FAIL)->next;
    assert_int_equal(s, AS_BROKEN);
}

static void
names_and_texts_are_there_and_differ(void **state)
{
    (void)state;
    for (int s = 0; s < APPLY_STATE_COUNT; s++) {
        assert_true(strlen(apply_state_text((enum apply_state)s)) > 0);
        for (int other = 0; other < s; other++) {
            assert_string_not_equal(
                apply_state_name((enum apply_state)s),
                apply_state_name((enum apply_state)other));
        }
    }
    assert_string_equal(apply_state_name(AS_BACK_LOAD), "back_load");
    assert_string_equal(apply_state_name(AS_BROKEN), "broken");
}

static void
a_state_that_does_not_exist_is_a_programmer_error(void **state)
{
    (void)state;
    self_aborts("state", "(size_t)state < APPLY_STATE_COUNT");
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_of_every_state_leads_where_it_should),
        cmocka_unit_test(every_state_that_is_not_final_can_succeed_and_fail),
        cmocka_unit_test(every_state_is_reached_and_none_is_passed_twice),
        cmocka_unit_test(a_failure_before_the_switch_changes_nothing),
        cmocka_unit_test(a_failure_after_the_switch_puts_the_former_back),
        cmocka_unit_test(a_way_back_that_does_not_serve_is_broken),
        cmocka_unit_test(names_and_texts_are_there_and_differ),
        cmocka_unit_test(a_state_that_does_not_exist_is_a_programmer_error),
    };

    if (argc > 1 && strcmp(argv[1], "state") == 0) {
        (void)apply_next((enum apply_state)APPLY_STATE_COUNT, AE_OK);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
