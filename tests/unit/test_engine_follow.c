/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"
#include "tests/support/engine_lab.h"

static int
lab_new(void **state)
{
    *state = engine_lab_new();
    return 0;
}

static struct engine_status
status(struct engine_lab *l)
{
    struct engine_status s;

    engine_get_status(l->en, &s);
    return s;
}

static const char *
newest_task_kind(struct engine_lab *l)
{
    json_t *v = tasks_json(engine_tasks(l->en));
    const char *kind = json_string_value(json_object_get(json_array_get(v, 0), "kind"));

    kind = arena_strdup(l->arena, kind != NULL ? kind : "");
    json_decref(v);
    return kind;
}

static void
a_first_start_loads_the_empty_head(void **state)
{
    struct engine_lab *l = *state;
    struct engine_status s;

    engine_lab_start(l);
    s = status(l);
    assert_true(s.started);
    assert_int_equal(s.up, FACT_YES);
    assert_int_equal(s.serving, FACT_YES);
    assert_string_equal(s.serving_detail, "");
    assert_true(s.serving_at_ms > 0 && s.seen_at_ms > 0);
    assert_string_equal(s.haproxy_version, "2.6.12-1");
    assert_int_equal(s.max_connections, 4000);
    assert_int_equal(s.running_rev, 1);
    assert_string_equal(s.reason, "");
    assert_int_equal(fake_look(&l->fake).reloads, 1);
    assert_int_equal(fake_look(&l->fake).good, 1);
    assert_string_equal(newest_task_kind(l), "reconcile");
}

static void
files_made_once_are_there(void **state)
{
    struct engine_lab *l = *state;
    char path[512];
    struct buf before;
    struct buf after;

    engine_lab_start(l);
    (void)snprintf(path, sizeof path, "%s/data/placeholder.pem", l->fake.state_dir);
    buf_init(&before, 65536);
    buf_init(&after, 65536);
    assert_int_equal(file_read_at(AT_FDCWD, path, &before, NULL), ERR_OK);
    assert_non_null(strstr(buf_str(&before), "-----BEGIN CERTIFICATE-----"));
    assert_non_null(strstr(buf_str(&before), "PRIVATE KEY-----"));
    engine_lab_close(l);
    engine_lab_start(l);
    assert_int_equal(file_read_at(AT_FDCWD, path, &after, NULL), ERR_OK);
    assert_string_equal(buf_str(&before), buf_str(&after));
    buf_fini(&before);
    buf_fini(&after);
}

static void
a_restart_with_everything_in_place_only_verifies(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_start(l);
    assert_int_equal(engine_lab_edit(l, "[" LAB_LISTENER "]"), ERR_OK);
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_close(l);
    engine_lab_start(l);
    assert_int_equal(fake_look(&l->fake).stages, 2);
    assert_int_equal(fake_look(&l->fake).reloads, 2);
    assert_int_equal(status(l).running_rev, 2);
}

static void
a_restart_puts_the_head_over_what_was_never_committed(void **state)
{
    struct engine_lab *l = *state;
    char digest[17];

    engine_lab_start(l);
    memcpy(digest, status(l).running_digest, sizeof digest);
    assert_int_equal(engine_lab_edit(l, "[" LAB_LISTENER "]"), ERR_OK);
    engine_lab_close(l);
    /* As after a crash between load and commit: HAProxy and "current" are one further. */
    fake_run(&l->fake, "0123456789abcdef");
    fake_set_current(&l->fake, 2, "0123456789abcdef");
    engine_lab_start(l);
    assert_string_equal(fake_look(&l->fake).running, digest);
    assert_int_equal(fake_look(&l->fake).current, fake_look(&l->fake).good);
    assert_string_equal(engine_lab_draft(l), "listener web");
}

static bool
runs_the_head_again(struct engine_lab *l)
{
    return engine_lab_serves_head(l) &&
           strcmp(status(l).running_digest, "0123456789abcdef") != 0;
}

static bool
runs_something_else(struct engine_lab *l)
{
    return strcmp(status(l).running_digest, "0123456789abcdef") == 0;
}

static void
another_configuration_in_haproxy_is_replaced_by_the_head(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_start(l);
    fake_hold(&l->fake); /* else it may be mended before anybody looks */
    fake_run(&l->fake, "0123456789abcdef");
    engine_lab_await(l, runs_something_else);
    assert_false(status(l).running_known);
    fake_release(&l->fake);
    engine_lab_await(l, runs_the_head_again);
    assert_int_equal(fake_look(&l->fake).reloads, 2);
}

static bool
is_down(struct engine_lab *l)
{
    struct engine_status s = status(l);

    return s.up == FACT_NO && s.serving == FACT_NO;
}

static void
an_haproxy_that_is_gone_is_seen_and_started_again(void **state)
{
    struct engine_lab *l = *state;
    int stages;

    engine_lab_start(l);
    stages = fake_look(&l->fake).stages;
    fake_hold(&l->fake);
    fake_run(&l->fake, NULL);
    engine_lab_await(l, is_down);
    assert_false(status(l).running_known);
    assert_true(strlen(status(l).serving_detail) > 0);
    fake_release(&l->fake);
    engine_lab_await(l, engine_lab_serves_head);
    /* The generation that is there already is used again. */
    assert_int_equal(fake_look(&l->fake).stages, stages + 1);
    assert_int_equal(fake_look(&l->fake).current, 1);
}

static bool
was_seen_again(struct engine_lab *l)
{
    return status(l).seen_at_ms >= l->seen_until_ms;
}

/* Until the watcher has looked for ms more. */
static void
pass_rounds(struct engine_lab *l, int64_t ms)
{
    l->seen_until_ms = status(l).seen_at_ms + ms;
    engine_lab_await(l, was_seen_again);
}

static bool
has_reason(struct engine_lab *l)
{
    return status(l).reason[0] != '\0';
}

static void
a_head_that_is_refused_leaves_what_runs_and_is_tried_again(void **state)
{
    struct engine_lab *l = *state;
    json_t *tasks;

    fake_run(&l->fake, "0123456789abcdef");
    fake_fail(&l->fake, FAKE_CHECK, -1);
    engine_lab_open(l);
    engine_lab_await(l, has_reason);
    assert_false(status(l).started);
    assert_non_null(strstr(status(l).reason, "this line is refused"));
    assert_string_equal(fake_look(&l->fake).running, "0123456789abcdef");
    assert_int_equal(fake_look(&l->fake).reloads, 0);
    pass_rounds(l, 200);
    fake_fail(&l->fake, FAKE_CHECK, 0);
    engine_lab_await(l, engine_lab_serves_head);
    assert_string_equal(status(l).reason, "");
    assert_true(status(l).started);
    /* The repetitions do not push people's tasks out of the list. */
    tasks = tasks_json(engine_tasks(l->en));
    assert_int_equal(json_array_size(tasks), 1);
    json_decref(tasks);
}

static void
without_a_helper_the_reason_says_so(void **state)
{
    struct engine_lab *l = *state;

    fake_stop(&l->fake);
    engine_lab_open(l);
    engine_lab_await(l, has_reason);
    engine_lab_await(l, is_down);
    assert_false(status(l).started);
    fake_start(&l->fake);
    engine_lab_await(l, engine_lab_serves_head);
}

static int64_t
events_of(struct engine_lab *l, const char *topic, int64_t *seq)
{
    struct buf out;
    int64_t count = 0;
    const char *at;

    buf_init(&out, (size_t)1 << 20);
    assert_true(events_read(engine_events(l->en), topic, seq, &out));
    for (at = strstr(buf_str(&out), "event: "); at != NULL; at = strstr(at + 1, "event: ")) {
        count++;
    }
    buf_fini(&out);
    return count;
}

static void
status_is_told_when_a_fact_changes_and_not_every_round(void **state)
{
    struct engine_lab *l = *state;
    int64_t seq;

    engine_lab_start(l);
    pass_rounds(l, 100);
    seq = events_last(engine_events(l->en));
    pass_rounds(l, 200);
    assert_int_equal(events_of(l, "status", &seq), 0);
}

static void
head_and_draft_are_told(void **state)
{
    struct engine_lab *l = *state;
    int64_t seq;
    int64_t before;

    engine_lab_start(l);
    before = events_last(engine_events(l->en));
    assert_int_equal(engine_lab_edit(l, "[" LAB_LISTENER "]"), ERR_OK);
    seq = before;
    assert_int_equal(events_of(l, "draft", &seq), 1);
    seq = before;
    assert_int_equal(events_of(l, "head", &seq), 0);
    engine_lab_apply_ends(l, "ok", "ok");
    seq = before;
    assert_int_equal(events_of(l, "head", &seq), 1);
    seq = before;
    assert_true(events_of(l, "task", &seq) > 10);
    seq = before;
    assert_true(events_of(l, "status", &seq) > 0);
}

static void
a_damaged_database_is_not_opened(void **state)
{
    struct engine_lab *l = *state;
    struct engine *en = NULL;
    char path[512];

    engine_lab_start(l);
    engine_lab_close(l);
    (void)snprintf(path, sizeof path, "%s/data", l->fake.state_dir);
    assert_int_equal(file_write_at(AT_FDCWD, path, "", 0, 0600, NULL), ERR_IO);
    (void)snprintf(path, sizeof path, "%s/data/lockstep.db", l->fake.state_dir);
    assert_int_equal(file_write_at(AT_FDCWD, path, "junk", 4, 0600, NULL), ERR_OK);
    assert_int_equal(engine_open(&l->config, &en, &l->error), ERR_CORRUPT);
    assert_null(en);
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, lab_new, engine_lab_teardown)
    static const struct CMUnitTest tests[] = {
        WITH(a_first_start_loads_the_empty_head),
        WITH(files_made_once_are_there),
        WITH(a_restart_with_everything_in_place_only_verifies),
        WITH(a_restart_puts_the_head_over_what_was_never_committed),
        WITH(another_configuration_in_haproxy_is_replaced_by_the_head),
        WITH(an_haproxy_that_is_gone_is_seen_and_started_again),
        WITH(a_head_that_is_refused_leaves_what_runs_and_is_tried_again),
        WITH(without_a_helper_the_reason_says_so),
        WITH(status_is_told_when_a_fact_changes_and_not_every_round),
        WITH(head_and_draft_are_told),
        WITH(a_damaged_database_is_not_opened),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
