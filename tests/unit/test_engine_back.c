/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/engine_lab.h"

static const char *
text_of(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static void
digest_of_status(struct engine_lab *l, char out[17])
{
    struct engine_status s;

    engine_get_status(l->en, &s);
    memcpy(out, s.running_digest, sizeof s.running_digest);
}

static void
a_failed_reload_puts_the_former_back(void **state)
{
    struct engine_lab *l = *state;
    int64_t current = fake_look(&l->fake).current;
    char digest[17];
    json_t *task;

    digest_of_status(l, digest);
    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_LOAD, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "load", "failed");
    assert_string_equal(engine_lab_step(task, "back_verify"), "ok");
    assert_string_equal(engine_lab_step(task, "commit"), "");
    assert_non_null(strstr(text_of(task, "message"), "the former revision serves"));
    assert_non_null(strstr(text_of(task, "message"), "cannot bind socket"));
    json_decref(task);
    /* C094, C099 */
    assert_int_equal(fake_look(&l->fake).current, current);
    assert_int_equal(fake_look(&l->fake).good, current);
    assert_string_equal(fake_look(&l->fake).running, digest);
    assert_string_equal(engine_lab_draft(l), "listener web");
    assert_int_equal(engine_lab_rev(l), 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
}

/* C093 */
static void
a_listener_that_does_not_answer_puts_the_former_back(void **state)
{
    struct engine_lab *l = *state;
    int64_t current = fake_look(&l->fake).current;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_SERVE, -1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "verify", "failed");
    assert_string_equal(engine_lab_step(task, "back_load"), "ok");
    assert_non_null(strstr(text_of(task, "message"), "listener web"));
    json_decref(task);
    assert_int_equal(fake_look(&l->fake).current, current);
    assert_string_equal(engine_lab_draft(l), "listener web");
    fake_fail(&l->fake, FAKE_SERVE, 0);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
}

static void
a_refused_switch_puts_the_former_back(void **state)
{
    struct engine_lab *l = *state;
    int64_t current = fake_look(&l->fake).current;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_INSTALL, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "activate", "failed");
    assert_string_equal(engine_lab_step(task, "back"), "ok");
    json_decref(task);
    assert_int_equal(fake_look(&l->fake).current, current);
}

static bool
is_back(struct engine_lab *l)
{
    struct engine_status s;

    engine_get_status(l->en, &s);
    return engine_lab_serves_head(l) && s.reason[0] == '\0';
}

/* The task of an apply during which "load" fails twice, and after which the helper refuses to
 * tell its state, so that nothing is repaired before the test has looked. */
static json_t *
apply_that_cannot_go_back(struct engine_lab *l, bool haproxy_gone)
{
    int64_t id;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_hold(&l->fake);
    id = engine_lab_apply(l);
    fake_await_held(&l->fake);
    fake_fail(&l->fake, FAKE_LOAD, 2);
    fake_fail(&l->fake, FAKE_STATUS, -1);
    if (haproxy_gone) {
        fake_run(&l->fake, NULL);
    }
    fake_release(&l->fake);
    return engine_lab_task(l, id);
}

static void
a_way_back_that_fails_is_told_and_repaired(void **state)
{
    struct engine_lab *l = *state;
    struct engine_status s;
    json_t *task = apply_that_cannot_go_back(l, false);

    engine_lab_ended(task, "failed", "back_load", "failed");
    /* The worker from before was never replaced. */
    assert_string_equal(engine_lab_step(task, "back_verify"), "ok");
    json_decref(task);
    engine_get_status(l->en, &s);
    assert_true(strlen(s.reason) > 0);
    fake_fail(&l->fake, FAKE_STATUS, 0);
    engine_lab_await(l, is_back);
    assert_string_equal(engine_lab_draft(l), "listener web");
}

static void
an_haproxy_that_does_not_serve_is_told_and_followed(void **state)
{
    struct engine_lab *l = *state;
    struct engine_status s;
    json_t *task = apply_that_cannot_go_back(l, true);

    engine_lab_ended(task, "failed", "back_verify", "failed");
    assert_non_null(
        strstr(text_of(task, "message"), "HAProxy does not answer on its admin socket"));
    json_decref(task);
    engine_get_status(l->en, &s);
    assert_int_equal(s.up, FACT_NO);
    assert_int_equal(s.serving, FACT_NO);
    fake_fail(&l->fake, FAKE_STATUS, 0);
    engine_lab_await(l, is_back);
}

static bool
is_settled(struct engine_lab *l)
{
    struct fake_facts facts = fake_look(&l->fake);

    return facts.good == facts.current && is_back(l);
}

static void
what_cannot_be_marked_as_good_is_still_applied(void **state)
{
    struct engine_lab *l = *state;
    int reloads;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_SETTLE, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "failed");
    json_decref(task);
    reloads = fake_look(&l->fake).reloads;
    assert_int_equal(engine_lab_rev(l), 2);
    /* That is repeated, and HAProxy has nothing to load. */
    engine_lab_await(l, is_settled);
    assert_int_equal(fake_look(&l->fake).reloads, reloads);
}

static bool
has_loaded(struct engine_lab *l)
{
    return fake_look(&l->fake).reloads > l->seen_until_ms;
}

static void
what_still_runs_is_told(void **state)
{
    struct engine_lab *l = *state;
    char former[17];
    int64_t id;
    json_t *task;

    digest_of_status(l, former);
    l->tunables.verify_ms = 1500;
    l->seen_until_ms = fake_look(&l->fake).reloads;
    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_SERVE, -1);
    id = engine_lab_apply(l);
    engine_lab_await(l, has_loaded);
    fake_fail(&l->fake, FAKE_INSTALL, -1);
    task = engine_lab_task(l, id);
    engine_lab_ended(task, "failed", "back", "failed");
    assert_non_null(strstr(text_of(task, "message"), "still runs the new revision"));
    json_decref(task);
    assert_string_not_equal(fake_look(&l->fake).running, former);
    fake_fail(&l->fake, FAKE_INSTALL, 0);
    fake_fail(&l->fake, FAKE_SERVE, 0);
    engine_lab_await(l, is_back);
}

static void
listeners_of_the_former_are_asked_after_a_change_at_once(void **state)
{
    struct engine_lab *l = *state;
    int64_t id;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    json_decref(engine_lab_applied(l));
    engine_lab_must(l, "[" LAB_TITLE("Back soon") "]");
    fake_fail(&l->fake, FAKE_SERVE, -1);
    fake_hold(&l->fake);
    id = engine_lab_apply(l);
    fake_await_held(&l->fake);
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]");
    fake_release(&l->fake);
    task = engine_lab_task(l, id);
    engine_lab_ended(task, "failed", "back_verify", "failed");
    assert_non_null(strstr(text_of(task, "message"), "former revision, which does not serve"));
    json_decref(task);
}

static void
a_key_made_for_a_pool_that_goes_is_named(void **state)
{
    struct engine_lab *l = *state;
    int64_t id;
    json_t *task;

    engine_lab_apply_ok(l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'gone'}}]");
    engine_lab_must(l, "[{'op': 'delete', 'kind': 'pool', 'name': 'gone'}]");
    fake_hold(&l->fake);
    id = engine_lab_apply(l);
    fake_await_held(&l->fake);
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy',"
           " 'scope': 'operate', 'pools': ['gone']}}]");
    fake_release(&l->fake);
    task = engine_lab_task(l, id);
    engine_lab_ended(task, "failed", "back_verify", "ok");
    assert_non_null(strstr(text_of(task, "message"), "automation_key \"deploy\" was changed"));
    json_decref(task);
    assert_non_null(engine_lab_head_object(l, K_POOL, "gone"));
}

static bool
has_a_reason(struct engine_lab *l)
{
    engine_get_status(l->en, &l->status);
    return l->status.reason[0] != '\0';
}

static void
a_first_revision_has_no_former_that_runs(void **state)
{
    struct engine_lab *l = engine_lab_new();

    (void)state;
    fake_run(&l->fake, "0123456789abcdef"); /* not ours */
    fake_fail(&l->fake, FAKE_LOAD, -1);
    engine_lab_open(l);
    engine_lab_await(l, has_a_reason);
    assert_null(strstr(l->status.reason, "former"));
    assert_non_null(strstr(l->status.reason, "does not run the new revision"));
    engine_lab_delete(l);
}

/* ---- meanwhile ---- */

/* C097 */
static void
edits_during_an_apply_survive(void **state)
{
    struct engine_lab *l = *state;
    const struct object *listener;
    int64_t id;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER ", " LAB_SERVER("web1") "]");
    fake_hold(&l->fake);
    id = engine_lab_apply(l);
    fake_await_held(&l->fake);
    engine_lab_must(l, "[" LAB_SERVER("web2") "]");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'listener', 'name': 'web', 'body': {'maxconn': 9}}]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]");
    fake_release(&l->fake);
    task = engine_lab_task(l, id);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
    /* Neither is a conflict: they stand on what was applied. */
    assert_string_equal(engine_lab_draft(l), "listener web, server web2");
    listener = engine_lab_head_object(l, K_LISTENER, "web");
    assert_int_equal(object_int(listener, F_LISTENER_MAXCONN), 0);
    assert_non_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
    assert_int_equal(engine_lab_rev(l), 3);
    engine_lab_close(l);
    engine_lab_start(l);
    assert_string_equal(engine_lab_draft(l), "listener web, server web2");
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
}

static void
a_deletion_that_is_taken_back_during_the_apply_stays_a_change(void **state)
{
    struct engine_lab *l = *state;
    int64_t id;

    engine_lab_must(l, "[" LAB_LISTENER ", " LAB_SERVER("web1") "]");
    json_decref(engine_lab_applied(l));
    engine_lab_must(l, "[{'op': 'delete', 'kind': 'server', 'name': 'web1'}]");
    engine_lab_must(l, "[" LAB_TITLE("Back soon") "]");
    fake_hold(&l->fake);
    id = engine_lab_apply(l);
    fake_await_held(&l->fake);
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(
            l->en, K_SERVER, "web1", &(struct actor){"admin maria"}, &l->problems, &l->error),
        ERR_OK);
    fake_release(&l->fake);
    json_decref(engine_lab_task(l, id));
    assert_string_equal(engine_lab_draft(l), "");
    assert_null(engine_lab_head_object(l, K_SERVER, "web1"));
}

static void
jobs_run_one_after_another_on_the_head_of_their_time(void **state)
{
    struct engine_lab *l = *state;
    int64_t first = 0;
    int64_t second = 0;
    json_t *task;

    fake_hold(&l->fake);
    assert_int_equal(engine_lab_apply_ops(l, "[" LAB_LISTENER "]", &first), ERR_OK);
    fake_await_held(&l->fake);
    assert_int_equal(engine_lab_apply_ops(l, "[" LAB_SERVER("web1") "]", &second), ERR_OK);
    fake_release(&l->fake);
    task = engine_lab_task(l, second);
    assert_string_equal(text_of(task, "state"), "ok");
    json_decref(task);
    task = engine_lab_task(l, first);
    assert_string_equal(text_of(task, "state"), "ok");
    json_decref(task);
    assert_non_null(engine_lab_head_object(l, K_LISTENER, "web"));
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web1"));
    assert_int_equal(engine_lab_rev(l), 3);
}

static void
the_queue_is_bounded(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;
    int started = 0;

    fake_hold(&l->fake);
    assert_int_equal(engine_lab_apply_ops(l, "[" LAB_LISTENER "]", &task), ERR_OK);
    fake_await_held(&l->fake);
    while (started < 100 &&
           engine_lab_apply_ops(l, "[" LAB_SERVER("web1") "]", &task) == ERR_OK) {
        started++;
    }
    assert_int_equal(l->error.code, ERR_BUSY);
    assert_int_equal(started, 15);
    fake_release(&l->fake);
    json_decref(engine_lab_task(l, task));
    assert_int_equal(engine_lab_rev(l), 3);
}

static void
a_stop_does_not_wait_for_what_has_not_changed_anything(void **state)
{
    struct engine_lab *l = *state;
    int64_t current = fake_look(&l->fake).current;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    (void)engine_lab_apply(l);
    engine_lab_close(l);
    assert_true(
        fake_look(&l->fake).current == current ||
        fake_look(&l->fake).good == fake_look(&l->fake).current);
    engine_lab_start(l);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(a_failed_reload_puts_the_former_back),
        ENGINE_LAB_TEST(a_listener_that_does_not_answer_puts_the_former_back),
        ENGINE_LAB_TEST(a_refused_switch_puts_the_former_back),
        ENGINE_LAB_TEST(a_way_back_that_fails_is_told_and_repaired),
        ENGINE_LAB_TEST(an_haproxy_that_does_not_serve_is_told_and_followed),
        ENGINE_LAB_TEST(what_cannot_be_marked_as_good_is_still_applied),
        ENGINE_LAB_TEST(what_still_runs_is_told),
        ENGINE_LAB_TEST(listeners_of_the_former_are_asked_after_a_change_at_once),
        ENGINE_LAB_TEST(a_key_made_for_a_pool_that_goes_is_named),
        cmocka_unit_test(a_first_revision_has_no_former_that_runs),
        ENGINE_LAB_TEST(edits_during_an_apply_survive),
        ENGINE_LAB_TEST(a_deletion_that_is_taken_back_during_the_apply_stays_a_change),
        ENGINE_LAB_TEST(jobs_run_one_after_another_on_the_head_of_their_time),
        ENGINE_LAB_TEST(the_queue_is_bounded),
        ENGINE_LAB_TEST(a_stop_does_not_wait_for_what_has_not_changed_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
