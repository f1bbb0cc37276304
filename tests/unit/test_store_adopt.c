/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes' stores: what one has, the other takes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/inner.h"
#include "tests/support/store_copy.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static int
set_up(void **state)
{
    static struct store_pair p;

    store_pair_open(&p);
    *state = &p;
    return 0;
}

/* And b has joined a. */
static int
set_up_joined(void **state)
{
    struct store_pair *p;

    (void)set_up(state);
    p = *state;
    (void)store_copy_pull(&p->b, &p->a, true);
    return 0;
}

static int
tear_down(void **state)
{
    store_pair_fini(*state);
    return 0;
}

/* Sets server n to a port. */
static struct commit
set_port(struct store_lab *l, unsigned n, int port)
{
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *to = store_lab_with(now, store_lab_server(n, NULL, port));

    return store_lab_commit(l, to, NULL);
}

static void
assert_verified(struct store_lab *l)
{
    struct error e;
    int64_t checked;

    for (int i = 0; i < 2; i++) {
        if (store_verify(l->store, &checked, &e) != ERR_OK) {
            fail_msg("%s", e.msg);
        }
        store_lab_reopen(l);
    }
}

/* to has what from has, as its head. */
static void
assert_same(struct store_lab *to, struct store_lab *from)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP(snapshot_cleanup) struct snapshot *wanted = store_lab_shared(from);
        CLEANUP(snapshot_cleanup) struct snapshot *found = store_lab_shared(to);
        struct commit heads[2] = {store_copy_head(to), store_copy_head(from)};

        assert_true(hash_equal(&heads[0].id, &heads[1].id));
        assert_true(store_lab_equal(found, wanted));
        assert_verified(to);
    }
}

static err_t
content_of(struct store_lab *l, const struct commit *c)
{
    struct snapshot *found = NULL;
    struct error e;
    err_t code = store_commit_content(l->store, &c->id, &found, &e);
    struct hash fp;

    if (code == ERR_OK) {
        fp = snapshot_fp(found, c->schema_version);
        assert_true(hash_equal(&fp, &c->fp));
        snapshot_unref(found);
    } else if (code != ERR_NOT_FOUND) {
        fail_msg("%s", e.msg);
    }
    return code;
}

static void
adopt(struct store_lab *l, const struct adopt_request *q)
{
    struct commit head;
    struct error e;

    if (store_adopt(l->store, q, &head, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

/* -- forward */

static void
joining_node_keeps_its_own_commits_aside(void **state)
{
    struct store_pair *p = *state;
    const struct commit own[2] = {store_copy_head(&p->b), set_port(&p->b, 1, 1)};
    struct commit head;
    bool leads = true;
    struct error e;

    (void)set_port(&p->a, 1, 1);
    (void)set_port(&p->a, 2, 2);
    head = store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(head.rev, 3);
    assert_same(&p->b, &p->a);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        assert_int_equal(content_of(&p->b, &own[i]), ERR_OK);
        assert_int_equal(
            store_is_ancestor(p->b.store, &own[i].id, &head.id, &leads, &e), ERR_OK);
        assert_false(leads);
    }
    assert_int_equal(store_lab_number(&p->b, "SELECT count(*) FROM discarded"), 1);
    assert_int_equal(store_lab_number(&p->b, "SELECT seq FROM discarded"), 2);
    assert_int_equal(
        store_lab_number(
            &p->b, "SELECT count(*) FROM audit WHERE action = 'adopt' AND author = "
                   "'node proxy2' AND text LIKE 'now at revision 3@%, 3 new commits'"),
        1);
}

static void
node_that_is_behind_goes_forward(void **state)
{
    static const size_t steps[] = {1, 3, 250};
    struct store_pair *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct commit *made = calloc(steps[i], sizeof *made);

        assert_non_null(made);
        for (size_t n = 0; n < steps[i]; n++) {
            made[n] = set_port(&p->a, (unsigned)n % 5 + 1, (int)(i * 1000 + n) + 1);
        }
        (void)store_copy_pull(&p->b, &p->a, true);
        assert_same(&p->b, &p->a);
        for (size_t n = steps[i] > 200 ? steps[i] - 200 : 0; n < steps[i]; n++) {
            assert_int_equal(content_of(&p->b, &made[n]), ERR_OK);
        }
        free(made);
    }
    /* Back again, from the other side. */
    for (int n = 0; n < 70; n++) {
        (void)set_port(&p->b, 9, n + 1);
    }
    (void)store_copy_pull(&p->a, &p->b, true);
    assert_same(&p->a, &p->b);
}

/* Long lines of changes are cut by a full index, and a restart counts them the same. */
static void
full_index_is_written_when_it_is_due(void **state)
{
    struct store_pair *p = *state;
    const char *fulls = "SELECT count(DISTINCT seq) FROM commit_full";
    int64_t before = store_lab_number(&p->b, fulls);

    for (int n = 1; n < STORE_FULL_EVERY; n++) {
        (void)set_port(&p->a, 1, n);
    }
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(store_lab_number(&p->b, fulls), before);
    store_lab_reopen(&p->b);
    (void)set_port(&p->a, 1, STORE_FULL_EVERY);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(store_lab_number(&p->b, fulls), before + 1);
    (void)set_port(&p->b, 1, 1);
    assert_int_equal(store_lab_number(&p->b, fulls), before + 1);
    assert_verified(&p->b);
}

/* The objects of the commits in between did not come along. */
static void
commits_without_bodies_have_no_content(void **state)
{
    struct store_pair *p = *state;
    CLEANUP(store_copy_fini) struct store_copy c = {0};
    struct adopt_request q;
    struct commit made[3];

    for (int n = 0; n < 3; n++) {
        made[n] = set_port(&p->a, 1, n + 1);
    }
    store_copy_take(&c, &p->a, &p->b);
    q = store_copy_request(&c);
    q.body_count = 0;
    adopt(&p->b, &q);
    assert_same(&p->b, &p->a);
    assert_int_equal(content_of(&p->b, &made[0]), ERR_NOT_FOUND);
    assert_int_equal(content_of(&p->b, &made[1]), ERR_NOT_FOUND);
    assert_int_equal(content_of(&p->b, &made[2]), ERR_OK);
    for (int n = 0; n < 300; n++) {
        (void)set_port(&p->b, 2, n + 1);
    }
    assert_verified(&p->b);
    (void)store_copy_pull(&p->a, &p->b, true);
    assert_same(&p->a, &p->b);
}

static void
draft_stays(void **state)
{
    struct store_pair *p = *state;
    struct draft_row row = {.kind = K_SERVER, .name = "web1", .author = "admin maria"};
    struct store_state st;
    struct error e;

    store_lab_id(1, row.id);
    row.object = store_lab_server(1, NULL, 8080);
    assert_int_equal(store_lab_draft_put(&p->b, &row, &e), ERR_OK);
    (void)set_port(&p->a, 1, 1);
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_int_equal(store_load(p->b.store, &st, &e), ERR_OK);
    assert_int_equal(st.draft.count, 1);
    assert_true(hash_equal(&st.draft.rows[0].object->objhash, &row.object->objhash));
    object_unref(row.object);
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
    draft_list_free(&st.draft);
}

/* -- branches */

static void
branch_lies_aside_until_an_overwrite_joins_it(void **state)
{
    struct store_pair *p = *state;
    struct commit of_a;
    struct commit of_b;
    struct commit_request q;
    struct commit merge;
    CLEANUP(snapshot_cleanup) struct snapshot *content = NULL;
    bool leads = false;
    int64_t local_rev;
    struct error e;

    (void)set_port(&p->a, 1, 1);
    of_a = set_port(&p->a, 2, 2);
    of_b = set_port(&p->b, 1, 9);
    merge = store_copy_pull(&p->b, &p->a, false);
    assert_true(hash_equal(&merge.id, &of_b.id));
    assert_int_equal(content_of(&p->b, &of_a), ERR_OK);
    assert_verified(&p->b);
    assert_int_equal(
        store_lab_number(
            &p->b, "SELECT count(*) FROM audit WHERE action = 'adopt' AND "
                   "text LIKE 'still at revision 2@%, 2 new commits'"),
        1);

    content = store_lab_shared(&p->b);
    q = store_lab_request(&p->b, content, NULL);
    q.more_parents = &of_a.id;
    q.more_parent_count = 1;
    assert_int_equal(store_commit(p->b.store, &q, &merge, &local_rev, &e), ERR_OK);
    assert_int_equal(merge.rev, 4);
    (void)store_copy_pull(&p->a, &p->b, true);
    assert_same(&p->a, &p->b);
    assert_int_equal(content_of(&p->a, &of_a), ERR_OK);
    assert_int_equal(content_of(&p->a, &of_b), ERR_OK);
    assert_int_equal(store_is_ancestor(p->a.store, &of_a.id, &merge.id, &leads, &e), ERR_OK);
    assert_true(leads);
    assert_int_equal(store_lab_number(&p->a, "SELECT count(*) FROM discarded"), 1);
}

static void
of_two_equal_heads_one_is_given_up(void **state)
{
    struct store_pair *p = *state;
    const struct commit of_a = set_port(&p->a, 1, 1);
    const struct commit of_b = set_port(&p->b, 1, 1);
    CLEANUP(snapshot_cleanup) struct snapshot *content = store_lab_shared(&p->b);
    const struct lineage none = {0};
    struct adopt_request back = {
        .commits = &none,
        .move_head = true,
        .head = of_b.id,
        .shared_to = content,
        .author = "node proxy2"};

    assert_true(hash_equal(&of_a.fp, &of_b.fp));
    assert_false(hash_equal(&of_a.id, &of_b.id));
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_same(&p->b, &p->a);
    assert_int_equal(content_of(&p->b, &of_b), ERR_OK);
    /* The same again changes nothing. */
    (void)store_copy_pull(&p->b, &p->a, true);
    assert_same(&p->b, &p->a);
    assert_int_equal(store_lab_number(&p->b, "SELECT count(*) FROM discarded"), 2);
    /* To the one that was given up, and forth: the head is no end of a discarded branch. */
    for (int i = 0; i < 2; i++) {
        adopt(&p->b, &back);
        assert_int_equal(
            store_lab_number(
                &p->b,
                "SELECT count(*) FROM discarded WHERE seq = (SELECT head_seq FROM meta)"),
            0);
        (void)store_copy_pull(&p->b, &p->a, true);
    }
    assert_same(&p->b, &p->a);
    assert_int_equal(store_lab_number(&p->b, "SELECT count(*) FROM discarded"), 2);
}

/* With one commit in each revision but one, which both wrote. */
static void
page_of_history_cuts_no_revision_in_two(void **state)
{
    struct store_pair *p = *state;
    struct commit *page = NULL;
    size_t count = 0;
    struct error e;

    (void)set_port(&p->a, 1, 1);
    (void)set_port(&p->b, 2, 1);
    (void)store_copy_pull(&p->b, &p->a, true);
    (void)set_port(&p->b, 3, 1);
    assert_int_equal(store_commits(p->b.store, 0, 2, &page, &count, &e), ERR_OK);
    assert_int_equal(count, 3);
    assert_int_equal(page[0].rev, 3);
    assert_int_equal(page[1].rev, 2);
    assert_int_equal(page[2].rev, 2);
    free(page);
    assert_int_equal(store_commits(p->b.store, 2, 1, &page, &count, &e), ERR_OK);
    assert_int_equal(count, 2);
    assert_int_equal(page[1].rev, 1);
    free(page);
}

/* -- what is kept */

static void
discarded_branch_is_kept_for_ninety_days(void **state)
{
    struct store_pair *p = *state;
    const struct commit own = set_port(&p->b, 1, 1);

    (void)set_port(&p->a, 1, 2);
    (void)store_copy_pull(&p->b, &p->a, true);
    for (int n = 0; n < 2 * (STORE_KEPT_COMMITS + STORE_FULL_EVERY); n++) {
        (void)set_port(&p->b, 2, n + 1);
    }
    p->b.now_ms += 89 * DAY_MS;
    for (int n = 0; n < STORE_FULL_EVERY; n++) {
        (void)set_port(&p->b, 3, n + 1);
    }
    assert_int_equal(content_of(&p->b, &own), ERR_OK);
    assert_verified(&p->b);
    p->b.now_ms += 2 * DAY_MS;
    for (int n = 0; n < STORE_FULL_EVERY; n++) {
        (void)set_port(&p->b, 4, n + 1);
    }
    assert_int_equal(content_of(&p->b, &own), ERR_NOT_FOUND);
    assert_int_equal(store_lab_number(&p->b, "SELECT count(*) FROM discarded"), 0);
    assert_verified(&p->b);
}

/* A branch with higher revisions than the head lies beside it. */
static void
longer_branch_does_not_push_the_head_out(void **state)
{
    struct store_pair *p = *state;
    struct commit head;
    struct commit tip = {0};

    (void)set_port(&p->b, 1, 1);
    head = set_port(&p->b, 2, 1);
    for (int n = 0; n < STORE_KEPT_COMMITS + 5; n++) {
        tip = set_port(&p->a, 3, n + 1);
    }
    (void)store_copy_pull(&p->b, &p->a, false);
    for (int n = 0; n < STORE_PRUNE_WRITES; n++) {
        struct draft_row row = {.kind = K_SERVER, .name = "web9", .author = "admin maria"};
        struct error e;

        store_lab_id(9, row.id);
        row.object = store_lab_server(9, NULL, n + 1);
        assert_int_equal(store_lab_draft_put(&p->b, &row, &e), ERR_OK);
        object_unref(row.object);
    }
    assert_int_equal(content_of(&p->b, &head), ERR_OK);
    assert_int_equal(content_of(&p->b, &tip), ERR_OK);
    assert_verified(&p->b);
}

/* Its content had left: it comes back with the request. */
static void
head_goes_back_to_a_commit_without_content(void **state)
{
    struct store_pair *p = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = store_lab_shared(&p->b);
    const struct commit first = store_copy_head(&p->b);
    const struct lineage none = {0};
    struct adopt_request q = {
        .commits = &none,
        .move_head = true,
        .head = first.id,
        .shared_to = shared,
        .author = "node proxy2"};
    struct commit last = {0};

    for (int n = 0; n < STORE_KEPT_COMMITS + 3 * STORE_FULL_EVERY; n++) {
        last = set_port(&p->b, 1, n + 1);
    }
    assert_int_equal(content_of(&p->b, &first), ERR_NOT_FOUND);
    adopt(&p->b, &q);
    assert_int_equal(content_of(&p->b, &first), ERR_OK);
    assert_int_equal(content_of(&p->b, &last), ERR_OK);
    assert_verified(&p->b);
    (void)set_port(&p->b, 1, 1);
    assert_verified(&p->b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            joining_node_keeps_its_own_commits_aside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            node_that_is_behind_goes_forward, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            full_index_is_written_when_it_is_due, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            commits_without_bodies_have_no_content, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(draft_stays, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            branch_lies_aside_until_an_overwrite_joins_it, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            of_two_equal_heads_one_is_given_up, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            page_of_history_cuts_no_revision_in_two, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            discarded_branch_is_kept_for_ninety_days, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            longer_branch_does_not_push_the_head_out, set_up_joined, tear_down),
        cmocka_unit_test_setup_teardown(
            head_goes_back_to_a_commit_without_content, set_up_joined, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
