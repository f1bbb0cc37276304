/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "engine/event.h"

#define OUT_BYTES ((size_t)1 << 20)

struct fixture {
    struct events *ev;
    struct buf out;
};

static int
set_up(void **state)
{
    static struct fixture f;

    f.ev = events_new();
    buf_init(&f.out, OUT_BYTES);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    events_free(f->ev);
    buf_fini(&f->out);
    return 0;
}

static void
publish(struct fixture *f, const char *topic, int n)
{
    events_publish(f->ev, topic, json_pack("{s:i}", "n", n));
}

/* What was read, without "event_at":"2026-01-02T03:04:05.678Z", of each event. */
static const char *
timeless(const struct fixture *f)
{
    static const char key[] = "\"event_at\":\"20";
    char *at;

    assert_non_null(strstr(f->out.data, key));
    while ((at = strstr(f->out.data, key)) != NULL) {
        const char *rest = strchr(at, ',') + 1;
        memmove(at, rest, strlen(rest) + 1);
    }
    return f->out.data;
}

static void
events_come_in_order_in_the_form_of_a_stream(void **state)
{
    struct fixture *f = *state;
    int64_t seq = 0;

    publish(f, "task", 1);
    publish(f, "head", 2);
    assert_true(events_read(f->ev, NULL, &seq, &f->out));
    assert_string_equal(
        timeless(f), "id: 1\nevent: task\ndata: {\"n\":1}\n\n"
                     "id: 2\nevent: head\ndata: {\"n\":2}\n\n");
    assert_int_equal(seq, 2);
    assert_int_equal(events_last(f->ev), 2);
    buf_reset(&f->out);
    assert_true(events_read(f->ev, NULL, &seq, &f->out));
    assert_int_equal(f->out.len, 0);
}

static void
only_wanted_topics_are_read_and_the_others_are_passed(void **state)
{
    struct fixture *f = *state;
    int64_t seq = 0;

    publish(f, "task", 1);
    publish(f, "tas", 2);
    publish(f, "head", 3);
    publish(f, "status", 4);
    assert_true(events_read(f->ev, "head,task", &seq, &f->out));
    assert_string_equal(
        timeless(f), "id: 1\nevent: task\ndata: {\"n\":1}\n\n"
                     "id: 3\nevent: head\ndata: {\"n\":3}\n\n");
    assert_int_equal(seq, 4);
}

static void
a_reader_that_missed_some_is_told(void **state)
{
    struct fixture *f = *state;
    int64_t seq = 0;

    for (int i = 0; i < EVENTS_KEPT; i++) {
        publish(f, "task", i);
    }
    assert_true(events_read(f->ev, "none", &seq, &f->out));
    assert_int_equal(seq, EVENTS_KEPT);
    publish(f, "task", 4711);
    seq = 0;
    assert_false(events_read(f->ev, NULL, &seq, &f->out));
    assert_int_equal(seq, EVENTS_KEPT + 1);
    /* What is kept follows, so that who begins at 0 does not wait for what came just now. */
    assert_null(strstr(buf_str(&f->out), "id: 1\n"));
    assert_non_null(strstr(buf_str(&f->out), "id: 2\n"));
    assert_non_null(strstr(buf_str(&f->out), "4711"));
    seq = 1;
    assert_true(events_read(f->ev, "none", &seq, &f->out));
}

static void
a_number_of_an_earlier_daemon_counts_as_missed(void **state)
{
    struct fixture *f = *state;
    int64_t seq = 77;

    publish(f, "task", 1);
    assert_false(events_read(f->ev, NULL, &seq, &f->out));
    assert_int_equal(seq, 1);
    seq = -1;
    assert_false(events_read(f->ev, NULL, &seq, &f->out));
}

static void
a_full_buffer_gets_whole_events_only(void **state)
{
    struct fixture *f = *state;
    struct buf small;
    int64_t seq = 0;

    buf_init(&small, 160);
    for (int i = 0; i < 4; i++) {
        publish(f, "task", i);
    }
    assert_true(events_read(f->ev, NULL, &seq, &small));
    assert_false(small.failed);
    assert_true(seq > 0 && seq < 4);
    assert_string_equal(small.data + small.len - 2, "\n\n");
    buf_reset(&small);
    while (seq < 4) {
        assert_true(events_read(f->ev, NULL, &seq, &small));
        buf_reset(&small);
    }
    buf_fini(&small);
}

static void
count(void *ctx)
{
    int *n = ctx;

    (*n)++;
}

static void
watchers_are_called_until_they_leave(void **state)
{
    struct fixture *f = *state;
    int first = 0;
    int second = 0;

    events_watch(f->ev, count, &first);
    publish(f, "task", 1);
    events_watch(f->ev, count, &second);
    publish(f, "task", 2);
    events_unwatch(f->ev, count, &first);
    publish(f, "task", 3);
    assert_int_equal(first, 2);
    assert_int_equal(second, 2);
    events_unwatch(f->ev, count, &second);
    events_unwatch(f->ev, count, &second);
    publish(f, "task", 4);
    assert_int_equal(second, 2);
}

#define THREADS 4
#define EACH    200

static void *
publish_many(void *ctx)
{
    for (int i = 0; i < EACH; i++) {
        publish(ctx, "task", i);
    }
    return NULL;
}

static void
many_threads_publish_and_none_is_lost(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    int calls = 0;

    events_watch(f->ev, count, &calls);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, publish_many, f), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    events_unwatch(f->ev, count, &calls);
    assert_int_equal(calls, THREADS * EACH);
    assert_int_equal(events_last(f->ev), THREADS * EACH);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            events_come_in_order_in_the_form_of_a_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            only_wanted_topics_are_read_and_the_others_are_passed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_missed_some_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_number_of_an_earlier_daemon_counts_as_missed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_full_buffer_gets_whole_events_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            watchers_are_called_until_they_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            many_threads_publish_and_none_is_lost, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
