/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "http/stream.h"
#include "tests/support/http_lab.h"

#define LONG_MS    15000
#define TEXT_BYTES 20000

static void
ping_often(struct tunables *t)
{
    t->event_ping_ms = 100;
}

static int
lab_open(void **state)
{
    *state = http_lab_new(ping_often);
    return 0;
}

/* Starts a stream; fields NULL or with their "\r\n". */
static int
stream(struct http_lab *l, const char *query, const char *credential, const char *fields)
{
    const char *ask = arena_printf(
        l->engine->arena, "GET /api/v1/events%s HTTP/1.1\r\nHost: node\r\n%s%s\r\n", query,
        credential, fields != NULL ? fields : "");
    int fd = http_lab_connect(l);

    buf_reset(&l->bytes);
    http_lab_send(fd, ask, strlen(ask));
    return fd;
}

static const char *
key_field(struct http_lab *l)
{
    return arena_printf(l->engine->arena, "Authorization: Bearer %s\r\n", buf_str(&l->key));
}

static int64_t
last_event(struct http_lab *l)
{
    return events_last(engine_events(l->engine->en));
}

static void
starts_with_hello_and_goes_on_with_events(void **state)
{
    struct http_lab *l = *state;
    int fd = stream(l, "?topics=draft", key_field(l), NULL);

    http_lab_read_until(l, fd, "event: hello\ndata: {\"node\":\"proxy1\",\"seq\":");
    assert_int_equal(l->status, 200);
    assert_string_equal(http_lab_field(l, "Content-Type"), "text/event-stream");
    assert_non_null(strstr(l->body, "retry: 2000\n"));
    engine_lab_must(l->engine, "[" LAB_SERVER("a") "]");
    http_lab_read_until(l, fd, "event: draft\ndata: {");
    /* Other topics were not asked for. */
    assert_null(strstr(buf_str(&l->bytes), "event: status"));
    http_lab_read_until(l, fd, ": ping\n");
    (void)close(fd);
}

static void
goes_on_where_the_reader_was(void **state)
{
    struct http_lab *l = *state;
    int64_t before = last_event(l);
    int fd;

    engine_lab_must(l->engine, "[" LAB_SERVER("b") "]");
    fd = stream(
        l, "", key_field(l),
        arena_printf(l->engine->arena, "Last-Event-ID: %lld\r\n", (long long)before));
    http_lab_read_until(
        l, fd, arena_printf(l->engine->arena, "id: %lld\n", (long long)before + 1));
    assert_null(strstr(buf_str(&l->bytes), "event: reset"));
    (void)close(fd);
}

static void
says_when_events_were_missed(void **state)
{
    static const char *const ids[] = {"99999999", "x", "-1", "123456789012345678901", ""};
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        int fd = stream(
            l, "", key_field(l),
            arena_printf(l->engine->arena, "Last-Event-ID: %s\r\n", ids[i]));

        http_lab_read_until(l, fd, "event: reset\n");
        (void)close(fd);
    }
}

static void
a_slow_reader_is_told_to_fetch_anew(void **state)
{
    struct http_lab *l = *state;
    struct events *ev = engine_events(l->engine->en);
    char *text = arena_alloc(l->engine->arena, TEXT_BYTES);
    int fd = stream(l, "?topics=task", key_field(l), NULL);

    http_lab_read_until(l, fd, "event: hello");
    memset(text, 'x', TEXT_BYTES - 1);
    /* More than the sockets and the ring together hold. */
    for (int i = 0; i < 4 * EVENTS_KEPT; i++) {
        events_publish(ev, "task", json_pack("{s:i, s:s}", "n", i, "text", text));
    }
    http_lab_read_until(l, fd, "event: reset\n");
    (void)close(fd);
}

static void
refuses_topics_that_are_none(void **state)
{
    static const char *const queries[] = {
        "?topics=x", "?topics=task,x", "?topics=tas", "?topics=task%20", "?topics=,"};
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        http_lab_must(
            l, 400, arena_printf(l->engine->arena, "GET /api/v1/events%s", queries[i]), NULL,
            NULL);
    }
    assert_int_equal(http_lab_ask(l, "GET /api/v1/events", NULL, NULL, NULL), 401);
}

/* Those of the test before end by themselves: their pings meet closed connections. */
static void
each_caller_has_so_many_and_no_more(void **state)
{
    struct http_lab *l = http_lab_new(ping_often);
    int fds[STREAMS_MAX_CALLER];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = stream(l, "", key_field(l), NULL);
        http_lab_read_until(l, fds[i], "event: hello");
    }
    http_lab_must(l, 503, "GET /api/v1/events", NULL, NULL);
    assert_non_null(http_lab_field(l, "Retry-After"));
    assert_int_equal(http_lab_ask(l, "HEAD /api/v1/events", HTTP_LAB_COOKIE, NULL, NULL), 200);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        (void)close(fds[i]);
    }
    http_lab_delete(l);
}

static void
ends_with_its_session(void **state)
{
    struct http_lab *l = *state;
    const char *cookie =
        arena_printf(l->engine->arena, "Cookie: %s=%s\r\n", l->cookie_name, buf_str(&l->token));
    int fd = stream(l, "", cookie, NULL);

    http_lab_read_until(l, fd, "event: hello");
    assert_int_equal(account_logout(l->engine->en, buf_str(&l->token), NULL), ERR_OK);
    http_lab_read_until(l, fd, "\r\n0\r\n\r\n");
    (void)close(fd);
}

static void
ends_with_the_server(void **state)
{
    struct http_lab *l = http_lab_new(NULL);
    int fd = stream(l, "", key_field(l), NULL);

    (void)state;
    http_lab_read_until(l, fd, "event: hello");
    http_lab_close_server(l);
    assert_true(http_lab_read_end(l, fd) < LONG_MS);
    (void)close(fd);
    http_lab_delete(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_with_hello_and_goes_on_with_events),
        cmocka_unit_test(goes_on_where_the_reader_was),
        cmocka_unit_test(says_when_events_were_missed),
        cmocka_unit_test(a_slow_reader_is_told_to_fetch_anew),
        cmocka_unit_test(refuses_topics_that_are_none),
        cmocka_unit_test(each_caller_has_so_many_and_no_more),
        cmocka_unit_test(ends_with_its_session),
        cmocka_unit_test(ends_with_the_server),
    };

    return cmocka_run_group_tests(tests, lab_open, http_lab_teardown);
}
