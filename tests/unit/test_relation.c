/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/relation.h"
#include "tests/support/self.h"

#define FACTS  32 /* sets of the five that are true or false */
#define ORDERS 3

static struct relation_facts
facts_of(int set, int order)
{
    return (struct relation_facts){
        .same_head = (set & 1) != 0,
        .peer_is_ancestor = (set & 2) != 0,
        .self_is_ancestor = (set & 4) != 0,
        .same_fp = (set & 8) != 0,
        .newer_schema = (set & 16) != 0,
        .order = order,
    };
}

/* The whole matrix, written down a second time. One letter a relation: Step, peer Behind, self
 * behind (A), equal: adopt the Greater, or be the Model, Diverged, Newer release. Rows: newer
 * schema, same fp; columns: self_is_ancestor, peer_is_ancestor, same_head as binary. */
static const char *const expected[ORDERS][4] = {
    {"DSBSASDS", "GSBSASDS", "NSBSNSDS", "NSBSNSDS"},
    {"DSBSASDS", "DSBSASDS", "NSBSNSDS", "NSBSNSDS"},
    {"DSBSASDS", "MSBSASDS", "NSBSNSDS", "NSBSNSDS"},
};

static void
every_set_of_facts_is_one_relation(void **state)
{
    static const char letters[REL_COUNT + 1] = "SBAGMDN";

    (void)state;
    for (int order = -1; order <= 1; order++) {
        for (int set = 0; set < FACTS; set++) {
            struct relation_facts f = facts_of(set, order);

            assert_int_equal(letters[relation_of(&f)], expected[order + 1][set / 8][set % 8]);
        }
    }
}

static enum relation
seen_from_the_other(enum relation relation)
{
    static const enum relation others[REL_COUNT] = {
        [REL_IN_STEP] = REL_IN_STEP,
        [REL_PEER_BEHIND] = REL_SELF_BEHIND,
        [REL_SELF_BEHIND] = REL_PEER_BEHIND,
        [REL_EQUAL_PEER_GREATER] = REL_EQUAL_SELF_GREATER,
        [REL_EQUAL_SELF_GREATER] = REL_EQUAL_PEER_GREATER,
        [REL_DIVERGED] = REL_DIVERGED,
    };

    return others[relation];
}

static void
two_nodes_of_one_release_see_the_same_from_both_sides(void **state)
{
    (void)state;
    for (int order = -1; order <= 1; order++) {
        for (int set = 0; set < FACTS / 2; set++) {
            struct relation_facts f = facts_of(set, order);
            struct relation_facts g = f;

            g.peer_is_ancestor = f.self_is_ancestor;
            g.self_is_ancestor = f.peer_is_ancestor;
            g.order = -order;
            assert_int_equal(relation_of(&g), seen_from_the_other(relation_of(&f)));
        }
    }
}

static void
the_counter_alone_decides_nothing_but_which_of_two_equals_stays(void **state)
{
    (void)state;
    for (int set = 0; set < FACTS; set++) {
        struct relation_facts low = facts_of(set, -1);
        struct relation_facts high = facts_of(set, 1);

        if (relation_of(&low) != relation_of(&high)) {
            assert_int_equal(relation_of(&low), REL_EQUAL_PEER_GREATER);
            assert_int_equal(relation_of(&high), REL_EQUAL_SELF_GREATER);
        }
    }
}

static void
a_node_heals_when_it_is_behind_or_the_smaller_of_two_equals(void **state)
{
    (void)state;
    for (int relation = 0; relation < REL_COUNT; relation++) {
        struct heal_facts f = {.relation = (enum relation)relation, .keep_in_step = true};
        enum sync_action wanted = HEAL_NOTHING;

        if (relation == REL_SELF_BEHIND) {
            wanted = HEAL_PULL;
        } else if (relation == REL_EQUAL_PEER_GREATER) {
            wanted = HEAL_ADOPT_EQUAL;
        }
        assert_int_equal(heal_action(&f), wanted);
        f.backing_off = true;
        assert_int_equal(heal_action(&f), HEAL_NOTHING);
        f.keep_in_step = false;
        assert_int_equal(heal_action(&f), HEAL_NOTHING);
        f.backing_off = false;
        assert_int_equal(heal_action(&f), HEAL_NOTHING);
    }
}

static enum push_verdict
verdict_of(int relation, bool overwrites, bool expected_head, bool outranks)
{
    return push_verdict(&(struct push_facts){
        .relation = (enum relation)relation,
        .overwrites = overwrites,
        .expected = expected_head,
        .outranks = outranks,
    });
}

static const enum push_verdict plain[REL_COUNT] = {
    [REL_IN_STEP] = PUSH_SAME,
    [REL_PEER_BEHIND] = PUSH_STALE,
    [REL_SELF_BEHIND] = PUSH_ADVANCE,
    [REL_EQUAL_PEER_GREATER] = PUSH_ADOPT_EQUAL,
    [REL_EQUAL_SELF_GREATER] = PUSH_STALE,
    [REL_DIVERGED] = PUSH_DIVERGED,
    [REL_PEER_NEWER_RELEASE] = PUSH_NEWER_RELEASE,
};

static void
a_plain_push_is_answered_by_its_relation_alone(void **state)
{
    (void)state;
    for (int relation = 0; relation < REL_COUNT; relation++) {
        assert_int_equal(verdict_of(relation, false, false, false), plain[relation]);
        assert_int_equal(verdict_of(relation, false, true, false), plain[relation]);
        assert_int_equal(verdict_of(relation, false, false, true), plain[relation]);
        assert_int_equal(verdict_of(relation, false, true, true), plain[relation]);
    }
}

static void
an_overwrite_is_a_push_to_the_head_it_expects(void **state)
{
    (void)state;
    for (int relation = 0; relation < REL_COUNT; relation++) {
        bool decided = relation == REL_IN_STEP || relation == REL_PEER_NEWER_RELEASE;
        enum push_verdict moved = decided ? plain[relation] : PUSH_MOVED;
        enum push_verdict later = decided ? plain[relation] : PUSH_OVERWRITE_IN_PROGRESS;

        assert_int_equal(verdict_of(relation, true, true, false), plain[relation]);
        assert_int_equal(verdict_of(relation, true, false, false), moved);
        assert_int_equal(verdict_of(relation, true, true, true), later);
        assert_int_equal(verdict_of(relation, true, false, true), later);
    }
}

/* The three places that decide must not contradict each other. */
static void
what_a_node_would_pull_it_also_takes_when_it_is_pushed(void **state)
{
    (void)state;
    for (int relation = 0; relation < REL_COUNT; relation++) {
        struct heal_facts f = {.relation = (enum relation)relation, .keep_in_step = true};
        enum push_verdict verdict = verdict_of(relation, false, false, false);
        enum sync_action action = heal_action(&f);

        assert_int_equal(action == HEAL_PULL, verdict == PUSH_ADVANCE);
        assert_int_equal(action == HEAL_ADOPT_EQUAL, verdict == PUSH_ADOPT_EQUAL);
    }
}

static void
names_are_those_of_the_api(void **state)
{
    (void)state;
    assert_string_equal(relation_name(REL_IN_STEP), "in_step");
    assert_string_equal(relation_name(REL_PEER_BEHIND), "behind");
    assert_string_equal(relation_name(REL_SELF_BEHIND), "ahead");
    assert_string_equal(relation_name(REL_EQUAL_PEER_GREATER), "equal");
    assert_string_equal(relation_name(REL_EQUAL_SELF_GREATER), "equal");
    assert_string_equal(relation_name(REL_DIVERGED), "diverged");
    assert_string_equal(relation_name(REL_PEER_NEWER_RELEASE), "newer_release");
    assert_string_equal(push_verdict_name(PUSH_STALE), "stale_push");
    assert_string_equal(push_verdict_name(PUSH_DIVERGED), "diverged");
    assert_string_equal(push_verdict_name(PUSH_NEWER_RELEASE), "newer_release");
    assert_string_equal(push_verdict_name(PUSH_MOVED), "moved");
    assert_string_equal(push_verdict_name(PUSH_OVERWRITE_IN_PROGRESS), "overwrite_in_progress");
}

static void
every_text_is_there_and_differs(void **state)
{
    (void)state;
    for (int i = 0; i < REL_COUNT; i++) {
        assert_true(strlen(relation_text((enum relation)i)) > 0);
        for (int other = 0; other < i; other++) {
            assert_string_not_equal(
                relation_text((enum relation)i), relation_text((enum relation)other));
        }
    }
    for (int i = 0; i < PUSH_COUNT; i++) {
        assert_true(strlen(push_verdict_name((enum push_verdict)i)) > 0);
    }
}

static void
a_relation_that_does_not_exist_is_a_programmer_error(void **state)
{
    (void)state;
    self_aborts("relation", "(size_t)f->relation < ARRAY_LEN(verdicts)");
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_of_facts_is_one_relation),
        cmocka_unit_test(two_nodes_of_one_release_see_the_same_from_both_sides),
        cmocka_unit_test(the_counter_alone_decides_nothing_but_which_of_two_equals_stays),
        cmocka_unit_test(a_node_heals_when_it_is_behind_or_the_smaller_of_two_equals),
        cmocka_unit_test(a_plain_push_is_answered_by_its_relation_alone),
        cmocka_unit_test(an_overwrite_is_a_push_to_the_head_it_expects),
        cmocka_unit_test(what_a_node_would_pull_it_also_takes_when_it_is_pushed),
        cmocka_unit_test(names_are_those_of_the_api),
        cmocka_unit_test(every_text_is_there_and_differs),
        cmocka_unit_test(a_relation_that_does_not_exist_is_a_programmer_error),
    };

    if (argc > 1 && strcmp(argv[1], "relation") == 0) {
        return (int)verdict_of(REL_COUNT, false, false, false);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
