/* SPDX-License-Identifier: Apache-2.0 */
/* A long history that is taken over piece by piece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "tests/support/store_copy.h"

#define LONG  40
#define PIECE 3
#define ENDS  8

struct far {
    struct store_pair nodes; /* b's own first revision lies aside */
    struct store_copy c;     /* what b lacks */
};

static int
set_up(void **state)
{
    static struct far f;
    struct snapshot *now;

    store_pair_open(&f.nodes);
    (void)store_copy_pull(&f.nodes.b, &f.nodes.a, true);
    now = store_lab_shared(&f.nodes.a);
    for (unsigned i = 1; i <= LONG; i++) {
        struct snapshot *from = now;

        now = store_lab_with(from, store_lab_server(i % 4 + 1, NULL, (int)i));
        (void)store_lab_commit(&f.nodes.a, now, NULL);
        snapshot_unref(from);
    }
    snapshot_unref(now);
    store_copy_take(&f.c, &f.nodes.a, &f.nodes.b);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct far *f = *state;

    store_copy_fini(&f->c);
    store_pair_fini(&f->nodes);
    return 0;
}

/* What b asks for next, by what its database says alone. */
static bool
next_piece(struct far *f, size_t entries, struct lineage *ret)
{
    CLEANUP(xfree_cleanup) struct hash *have = NULL;
    struct hash all[ENDS + 1] = {store_copy_head(&f->nodes.b).id};
    struct lineage_request q = {&f->c.head.id, 1, all, 1, PIECE, entries};
    size_t count = 0;
    bool more = false;
    struct error e;

    assert_int_equal(store_ends(f->nodes.b.store, ENDS, &have, &count, &e), ERR_OK);
    memcpy(&all[1], have, count * sizeof *have);
    q.have_count += count;
    assert_int_equal(store_lineage(f->nodes.a.store, &q, ret, &more, &e), ERR_OK);
    return more;
}

static err_t
store_piece(struct far *f, const struct lineage *piece, struct error *e)
{
    const struct adopt_request q = {.commits = piece, .author = "node proxy2"};
    struct commit head;

    return store_adopt(f->nodes.b.store, &q, &head, e);
}

/* Stored by a death, and started again. */
static void
assert_whole(struct far *f, const struct hash *head)
{
    const struct hash *now;
    struct commit commit;
    struct error e;
    int64_t checked;

    store_lab_reopen(&f->nodes.b);
    if (store_verify(f->nodes.b.store, &checked, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    commit = store_copy_head(&f->nodes.b);
    now = &commit.id;
    assert_true(hash_equal(now, head));
}

static void
assert_caught_up(struct far *f)
{
    CLEANUP(lineage_cleanup) struct lineage last = {0};
    struct adopt_request q = store_copy_request(&f->c);
    struct commit head;
    struct error e;

    assert_false(next_piece(f, SIZE_MAX, &last));
    assert_true(last.count > PIECE && last.count <= (size_t)2 * PIECE);
    q.commits = &last;
    if (store_adopt(f->nodes.b.store, &q, &head, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    assert_true(hash_equal(&head.id, &f->c.head.id));
    assert_whole(f, &f->c.head.id);
    assert_int_equal(
        store_lab_number(&f->nodes.b, "SELECT count(*) FROM commit_log"), LONG + 2);
}

static void
a_history_goes_on_behind_the_piece_that_was_stored_last(void **state)
{
    struct far *f = *state;
    const struct hash head = store_copy_head(&f->nodes.b).id;
    struct error e;
    size_t at = 0;
    bool more = true;

    while (more) {
        CLEANUP(lineage_cleanup) struct lineage piece = {0};

        more = next_piece(f, SIZE_MAX, &piece);
        if (!more) {
            break;
        }
        assert_int_equal(piece.count, PIECE);
        for (size_t i = 0; i < piece.count; i++, at++) {
            assert_true(
                hash_equal(&piece.items[i].commit.id, &f->c.commits.items[at].commit.id));
        }
        assert_int_equal(store_piece(f, &piece, &e), ERR_OK);
        assert_whole(f, &head);
    }
    assert_int_equal(at, LONG - LONG % PIECE - PIECE);
    assert_caught_up(f);
}

static void
many_changes_make_a_piece_of_fewer_commits(void **state)
{
    struct far *f = *state;

    for (size_t entries = 0; entries <= PIECE; entries++) {
        CLEANUP(lineage_cleanup) struct lineage piece = {0};

        assert_true(next_piece(f, entries, &piece));
        assert_int_equal(piece.count, entries < PIECE ? entries + 1 : PIECE);
    }
}

static void
assert_refused(struct far *f, const struct lineage *piece, const char *word)
{
    int64_t before = store_lab_number(&f->nodes.b, "SELECT count(*) FROM commit_log");
    int64_t audits = store_lab_number(&f->nodes.b, "SELECT count(*) FROM audit");
    const struct hash head = store_copy_head(&f->nodes.b).id;
    struct error e;

    assert_int_equal(store_piece(f, piece, &e), ERR_INVALID);
    if (strstr(e.msg, word) == NULL) {
        fail_msg("no \"%s\": %s", word, e.msg);
    }
    assert_int_equal(store_lab_number(&f->nodes.b, "SELECT count(*) FROM commit_log"), before);
    assert_int_equal(store_lab_number(&f->nodes.b, "SELECT count(*) FROM audit"), audits);
    assert_int_equal(store_lab_number(&f->nodes.b, "SELECT count(*) FROM discarded"), 1);
    assert_whole(f, &head);
}

static void
a_first_piece_that_is_refused_leaves_no_trace(void **state)
{
    struct far *f = *state;
    struct lineage_commit *all = f->c.commits.items;
    const struct lineage later = {&all[PIECE], PIECE};
    struct lineage_commit mixed[PIECE];
    struct lineage piece = {mixed, PIECE};

    assert_refused(f, &later, "a parent of revision 5 is missing");
    mixed[0] = all[0];
    mixed[1] = all[2];
    mixed[2] = all[1];
    assert_refused(f, &piece, "a parent of revision 4 is missing");
    mixed[1] = all[1];
    mixed[2] = all[2];
    mixed[2].commit.rev += 7;
    mixed[2].commit.id = commit_compute_id(&mixed[2].commit);
    assert_refused(f, &piece, "does not follow from its parents");
    a_history_goes_on_behind_the_piece_that_was_stored_last(state);
}

/* Of a sender that does not know what is here already. */
static void
a_piece_that_comes_twice_is_passed_over(void **state)
{
    struct far *f = *state;
    const struct lineage piece = {f->c.commits.items, PIECE};
    const struct lineage meets = {&f->c.commits.items[1], PIECE};
    struct error e;

    assert_int_equal(store_piece(f, &piece, &e), ERR_OK);
    assert_int_equal(store_piece(f, &piece, &e), ERR_OK);
    assert_int_equal(store_piece(f, &meets, &e), ERR_OK);
    assert_int_equal(
        store_lab_number(&f->nodes.b, "SELECT count(*) FROM commit_log"), 2 + PIECE + 1);
    assert_int_equal(store_lab_number(&f->nodes.b, "SELECT count(*) FROM discarded"), 2);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_history_goes_on_behind_the_piece_that_was_stored_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            many_changes_make_a_piece_of_fewer_commits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_first_piece_that_is_refused_leaves_no_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_piece_that_comes_twice_is_passed_over, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
