/* SPDX-License-Identifier: Apache-2.0 */
/* What one node hands to another, and what that makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crypt.h"
#include "engine/sync.h"
#include "tests/support/sync_lab.h"

#define NODES 3

struct trio {
    struct engine_lab *l[NODES];
};

static void
hand(const struct engine_lab *from, struct engine_lab *to, enum sync_how how)
{
    struct hash have = sync_lab_head(to).id;
    struct sync_doc d =
        sync_lab_doc(from, &(struct sync_wanted){.have = &have, .have_count = 1});

    sync_lab_take(to, &d, how);
}

static int
set_up(void **state)
{
    static struct trio t;

    for (size_t i = 0; i < NODES; i++) {
        t.l[i] = engine_lab_new();
        engine_lab_start(t.l[i]);
    }
    sync_lab_title(t.l[0], 0);
    for (size_t i = 1; i < NODES; i++) {
        hand(t.l[0], t.l[i], SYNC_JOINED);
    }
    *state = &t;
    return 0;
}

static int
tear_down(void **state)
{
    struct trio *t = *state;

    for (size_t i = 0; i < NODES; i++) {
        engine_lab_delete(t->l[i]);
    }
    return 0;
}

/* Nothing here could be rendered without it. */
static void
a_revision_without_a_singleton_is_refused(void **state)
{
    const struct trio *t = *state;
    struct hash have = sync_lab_head(t->l[1]).id;
    struct sync_result result;
    struct sync_doc d;
    struct error e;

    sync_lab_title(t->l[0], 1);
    d = sync_lab_doc(t->l[0], &(struct sync_wanted){.have = &have, .have_count = 1});
    assert_int_equal(d.commits.items[0].entry_count, 1);
    d.commits.items[0].entries[0].has_object = false;
    assert_int_equal(
        sync_take(
            t->l[1]->en, &d, &(struct sync_origin){.how = SYNC_PUSHED, .from = "n1"}, &result,
            &e),
        ERR_INVALID);
    assert_non_null(strstr(e.msg, "haproxy"));
}

/* A push meets a pull: both were decided on the same head. */
static void
what_comes_twice_at_once_is_taken_once(void **state)
{
    const struct trio *t = *state;
    struct hash have = sync_lab_head(t->l[1]).id;
    struct sync_result results[2];
    struct sync_doc docs[2];
    struct hash sent, taken;
    struct error e;

    sync_lab_title(t->l[0], 1);
    for (size_t i = 0; i < 2; i++) {
        docs[i] = sync_lab_doc(t->l[0], &(struct sync_wanted){.have = &have, .have_count = 1});
    }
    fake_hold(&t->l[1]->fake);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            sync_take(
                t->l[1]->en, &docs[i],
                &(struct sync_origin){.how = i == 0 ? SYNC_PULLED : SYNC_PUSHED, .from = "n1"},
                &results[i], &e),
            ERR_OK);
        assert_int_not_equal(results[i].task, 0);
    }
    fake_await_held(&t->l[1]->fake);
    fake_release(&t->l[1]->fake);
    for (size_t i = 0; i < 2; i++) {
        json_t *task = engine_lab_task(t->l[1], results[i].task);

        assert_string_equal(json_string_value(json_object_get(task, "state")), "ok");
        json_decref(task);
    }
    sent = sync_lab_head(t->l[0]).id;
    taken = sync_lab_head(t->l[1]).id;
    assert_memory_equal(&sent, &taken, sizeof sent);
}

static void
a_sender_need_not_know_how_far_the_other_has_come(void **state)
{
    const struct trio *t = *state;
    struct hash old = sync_lab_head(t->l[1]).id;
    struct hash sent, taken;
    struct sync_doc d;

    sync_lab_title(t->l[0], 1);
    hand(t->l[0], t->l[1], SYNC_PUSHED);
    sync_lab_title(t->l[0], 2);
    d = sync_lab_doc(t->l[0], &(struct sync_wanted){.have = &old, .have_count = 1});
    assert_int_equal(d.commits.count, 2);
    sync_lab_take(t->l[1], &d, SYNC_PUSHED);
    sent = sync_lab_head(t->l[0]).id;
    taken = sync_lab_head(t->l[1]).id;
    assert_true(hash_equal(&sent, &taken));
}

static void
an_overwrite_brings_the_heads_that_the_other_does_not_know(void **state)
{
    const struct trio *t = *state;
    struct commit heads[NODES], c;
    struct sync_view seen;
    struct sync_doc d;
    struct hash now;

    for (int i = 0; i < NODES; i++) {
        sync_lab_title(t->l[i], i + 1);
        heads[i] = sync_lab_head(t->l[i]);
    }
    hand(t->l[1], t->l[0], SYNC_STORED);
    hand(t->l[2], t->l[0], SYNC_STORED);
    c = heads[0];
    c.rev++;
    c.parent_count = NODES;
    for (size_t i = 0; i < NODES; i++) {
        c.parents[i] = heads[i].id;
    }
    c.id = commit_compute_id(&c);
    d = sync_lab_doc(
        t->l[0], &(struct sync_wanted){.have = &heads[1].id, .have_count = 1, .on_top = &c});
    d.has_expected = true;
    d.expected = heads[1].id;
    sync_lab_take(t->l[1], &d, SYNC_PUSHED);
    now = sync_lab_head(t->l[1]).id;
    assert_true(hash_equal(&now, &c.id));
    assert_int_equal(sync_look(t->l[1]->en, &heads[2].id, &seen, &t->l[1]->error), ERR_OK);
    assert_true(seen.have);
}

static void
an_overwrite_is_of_the_present_head(void **state)
{
    const struct trio *t = *state;
    struct commit c = sync_lab_head(t->l[0]);
    struct sync_doc d;
    struct error e;

    c.parents[0] = c.id;
    c.parent_count = 1;
    sync_lab_title(t->l[0], 1);
    assert_int_equal(
        sync_doc_make(t->l[0]->en, &(struct sync_wanted){.on_top = &c}, &d, &e), ERR_CONFLICT);
}

/* Else each look at another head brings everything that ever was. */
static void
what_both_have_does_not_travel(void **state)
{
    const struct trio *t = *state;
    struct sync_wanted wanted;
    struct hash have[SYNC_HAVE_MAX];
    struct sync_doc d;

    for (int i = 1; i <= 5; i++) {
        sync_lab_title(t->l[0], i);
        hand(t->l[0], t->l[1], SYNC_PUSHED);
    }
    sync_lab_title(t->l[0], 6);
    sync_lab_title(t->l[1], 7);
    wanted = (struct sync_wanted){.have = have};
    assert_int_equal(sync_have(t->l[0]->en, have, &wanted.have_count, &t->l[0]->error), ERR_OK);
    d = sync_lab_doc(t->l[1], &wanted);
    assert_int_equal(d.commits.count, 1);
    sync_doc_free(&d);
}

/* It was a member, and was changed while it was none. */
static void
who_joins_and_is_ahead_takes_nothing(void **state)
{
    const struct trio *t = *state;
    struct hash have = sync_lab_head(t->l[1]).id;
    struct hash ahead;
    struct sync_result result;
    struct sync_doc d;
    struct error e;

    d = sync_lab_doc(t->l[0], &(struct sync_wanted){.have = &have, .have_count = 1});
    sync_lab_title(t->l[1], 1);
    ahead = sync_lab_head(t->l[1]).id;
    assert_int_equal(
        sync_take(
            t->l[1]->en, &d, &(struct sync_origin){.how = SYNC_JOINED, .from = "other"},
            &result, &e),
        ERR_OK);
    assert_int_equal(result.task, 0);
    have = sync_lab_head(t->l[1]).id;
    assert_true(hash_equal(&have, &ahead));
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(a_revision_without_a_singleton_is_refused),
        WITH(what_comes_twice_at_once_is_taken_once),
        WITH(a_sender_need_not_know_how_far_the_other_has_come),
        WITH(an_overwrite_brings_the_heads_that_the_other_does_not_know),
        WITH(an_overwrite_is_of_the_present_head),
        WITH(what_both_have_does_not_travel),
        WITH(who_joins_and_is_ahead_takes_nothing),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
