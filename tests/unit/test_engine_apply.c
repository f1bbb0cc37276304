/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/engine_lab.h"

static const char *
text_of(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

/* ---- it works ---- */

static void
an_apply_ends_with_the_new_revision_serving(void **state)
{
    struct engine_lab *l = *state;
    struct engine_status s;
    json_t *task;
    int64_t current = fake_look(&l->fake).current;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    assert_string_equal(text_of(task, "kind"), "apply");
    assert_string_equal(text_of(task, "author"), "admin maria");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(task, "result"), "rev")), 2);
    json_decref(task);
    assert_string_equal(engine_lab_draft(l), "");
    assert_non_null(engine_lab_head_object(l, K_LISTENER, "web"));
    assert_int_equal(fake_look(&l->fake).bind_tests, 1);
    assert_int_equal(fake_look(&l->fake).reloads, 2);
    assert_true(fake_look(&l->fake).current > current);
    assert_int_equal(fake_look(&l->fake).good, fake_look(&l->fake).current);
    /* C023: who waited for the task may ask at once. */
    engine_get_status(l->en, &s);
    assert_true(s.running_known);
    assert_int_equal(s.running_rev, 2);
    assert_string_equal(s.running_digest, fake_look(&l->fake).running);
    assert_int_equal(s.serving, FACT_YES);
}

static void
what_was_staged_is_removed(void **state)
{
    struct engine_lab *l = *state;
    char path[512];

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_CHECK, 1);
    json_decref(engine_lab_applied(l));
    json_decref(engine_lab_applied(l));
    for (int i = 1; i < 10; i++) {
        (void)snprintf(path, sizeof path, "%s/stage/%d", l->fake.state_dir, i);
        assert_false(file_exists_at(-1, path));
    }
}

static void
an_empty_draft_is_nothing_to_apply(void **state)
{
    struct engine_lab *l = *state;
    json_t *task = engine_lab_applied(l);

    engine_lab_ended(task, "ok", "render", "");
    assert_string_equal(text_of(task, "message"), "nothing to apply");
    assert_true(json_is_null(json_object_get(task, "result")));
    json_decref(task);
    assert_int_equal(engine_lab_rev(l), 1);
}

static void
equal_files_are_not_loaded_again(void **state)
{
    struct engine_lab *l = *state;
    struct engine_status s;
    json_t *task;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "check", "");
    json_decref(task);
    assert_int_equal(fake_look(&l->fake).stages, 1);
    assert_int_equal(fake_look(&l->fake).reloads, 1);
    engine_get_status(l->en, &s);
    assert_int_equal(s.running_rev, 2);
}

/* A pool with one server of this weight. */
static json_t *
apply_weight(struct engine_lab *l, const char *op, int weight)
{
    char ops[512];

    (void)snprintf(
        ops, sizeof ops,
        "[%s{'op': '%s', 'kind': 'pool', 'name': 'app', 'body': {'name': 'app', 'members': "
        "[{'server': 'web1', 'weight': %d}]}}]",
        strcmp(op, "create") == 0 ? LAB_SERVER("web1") ", " : "", op, weight);
    engine_lab_must(l, ops);
    return engine_lab_applied(l);
}

static const char *
note_of(const json_t *task)
{
    static char text[8192];
    char *all = json_dumps(task, 0);

    (void)snprintf(text, sizeof text, "%s", all);
    free(all);
    return text;
}

static void
a_weight_is_changed_by_the_admin_socket(void **state)
{
    struct engine_lab *l = *state;
    struct fake_facts before;
    struct fake_facts after;
    json_t *task;

    json_decref(apply_weight(l, "create", 5));
    before = fake_look(&l->fake);
    task = apply_weight(l, "merge", 6);
    engine_lab_ended(task, "ok", "load", "ok");
    assert_non_null(strstr(note_of(task), "1 change by the admin socket"));
    json_decref(task);
    after = fake_look(&l->fake);
    assert_int_equal(after.reloads, before.reloads);
    assert_int_equal(after.changes, before.changes + 1);
    assert_int_equal(after.pid, before.pid);
    assert_string_equal(after.running, after.current_digest);
    assert_int_equal(after.good, after.current);
}

static void
what_the_admin_socket_refuses_is_reloaded(void **state)
{
    struct engine_lab *l = *state;
    struct fake_facts before;
    struct fake_facts after;
    json_t *task;

    json_decref(apply_weight(l, "create", 5));
    before = fake_look(&l->fake);
    fake_fail(&l->fake, FAKE_SOCKET, 1);
    task = apply_weight(l, "merge", 6);
    engine_lab_ended(task, "ok", "load", "ok");
    assert_non_null(strstr(note_of(task), "reload: the admin socket failed, HAProxy answers"));
    assert_non_null(strstr(note_of(task), "No such server."));
    json_decref(task);
    after = fake_look(&l->fake);
    assert_int_equal(after.reloads, before.reloads + 1);
    assert_string_equal(after.running, after.current_digest);
}

/* Another error page, so that there is something to load. */
static void
is_reloaded_because(struct engine_lab *l, const char *ops, const char *why)
{
    json_t *task;

    engine_lab_must(l, ops);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "load", "ok");
    assert_non_null(strstr(note_of(task), why));
    json_decref(task);
}

static void
a_reload_tells_why_it_had_to_be(void **state)
{
    struct engine_lab *l = *state;

    /* Nobody but these applies sees what HAProxy runs. */
    engine_lab_close(l);
    l->tunables.status_round_ms = 60000;
    engine_lab_start(l);
    fake_run(&l->fake, "0123456789abcdef");
    is_reloaded_because(
        l, "[" LAB_TITLE("a") "]", "reload: HAProxy does not run the revision before");
    fake_run(&l->fake, NULL);
    is_reloaded_because(l, "[" LAB_TITLE("b") "]", "reload: HAProxy did not say what it runs");
    is_reloaded_because(l, "[" LAB_TITLE("c") "]", "reload: error/502.http");
}

/* Half changed and not reloaded either: the former revision is loaded, not assumed. */
static void
the_way_back_from_a_half_made_change_is_a_reload(void **state)
{
    struct engine_lab *l = *state;
    struct fake_facts before;
    struct fake_facts after;
    json_t *task;

    json_decref(apply_weight(l, "create", 5));
    before = fake_look(&l->fake);
    fake_fail(&l->fake, FAKE_SOCKET, 1);
    fake_fail(&l->fake, FAKE_LOAD, 1);
    task = apply_weight(l, "merge", 6);
    engine_lab_ended(task, "failed", "back_load", "ok");
    json_decref(task);
    after = fake_look(&l->fake);
    assert_int_equal(after.reloads, before.reloads + 2);
    assert_string_equal(after.running, before.running);
    assert_int_equal(after.current, before.current);
}

static void
warnings_of_the_checker_are_kept(void **state)
{
    struct engine_lab *l = *state;
    json_t *task;

    /* A pool without servers is a warning of validate_all. */
    engine_lab_must(l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'app'}}]");
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    assert_true(json_array_size(json_object_get(task, "problems")) > 0);
    json_decref(task);
}

static void
a_note_becomes_the_summary(void **state)
{
    static const struct actor who = {"admin maria"};
    struct engine_lab *l = *state;
    struct commit commit;
    int64_t task = 0;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        apply_start(
            l->en, &(struct apply_request){.who = &who, .note = "ticket 7"}, &task,
            &l->problems, &l->error),
        ERR_OK);
    json_decref(engine_lab_task(l, task));
    assert_int_equal(edit_commit_find(l->en, "2", &commit, &l->error), ERR_OK);
    assert_string_equal(commit.summary, "ticket 7");
    assert_string_equal(commit.author, "admin maria");
}

/* ---- it is refused and nothing changes ---- */

static void
what_the_checker_refuses_changes_nothing(void **state)
{
    struct engine_lab *l = *state;
    int64_t current = fake_look(&l->fake).current;
    const json_t *problem;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_CHECK, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "check", "failed");
    assert_string_equal(text_of(task, "code"), "invalid");
    problem = json_array_get(json_object_get(task, "problems"), 0);
    assert_string_equal(text_of(problem, "code"), "haproxy");
    assert_non_null(strstr(text_of(problem, "message"), "this line is refused"));
    json_decref(task);
    assert_string_equal(engine_lab_draft(l), "listener web");
    assert_int_equal(engine_lab_rev(l), 1);
    assert_int_equal(fake_look(&l->fake).current, current);
    assert_int_equal(fake_look(&l->fake).reloads, 1);
    /* The draft is as it was: the same apply again works. */
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
}

static void
an_address_in_use_names_listener_and_holder(void **state)
{
    struct engine_lab *l = *state;
    const json_t *problem;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    fake_fail(&l->fake, FAKE_BIND, 1);
    task = engine_lab_applied(l);
    engine_lab_ended(task, "failed", "bind", "failed");
    problem = json_array_get(json_object_get(task, "problems"), 0);
    assert_string_equal(text_of(problem, "code"), "bind");
    assert_string_equal(text_of(problem, "kind"), "listener");
    assert_string_equal(text_of(problem, "name"), "web");
    assert_string_equal(text_of(problem, "pointer"), "/port");
    assert_non_null(strstr(text_of(problem, "message"), "nginx (pid 812)"));
    json_decref(task);
    assert_int_equal(fake_look(&l->fake).installs, 1);
    assert_string_equal(engine_lab_draft(l), "listener web");
}

static void
binds_that_are_held_are_not_tested_again(void **state)
{
    struct engine_lab *l = *state;
    json_t *task;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    json_decref(engine_lab_applied(l));
    engine_lab_must(l, "[" LAB_TITLE("Back soon") "]");
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
    assert_int_equal(fake_look(&l->fake).bind_tests, 1);
}

static void
a_moved_base_is_a_conflict_that_names_the_head(void **state)
{
    static const struct actor who = {"key deploy"};
    struct engine_lab *l = *state;
    struct view *v = engine_view(l->en);
    struct hash base = v->head.id;
    char hex[SHA256_HEX + 1];
    int64_t task = 0;

    view_unref(v);
    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    json_decref(engine_lab_applied(l));
    engine_lab_must(l, "[" LAB_SERVER("web2") "]");
    v = engine_view(l->en);
    hash_hex(&v->head.id, hex);
    view_unref(v);
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        apply_start(
            l->en, &(struct apply_request){.who = &who, .base = &base}, &task, &l->problems,
            &l->error),
        ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, hex));
}

static void
operations_leave_the_draft_alone(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    assert_int_equal(engine_lab_apply_ops(l, "[" LAB_LISTENER "]", &task), ERR_OK);
    json_decref(engine_lab_task(l, task));
    assert_string_equal(engine_lab_draft(l), "server web1");
    assert_non_null(engine_lab_head_object(l, K_LISTENER, "web"));
    assert_null(engine_lab_head_object(l, K_SERVER, "web1"));
}

static void
operations_that_are_wrong_are_answered_at_once(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;

    assert_int_equal(
        engine_lab_apply_ops(
            l, "[{'op': 'delete', 'kind': 'server', 'name': 'nobody'}]", &task),
        ERR_NOT_FOUND);
    assert_int_equal(
        engine_lab_apply_ops(
            l, "[{'op': 'create', 'kind': 'server', 'body': {'name': 'web1'}}]", &task),
        ERR_INVALID);
    assert_true(l->problems.errors > 0);
    assert_int_equal(
        engine_lab_apply_ops(
            l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]",
            &task),
        ERR_INVALID);
    assert_int_equal(task, 0);
}

/* ---- check only ---- */

static err_t
check(struct engine_lab *l, struct rendered **ret)
{
    struct view *v = engine_view(l->en);
    err_t code;

    problems_init(&l->problems, l->arena);
    code = apply_check(l->en, &v->draft, &l->problems, ret, &l->error);
    view_unref(v);
    return code;
}

static void
a_check_changes_nothing_that_serves(void **state)
{
    struct engine_lab *l = *state;
    struct rendered *files = NULL;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    assert_int_equal(check(l, &files), ERR_OK);
    assert_non_null(rendered_find(files, "haproxy.cfg"));
    apply_rendered_done(l->en, files);
    fake_fail(&l->fake, FAKE_BIND, 1);
    assert_int_equal(check(l, &files), ERR_INVALID);
    assert_string_equal(l->problems.items[0].code, "bind");
    assert_non_null(files);
    apply_rendered_done(l->en, files);
    fake_fail(&l->fake, FAKE_CHECK, 1);
    assert_int_equal(check(l, &files), ERR_INVALID);
    apply_rendered_done(l->en, files);
    assert_int_equal(fake_look(&l->fake).installs, 1);
    assert_int_equal(fake_look(&l->fake).reloads, 1);
}

/* ---- verify ---- */

static void
hold(void *ctx)
{
    pthread_mutex_t *held = ctx;

    (void)pthread_mutex_lock(held);
    (void)pthread_mutex_unlock(held);
}

/* It takes seconds for a large database. */
static void
verify_does_not_need_the_thread_that_commits(void **state)
{
    struct engine_lab *l = *state;
    static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER; /* the thread may come late */
    int64_t checked = 0;
    err_t code;

    engine_lab_must(l, "[" LAB_LISTENER "]");
    json_decref(engine_lab_applied(l));
    assert_int_equal(pthread_mutex_lock(&held), 0);
    assert_int_equal(engine_post(l->en, hold, &held, &l->error), ERR_OK);
    code = edit_verify(l->en, &checked, &l->error);
    assert_int_equal(pthread_mutex_unlock(&held), 0);
    assert_int_equal(code, ERR_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(an_apply_ends_with_the_new_revision_serving),
        ENGINE_LAB_TEST(what_was_staged_is_removed),
        ENGINE_LAB_TEST(an_empty_draft_is_nothing_to_apply),
        ENGINE_LAB_TEST(equal_files_are_not_loaded_again),
        ENGINE_LAB_TEST(a_weight_is_changed_by_the_admin_socket),
        ENGINE_LAB_TEST(what_the_admin_socket_refuses_is_reloaded),
        ENGINE_LAB_TEST(a_reload_tells_why_it_had_to_be),
        ENGINE_LAB_TEST(the_way_back_from_a_half_made_change_is_a_reload),
        ENGINE_LAB_TEST(warnings_of_the_checker_are_kept),
        ENGINE_LAB_TEST(a_note_becomes_the_summary),
        ENGINE_LAB_TEST(what_the_checker_refuses_changes_nothing),
        ENGINE_LAB_TEST(an_address_in_use_names_listener_and_holder),
        ENGINE_LAB_TEST(binds_that_are_held_are_not_tested_again),
        ENGINE_LAB_TEST(a_moved_base_is_a_conflict_that_names_the_head),
        ENGINE_LAB_TEST(operations_leave_the_draft_alone),
        ENGINE_LAB_TEST(operations_that_are_wrong_are_answered_at_once),
        ENGINE_LAB_TEST(a_check_changes_nothing_that_serves),
        ENGINE_LAB_TEST(verify_does_not_need_the_thread_that_commits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
