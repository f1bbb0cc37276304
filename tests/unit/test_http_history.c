/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of history, against an engine whose helper and HAProxy are played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "tests/support/http_lab.h"

#define SERVER(name, port) "{'name': '" name "', 'address': '10.0.0.1', 'port': " #port "}"

static void
history_can_be_read_and_restored(void **state)
{
    struct http_lab *l = *state;
    const char *rev;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("h1", 80));
    http_lab_must(l, 200, "POST /api/v1/config/apply?wait=1", NULL, "{'note': 'with h1'}");
    http_lab_must(l, 200, "GET /api/v1/commits?limit=1", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "items")), 1);
    rev = arena_printf(
        l->engine->arena, "%lld",
        (long long)json_integer_value(
            json_object_get(json_array_get(json_object_get(l->json, "items"), 0), "rev")));
    http_lab_must(
        l, 200, arena_printf(l->engine->arena, "GET /api/v1/commits/%s", rev), NULL, NULL);
    assert_string_equal(http_lab_text(l, "summary"), "with h1");
    http_lab_must(
        l, 200, arena_printf(l->engine->arena, "GET /api/v1/commits/%s/diff", rev), NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(l->json, "objects")), 1);
    http_lab_must(
        l, 200, arena_printf(l->engine->arena, "GET /api/v1/commits/1/diff?to=%s", rev), NULL,
        NULL);
    http_lab_must(l, 200, "GET /api/v1/commits/1/diff", NULL, NULL);
    assert_string_equal(http_lab_text(l, "from"), "0");
    http_lab_must(l, 404, "GET /api/v1/commits/9999", NULL, NULL);
    http_lab_must(l, 200, "POST /api/v1/commits/1/restore", NULL, NULL);
    assert_int_not_equal(json_array_size(json_object_get(l->json, "objects")), 0);
    http_lab_must(l, 409, "POST /api/v1/commits/1/restore", NULL, NULL);
    http_lab_must(l, 204, "DELETE /api/v1/draft", NULL, NULL);
    http_lab_must(l, 200, "POST /api/v1/commits/1/restore?wait=1", NULL, "{'apply': true}");
    assert_true(json_is_object(json_object_get(l->json, "task")));
    http_lab_must(l, 400, "POST /api/v1/commits/1/restore", NULL, "{'apply': 1}");
    http_lab_must(l, 200, "GET /api/v1/verify", NULL, NULL);
}

/* The apply waits for its turn while another author drafts. */
static void
a_restore_applies_nothing_else(void **state)
{
    struct http_lab *l = *state;
    struct engine_lab *en = l->engine;
    int64_t held = 0;
    int64_t restore;
    json_t *task;

    http_lab_must(l, 201, "POST /api/v1/servers", NULL, SERVER("h1", 80));
    http_lab_must(l, 200, "POST /api/v1/config/apply?wait=1", NULL, NULL);
    fake_hold(&en->fake);
    assert_int_equal(engine_lab_apply_ops(en, "[" LAB_TITLE("held") "]", &held), ERR_OK);
    fake_await_held(&en->fake);
    http_lab_must(l, 202, "POST /api/v1/commits/1/restore", NULL, "{'apply': true}");
    restore = json_integer_value(json_object_get(json_object_get(l->json, "task"), "id"));
    engine_lab_must(en, "[" LAB_SERVER("theirs") "]");
    fake_release(&en->fake);
    task = engine_lab_task(en, restore);
    engine_lab_ended(task, "ok", "commit", "ok");
    json_decref(task);
    assert_null(engine_lab_head_object(en, K_SERVER, "h1"));
    assert_null(engine_lab_head_object(en, K_SERVER, "theirs"));
    assert_string_equal(engine_lab_draft(en), "server theirs");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            history_can_be_read_and_restored, http_lab_setup, http_lab_teardown),
        cmocka_unit_test_setup_teardown(
            a_restore_applies_nothing_else, http_lab_setup, http_lab_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
