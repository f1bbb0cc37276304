/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "sync/condition.h"

#define ROUND_MS 2000

/* n1 is the node that knows, n2 another one; n3 does not matter. All is as it should be. */
struct fixture {
    struct node_facts nodes[3];
    struct cluster_facts f;
    json_t *found;
};

static struct node_facts
node(const char *name, int64_t rev)
{
    struct node_facts n = {
        .id = name,
        .name = name,
        .url = "",
        .release = "1.2.0",
        .silence = ANSWERED,
        .failure = "",
        .ever = true,
        .age_ms = 340,
        .relation = REL_IN_STEP,
        .refusal = "",
        .lost = "",
        .twin = "",
        .running = "0123456789abcdef",
        .draft_author = "",
    };

    n.head.rev = rev;
    memset(&n.head.fp, (int)rev, sizeof n.head.fp);
    return n;
}

static int
set_up(void **state)
{
    static struct fixture x;

    x.nodes[0] = node("n1", 8);
    x.nodes[1] = node("n2", 8);
    x.nodes[2] = node("n3", 8);
    x.f = (struct cluster_facts){.nodes = x.nodes, .count = 3, .round_ms = ROUND_MS, .vip = ""};
    *state = &x;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *x = *state;

    json_decref(x->found);
    x->found = NULL;
    return 0;
}

static const char *
text(const json_t *condition, const char *key)
{
    const char *s = json_string_value(json_object_get(condition, key));

    assert_non_null(s);
    return s;
}

/* Exactly these, as "name node". */
static void
finds(struct fixture *x, const char *const *wanted, size_t count)
{
    json_decref(x->found);
    x->found = conditions_json(&x->f);
    assert_int_equal(json_array_size(x->found), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *c = json_array_get(x->found, i);
        char seen[64];

        (void)snprintf(seen, sizeof seen, "%s %s", text(c, "name"), text(c, "node"));
        assert_string_equal(seen, wanted[i]);
    }
}

static void
finds_one(struct fixture *x, const char *wanted)
{
    finds(x, &wanted, 1);
}

/* Of the first one found. */
static void
says(const struct fixture *x, const char *key, const char *part)
{
    const char *whole = text(json_array_get(x->found, 0), key);

    if (strstr(whole, part) == NULL) {
        fail_msg("%s is \"%s\", without \"%s\"", key, whole, part);
    }
}

static void
test_nothing_where_all_is_right(void **state)
{
    struct fixture *x = *state;

    finds(x, NULL, 0);
    x->f.count = 1;
    x->nodes[0].held = true;
    finds(x, NULL, 0); /* there is nobody to be held apart from */
}

static void
test_each_silence_has_its_name(void **state)
{
    static const struct {
        enum silence silence;
        const char *wanted;
    } rows[] = {
        {UNREACHABLE, "peer_unreachable n2"},
        {KEY_REJECTED, "peer_key_rejected n2"},
        {PIN_DIFFERS, "tls_pin_differs n2"},
    };
    struct fixture *x = *state;

    x->nodes[1].failure = "no answer in time";
    x->nodes[1].relation = REL_DIVERGED; /* when it answered: it may be otherwise now */
    x->nodes[1].drafted = 3;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        x->nodes[1].silence = rows[i].silence;
        finds_one(x, rows[i].wanted);
        says(x, "cause", "no answer in time; 0.3 s ago it answered: n2 at 8@08080808");
    }
    x->nodes[1].ever = false;
    finds_one(x, "tls_pin_differs n2");
    says(x, "cause", "it has not answered");
    x->nodes[1].silence = NOT_ASKED;
    finds(x, NULL, 0);
}

static void
test_behind_names_both_revisions(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].head.rev = 7;
    x->nodes[1].relation = REL_PEER_BEHIND;
    finds_one(x, "behind n2");
    says(x, "cause", "n2 at 7@08080808, n1 at 8@08080808, seen 0.3 s ago");
    says(x, "page", "docs/runbooks/behind.md");
    says(x, "severity", "warning");
}

static void
test_this_node_is_behind_the_newest(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].relation = x->nodes[2].relation = REL_SELF_BEHIND;
    x->nodes[1].head.rev = 9;
    x->nodes[2].head.rev = 12;
    finds_one(x, "behind n1");
    says(x, "cause", "n1 at 8@08080808, n3 at 12@08080808");
}

static void
test_diverged_says_who_what_and_the_next_step(void **state)
{
    struct fixture *x = *state;

    x->nodes[1] = node("n2", 9);
    x->nodes[1].relation = REL_DIVERGED;
    x->nodes[1].refusal = "diverged (diverged)"; /* the answer to a push says no more */
    finds_one(x, "diverged n2");
    says(x, "cause", "n2 at 9@09090909, n1 at 8@08080808");
    says(x, "next", "n2");
    says(x, "next", "another node holds the VIP (423): overwrite on that one");
    says(x, "severity", "error");
}

static void
test_diverged_names_what_was_shared_last(void **state)
{
    static const struct {
        enum shared_state state;
        const char *wanted;
    } rows[] = {
        {SHARED_FOUND, "; they last shared 7@07070707"},
        {SHARED_NONE, "; they never shared a revision"},
        {SHARED_SOUGHT, "; what they last shared is not known"},
        {SHARED_UNKNOWN, "; what they last shared is not known"},
    };
    struct fixture *x = *state;

    x->nodes[1] = node("n2", 9);
    x->nodes[1].relation = REL_DIVERGED;
    x->nodes[1].shared.commit = node("", 7).head;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        x->nodes[1].shared.state = rows[i].state;
        finds_one(x, "diverged n2");
        says(x, "cause", rows[i].wanted);
    }
}

static void
test_refusing_stands_beside_behind(void **state)
{
    static const char *const wanted[] = {
        "refusing n1", "behind n1", "refusing n3", "behind n3"};
    struct fixture *x = *state;

    x->nodes[0].refusal = "bind: 0.0.0.0:443 is in use";
    x->nodes[1].relation = REL_SELF_BEHIND;
    x->nodes[2].relation = REL_PEER_BEHIND;
    x->nodes[2].refusal = "no";
    finds(x, wanted, ARRAY_LEN(wanted));
    says(x, "cause", "bind: 0.0.0.0:443 is in use");
}

static void
test_releases(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].release = "1.3.0";
    finds_one(x, "releases_differ n2");
    says(x, "cause", "n2 has 1.3.0, n1 has 1.2.0");
    x->nodes[1].release = "1.2.0";
    x->nodes[1].relation = REL_PEER_NEWER_RELEASE;
    x->nodes[1].head.schema_version = 99;
    finds_one(x, "releases_differ n2");
    says(x, "cause", "schema 99");
}

static void
test_skew_on_either_side(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].skew_ms = 5000;
    finds(x, NULL, 0);
    x->nodes[1].skew_ms = 5001;
    finds_one(x, "clock_skew n2");
    says(x, "cause", "5001 ms ahead of that of n1");
    x->nodes[1].skew_ms = -7200;
    finds_one(x, "clock_skew n2");
    says(x, "cause", "7200 ms behind that of n1");
}

static void
test_not_running_after_a_round(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].unequal_ms = ROUND_MS;
    finds(x, NULL, 0);
    x->nodes[1].unequal_ms = ROUND_MS + 1;
    finds_one(x, "not_running n2");
    says(x, "cause", "n2 at 8@08080808, HAProxy runs commit 01234567, for 2.0 s");
    x->nodes[1].unequal_ms = 0;
    x->nodes[0].unequal_ms = 61200;
    x->nodes[0].running = "";
    finds_one(x, "not_running n1");
    says(x, "cause", "not known, for 61.2 s");
}

static void
test_held_and_drafts_of_any_node(void **state)
{
    static const char *const wanted[] = {"held n1", "unapplied_draft n2"};
    struct fixture *x = *state;

    x->nodes[0].held = true;
    x->nodes[1].drafted = 2;
    x->nodes[1].draft_author = "admin maria";
    finds(x, wanted, ARRAY_LEN(wanted));
    says(x, "cause", "n1 at 8@08080808");
    assert_non_null(strstr(
        text(json_array_get(x->found, 1), "cause"), "2 objects, the last one by admin maria"));
}

static void
test_nobody_holds_the_vip(void **state)
{
    struct fixture *x = *state;

    x->f.unheld_ms = ROUND_MS + 1;
    finds(x, NULL, 0); /* there is none */
    x->f.vip = "192.0.2.9/24";
    finds_one(x, "no_holder n1");
    says(x, "cause", "n1 sees no node hold the VIP: 192.0.2.9/24, for 2.0 s");
    says(x, "page", "docs/runbooks/no_holder.md");
    x->f.unheld_ms = ROUND_MS; /* it may be moving */
    finds(x, NULL, 0);
    x->f.unheld_ms = ROUND_MS + 1;
    x->f.count = 1;
    finds(x, NULL, 0); /* there is nobody to wait for */
}

static void
test_two_with_one_name_or_address_are_told_once(void **state)
{
    struct fixture *x = *state;

    x->nodes[0].url = "https://192.0.2.1:8443";
    x->nodes[2].id = "0123456789abcdef";
    x->nodes[2].url = "https://192.0.2.3:8443";
    x->nodes[2].name = "n1";
    finds_one(x, "member_clash n1");
    says(
        x, "cause",
        "n1 (n1 at https://192.0.2.1:8443) and n1 (01234567 at "
        "https://192.0.2.3:8443) have one name");
    x->nodes[2].name = "n3";
    finds(x, NULL, 0);
    x->nodes[2].url = x->nodes[0].url;
    finds_one(x, "member_clash n3");
    says(x, "cause", "have one address");
    x->nodes[2].silence = UNREACHABLE;
    x->nodes[2].failure = "another node answers";
    finds(x, (const char *const[]){"member_clash n3", "peer_unreachable n3"}, 2);
}

static void
test_two_machines_that_are_one_node(void **state)
{
    struct fixture *x = *state;

    x->nodes[1].url = "https://192.0.2.2:8443";
    x->nodes[1].twin = "https://192.0.2.7:8443";
    finds_one(x, "node_twice n2");
    says(
        x, "cause",
        "n2 is two machines: the node n2 at https://192.0.2.2:8443, and one of the same id at "
        "https://192.0.2.7:8443");
    says(x, "page", "docs/runbooks/node_twice.md");
}

static void
test_pages_that_are_lost_are_told_with_what_was_seen(void **state)
{
    struct fixture *x = *state;

    x->nodes[0].lost = "ui.test: the listener https answers with status 404";
    finds_one(x, "pages_lost n1");
    says(x, "cause", "n1 is not reached at the names of its own pages: ui.test: the listener");
    says(x, "next", "the address of n1 itself");
    says(x, "page", "docs/runbooks/pages_lost.md");
    x->nodes[1].lost = "it says so itself";
    x->nodes[1].silence = UNREACHABLE; /* when it answered */
    x->nodes[1].failure = "no answer in time";
    finds(x, (const char *const[]){"pages_lost n1", "peer_unreachable n2"}, 2);
}

static void
test_each_of_two_holders_is_named(void **state)
{
    static const char *const wanted[] = {"two_holders n1", "two_holders n3"};
    struct fixture *x = *state;

    x->f.vip = "192.0.2.9/24";
    x->f.unheld_ms = ROUND_MS + 1;
    x->nodes[0].holds = x->nodes[2].holds = true;
    finds(x, wanted, ARRAY_LEN(wanted));
    says(x, "cause", "n1, n3 have 192.0.2.9/24");
    x->f.unheld_ms = 0;
    finds(x, NULL, 0);
}

static void
test_who_does_not_answer_is_not_counted_as_holder(void **state)
{
    static const char *const wanted[] = {"no_holder n1", "peer_unreachable n2"};
    struct fixture *x = *state;

    x->f.vip = "192.0.2.9/24";
    x->f.unheld_ms = ROUND_MS + 1;
    x->nodes[1].holds = true;
    x->nodes[1].silence = UNREACHABLE;
    x->nodes[1].failure = "no answer in time";
    finds(x, wanted, ARRAY_LEN(wanted));
    says(x, "cause", "VIP: 192.0.2.9/24");
}

static void
test_a_revision_that_waits_is_named_by_each_node_of_itself(void **state)
{
    static const struct {
        bool going_back, failed;
        int64_t retry_at_ms;
        const char *part;
    } rows[] = {
        {false, false, 0, "it goes back at 2026-07-01 00:01:00 UTC"},
        {true, false, 0, "not confirmed in time and goes back"},
        {false, true, 1, "could not go back so far"},
        {false, true, 0, "the node that is to go back does not answer"},
    };
    struct fixture *x = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        x->f.waiting = (struct engine_waiting){
            .is = true,
            .node = "n2",
            .rev = 8,
            .until_ms = 1782864060000,
            .going_back = rows[i].going_back,
            .failed = rows[i].failed,
            .retry_at_ms = rows[i].retry_at_ms,
        };
        finds_one(x, "unconfirmed n1");
        says(x, "cause", "revision 8, applied on n2; ");
        says(x, "cause", rows[i].part);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_where_all_is_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_silence_has_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_behind_names_both_revisions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_this_node_is_behind_the_newest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_diverged_says_who_what_and_the_next_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_diverged_names_what_was_shared_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusing_stands_beside_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_releases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_skew_on_either_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_running_after_a_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_held_and_drafts_of_any_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_holds_the_vip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_two_with_one_name_or_address_are_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_machines_that_are_one_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_pages_that_are_lost_are_told_with_what_was_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_of_two_holders_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_who_does_not_answer_is_not_counted_as_holder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_revision_that_waits_is_named_by_each_node_of_itself, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
