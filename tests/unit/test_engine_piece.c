/* SPDX-License-Identifier: Apache-2.0 */
/* What a node takes of another whose history is long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/sync_piece.h"
#include "tests/support/sync_lab.h"

#define REVISIONS 9
#define PIECE     2

struct duo {
    struct engine_lab *a, *b; /* a is ahead */
};

static int
set_up(void **state)
{
    static struct duo t;
    struct sync_doc d;

    t = (struct duo){engine_lab_new(), engine_lab_new()};
    engine_lab_start(t.a);
    engine_lab_start(t.b);
    sync_lab_title(t.a, 0);
    d = sync_lab_doc(t.a, &(struct sync_wanted){.have_count = 0});
    sync_lab_take(t.b, &d, SYNC_JOINED);
    for (int i = 1; i <= REVISIONS; i++) {
        sync_lab_title(t.a, i);
    }
    t.a->tunables.sync_piece_commits = PIECE;
    *state = &t;
    return 0;
}

static int
tear_down(void **state)
{
    const struct duo *t = *state;

    engine_lab_delete(t->a);
    engine_lab_delete(t->b);
    return 0;
}

static struct sync_doc
piece_of(const struct duo *t, const struct sync_ends *ends)
{
    struct hash have = sync_lab_head(t->b).id;

    return sync_lab_doc(
        t->a, &(struct sync_wanted){
                  .have = &have,
                  .have_count = 1,
                  .stored = ends->items,
                  .stored_count = ends->count,
              });
}

static void
history_is_stored_in_pieces_before_the_head_moves(void **state)
{
    const struct duo *t = *state;
    const struct hash before = sync_lab_head(t->b).id;
    const struct sync_origin origin = {.how = SYNC_PULLED, .from = "a"};
    struct sync_ends ends, again;
    struct sync_result result;
    struct sync_doc d;
    struct hash now, sent;
    struct error e;
    size_t pieces = 0;

    assert_int_equal(sync_ends_get(t->b->en, &ends, &e), ERR_OK);
    assert_int_equal(ends.count, 1); /* what it was before it joined */
    for (d = piece_of(t, &ends); d.more; d = piece_of(t, &ends)) {
        assert_int_equal(d.commits.count, PIECE);
        assert_false(d.has_index);
        assert_int_equal(d.object_count, 0);
        assert_int_equal(sync_ends_follow(&ends, &d, &e), ERR_OK);
        assert_int_equal(sync_piece_take(t->b->en, &d, &origin, &result, &e), ERR_OK);
        sync_doc_free(&d);
        now = sync_lab_head(t->b).id;
        assert_true(hash_equal(&now, &before));
        /* As one that starts anew finds it. */
        assert_int_equal(sync_ends_get(t->b->en, &again, &e), ERR_OK);
        assert_int_equal(again.count, 2);
        assert_true(hash_equal(&again.items[0], &ends.items[1]));
        pieces++;
    }
    assert_int_equal(pieces, 3);
    assert_true(d.has_index);
    sync_lab_take(t->b, &d, SYNC_PULLED);
    now = sync_lab_head(t->b).id;
    sent = sync_lab_head(t->a).id;
    assert_true(hash_equal(&now, &sent));
}

/* As after an overwrite that ended half way: the head of the other one was fetched for it. */
static void
what_is_history_already_is_taken_over_when_it_is_the_head(void **state)
{
    const struct duo *t = *state;
    const struct sync_origin fetches = {.how = SYNC_STORED, .from = "a"};
    struct hash have = sync_lab_head(t->b).id;
    struct sync_result result;
    struct sync_ends ends;
    struct sync_doc d;
    struct hash now, sent;
    struct error e;

    t->a->tunables.sync_piece_commits = 2 * REVISIONS;
    d = sync_lab_doc(t->a, &(struct sync_wanted){.have = &have, .have_count = 1});
    assert_false(d.more);
    assert_int_equal(sync_take(t->b->en, &d, &fetches, &result, &e), ERR_OK);
    now = sync_lab_head(t->b).id;
    assert_memory_equal(&now, &have, sizeof now);
    assert_int_equal(sync_ends_get(t->b->en, &ends, &e), ERR_OK);
    d = piece_of(t, &ends);
    assert_int_equal(d.commits.count, 0);
    sync_lab_take(t->b, &d, SYNC_PULLED);
    now = sync_lab_head(t->b).id;
    sent = sync_lab_head(t->a).id;
    assert_memory_equal(&now, &sent, sizeof now);
}

static void
assert_not_taken(
    const struct duo *t, const struct sync_doc *d, const struct sync_origin *origin, err_t code,
    const char *refusal)
{
    struct sync_ends ends;
    struct sync_result result;
    struct error e;

    assert_int_equal(sync_piece_take(t->b->en, d, origin, &result, &e), code);
    if (refusal == NULL) {
        assert_null(result.refusal);
    } else {
        assert_string_equal(result.refusal, refusal);
    }
    assert_int_equal(sync_ends_get(t->b->en, &ends, &e), ERR_OK);
    assert_int_equal(ends.count, 1);
}

/* What a push may not do leaves nothing behind. */
static void
only_an_overwrite_of_this_head_pushes_a_piece(void **state)
{
    const struct duo *t = *state;
    const struct sync_ends none = {.count = 0};
    struct sync_origin origin = {.how = SYNC_PUSHED, .from = "a"};
    struct sync_doc d = piece_of(t, &none);
    int version = d.commits.items[0].commit.schema_version;
    struct sync_result result;
    struct error e;

    assert_not_taken(t, &d, &origin, ERR_INVALID, NULL);
    d.has_expected = true;
    assert_not_taken(t, &d, &origin, ERR_CONFLICT, "moved");
    d.expected = sync_lab_head(t->b).id;
    origin.outranks = true;
    assert_not_taken(t, &d, &origin, ERR_CONFLICT, "overwrite_in_progress");
    origin.outranks = false;
    d.commits.items[0].commit.schema_version = SCHEMA_VERSION + 1;
    assert_not_taken(t, &d, &origin, ERR_CONFLICT, "newer_release");
    d.commits.items[0].commit.schema_version = version;
    d.more = false;
    assert_not_taken(t, &d, &origin, ERR_INVALID, NULL);
    d.more = true;
    assert_int_equal(sync_piece_take(t->b->en, &d, &origin, &result, &e), ERR_OK);
    sync_doc_free(&d);
}

static void
a_piece_is_no_revision(void **state)
{
    const struct duo *t = *state;
    const struct sync_ends none = {.count = 0};
    struct sync_doc d = piece_of(t, &none);
    struct sync_result result;
    struct sync_weighed weighed;
    struct sync_origin origin = {.how = SYNC_PUSHED, .from = "a"};
    struct error e;

    assert_int_equal(sync_weigh(t->b->en, &d, &origin, &result, &weighed, &e), ERR_INVALID);
    assert_int_equal(sync_take(t->b->en, &d, &origin, &result, &e), ERR_INVALID);
}

static void
a_piece_holds_commits_alone(void **state)
{
    const struct duo *t = *state;
    const struct sync_ends none = {.count = 0};
    struct sync_doc piece = piece_of(t, &none);
    struct sync_doc d;
    struct error e;
    json_t *j = sync_doc_json(&piece);

    sync_doc_free(&piece);
    (void)json_object_set_new(j, "index", json_array());
    assert_int_equal(sync_doc_read(j, &d, &e), ERR_INVALID);
    (void)json_object_del(j, "index");
    (void)json_object_set_new(j, "commits", json_array());
    assert_int_equal(sync_doc_read(j, &d, &e), ERR_INVALID);
    json_decref(j);
}

static void
what_comes_again_and_again_is_not_asked_for_any_more(void **state)
{
    const struct duo *t = *state;
    struct sync_ends ends = {.count = 0};
    struct sync_doc d = piece_of(t, &ends);
    struct error e;

    assert_int_equal(sync_ends_follow(&ends, &d, &e), ERR_OK);
    assert_int_equal(ends.count, 1);
    assert_int_equal(sync_ends_follow(&ends, &d, &e), ERR_INVALID);
    sync_doc_free(&d);
}

/* As many branches side by side as there are first commits. */
static void
branches_side_by_side_are_limited(void **state)
{
    static struct lineage_commit items[SYNC_STORED_MAX];
    struct sync_doc d = {.commits = {items, SYNC_STORED_MAX}, .more = true};
    struct lineage_commit one = {.commit = {.id = {{7}}}};
    struct sync_doc another = {.commits = {&one, 1}, .more = true};
    struct sync_ends ends = {.count = 0};
    struct error e;

    (void)state;
    for (size_t i = 0; i < SYNC_STORED_MAX; i++) {
        items[i].commit.id.b[1] = (uint8_t)i;
    }
    assert_int_equal(sync_ends_follow(&ends, &d, &e), ERR_OK);
    assert_int_equal(ends.count, SYNC_STORED_MAX);
    assert_int_equal(sync_ends_follow(&ends, &another, &e), ERR_LIMIT);
    /* One that joins all of them. */
    one.commit.parent_count = 2;
    one.commit.parents[0] = items[0].commit.id;
    one.commit.parents[1] = items[9].commit.id;
    assert_int_equal(sync_ends_follow(&ends, &another, &e), ERR_OK);
    assert_int_equal(ends.count, SYNC_STORED_MAX - 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            history_is_stored_in_pieces_before_the_head_moves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_history_already_is_taken_over_when_it_is_the_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            only_an_overwrite_of_this_head_pushes_a_piece, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_piece_is_no_revision, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_piece_holds_commits_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_comes_again_and_again_is_not_asked_for_any_more, set_up, tear_down),
        cmocka_unit_test(branches_side_by_side_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
