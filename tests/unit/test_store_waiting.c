/* SPDX-License-Identifier: Apache-2.0 */
/* Which commit waits for its confirmation: two nodes with one head say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/store_copy.h"

#define DAY_MS   ((int64_t)24 * 3600 * 1000)
#define KEY_HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* b has joined a. */
static int
set_up(void **state)
{
    static struct store_pair p;

    store_pair_open(&p);
    (void)store_copy_pull(&p.b, &p.a, true);
    *state = &p;
    return 0;
}

static int
tear_down(void **state)
{
    store_pair_fini(*state);
    return 0;
}

/* Sets the server to a port. */
static void
set_port(struct store_lab *l, int port)
{
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *to = store_lab_with(now, store_lab_server(1, NULL, port));

    (void)store_lab_commit(l, to, NULL);
}

static void
assert_same(struct store_lab *to, struct store_lab *from)
{
    struct commit heads[2] = {store_copy_head(to), store_copy_head(from)};
    struct error e;
    int64_t checked;

    assert_true(hash_equal(&heads[0].id, &heads[1].id));
    if (store_verify(to->store, &checked, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
commit_to_confirm(struct store_lab *l)
{
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *to = store_lab_with(now, store_lab_server(1, NULL, 1));
    struct commit_request q = store_lab_request(l, to, NULL);
    struct commit head;
    int64_t local_rev;
    struct error e;

    q.confirm_until_ms = l->now_ms + DAY_MS;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
}

static int64_t
waiting_rev(struct store_lab *l)
{
    struct commit waiting;
    struct error e;

    assert_int_equal(store_waiting(l->store, &waiting, &e), ERR_OK);
    return waiting.rev;
}

/* Changes what changes at once: a key. */
static void
change_at_once(struct store_lab *l, uint32_t nth)
{
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *to = store_lab_with(now, store_lab_key(nth, KEY_HASH));

    (void)store_lab_commit(l, to, NULL);
}

/* A commit of the same content. */
static struct commit
confirm(struct store_lab *l)
{
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    struct commit_request q = store_lab_request(l, now, NULL);
    struct commit former = store_copy_head(l);
    struct commit head;
    int64_t local_rev;
    struct error e;

    q.ends_wait = true;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.rev, former.rev + 1);
    assert_true(hash_equal(&head.fp, &former.fp));
    return head;
}

static void
adopted_head_waits_on_every_node_until_it_is_confirmed(void **state)
{
    struct store_pair *p = *state;

    commit_to_confirm(&p->a);
    assert_int_equal(waiting_rev(&p->a), 2);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(waiting_rev(&p->b), 2);
    store_lab_reopen(&p->b);
    assert_int_equal(waiting_rev(&p->b), 2);
    (void)confirm(&p->b);
    assert_int_equal(waiting_rev(&p->b), 0);
    (void)store_copy_pull(&p->a, &p->b, true);
    assert_int_equal(waiting_rev(&p->a), 0);
    assert_same(&p->a, &p->b);
}

static void
what_changes_at_once_does_not_end_the_wait_and_what_is_applied_does(void **state)
{
    struct store_pair *p = *state;

    commit_to_confirm(&p->a);
    change_at_once(&p->a, 801);
    assert_int_equal(waiting_rev(&p->a), 2);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(waiting_rev(&p->b), 2);
    change_at_once(&p->b, 802);
    change_at_once(&p->b, 803);
    (void)store_copy_pull(&p->a, &p->b, true);
    assert_int_equal(waiting_rev(&p->a), 2);
    set_port(&p->a, 2);
    assert_int_equal(waiting_rev(&p->a), 0);
    change_at_once(&p->a, 804);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(waiting_rev(&p->b), 0);
    assert_same(&p->b, &p->a);
}

/* As where two nodes had the VIP when the deadline came. */
static void
who_went_back_or_confirmed_twice_adopts_the_other(void **state)
{
    struct store_pair *p = *state;
    struct commit ends[2];

    commit_to_confirm(&p->a);
    (void)store_copy_pull(&p->b, &p->a, true);
    p->b.now_ms++;
    ends[0] = confirm(&p->a);
    ends[1] = confirm(&p->b);
    assert_false(hash_equal(&ends[0].id, &ends[1].id));
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(waiting_rev(&p->b), 0);
    assert_same(&p->b, &p->a);
}

static void
a_branch_that_waits_does_so_as_the_head_only(void **state)
{
    struct store_pair *p = *state;

    set_port(&p->b, 7);
    commit_to_confirm(&p->a);
    change_at_once(&p->a, 801);
    (void)store_copy_pull(&p->b, &p->a, false);
    assert_int_equal(waiting_rev(&p->b), 0);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(waiting_rev(&p->b), 2);
    assert_same(&p->b, &p->a);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            adopted_head_waits_on_every_node_until_it_is_confirmed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_changes_at_once_does_not_end_the_wait_and_what_is_applied_does, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            who_went_back_or_confirmed_twice_adopts_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_branch_that_waits_does_so_as_the_head_only, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
