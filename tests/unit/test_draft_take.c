/* SPDX-License-Identifier: Apache-2.0 */
/* A draft that goes from one node to another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "engine/draft_rows.h"
#include "tests/support/engine_lab.h"
#include "tests/support/pair.h"

#define BOTH  "[" LAB_SERVER("a") "," LAB_SERVER("b") "]"
#define ID    "'0123456789abcdef'"
#define PLACE "'kind': 'pool', 'id': " ID
#define REST  "'name': 'p', 'author': 'admin maria', 'at_ms': 1, 'base': null, 'object': null"

static const struct actor who = {.name = "admin paul"};

/* n1 drafts, n2 takes over. */
struct two {
    struct engine_lab *from, *to;
    struct draft_list rows; /* what n1 has drafted, by way of the wire's form */
    struct error error;
};

static int
set_up(void **state)
{
    static struct two t;

    t.from = engine_lab_new();
    t.to = engine_lab_new();
    engine_lab_start(t.from);
    engine_lab_start(t.to);
    engine_lab_must(t.from, BOTH);
    *state = &t;
    return 0;
}

static int
tear_down(void **state)
{
    struct two *t = *state;

    draft_list_free(&t->rows);
    engine_lab_delete(t->from);
    engine_lab_delete(t->to);
    return 0;
}

static void
read_rows(struct two *t)
{
    struct draft_list rows;
    json_t *j;

    draft_list_free(&t->rows);
    assert_int_equal(draft_rows_get(t->from->en, &rows, &t->error), ERR_OK);
    j = draft_rows_json(&rows);
    draft_list_free(&rows);
    assert_int_equal(draft_rows_read(j, &t->rows, &t->error), ERR_OK);
    json_decref(j);
}

static err_t
take(struct two *t, enum draft_overlap overlap, size_t *ret_stored)
{
    read_rows(t);
    return draft_take(
        t->to->en,
        &(struct draft_taking){.rows = &t->rows, .overlap = overlap, .from = "n1", .who = &who},
        ret_stored, &t->error);
}

/* All that was read. */
static size_t
hand_over(struct two *t)
{
    struct lineage_entry taken[4] = {{.has_object = false}};
    size_t left = 99;

    assert_true(t->rows.count <= ARRAY_LEN(taken));
    for (size_t i = 0; i < t->rows.count; i++) {
        const struct draft_row *row = &t->rows.rows[i];

        taken[i].kind = row->kind;
        memcpy(taken[i].id, row->id, sizeof taken[i].id);
        taken[i].has_object = row->object != NULL;
        if (row->object != NULL) {
            taken[i].objhash = row->object->objhash;
        }
    }
    assert_int_equal(
        draft_hand_over(
            t->from->en,
            &(struct draft_handing){.taken = taken, .count = t->rows.count, .to = "n2"}, &left,
            &t->error),
        ERR_OK);
    return left;
}

static void
it_is_stored_there_and_then_leaves(void **state)
{
    struct two *t = *state;
    size_t stored;

    assert_int_equal(take(t, OVERLAP_REFUSE, &stored), ERR_OK);
    assert_int_equal(stored, 2);
    assert_string_equal(engine_lab_draft(t->to), "server a, server b");
    assert_string_equal(engine_lab_draft(t->from), "server a, server b");
    assert_int_equal(take(t, OVERLAP_REFUSE, &stored), ERR_OK);
    assert_int_equal(stored, 0); /* again, after an interruption */
    assert_int_equal(hand_over(t), 0);
    assert_string_equal(engine_lab_draft(t->from), "");
    assert_int_equal(hand_over(t), 0);
    assert_string_equal(engine_lab_draft(t->to), "server a, server b");
    assert_string_equal(t->rows.rows[0].author, "admin maria");
}

static void
what_was_edited_on_stays(void **state)
{
    struct two *t = *state;
    size_t stored;

    assert_int_equal(take(t, OVERLAP_REFUSE, &stored), ERR_OK);
    engine_lab_must(
        t->from, "[{'op': 'merge', 'kind': 'server', 'name': 'b', 'body': {'port': 9}}]");
    assert_int_equal(hand_over(t), 1);
    assert_string_equal(engine_lab_draft(t->from), "server b");
}

static void
what_is_of_one_node_stays_there(void **state)
{
    struct two *t = *state;
    size_t stored;

    engine_lab_must(
        t->from, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'note': 'n'}}]");
    assert_int_equal(take(t, OVERLAP_REFUSE, &stored), ERR_OK);
    assert_int_equal(stored, 2);
    assert_int_equal(hand_over(t), 0);
    assert_string_equal(engine_lab_draft(t->from), "node proxy1");
}

static void
who_may_not_edit_takes_nothing(void **state)
{
    static const struct actor locked = {.name = "admin paul", .locked = "n3 holds the VIP"};
    struct two *t = *state;
    size_t stored = 9;

    read_rows(t);
    assert_int_equal(
        draft_take(
            t->to->en, &(struct draft_taking){.rows = &t->rows, .from = "n1", .who = &locked},
            &stored, &t->error),
        ERR_LOCKED);
    assert_int_equal(stored, 0);
    assert_string_equal(engine_lab_draft(t->to), "");
}

/* A server of the same name was drafted on both. */
static void
what_both_change_is_decided_by_the_caller(void **state)
{
    struct two *t = *state;
    size_t stored;
    struct view *v;

    engine_lab_must(
        t->to, "[{'op': 'create', 'kind': 'server', 'body': {'name': 'b', 'address': "
               "'10.0.0.9', 'port': 9}}]");
    assert_int_equal(take(t, OVERLAP_REFUSE, &stored), ERR_CONFLICT);
    assert_non_null(strstr(t->error.msg, "server b"));
    assert_null(strstr(t->error.msg, "server a"));
    assert_string_equal(engine_lab_draft(t->to), "server b");
    assert_int_equal(take(t, OVERLAP_OURS, &stored), ERR_OK);
    assert_int_equal(stored, 1);
    v = engine_view(t->to->en);
    assert_int_equal(
        object_int(snapshot_by_name(v->draft.shared, K_SERVER, "b"), F_SERVER_PORT), 9);
    view_unref(v);
    assert_int_equal(take(t, OVERLAP_THEIRS, &stored), ERR_OK);
    assert_int_equal(stored, 1);
    v = engine_view(t->to->en);
    assert_int_equal(
        object_int(snapshot_by_name(v->draft.shared, K_SERVER, "b"), F_SERVER_PORT), 8080);
    view_unref(v);
    assert_string_equal(engine_lab_draft(t->to), "server a, server b");
}

static void
rows_that_no_node_makes_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[1]",
        "[{}]",
        "[{" PLACE "}]",
        "[{'kind': 'nothing', 'id': " ID ", " REST "}]",
        "[{'kind': 'node', 'id': 'node', " REST "}]",
        "[{'kind': 'admin', 'id': " ID ", " REST "}]",
        "[{'kind': 'automation_key', 'id': " ID ", " REST "}]",
        "[{'kind': 'server_state', 'id': " ID ", " REST "}]",
        "[{'kind': 'pool', 'id': 'x', " REST "}]",
        "[{'kind': 'haproxy', 'id': " ID ", " REST "}]",
        "[{'kind': 'haproxy', 'id': 'haproxy', " REST "}]",
        "[{" PLACE ", " REST ", 'more': 1}]",
        "[{" PLACE ", " REST "}, {" PLACE ", " REST "}]",
        "[{" PLACE ", 'name': 'p', 'author': 'a', 'at_ms': -1, 'base': null, 'object': null}]",
        "[{" PLACE ", 'name': 'p', 'author': 'a', 'at_ms': 1, 'base': 'x', 'object': null}]",
        "[{" PLACE ", 'name': 'p', 'author': 'a', 'at_ms': 1, 'base': null, 'object': 1}]",
        "[{" PLACE ", 'name': 'p', 'author': 'a', 'at_ms': 1, 'base': null, 'object': {}}]",
        "[{" PLACE ", 'name': 'p', 'author': 'a\\nb', 'at_ms': 1, 'base': null, "
        "'object': null}]",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *j = pair_json(bad[i]);
        struct draft_list rows;
        struct error e;

        if (draft_rows_read(j, &rows, &e) == ERR_OK) {
            fail_msg("%s is taken", bad[i]);
        }
        draft_list_free(&rows);
        json_decref(j);
    }
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(it_is_stored_there_and_then_leaves),
        WITH(what_was_edited_on_stays),
        WITH(what_is_of_one_node_stays_there),
        WITH(who_may_not_edit_takes_nothing),
        WITH(what_both_change_is_decided_by_the_caller),
        cmocka_unit_test(rows_that_no_node_makes_are_refused),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
