/* SPDX-License-Identifier: Apache-2.0 */
/* The routes, against an engine whose helper and HAProxy are played. */
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
#include "tests/support/http_lab.h"

#define SERVER(name, port) "{'name': '" name "', 'address': '10.0.0.1', 'port': " #port "}"
#define WRONG                                                                                  \
    "If-Match: \"0000000000000000000000000000000000000000000000000000000000000000\"\r\n"

/* Each test starts on an empty draft. */
static int
draft_clear(void **state)
{
    http_lab_must(*state, 204, "DELETE /api/v1/draft", NULL, NULL);
    return 0;
}

/* Code and pointer of the n-th problem of the last answer: "range /port". */
static const char *
problem(struct http_lab *l, size_t n)
{
    const json_t *item = json_array_get(json_object_get(l->json, "errors"), n);

    if (item == NULL) {
        return "";
    }
    return arena_printf(
        l->engine->arena, "%s %s", json_string_value(json_object_get(item, "code")),
        json_string_value(json_object_get(item, "pointer")));
}

/* ---- objects ---- */

static void
an_object_lives_by_its_etag(void **state)
{
    struct http_lab *l = *state;
    static const char path[] = "/api/v1/servers/s1";
    const char *first;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("s1", 80));
    assert_string_equal(http_lab_field(l, "Location"), path);
    first = arena_printf(l->engine->arena, "If-Match: %s\r\n", http_lab_field(l, "ETag"));
    assert_string_equal(first, http_lab_if_match(l, path));
    http_lab_must(l, 428, "PUT /api/v1/servers/s1", NULL, SERVER("s1", 81));
    http_lab_must(l, 428, "PUT /api/v1/servers/s1", "If-Match: *\r\n", SERVER("s1", 81));
    http_lab_must(l, 412, "PUT /api/v1/servers/s1", WRONG, SERVER("s1", 81));
    http_lab_must(l, 412, "PUT /api/v1/servers/s1", "If-Match: W/\"1\"\r\n", SERVER("s1", 81));
    http_lab_must(l, 200, "PUT /api/v1/servers/s1", first, SERVER("s1", 81));
    http_lab_must(l, 412, "PATCH /api/v1/servers/s1", first, "{'port': 82}");
    http_lab_must(l, 412, "DELETE /api/v1/servers/s1", first, NULL);
    http_lab_must(
        l, 200, "PATCH /api/v1/servers/s1", http_lab_if_match(l, path), "{'name': 's2'}");
    assert_string_equal(http_lab_text(l, "name"), "s2");
    http_lab_must(l, 404, "GET /api/v1/servers/s1", NULL, NULL);
    http_lab_must(
        l, 204, "DELETE /api/v1/servers/s2", http_lab_if_match(l, "/api/v1/servers/s2"), NULL);
    http_lab_must(l, 404, "DELETE /api/v1/servers/s2", first, NULL);
    http_lab_must(l, 404, "PUT /api/v1/servers/s2", first, SERVER("s2", 81));
}

static void
problems_point_into_the_object(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(
        l, 422, "POST /api/v1/servers", NULL,
        "{'name': 's1', 'address': '10.0.0.1', 'port': 0, 'zz': 1}");
    assert_string_equal(problem(l, 0), "range /port");
    assert_string_equal(problem(l, 1), "unknown_field /zz");
    assert_string_equal(http_lab_text(l, "code"), "invalid");
    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("s1", 80));
    http_lab_must(l, 409, "POST /api/v1/servers", NULL, SERVER("s1", 80));
    assert_string_equal(http_lab_text(l, "code"), "exists");
    http_lab_must(
        l, 201, "POST /api/v1/pools", NULL, "{'name': 'p', 'members': [{'server': 's1'}]}");
    http_lab_must(
        l, 409, "DELETE /api/v1/servers/s1", http_lab_if_match(l, "/api/v1/servers/s1"), NULL);
    assert_string_equal(problem(l, 0), "in_use /members/0/server");
}

static void
merge_patches_have_a_type_of_their_own(void **state)
{
    static const char type[] = "Content-Type: application/merge-patch+json\r\n";
    struct http_lab *l = *state;
    const char *fields =
        arena_printf(l->engine->arena, "%s%s", http_lab_if_match(l, "/api/v1/node"), type);

    http_lab_must(l, 200, "PATCH /api/v1/node", fields, "{'note': 'x'}");
    assert_string_equal(http_lab_text(l, "note"), "x");
    http_lab_must(l, 415, "PUT /api/v1/node", fields, "{'name': 'proxy1'}");
    http_lab_must(l, 415, "POST /api/v1/servers", type, SERVER("s1", 80));
}

static void
lists_come_in_pages(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("Web-b", 80));
    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("db", 81));
    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("web-a", 82));
    http_lab_must(l, 200, "GET /api/v1/servers?limit=2", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "items")), 2);
    assert_string_equal(http_lab_text(l, "next"), "db");
    http_lab_must(l, 200, "GET /api/v1/servers?limit=2&after=db", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "items")), 1);
    assert_true(json_is_null(json_object_get(l->json, "next")));
    http_lab_must(l, 200, "GET /api/v1/servers?q=WEB-", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "items")), 2);
    http_lab_must(l, 200, "GET /api/v1/servers?q=", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "items")), 3);
    http_lab_must(l, 200, "GET /api/v1/servers?limit=1&q=d&after=Web-b", NULL, NULL);
    assert_true(json_is_null(json_object_get(l->json, "next")));
    http_lab_must(l, 422, "GET /api/v1/servers?limit=0", NULL, NULL);
    assert_string_equal(problem(l, 0), "range /limit");
    http_lab_must(l, 422, "GET /api/v1/servers?limit=1001", NULL, NULL);
    http_lab_must(l, 422, "GET /api/v1/servers?limit=x", NULL, NULL);
    http_lab_must(l, 422, "GET /api/v1/servers?limit=99999999999999999999", NULL, NULL);
}

/* ---- applying ---- */

static void
an_apply_can_be_waited_for(void **state)
{
    struct http_lab *l = *state;
    const char *location;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("s1", 80));
    http_lab_must(l, 200, "POST /api/v1/config/apply?wait=1", NULL, "{'note': 'first'}");
    assert_string_equal(http_lab_text(l, "state"), "ok");
    assert_string_equal(http_lab_text(l, "author"), "key deploy");
    http_lab_must(l, 202, "POST /api/v1/config/apply", NULL, NULL);
    location = http_lab_field(l, "Location");
    http_lab_must(l, 200, arena_printf(l->engine->arena, "GET %s", location), NULL, NULL);
    http_lab_must(l, 422, "POST /api/v1/config/apply?wait=2", NULL, NULL);
    http_lab_must(l, 422, "POST /api/v1/config/apply", NULL, "{'base': 'head'}");
    http_lab_must(l, 400, "POST /api/v1/config/apply", NULL, "{'bse': null}");
    http_lab_must(
        l, 409, "POST /api/v1/config/apply", NULL,
        "{'base': '0000000000000000000000000000000000000000000000000000000000000000'}");
    http_lab_must(
        l, 204, "DELETE /api/v1/servers/s1", http_lab_if_match(l, "/api/v1/servers/s1"), NULL);
    http_lab_must(l, 200, "POST /api/v1/config/apply?wait=1", NULL, NULL);
}

static void
tasks_are_found_by_their_number(void **state)
{
    static const char *const numbers[] = {"0",  "999999", "-1",
                                          "1x", "x",      "99999999999999999999"};
    struct http_lab *l = *state;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        http_lab_must(
            l, 404, arena_printf(l->engine->arena, "GET /api/v1/tasks/%s", numbers[i]), NULL,
            NULL);
    }
    http_lab_must(l, 200, "GET /api/v1/tasks", NULL, NULL);
    assert_true(json_array_size(json_object_get(l->json, "items")) > 0);
}

static void
hurry(struct tunables *t)
{
    t->answer_ms = 2000;
}

/* Who waits longer than an answer may take is told how far the task is. */
static void
a_wait_ends_before_its_connection(void **state)
{
    struct http_lab *l = http_lab_new(hurry);

    (void)state;
    engine_lab_must(l->engine, "[" LAB_TITLE("held") "]");
    fake_hold(&l->engine->fake);
    http_lab_must(l, 202, "POST /api/v1/config/apply?wait=1", NULL, NULL);
    assert_string_equal(http_lab_text(l, "state"), "running");
    assert_non_null(http_lab_field(l, "Location"));
    fake_release(&l->engine->fake);
    http_lab_delete(l);
}

static void
a_closing_server_waits_for_nobody(void **state)
{
    static const char ask[] = "POST /api/v1/config/apply?wait=1 HTTP/1.1\r\nHost: node\r\n";
    struct http_lab *l = http_lab_new(NULL);
    int fd = http_lab_connect(l);
    char key[256];

    (void)state;
    engine_lab_must(l->engine, "[" LAB_TITLE("held") "]");
    fake_hold(&l->engine->fake);
    (void)snprintf(key, sizeof key, "Authorization: Bearer %s\r\n\r\n", buf_str(&l->key));
    http_lab_send(fd, ask, sizeof ask - 1);
    http_lab_send(fd, key, strlen(key));
    fake_await_held(&l->engine->fake);
    http_lab_close_server(l);
    fake_release(&l->engine->fake);
    (void)close(fd);
    http_lab_delete(l);
}

static void
differences_are_shown_before_they_are_applied(void **state)
{
    struct http_lab *l = *state;

    engine_lab_must(l->engine, "[" LAB_TITLE("Gone") "]");
    http_lab_must(l, 200, "GET /api/v1/config/diff", NULL, NULL);
    assert_string_equal(http_lab_text(l, "to"), "draft");
    assert_int_equal(json_array_size(json_object_get(l->json, "objects")), 1);
    assert_non_null(strstr(http_lab_text(l, "haproxy_cfg"), "+++ b/haproxy.cfg"));
    assert_int_equal(json_array_size(json_object_get(l->json, "effect")), 1);
    http_lab_must(l, 200, "GET /api/v1/config/haproxy.cfg", NULL, NULL);
    assert_string_equal(http_lab_field(l, "Content-Type"), "text/plain; charset=utf-8");
    http_lab_must(l, 200, "GET /api/v1/config/haproxy.cfg?draft=1", NULL, NULL);
    http_lab_must(l, 422, "GET /api/v1/config/haproxy.cfg?draft=yes", NULL, NULL);
    http_lab_must(l, 404, "DELETE /api/v1/draft/server/none", NULL, NULL);
    http_lab_must(l, 404, "DELETE /api/v1/draft/none/haproxy", NULL, NULL);
    http_lab_must(l, 204, "DELETE /api/v1/draft/haproxy/haproxy", NULL, NULL);
    http_lab_must(l, 404, "DELETE /api/v1/draft/haproxy/haproxy", NULL, NULL);
}

/* ---- many at once ---- */

/* Parsed by the worker pool, not on a thread that others wait for. */
static void
large_bodies_are_taken(void **state)
{
    struct http_lab *l = *state;
    CLEANUP(buf_fini) struct buf body;

    buf_init(&body, 1 << 20);
    buf_puts(&body, "{'ops': [");
    for (int i = 0; i < 2000; i++) {
        buf_printf(
            &body,
            "%s{'op': 'create', 'kind': 'server', 'body': {'name': 'large%d', 'address': "
            "'10.0.0.1', 'port': %d}}",
            i > 0 ? "," : "", i, i + 1);
    }
    http_lab_must(l, 400, "POST /api/v1/changes", NULL, buf_str(&body));
    buf_puts(&body, "]}");
    http_lab_must(l, 200, "POST /api/v1/changes", NULL, buf_str(&body));
    assert_int_equal(json_integer_value(json_object_get(l->json, "count")), 2000);
    /* A route of the worker pool: the same body is no publish request. */
    http_lab_must(l, 413, "POST /api/v1/publish", NULL, buf_str(&body));
    http_lab_must(l, 400, "POST /api/v1/render", NULL, buf_str(&body));
}

static void
changes_are_all_or_nothing(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(
        l, 200, "POST /api/v1/changes", NULL,
        "{'ops': [{'op': 'create', 'kind': 'pool', 'body': {'name': 'p', 'members': "
        "[{'server': 's1'}]}}, {'op': 'create', 'kind': 'server', 'body': " SERVER(
            "s1", 80) "}]}");
    assert_int_equal(json_integer_value(json_object_get(l->json, "count")), 2);
    http_lab_must(
        l, 404, "POST /api/v1/changes", NULL,
        "{'ops': [{'op': 'delete', 'kind': 'pool', 'name': 'p'}, "
        "{'op': 'delete', 'kind': 'pool', 'name': 'q'}]}");
    http_lab_must(l, 200, "GET /api/v1/pools/p", NULL, NULL);
    http_lab_must(l, 422, "POST /api/v1/changes", NULL, "{'ops': [{'op': 'x'}]}");
    assert_non_null(strstr(problem(l, 0), "/ops/0/op"));
    http_lab_must(l, 400, "POST /api/v1/changes", NULL, "{'ops': {}}");
    http_lab_must(l, 400, "POST /api/v1/changes", NULL, "{'ops': [], 'apply': 1}");
    http_lab_must(l, 200, "POST /api/v1/changes", NULL, "{'ops': []}");
    http_lab_must(
        l, 409, "POST /api/v1/changes", NULL,
        "{'base': '0000000000000000000000000000000000000000000000000000000000000000', "
        "'ops': []}");
}

static void
changes_can_be_applied_beside_the_draft(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("drafted", 80));
    http_lab_must(
        l, 200, "POST /api/v1/changes?wait=1", NULL,
        "{'apply': true, 'ops': [{'op': 'create', 'kind': 'server', 'body': " SERVER(
            "beside", 81) "}]}");
    assert_string_equal(http_lab_text(l, "state"), "ok");
    http_lab_must(l, 200, "GET /api/v1/draft", NULL, NULL);
    assert_int_equal(json_integer_value(json_object_get(l->json, "count")), 1);
}

static void
accounts_are_not_changed_by_the_dozen(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(
        l, 422, "POST /api/v1/changes", NULL,
        "{'ops': [{'op': 'create', 'kind': 'admin', 'body': "
        "{'name': 'eve', 'password': 'a long enough one'}}]}");
    assert_string_equal(problem(l, 0), "not_allowed /ops/0/kind");
}

/* ---- preview, publish, history ---- */

static void
a_preview_changes_nothing(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(
        l, 200, "POST /api/v1/render", NULL,
        "{'kind': 'haproxy', 'body': {'error_title': 'Away'}}");
    assert_true(json_is_true(json_object_get(json_object_get(l->json, "check"), "ok")));
    assert_true(json_array_size(json_object_get(l->json, "added")) > 0);
    http_lab_must(l, 200, "POST /api/v1/render", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "added")), 0);
    http_lab_must(l, 200, "GET /api/v1/draft", NULL, NULL);
    assert_int_equal(json_integer_value(json_object_get(l->json, "count")), 0);
    http_lab_must(l, 404, "POST /api/v1/render", NULL, "{'kind': 'server', 'name': 'none'}");
    http_lab_must(l, 404, "POST /api/v1/render", NULL, "{'kind': 'admin', 'name': 'maria'}");
    http_lab_must(l, 400, "POST /api/v1/render", NULL, "{'kind': 'server'}");
    http_lab_must(l, 400, "POST /api/v1/render", NULL, "{'kind': 'server', 'body': 1}");
}

static void
a_preview_shows_what_the_checker_says(void **state)
{
    struct http_lab *l = *state;
    const json_t *check;

    fake_fail(&l->engine->fake, FAKE_CHECK, 1);
    http_lab_must(l, 200, "POST /api/v1/render", NULL, NULL);
    check = json_object_get(l->json, "check");
    assert_true(json_is_false(json_object_get(check, "ok")));
    assert_true(json_array_size(json_object_get(check, "messages")) > 0);
    fake_fail(&l->engine->fake, FAKE_CHECK, 1);
    http_lab_must(l, 200, "POST /api/v1/config/check", NULL, NULL);
    assert_true(json_is_false(json_object_get(l->json, "ok")));
    http_lab_must(l, 200, "POST /api/v1/config/check", NULL, NULL);
    assert_true(json_is_true(json_object_get(l->json, "ok")));
}

#define PUBLISH "{'url': 'http://app.example.test/', 'to': ['10.0.0.5:8080']}"

static void
publishing_goes_by_a_plan(void **state)
{
    struct http_lab *l = *state;

    http_lab_must(l, 200, "POST /api/v1/publish?plan=1", NULL, PUBLISH);
    assert_true(json_is_true(json_object_get(l->json, "planned")));
    assert_non_null(json_object_get(json_object_get(l->json, "diff"), "haproxy_cfg"));
    http_lab_must(l, 404, "GET /api/v1/services/app.example.test", NULL, NULL);
    http_lab_must(l, 200, "POST /api/v1/publish", NULL, PUBLISH);
    assert_true(json_array_size(json_object_get(l->json, "objects")) > 2);
    http_lab_must(l, 200, "GET /api/v1/services/app.example.test", NULL, NULL);
    http_lab_must(l, 200, "POST /api/v1/publish", NULL, PUBLISH);
    assert_int_equal(json_array_size(json_object_get(l->json, "objects")), 0);
    http_lab_must(l, 422, "POST /api/v1/publish", NULL, "{'url': 'x', 'to': ['y']}");
    assert_non_null(strstr(problem(l, 0), "/url"));
    http_lab_must(l, 200, "DELETE /api/v1/publish/app.example.test", NULL, NULL);
    http_lab_must(l, 404, "DELETE /api/v1/publish/app.example.test", NULL, NULL);
}

static void
publishing_can_be_applied(void **state)
{
    static const char body[] =
        "{'url': 'http://b.example.test/', 'to': ['10.0.0.6:8080'], 'apply': true}";
    struct http_lab *l = *state;

    http_lab_must(l, 200, "POST /api/v1/publish?wait=1", NULL, body);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(l->json, "task"), "kind")), "apply");
    assert_string_equal(http_lab_text(l, "service"), "b.example.test");
    http_lab_must(l, 202, "POST /api/v1/publish", NULL, body);
    assert_non_null(http_lab_field(l, "Location"));
    http_lab_must(l, 200, "POST /api/v1/publish?plan=1", NULL, body);
    http_lab_must(l, 400, "POST /api/v1/publish", NULL, "{'apply': 'yes'}");
    http_lab_must(l, 422, "POST /api/v1/publish?plan=x", NULL, body);
}

/* ---- accounts ---- */

static void
a_key_is_shown_once(void **state)
{
    struct http_lab *l = *state;
    const char *key;

    http_lab_must(l, 201, "POST /api/v1/automation_keys", NULL, "{'name': 'second'}");
    key = arena_strdup(l->engine->arena, http_lab_text(l, "key"));
    assert_int_equal(strlen(key), 47);
    http_lab_must(l, 200, "GET /api/v1/automation_keys", NULL, NULL);
    assert_null(strstr(l->body, key));
    assert_int_equal(
        http_lab_ask(
            l, "GET /api/v1/session", NULL,
            arena_printf(l->engine->arena, "Authorization: Bearer %s\r\n", key), NULL),
        200);
    assert_string_equal(http_lab_text(l, "key"), "second");
    http_lab_must(
        l, 204, "DELETE /api/v1/automation_keys/second",
        http_lab_if_match(l, "/api/v1/automation_keys/second"), NULL);
    assert_int_equal(
        http_lab_ask(
            l, "GET /api/v1/session", NULL,
            arena_printf(l->engine->arena, "Authorization: Bearer %s\r\n", key), NULL),
        401);
}

#define EVE "{'name': 'eve', 'password': 'a long enough one'}"

static void
a_password_is_never_seen_again(void **state)
{
    struct http_lab *l = *state;
    const char *cookie;

    http_lab_must(l, 422, "POST /api/v1/admins", NULL, "{'name': 'eve', 'password': 'short'}");
    assert_string_equal(problem(l, 0), "password /password");
    http_lab_must(l, 201, "POST /api/v1/admins", NULL, EVE);
    assert_null(strstr(l->body, "long enough"));
    assert_null(strstr(l->body, "scrypt"));
    assert_int_equal(http_lab_ask(l, "POST /api/v1/session", NULL, NULL, EVE), 201);
    cookie = http_lab_field(l, "Set-Cookie");
    assert_non_null(strstr(cookie, "; Path=/; HttpOnly; SameSite=Strict"));
    cookie =
        arena_printf(l->engine->arena, "Cookie: %.*s\r\n", (int)strcspn(cookie, ";"), cookie);
    assert_int_equal(http_lab_ask(l, "GET /api/v1/session", NULL, cookie, NULL), 200);
    assert_string_equal(http_lab_text(l, "admin"), "eve");
    /* A new password ends what was opened with the old one. */
    http_lab_must(
        l, 200, "PATCH /api/v1/admins/eve", http_lab_if_match(l, "/api/v1/admins/eve"),
        "{'password': 'another long one'}");
    assert_int_equal(http_lab_ask(l, "GET /api/v1/session", NULL, cookie, NULL), 401);
    assert_int_equal(http_lab_ask(l, "POST /api/v1/session", NULL, NULL, EVE), 401);
    http_lab_must(
        l, 204, "DELETE /api/v1/admins/eve", http_lab_if_match(l, "/api/v1/admins/eve"), NULL);
}

static void
guessing_has_to_wait(void **state)
{
    static const char guess[] = "{'name': 'nobody', 'password': 'guess'}";
    struct http_lab *l = *state;
    int status = 0;

    /* A slow machine must not outlast the wait of a second. */
    l->engine->mono_stands_ms = clock_mono_ms(&clock_system);
    for (int i = 0; i < 6 && status != 429; i++) {
        status = http_lab_ask(l, "POST /api/v1/session", NULL, NULL, guess);
        assert_true(status == 401 || status == 429);
    }
    assert_int_equal(status, 429);
    assert_non_null(http_lab_field(l, "Retry-After"));
    assert_int_equal(
        http_lab_ask(
            l, "POST /api/v1/session", NULL, NULL,
            "{'name': 'maria', 'password': '" HTTP_LAB_PASSWORD "'}"),
        201);
    l->engine->mono_stands_ms = 0;
}

static void
set_up_happens_once(void **state)
{
    struct http_lab *l = *state;

    assert_int_equal(http_lab_ask(l, "GET /api/v1/setup", NULL, NULL, NULL), 200);
    assert_true(json_is_true(json_object_get(l->json, "configured")));
    assert_int_equal(
        http_lab_ask(
            l, "POST /api/v1/setup", NULL, NULL,
            "{'token': 'x', 'name': 'eve', 'password': 'a long enough one'}"),
        409);
}

/* ---- state ---- */

static void
a_node_says_how_it_is(void **state)
{
    struct http_lab *l = *state;
    const char *etag;

    assert_int_equal(http_lab_ask(l, "GET /api/v1/health", NULL, NULL, NULL), 200);
    assert_string_equal(l->body, "up\n");
    assert_int_equal(http_lab_ask(l, "GET /api/v1/ready", NULL, NULL, NULL), 200);
    http_lab_must(l, 200, "GET /api/v1/status", NULL, NULL);
    assert_string_equal(http_lab_text(l, "node"), "proxy1");
    assert_string_equal(http_lab_field(l, "Vary"), "Authorization, Cookie");
    assert_int_equal(http_lab_ask(l, "GET /api/v1/schema", NULL, NULL, NULL), 200);
    etag = arena_printf(l->engine->arena, "If-None-Match: %s\r\n", http_lab_field(l, "ETag"));
    assert_int_equal(http_lab_ask(l, "GET /api/v1/schema", NULL, etag, NULL), 304);
    assert_int_equal(http_lab_ask(l, "GET /api/v1/openapi.json", NULL, etag, NULL), 200);
}

#define CASE(fn) cmocka_unit_test_setup(fn, draft_clear)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_object_lives_by_its_etag),
        CASE(problems_point_into_the_object),
        CASE(merge_patches_have_a_type_of_their_own),
        CASE(lists_come_in_pages),
        CASE(an_apply_can_be_waited_for),
        CASE(tasks_are_found_by_their_number),
        CASE(a_wait_ends_before_its_connection),
        CASE(a_closing_server_waits_for_nobody),
        CASE(differences_are_shown_before_they_are_applied),
        CASE(large_bodies_are_taken),
        CASE(changes_are_all_or_nothing),
        CASE(changes_can_be_applied_beside_the_draft),
        CASE(accounts_are_not_changed_by_the_dozen),
        CASE(a_preview_changes_nothing),
        CASE(a_preview_shows_what_the_checker_says),
        CASE(publishing_goes_by_a_plan),
        CASE(publishing_can_be_applied),
        CASE(a_key_is_shown_once),
        CASE(a_password_is_never_seen_again),
        CASE(guessing_has_to_wait),
        CASE(set_up_happens_once),
        CASE(a_node_says_how_it_is),
    };

    return cmocka_run_group_tests(tests, http_lab_setup, http_lab_teardown);
}
