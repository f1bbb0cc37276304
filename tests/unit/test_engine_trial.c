/* SPDX-License-Identifier: Apache-2.0 */
/* What another node is about to apply: checked here, and tried here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crypt.h"
#include "engine/kept.h"
#include "engine/standby.h"
#include "engine/sync_check.h"
#include "tests/support/engine_lab.h"

#define PROBLEM_BYTES ((size_t)1 << 20)
#define ORIGIN        (&(struct sync_origin){.how = SYNC_PUSHED, .from = "other"})

struct two {
    struct engine_lab *from, *to;
};

static struct hash
head_of(const struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return v->head.id;
}

static void
set_title(struct engine_lab *l, const char *title)
{
    char ops[160];

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': '%s'}}]",
        title);
    engine_lab_apply_ok(l, ops);
}

/* What from has and to has not. */
static struct sync_doc
offer(const struct two *t)
{
    struct hash have = head_of(t->to);
    struct sync_wanted wanted = {.have = &have, .have_count = 1};
    struct sync_doc d;
    struct error e;

    assert_int_equal(sync_doc_make(t->from->en, &wanted, &d, &e), ERR_OK);
    return d;
}

static err_t
check(const struct two *t, struct sync_checked *ret)
{
    CLEANUP(sync_doc_free) struct sync_doc d = offer(t);
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(PROBLEM_BYTES);
    struct problems p;

    problems_init(&p, arena);
    return sync_check(t->to->en, &d, ORIGIN, ret, &p, &t->to->error);
}

/* As its task ended; *ret: id of the candidate. */
static void
try_it(const struct two *t, const char *state, struct hash *ret)
{
    CLEANUP(sync_doc_free) struct sync_doc d = offer(t);
    struct sync_checked tried;
    json_t *task;

    assert_int_equal(sync_trial(t->to->en, &d, ORIGIN, &tried, &t->to->error), ERR_OK);
    task = engine_lab_task(t->to, tried.task);
    assert_string_equal(json_string_value(json_object_get(task, "state")), state);
    json_decref(task);
    *ret = d.head;
}

static void
push(const struct two *t, const char *state)
{
    struct sync_doc d = offer(t);
    struct sync_result result;
    json_t *task;

    assert_int_equal(sync_take(t->to->en, &d, ORIGIN, &result, &t->to->error), ERR_OK);
    task = engine_lab_task(t->to, result.task);
    assert_string_equal(json_string_value(json_object_get(task, "state")), state);
    json_decref(task);
}

static void
later(struct engine_lab *l, int64_t ms)
{
    l->mono_stands_ms = clock_mono_ms(&clock_system) + ms;
}

static void
assert_same_head(const struct two *t)
{
    struct hash a = head_of(t->from);
    struct hash b = head_of(t->to);

    assert_true(hash_equal(&a, &b));
}

static int
set_up(void **state)
{
    static struct two t;
    struct sync_doc d;
    struct sync_result result;

    t.from = engine_lab_new();
    t.to = engine_lab_new();
    engine_lab_start(t.from);
    engine_lab_start(t.to);
    set_title(t.from, "first");
    d = offer(&t);
    assert_int_equal(
        sync_take(
            t.to->en, &d, &(struct sync_origin){.how = SYNC_JOINED, .from = "other"}, &result,
            &t.to->error),
        ERR_OK);
    json_decref(engine_lab_task(t.to, result.task));
    assert_same_head(&t);
    set_title(t.from, "second");
    *state = &t;
    return 0;
}

static int
tear_down(void **state)
{
    struct two *t = *state;

    engine_lab_delete(t->from);
    engine_lab_delete(t->to);
    return 0;
}

/* ---- checking ---- */

static void
a_check_changes_nothing_and_its_push_is_not_checked_again(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash head = head_of(t->to);
    struct fake_facts after;
    struct sync_checked checked;
    struct hash now;

    assert_int_equal(check(t, &checked), ERR_OK);
    after = fake_look(&t->to->fake);
    now = head_of(t->to);
    assert_true(hash_equal(&head, &now));
    assert_int_equal(after.stages, before.stages + 1);
    assert_int_equal(after.installs, before.installs);
    assert_int_equal(after.reloads, before.reloads);
    assert_int_equal(after.current, before.current);
    assert_string_equal(after.running, before.running);
    push(t, "ok");
    assert_same_head(t);
    assert_int_equal(fake_look(&t->to->fake).stages, before.stages + 1);
    assert_int_equal(fake_look(&t->to->fake).good, fake_look(&t->to->fake).current);
}

static void
what_was_checked_is_kept_for_a_time_only(void **state)
{
    const struct two *t = *state;
    struct sync_checked checked;
    int stages;

    later(t->to, 0);
    assert_int_equal(check(t, &checked), ERR_OK);
    stages = fake_look(&t->to->fake).stages;
    later(t->to, t->to->tunables.check_kept_ms + 1000);
    push(t, "ok");
    assert_int_equal(fake_look(&t->to->fake).stages, stages + 1);
}

static void
what_was_checked_for_other_settings_of_this_node_is_checked_again(void **state)
{
    const struct two *t = *state;
    struct sync_checked checked;
    int stages;

    assert_int_equal(check(t, &checked), ERR_OK);
    engine_lab_apply_ok(
        t->to, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': "
               "{'keep_in_step': false}}]");
    stages = fake_look(&t->to->fake).stages;
    push(t, "ok");
    assert_int_equal(fake_look(&t->to->fake).stages, stages + 1);
}

static void
a_check_that_fails_keeps_nothing(void **state)
{
    const struct two *t = *state;
    struct sync_checked checked;
    int stages;

    fake_fail(&t->to->fake, FAKE_CHECK, 1);
    assert_int_equal(check(t, &checked), ERR_INVALID);
    stages = fake_look(&t->to->fake).stages;
    push(t, "ok");
    assert_int_equal(fake_look(&t->to->fake).stages, stages + 1);
}

static void
what_is_older_is_refused_as_by_a_push(void **state)
{
    const struct two *t = *state;
    const struct two back = {t->to, t->from};
    CLEANUP(sync_doc_free) struct sync_doc d = offer(&back);
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(PROBLEM_BYTES);
    struct sync_checked checked;
    struct problems p;

    problems_init(&p, arena);
    d.head = head_of(t->to);
    assert_int_equal(
        sync_check(t->from->en, &d, ORIGIN, &checked, &p, &t->from->error), ERR_CONFLICT);
    assert_string_equal(checked.result.refusal, "stale_push");
    assert_int_equal(
        sync_trial(t->from->en, &d, ORIGIN, &checked, &t->from->error), ERR_CONFLICT);
}

/* ---- trying ---- */

static void
the_push_of_a_trial_only_stores_it(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash head = head_of(t->to);
    struct fake_facts tried;
    struct hash candidate, now;

    try_it(t, "ok", &candidate);
    tried = fake_look(&t->to->fake);
    now = head_of(t->to);
    assert_true(hash_equal(&head, &now));
    assert_string_not_equal(tried.running, before.running);
    assert_int_equal(tried.reloads, before.reloads + 1);
    assert_int_equal(tried.good, before.good);
    push(t, "ok");
    assert_same_head(t);
    assert_int_equal(fake_look(&t->to->fake).reloads, tried.reloads);
    assert_int_equal(fake_look(&t->to->fake).stages, tried.stages);
    assert_int_equal(fake_look(&t->to->fake).good, tried.current);
    assert_false(standby_holds(t->to->en));
}

/* Its own check, then the trial, then the push: the checker runs once. */
static void
a_trial_uses_what_was_checked(void **state)
{
    const struct two *t = *state;
    int stages = fake_look(&t->to->fake).stages;
    struct sync_checked checked;
    struct hash candidate;

    assert_int_equal(check(t, &checked), ERR_OK);
    try_it(t, "ok", &candidate);
    push(t, "ok");
    assert_int_equal(fake_look(&t->to->fake).stages, stages + 1);
}

static void
runs_the_former(const struct two *t, const struct fake_facts *before)
{
    struct hash from = head_of(t->from);
    struct hash to = head_of(t->to);

    assert_false(hash_equal(&from, &to));
    engine_lab_await(t->to, engine_lab_serves_head);
    assert_string_equal(fake_look(&t->to->fake).running, before->running);
    assert_string_equal(fake_look(&t->to->fake).current_digest, before->running);
}

static void
a_trial_stays_until_its_time_and_goes_back_by_itself(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate;
    int64_t checked;

    later(t->to, 0);
    try_it(t, "ok", &candidate);
    /* Its files are not those of the head, and nothing is wrong with them. */
    assert_int_equal(edit_verify(t->to->en, &checked, &t->to->error), ERR_BUSY);
    later(t->to, t->to->tunables.trial_ms - 5000);
    assert_true(standby_holds(t->to->en));
    assert_string_not_equal(fake_look(&t->to->fake).running, before.running);
    later(t->to, t->to->tunables.trial_ms + 5000);
    runs_the_former(t, &before);
    assert_int_equal(edit_verify(t->to->en, &checked, &t->to->error), ERR_OK);
}

static void
a_trial_is_ended_by_who_asked_for_it(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate, other = {{1}};

    try_it(t, "ok", &candidate);
    standby_cancel(t->to->en, &other);
    assert_true(standby_holds(t->to->en));
    standby_cancel(t->to->en, &candidate);
    assert_false(standby_holds(t->to->en));
    runs_the_former(t, &before);
}

static void
assert_cancelled(const struct two *t)
{
    CLEANUP(sync_doc_free) struct sync_doc d = offer(t);
    struct sync_checked tried;

    assert_int_equal(sync_trial(t->to->en, &d, ORIGIN, &tried, &t->to->error), ERR_CONFLICT);
    assert_string_equal(tried.result.refusal, "cancelled");
    assert_int_equal(tried.task, 0);
    assert_false(standby_holds(t->to->en));
}

static void
a_trial_that_was_cancelled_before_it_began_does_not_begin(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate = head_of(t->from);
    struct fake_facts after;

    later(t->to, 0);
    standby_cancel(t->to->en, &candidate);
    assert_cancelled(t);
    later(t->to, t->to->tunables.trial_ms - 5000);
    assert_cancelled(t);
    after = fake_look(&t->to->fake);
    assert_int_equal(after.stages, before.stages);
    assert_int_equal(after.installs, before.installs);
    assert_int_equal(after.reloads, before.reloads);
    later(t->to, t->to->tunables.trial_ms + 5000);
    try_it(t, "ok", &candidate);
    assert_true(standby_holds(t->to->en));
}

static void
another_candidate_is_tried_after_a_cancel(void **state)
{
    const struct two *t = *state;
    struct hash candidate = head_of(t->from);

    standby_cancel(t->to->en, &candidate);
    assert_cancelled(t);
    set_title(t->from, "third");
    set_title(t->from, "second");
    try_it(t, "ok", &candidate);
    assert_true(standby_holds(t->to->en));
}

/* The cancel comes while HAProxy loads it. */
static void
a_trial_that_was_cancelled_while_it_began_goes_back(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    CLEANUP(sync_doc_free) struct sync_doc d = offer(t);
    struct sync_checked tried;

    assert_int_equal(sync_trial(t->to->en, &d, ORIGIN, &tried, &t->to->error), ERR_OK);
    standby_cancel(t->to->en, &d.head);
    json_decref(engine_lab_task(t->to, tried.task));
    assert_false(standby_holds(t->to->en));
    runs_the_former(t, &before);
}

static void
so_many_cancels_are_remembered(void **state)
{
    const struct two *t = *state;
    struct standby tried = {.digest = "tried", .local_rev = 1};

    for (uint8_t i = 0; i <= STANDBY_CANCELLED; i++) {
        standby_cancel(t->to->en, &(struct hash){{i}});
        /* Once more takes no other place. */
        standby_cancel(t->to->en, &(struct hash){{i}});
    }
    for (uint8_t i = 1; i <= STANDBY_CANCELLED; i++) {
        tried.commit = (struct hash){{i}};
        assert_int_equal(standby_begin(t->to->en, &tried, &t->to->error), ERR_CONFLICT);
        assert_false(standby_holds(t->to->en));
    }
    tried.commit = (struct hash){{0}};
    assert_int_equal(standby_begin(t->to->en, &tried, &t->to->error), ERR_OK);
    assert_true(standby_holds(t->to->en));
    standby_end(t->to->en);
}

/* Files that are loaded then go back, if they must, to what served here before the trial. */
static void
a_trial_that_is_over_gives_way_until_something_is_committed(void **state)
{
    const struct two *t = *state;
    struct standby tried = {.commit = {{7}}, .digest = "tried", .local_rev = 1};

    assert_false(standby_gives_way(t->to->en, "other", 1));
    assert_int_equal(standby_begin(t->to->en, &tried, &t->to->error), ERR_OK);
    assert_false(standby_gives_way(t->to->en, "tried", 1));
    standby_cancel(t->to->en, &tried.commit);
    assert_true(standby_gives_way(t->to->en, "other", 1));
    assert_true(standby_gives_way(t->to->en, "other", 1));
    standby_end(t->to->en);
    assert_false(standby_gives_way(t->to->en, "other", 1));
}

static void *
check_apart(void *ctx)
{
    struct sync_checked checked = {.same = true};

    assert_int_equal(check(ctx, &checked), ERR_OK);
    return NULL;
}

/* Else whatever ends meanwhile would clean it up. */
static void
what_is_being_checked_is_kept_already(void **state)
{
    struct two *t = *state;
    struct sync_checked checked = {.same = true};
    pthread_t thread;

    set_title(t->from, "to be held");
    assert_int_equal(kept_number(t->to->en), 0);
    fake_hold(&t->to->fake);
    assert_int_equal(pthread_create(&thread, NULL, check_apart, t), 0);
    fake_await_held(&t->to->fake);
    assert_int_not_equal(kept_number(t->to->en), 0);
    fake_release(&t->to->fake);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(kept_number(t->to->en), 0);
    set_title(t->from, "to be refused");
    fake_fail(&t->to->fake, FAKE_CHECK, 1);
    assert_int_not_equal(check(t, &checked), ERR_OK);
    assert_int_equal(kept_number(t->to->en), 0);
}

static void
a_restart_ends_a_trial(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate;

    try_it(t, "ok", &candidate);
    engine_lab_close(t->to);
    assert_string_not_equal(fake_look(&t->to->fake).running, before.running);
    engine_lab_start(t->to);
    runs_the_former(t, &before);
}

static void
what_does_not_serve_is_taken_back_at_once(void **state)
{
    static const enum fake_fault faults[] = {FAKE_CHECK, FAKE_INSTALL, FAKE_LOAD};
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate;

    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        fake_fail(&t->to->fake, faults[i], 1);
        try_it(t, "failed", &candidate);
        assert_false(standby_holds(t->to->en));
        assert_string_equal(fake_look(&t->to->fake).running, before.running);
    }
}

/* What goes back then goes back to what served here, not to the trial. */
static void
another_revision_ends_a_trial(void **state)
{
    const struct two *t = *state;
    struct fake_facts before = fake_look(&t->to->fake);
    struct hash candidate;

    try_it(t, "ok", &candidate);
    set_title(t->from, "third");
    fake_fail(&t->to->fake, FAKE_LOAD, 1);
    push(t, "failed");
    assert_false(standby_holds(t->to->en));
    runs_the_former(t, &before);
    push(t, "ok");
    assert_same_head(t);
    engine_lab_await(t->to, engine_lab_serves_head);
}

static void
an_apply_of_this_node_ends_a_trial(void **state)
{
    const struct two *t = *state;
    struct hash candidate;
    struct fake_facts tried;

    try_it(t, "ok", &candidate);
    tried = fake_look(&t->to->fake);
    set_title(t->to, "own");
    assert_false(standby_holds(t->to->en));
    engine_lab_await(t->to, engine_lab_serves_head);
    assert_string_not_equal(fake_look(&t->to->fake).running, tried.running);
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(a_check_changes_nothing_and_its_push_is_not_checked_again),
        WITH(what_was_checked_is_kept_for_a_time_only),
        WITH(what_was_checked_for_other_settings_of_this_node_is_checked_again),
        WITH(a_check_that_fails_keeps_nothing),
        WITH(what_is_older_is_refused_as_by_a_push),
        WITH(the_push_of_a_trial_only_stores_it),
        WITH(a_trial_uses_what_was_checked),
        WITH(a_trial_stays_until_its_time_and_goes_back_by_itself),
        WITH(a_trial_is_ended_by_who_asked_for_it),
        WITH(a_trial_that_was_cancelled_before_it_began_does_not_begin),
        WITH(another_candidate_is_tried_after_a_cancel),
        WITH(a_trial_that_was_cancelled_while_it_began_goes_back),
        WITH(so_many_cancels_are_remembered),
        WITH(a_trial_that_is_over_gives_way_until_something_is_committed),
        WITH(what_is_being_checked_is_kept_already),
        WITH(a_restart_ends_a_trial),
        WITH(what_does_not_serve_is_taken_back_at_once),
        WITH(another_revision_ends_a_trial),
        WITH(an_apply_of_this_node_ends_a_trial),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
