/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol side of the server: what is refused, when, and what every answer has. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/probe.h"
#include "base/x509.h"
#include "tests/support/http_lab.h"

#define HOST     "Host: node\r\n"
#define JSON     "Content-Type: application/json\r\n"
#define LOGIN    "POST /api/v1/session HTTP/1.1\r\n" HOST
#define LARGE    ((size_t)17 << 20)
#define LONG_MS  5000
#define WAIT_MS  20000 /* only ever reached by a failure */
#define SHORT_MS 300

static void
hurry(struct tunables *t)
{
    t->header_ms = SHORT_MS;
    t->request_ms = SHORT_MS;
    t->idle_ms = SHORT_MS;
    t->answer_ms = SHORT_MS;
}

/* ---- every answer ---- */

static void
has_standard_fields(struct http_lab *l)
{
    assert_string_equal(http_lab_field(l, "Lockstep-Node"), "proxy1");
    assert_string_equal(http_lab_field(l, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(http_lab_field(l, "Referrer-Policy"), "no-referrer");
    assert_string_equal(http_lab_field(l, "Cross-Origin-Opener-Policy"), "same-origin");
    assert_string_equal(http_lab_field(l, "Cross-Origin-Resource-Policy"), "same-origin");
    assert_string_equal(http_lab_field(l, "Cache-Control"), "no-store");
    assert_non_null(http_lab_field(l, "Permissions-Policy"));
    assert_non_null(strstr(http_lab_field(l, "Content-Security-Policy"), "default-src 'none'"));
    assert_null(http_lab_field(l, "Server"));
}

static void
every_answer_has_its_fields(void **state)
{
    static const char *const lines[] = {"GET /api/v1/health", "GET /",
                                        "GET /api/v1/status", "PUT /api/v1/health",
                                        "GET /api/v1/%00",    "POST /api/v1/session"};
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_not_equal(http_lab_ask(l, lines[i], NULL, NULL, NULL), 0);
        has_standard_fields(l);
        /* Only TLS may say so. */
        assert_null(http_lab_field(l, "Strict-Transport-Security"));
    }
}

static void
refusals_are_problem_documents(void **state)
{
    struct http_lab *l = *state;

    assert_int_equal(http_lab_ask(l, "GET /nowhere", NULL, NULL, NULL), 404);
    assert_string_equal(http_lab_field(l, "Content-Type"), "application/problem+json");
    assert_string_equal(http_lab_text(l, "type"), "about:blank");
    assert_string_equal(http_lab_text(l, "title"), "Not Found");
    assert_string_equal(http_lab_text(l, "code"), "not_found");
    assert_string_equal(http_lab_text(l, "node"), "proxy1");
    assert_int_equal(json_integer_value(json_object_get(l->json, "status")), 404);
}

static void
head_has_the_fields_of_get(void **state)
{
    struct http_lab *l = *state;

    assert_int_equal(http_lab_ask(l, "HEAD /api/v1/health", NULL, NULL, NULL), 200);
    assert_string_equal(http_lab_field(l, "Content-Length"), "3");
    assert_string_equal(l->body, "");
    has_standard_fields(l);
}

/* ---- what is refused ---- */

static void
refuses_ambiguous_messages_and_closes(void **state)
{
    static const char *const messages[] = {
        "GET /api/v1/health HTTP/1.1\r\n\r\n",
        "GET /api/v1/health HTTP/1.1\r\n" HOST HOST "\r\n",
        "GET /api/v1/health HTTP/1.1\r\n" HOST "X-Y : z\r\n\r\n",
        LOGIN JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        LOGIN JSON "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        LOGIN JSON "Transfer-Encoding: gzip\r\n\r\n{}",
        LOGIN JSON "Transfer-Encoding: chunked, gzip\r\n\r\n{}",
    };
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        assert_int_equal(http_lab_raw(l, messages[i]), 400);
        assert_string_equal(http_lab_field(l, "Connection"), "close");
        assert_string_equal(http_lab_text(l, "code"), "syntax");
    }
}

static void
refuses_by_the_raw_target(void **state)
{
    static const struct {
        const char *target;
        int status;
    } cases[] = {
        {"/api/v1/health%00", 400},
        {"/api/v1/health%00/x", 400},
        {"/api//v1/health", 400},
        {"/api/v1/../v1/health", 400},
        {"/api/v1/%2e%2e/v1/health", 400},
        {"/api/v1/%zz", 400},
        {"/api/v1/%ff", 400},
        {"/api/v1/h\xc3\xa9", 400},
        {"/api/v1/hea lth", 400},
        {"*", 400},
        {"/api%2fv1/health", 404},
        {"/api/v1/health/", 404},
        {"/api/v1/health;x", 404},
        {"/api/v1/health?x=1", 400},
        {"http://other.example.test/api/v1/health", 200},
        {"/api/v1/health", 200},
    };
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *line = arena_printf(l->engine->arena, "GET %s", cases[i].target);

        assert_int_equal(http_lab_ask(l, line, NULL, NULL, NULL), cases[i].status);
    }
    http_lab_must(l, 404, "GET /api/v1/servers/a%2fb", NULL, NULL);
}

static void
refuses_methods_with_those_allowed(void **state)
{
    struct http_lab *l = *state;

    assert_int_equal(http_lab_ask(l, "get /api/v1/health", NULL, NULL, NULL), 405);
    assert_string_equal(http_lab_field(l, "Allow"), "GET, HEAD");
    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/pools", NULL, NULL, NULL), 405);
    assert_string_equal(http_lab_field(l, "Allow"), "GET, HEAD, POST");
    assert_int_equal(http_lab_ask(l, "OPTIONS /api/v1/session", NULL, NULL, NULL), 405);
    assert_string_equal(http_lab_field(l, "Allow"), "GET, HEAD, POST, DELETE");
}

static void
refuses_bodies_by_their_header(void **state)
{
    struct http_lab *l = *state;

    assert_int_equal(http_lab_raw(l, LOGIN JSON "Content-Length: 4097\r\n\r\n"), 413);
    assert_int_equal(http_lab_raw(l, LOGIN "Content-Length: 2\r\n\r\n{}"), 415);
    assert_int_equal(
        http_lab_raw(l, LOGIN "Content-Type: text/json\r\nContent-Length: 2\r\n\r\n{}"), 415);
    assert_int_equal(http_lab_raw(l, LOGIN "\r\n"), 400);
    assert_int_equal(
        http_lab_raw(l, "GET /api/v1/health HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"),
        413);
}

static void
refuses_bodies_that_are_no_json_object(void **state)
{
    static const char *const bodies[] = {"",          " ",   "{", "[]", "{} x", "{'a':1,'a':2}",
                                         "{'a':1.5}", "\xff"};
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        assert_int_equal(http_lab_ask(l, "POST /api/v1/session", NULL, NULL, bodies[i]), 400);
        assert_string_equal(http_lab_text(l, "code"), "syntax");
    }
}

static void
refuses_a_long_body_without_a_length(void **state)
{
    struct http_lab *l = *state;
    CLEANUP(xfree_cleanup) char *body = xmalloc(LARGE);
    int fd = http_lab_connect(l);
    char head[256];

    (void)snprintf(
        head, sizeof head, "%s", LOGIN JSON "Transfer-Encoding: chunked\r\n\r\n1100000\r\n");
    memset(body, 'x', LARGE);
    http_lab_send(fd, head, strlen(head));
    http_lab_send(fd, body, LARGE);
    http_lab_send(fd, "\r\n0\r\n\r\n", 7);
    assert_true(http_lab_read(l, fd, false));
    assert_int_equal(l->status, 413);
    (void)close(fd);
}

/* ---- who asks ---- */

static void
answers_before_the_body_comes(void **state)
{
    static const char head[] =
        "POST /api/v1/servers HTTP/1.1\r\n" HOST JSON "Content-Length: 1000000\r\n\r\n";
    struct http_lab *l = *state;
    int fd = http_lab_connect(l);

    http_lab_send(fd, head, sizeof head - 1);
    assert_true(http_lab_read(l, fd, false));
    assert_int_equal(l->status, 401);
    assert_string_equal(http_lab_field(l, "WWW-Authenticate"), "Bearer realm=\"lockstep\"");
    assert_string_equal(http_lab_field(l, "Connection"), "close");
    (void)close(fd);
}

/* A server that closes at once resets the connection, and the client loses the answer. */
static void
a_client_that_sends_on_sees_the_answer(void **state)
{
    struct http_lab *l = *state;
    CLEANUP(xfree_cleanup) char *body = xcalloc(1, LARGE);
    int fd = http_lab_connect(l);
    char head[256];

    (void)snprintf(
        head, sizeof head,
        "POST /api/v1/changes HTTP/1.1\r\n" HOST JSON "Content-Length: %zu\r\n\r\n", LARGE);
    http_lab_send(fd, head, strlen(head));
    http_lab_send(fd, body, LARGE);
    assert_true(http_lab_read(l, fd, false));
    assert_int_equal(l->status, 401);
    assert_true(http_lab_read_end(l, fd) < LONG_MS);
    (void)close(fd);
}

static void
asks_for_exactly_one_credential(void **state)
{
    struct http_lab *l = *state;
    struct arena *arena = l->engine->arena;
    const char *key = buf_str(&l->key);
    const char *both = arena_printf(arena, "Authorization: Bearer %s\r\n", key);

    assert_int_equal(http_lab_ask(l, "GET /api/v1/status", NULL, NULL, NULL), 401);
    assert_int_equal(http_lab_ask(l, "GET /api/v1/status", HTTP_LAB_KEY, NULL, NULL), 200);
    assert_int_equal(http_lab_ask(l, "GET /api/v1/status", HTTP_LAB_COOKIE, NULL, NULL), 200);
    assert_int_equal(http_lab_ask(l, "GET /api/v1/status", HTTP_LAB_COOKIE, both, NULL), 400);
    assert_string_equal(http_lab_text(l, "code"), "two_credentials");
    assert_int_equal(
        http_lab_ask(
            l, arena_printf(arena, "GET /api/v1/status?key=%s", key), NULL, NULL, NULL),
        401);
}

static void
refuses_credentials_that_are_not_right(void **state)
{
    struct http_lab *l = *state;
    struct arena *arena = l->engine->arena;
    const char *key = buf_str(&l->key);
    const char *const fields[] = {
        "Authorization: Basic bWFyaWE6eA==\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer lsk_\r\n",
        arena_printf(arena, "Authorization: Bearer %.*s\r\n", (int)strlen(key) - 1, key),
        arena_printf(arena, "Authorization: Bearer %sA\r\n", key),
        arena_printf(arena, "Authorization: Bearer LSK%s\r\n", key + 3),
        arena_printf(arena, "Authorization: %s\r\n", key),
        arena_printf(arena, "Cookie: %s=\r\n", l->cookie_name),
        arena_printf(arena, "Cookie: %s=%s\r\n", l->cookie_name, key),
        arena_printf(arena, "Cookie: lockstep_session=%s\r\n", buf_str(&l->token)),
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        assert_int_equal(http_lab_ask(l, "GET /api/v1/status", NULL, fields[i], NULL), 401);
    }
}

static void
a_session_changes_nothing_without_its_second_half(void **state)
{
    struct http_lab *l = *state;
    const char *cookie =
        arena_printf(l->engine->arena, "Cookie: %s=%s\r\n", l->cookie_name, buf_str(&l->token));
    const char *wrong =
        arena_printf(l->engine->arena, "%sLockstep-CSRF: %.10s\r\n", cookie, l->session.csrf);

    assert_int_equal(http_lab_ask(l, "GET /api/v1/draft", NULL, cookie, NULL), 200);
    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/draft", NULL, cookie, NULL), 403);
    assert_string_equal(http_lab_text(l, "code"), "csrf");
    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/draft", NULL, wrong, NULL), 403);
    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/draft", HTTP_LAB_COOKIE, NULL, NULL), 204);
}

static void
nodes_behind_one_name_keep_their_sessions(void **state)
{
    struct http_lab *l = *state;
    struct http *first = l->http;
    struct http_config config = {
        .engine = l->engine->en,
        .address = "127.0.0.1",
        .tunables = &l->engine->tunables,
        .clock = &l->engine->clock,
    };
    struct http *second = NULL;
    const char *cookie;

    assert_int_equal(http_open(&config, &second, NULL), ERR_OK);
    l->http = second;
    assert_int_equal(http_lab_ask(l, "DELETE /api/v1/session", HTTP_LAB_KEY, NULL, NULL), 204);
    cookie = http_lab_field(l, "Set-Cookie");
    assert_non_null(strstr(cookie, "lockstep_session_"));
    assert_null(strstr(cookie, l->cookie_name));
    http_close(second);
    l->http = first;
}

/* ---- connections ---- */

static void
keeps_a_connection(void **state)
{
    static const char two[] = "GET /api/v1/health HTTP/1.1\r\n" HOST "\r\n"
                              "GET /api/v1/nothing HTTP/1.1\r\n" HOST "\r\n";
    struct http_lab *l = *state;
    int fd = http_lab_connect(l);

    for (int i = 0; i < 3; i++) {
        buf_reset(&l->bytes);
        http_lab_send(fd, two, sizeof two - 1);
        http_lab_read_until(l, fd, "\"Not Found\"");
        assert_int_equal(l->status, 200);
    }
    (void)close(fd);
}

static void
asks_for_the_body_when_it_is_wanted(void **state)
{
    static const char head[] = LOGIN JSON "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    struct http_lab *l = *state;
    int fd = http_lab_connect(l);

    buf_reset(&l->bytes);
    http_lab_send(fd, head, sizeof head - 1);
    http_lab_read_until(l, fd, "100 Continue");
    http_lab_send(fd, "{}", 2);
    assert_true(http_lab_read(l, fd, false));
    assert_int_equal(l->status, 400);
    (void)close(fd);
}

static void
ends_idle_connections(struct http_lab *l)
{
    static const char ask[] = "GET /api/v1/health HTTP/1.1\r\n" HOST "\r\n";
    int fd = http_lab_connect(l);

    http_lab_send(fd, ask, sizeof ask - 1);
    assert_true(http_lab_read(l, fd, false));
    assert_true(http_lab_read_end(l, fd) < LONG_MS);
    (void)close(fd);
}

static void
ends_what_takes_too_long(void **state)
{
    static const char *const starts[] = {
        "", "GET /api/v1", "GET /api/v1/health HTTP/1.1\r\nHost: no",
        LOGIN JSON "Content-Length: 10\r\n\r\n{"};
    struct http_lab *l = http_lab_new(hurry);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        int fd = http_lab_connect(l);

        http_lab_send(fd, starts[i], strlen(starts[i]));
        assert_true(http_lab_read_end(l, fd) < LONG_MS);
        (void)close(fd);
    }
    ends_idle_connections(l);
    http_lab_delete(l);
}

static void
speaks_tls(void **state)
{
    static const char *const names[] = {"127.0.0.1", NULL};
    struct http_lab *l = *state;
    struct probe p = {
        .address = "127.0.0.1", .tls = true, .host = "node", .path = "/api/v1/health"};
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    int status = 0;
    struct http_config config = {
        .engine = l->engine->en,
        .address = "127.0.0.1",
        .tunables = &l->engine->tunables,
        .clock = &l->engine->clock,
    };
    struct http *tls = NULL;

    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    assert_int_equal(
        x509_selfsigned(names, clock_wall_ms(&clock_system) / 1000, 2, &chain, &key, NULL),
        ERR_OK);
    config.cert_pem = buf_str(&chain);
    config.key_pem = buf_str(&key);
    assert_int_equal(http_open(&config, &tls, NULL), ERR_OK);
    p.port = http_port(tls);
    assert_int_equal(probe_http(&p, WAIT_MS, &status, NULL), ERR_OK);
    assert_int_equal(status, 200);
    http_close(tls);
}

static void
does_not_start_on_what_cannot_work(void **state)
{
    struct http_lab *l = *state;
    struct http_config config = {
        .engine = l->engine->en,
        .address = "127.0.0.1",
        .port = http_port(l->http),
        .tunables = &l->engine->tunables,
        .clock = &l->engine->clock,
    };
    struct http *http = NULL;
    struct error e;

    assert_int_equal(http_open(&config, &http, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "cannot listen on 127.0.0.1"));
    config.address = "node";
    assert_int_equal(http_open(&config, &http, &e), ERR_INVALID);
    config.address = "127.0.0.1";
    config.cert_pem = "none";
    config.key_pem = "none";
    assert_int_equal(http_open(&config, &http, &e), ERR_INVALID);
    assert_null(http);
    http_close(NULL);
}

static int
send_check(struct http_lab *l)
{
    int fd = http_lab_connect(l);
    char ask[512];
    int n = snprintf(
        ask, sizeof ask,
        "POST /api/v1/config/check HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n\r\n",
        buf_str(&l->key));

    http_lab_send(fd, ask, (size_t)n);
    return fd;
}

/* There are as many workers as checks here. */
static void
checks_leave_workers_to_those_who_sign_in(void **state)
{
    struct http_lab *l = http_lab_new(NULL);
    struct pollfd waiting[3];
    size_t refused = 0;
    int held;

    (void)state;
    fake_hold(&l->engine->fake);
    held = send_check(l);
    fake_await_held(&l->engine->fake);
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
        waiting[i] = (struct pollfd){send_check(l), POLLIN, 0};
    }
    while (refused < 2) {
        assert_true(poll(waiting, ARRAY_LEN(waiting), 10000) > 0);
        for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
            if (waiting[i].fd >= 0 && waiting[i].revents != 0) {
                assert_true(http_lab_read(l, waiting[i].fd, false));
                assert_int_equal(l->status, 503);
                assert_non_null(http_lab_field(l, "Retry-After"));
                (void)close(waiting[i].fd);
                waiting[i].fd = -1;
                refused++;
            }
        }
    }
    http_lab_must(l, 503, "GET /api/v1/verify", NULL, NULL);
    assert_int_equal(
        http_lab_ask(
            l, "POST /api/v1/session", NULL, NULL,
            "{'name': 'maria', 'password': '" HTTP_LAB_PASSWORD "'}"),
        201);
    fake_release(&l->engine->fake);
    assert_true(http_lab_read(l, held, false));
    assert_int_equal(l->status, 200);
    (void)close(held);
    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
        if (waiting[i].fd >= 0) {
            assert_true(http_lab_read(l, waiting[i].fd, false));
            assert_int_equal(l->status, 200);
            (void)close(waiting[i].fd);
        }
    }
    http_lab_delete(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_its_fields),
        cmocka_unit_test(refusals_are_problem_documents),
        cmocka_unit_test(head_has_the_fields_of_get),
        cmocka_unit_test(refuses_ambiguous_messages_and_closes),
        cmocka_unit_test(refuses_by_the_raw_target),
        cmocka_unit_test(refuses_methods_with_those_allowed),
        cmocka_unit_test(refuses_bodies_by_their_header),
        cmocka_unit_test(refuses_bodies_that_are_no_json_object),
        cmocka_unit_test(refuses_a_long_body_without_a_length),
        cmocka_unit_test(answers_before_the_body_comes),
        cmocka_unit_test(a_client_that_sends_on_sees_the_answer),
        cmocka_unit_test(asks_for_exactly_one_credential),
        cmocka_unit_test(refuses_credentials_that_are_not_right),
        cmocka_unit_test(a_session_changes_nothing_without_its_second_half),
        cmocka_unit_test(nodes_behind_one_name_keep_their_sessions),
        cmocka_unit_test(keeps_a_connection),
        cmocka_unit_test(asks_for_the_body_when_it_is_wanted),
        cmocka_unit_test(ends_what_takes_too_long),
        cmocka_unit_test(speaks_tls),
        cmocka_unit_test(does_not_start_on_what_cannot_work),
        cmocka_unit_test(checks_leave_workers_to_those_who_sign_in),
    };

    return cmocka_run_group_tests(tests, http_lab_setup, http_lab_teardown);
}
