/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/event.h"
#include "engine/task.h"

struct fixture {
    int64_t now_ms;
    struct clock clock;
    struct events *ev;
    struct tasks *t;
};

static int64_t
now(void *ctx)
{
    const struct fixture *f = ctx;

    return f->now_ms;
}

static int
set_up(void **state)
{
    static struct fixture f;

    f.now_ms = 1796000000000;
    f.clock = (struct clock){now, now, &f};
    f.ev = events_new();
    f.t = tasks_new(&f.clock, f.ev);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    tasks_free(f->t);
    events_free(f->ev);
    return 0;
}

static const char *
text_of(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static const json_t *
step_of(const json_t *task, size_t i)
{
    return json_array_get(json_object_get(task, "steps"), i);
}

static void
a_new_task_waits(void **state)
{
    struct fixture *f = *state;
    int64_t id = task_begin(f->t, "apply", "Apply the draft", "admin maria");
    json_auto_t *v = task_json(f->t, id);

    assert_int_equal(id, 287744001);
    assert_int_equal(json_integer_value(json_object_get(v, "id")), id);
    assert_string_equal(text_of(v, "kind"), "apply");
    assert_string_equal(text_of(v, "title"), "Apply the draft");
    assert_string_equal(text_of(v, "author"), "admin maria");
    assert_string_equal(text_of(v, "state"), "waiting");
    assert_string_equal(text_of(v, "at"), "2026-11-30T00:53:20.000Z");
    assert_true(json_is_null(json_object_get(v, "ended")));
    assert_true(json_is_null(json_object_get(v, "code")));
    assert_true(json_is_null(json_object_get(v, "message")));
    assert_true(json_is_null(json_object_get(v, "problems")));
    assert_true(json_is_null(json_object_get(v, "result")));
    assert_int_equal(json_array_size(json_object_get(v, "steps")), 0);
    assert_null(task_json(f->t, id + 1));
}

static void
a_number_is_not_given_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    int64_t id = task_begin(f->t, "apply", "x", "y");

    assert_string_equal(task_missing(f->t, id + 1), "");
    tasks_free(f->t);
    f->now_ms += 1000;
    f->t = tasks_new(&f->clock, f->ev);
    assert_true(task_begin(f->t, "apply", "x", "y") > id);
    assert_non_null(strstr(task_missing(f->t, id), "restarted"));
    assert_non_null(strstr(task_missing(f->t, 1), "restarted"));
}

static void
steps_are_timed_and_end_with_the_next(void **state)
{
    struct fixture *f = *state;
    int64_t id = task_begin(f->t, "apply", "x", "y");
    json_t *v;

    task_step(f->t, id, "plan", "Plan");
    task_note(f->t, id, "%d changed", 3);
    f->now_ms += 7;
    v = task_json(f->t, id);
    assert_string_equal(text_of(v, "state"), "running");
    assert_string_equal(text_of(step_of(v, 0), "state"), "running");
    assert_int_equal(json_integer_value(json_object_get(step_of(v, 0), "ms")), 7);
    json_decref(v);
    task_step(f->t, id, "bind", "Test addresses");
    f->now_ms += 5;
    task_step_end(f->t, id, TASK_FAILED);
    task_step(f->t, id, "back", "Put back");
    v = task_json(f->t, id);
    assert_string_equal(text_of(step_of(v, 0), "state"), "ok");
    assert_string_equal(text_of(step_of(v, 0), "text"), "3 changed");
    assert_int_equal(json_integer_value(json_object_get(step_of(v, 0), "ms")), 7);
    assert_string_equal(text_of(step_of(v, 1), "name"), "bind");
    assert_string_equal(text_of(step_of(v, 1), "title"), "Test addresses");
    assert_string_equal(text_of(step_of(v, 1), "state"), "failed");
    assert_int_equal(json_integer_value(json_object_get(step_of(v, 1), "ms")), 5);
    assert_true(json_is_null(json_object_get(step_of(v, 1), "text")));
    assert_string_equal(text_of(step_of(v, 2), "state"), "running");
    json_decref(v);
}

static void
the_end_carries_problems_and_result(void **state)
{
    struct fixture *f = *state;
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems p;
    int64_t id = task_begin(f->t, "apply", "x", "y");
    const json_t *item;
    json_t *other;
    json_t *v;

    problems_init(&p, arena);
    problems_add(
        &p, SEVERITY_WARNING, "haproxy",
        &(struct problem){.kind = "pool", .name = "app", .pointer = "/balance"},
        "bad \xff byte");
    task_step(f->t, id, "plan", "Plan");
    f->now_ms += 1500;
    task_end(f->t, id, ERR_NOT_FOUND, "gone", &p, json_pack("{s:i}", "rev", 3));
    arena_free(arena);
    v = task_json(f->t, id);
    item = json_array_get(json_object_get(v, "problems"), 0);
    assert_string_equal(text_of(v, "state"), "failed");
    assert_string_equal(text_of(v, "code"), "not_found");
    assert_string_equal(text_of(v, "message"), "gone");
    assert_string_equal(text_of(v, "ended"), "2026-11-30T00:53:21.500Z");
    assert_string_equal(text_of(step_of(v, 0), "state"), "failed");
    assert_string_equal(text_of(item, "severity"), "warning");
    assert_string_equal(text_of(item, "kind"), "pool");
    assert_string_equal(text_of(item, "name"), "app");
    assert_string_equal(text_of(item, "pointer"), "/balance");
    assert_string_equal(text_of(item, "message"), "bad ? byte");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(v, "result"), "rev")), 3);
    /* Other threads may hold the answer to the same question. */
    other = task_json(f->t, id);
    assert_ptr_not_equal(json_object_get(v, "problems"), json_object_get(other, "problems"));
    assert_ptr_not_equal(json_object_get(v, "result"), json_object_get(other, "result"));
    json_decref(other);
    json_decref(v);
}

static void
nothing_moves_after_the_end(void **state)
{
    struct fixture *f = *state;
    int64_t id = task_begin(f->t, "apply", "x", "y");
    json_t *v;

    task_end(f->t, id, ERR_OK, "done", NULL, NULL);
    task_end(f->t, id, ERR_IO, "again", NULL, json_object());
    task_step(f->t, id, "plan", "Plan");
    task_note(f->t, id, "x");
    task_step_end(f->t, id, TASK_FAILED);
    v = task_json(f->t, id);
    assert_string_equal(text_of(v, "state"), "ok");
    assert_string_equal(text_of(v, "message"), "done");
    assert_int_equal(json_array_size(json_object_get(v, "steps")), 0);
    json_decref(v);
}

static void
an_id_that_is_not_known_is_ignored(void **state)
{
    struct fixture *f = *state;

    task_step(f->t, 0, "plan", "Plan");
    task_note(f->t, 9, "x");
    task_step_end(f->t, 9, TASK_FAILED);
    task_end(f->t, 9, ERR_OK, "done", NULL, json_object());
    assert_int_equal(events_last(f->ev), 0);
}

static void
every_change_is_an_event(void **state)
{
    struct fixture *f = *state;
    struct buf out;
    int64_t seq = 0;
    int64_t id = task_begin(f->t, "apply", "x", "y");

    task_step(f->t, id, "plan", "Plan");
    task_note(f->t, id, "3 changed");
    task_end(f->t, id, ERR_OK, "done", NULL, NULL);
    assert_int_equal(events_last(f->ev), 4);
    buf_init(&out, 65536);
    seq = 3;
    assert_true(events_read(f->ev, "task", &seq, &out));
    assert_non_null(strstr(buf_str(&out), "\"state\":\"ok\""));
    buf_fini(&out);
}

static void
the_newest_fifty_are_kept_and_those_that_run(void **state)
{
    struct fixture *f = *state;
    int64_t running = task_begin(f->t, "apply", "running", "y");
    json_t *v;

    for (int i = 0; i < 2 * TASK_KEPT; i++) {
        int64_t id = task_begin(f->t, "apply", "x", "y");

        task_end(f->t, id, ERR_OK, "done", NULL, NULL);
    }
    v = tasks_json(f->t);
    assert_int_equal(json_array_size(v), TASK_KEPT);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(v, 0), "id")),
        running + 2 * TASK_KEPT);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(v, TASK_KEPT - 1), "id")), running);
    json_decref(v);
    assert_null(task_json(f->t, running + 1));
    assert_non_null(strstr(task_missing(f->t, running + 1), "any more"));
}

static void
count(void *ctx)
{
    int *n = ctx;

    (*n)++;
}

static void
whoever_waits_is_called_once(void **state)
{
    struct fixture *f = *state;
    int64_t id = task_begin(f->t, "apply", "x", "y");
    int first = 0;
    int second = 0;
    int late = 0;

    assert_true(task_when_done(f->t, id, count, &first));
    assert_true(task_when_done(f->t, id, count, &second));
    assert_true(task_forget(f->t, id, count, &second));
    assert_false(task_forget(f->t, id, count, &second));
    assert_int_equal(first, 0);
    task_end(f->t, id, ERR_OK, "done", NULL, NULL);
    assert_int_equal(first, 1);
    assert_int_equal(second, 0);
    assert_false(task_forget(f->t, id, count, &first));
    assert_true(task_when_done(f->t, id, count, &late));
    assert_int_equal(late, 1);
    assert_false(task_when_done(f->t, 99, count, &late));
    assert_false(task_forget(f->t, 99, count, &late));
    assert_int_equal(late, 1);
}

static void
a_repetition_is_listed_when_it_ends_well(void **state)
{
    const struct fixture *f = *state;
    int64_t first = task_begin(f->t, "sync", "Take over", "node n1");
    int64_t task = 0;
    json_t *list;

    task_end(f->t, first, ERR_INVALID, "no", NULL, NULL);
    for (int i = 0; i < 2 * TASK_KEPT; i++) {
        json_t *seen;

        task = task_begin_again(f->t, "sync", "Take over", "node n1");
        task_step(f->t, task, "plan", "Plan");
        task_end(f->t, task, ERR_INVALID, "no", NULL, NULL);
        seen = task_json(f->t, task); /* for whoever waits for it */
        assert_string_equal(text_of(seen, "state"), "failed");
        json_decref(seen);
    }
    list = tasks_json(f->t);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    task = task_begin_again(f->t, "sync", "Take over", "node n1");
    task_end(f->t, task, ERR_OK, "revision 4 serves", NULL, NULL);
    list = tasks_json(f->t);
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_of(json_array_get(list, 0), "state"), "ok");
    json_decref(list);
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH(a_new_task_waits),
        WITH(a_number_is_not_given_again_after_a_restart),
        WITH(steps_are_timed_and_end_with_the_next),
        WITH(the_end_carries_problems_and_result),
        WITH(nothing_moves_after_the_end),
        WITH(an_id_that_is_not_known_is_ignored),
        WITH(every_change_is_an_event),
        WITH(the_newest_fifty_are_kept_and_those_that_run),
        WITH(whoever_waits_is_called_once),
        WITH(a_repetition_is_listed_when_it_ends_well),
    };
#undef WITH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
