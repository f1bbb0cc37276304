/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/edit.h"
#include "tests/support/engine_lab.h"

#define POOL(name, members)                                                                    \
    "{'op': 'create', 'kind': 'pool', 'body': {'name': '" name "', 'members': [" members "]}}"
#define MEMBER(server) "{'server': '" server "'}"

static err_t
apply_only(struct engine_lab *l, const struct apply_only *only, json_t **ret)
{
    static const struct actor who = {"admin olga"};
    int64_t task = 0;
    err_t code;

    problems_init(&l->problems, l->arena);
    code = apply_start(
        l->en, &(struct apply_request){.who = &who, .only = only}, &task, &l->problems,
        &l->error);
    if (code == ERR_OK) {
        *ret = engine_lab_task(l, task);
    }
    return code;
}

static err_t
apply_object(struct engine_lab *l, enum kind kind, const char *name)
{
    struct apply_object object = {kind, name};
    struct apply_only only = {.objects = &object, .object_count = 1};
    json_t *task = NULL;
    err_t code = apply_only(l, &only, &task);

    if (code == ERR_OK) {
        engine_lab_ended(task, "ok", "commit", "ok");
    }
    json_decref(task);
    return code;
}

static void
refused_naming(struct engine_lab *l, const char *name, const char *code)
{
    assert_true(l->problems.errors > 0);
    assert_string_equal(l->problems.items[0].code, code);
    assert_non_null(strstr(l->problems.items[0].message, name));
    assert_int_equal(engine_lab_rev(l), 1);
}

static void
the_chosen_change_is_applied_and_the_rest_stays(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") ", " LAB_SERVER("web2") ", " LAB_TITLE("x") "]");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "haproxy haproxy, server web2");
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web1"));
    assert_null(engine_lab_head_object(l, K_SERVER, "web2"));
    engine_lab_apply_ends(l, "ok", "ok");
    assert_string_equal(engine_lab_draft(l), "");
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web2"));
}

static void
an_edit_of_what_was_applied_stands_on_it(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") ", " POOL("app", MEMBER("web1")) "]");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_OK);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    assert_int_equal(apply_object(l, K_POOL, "app"), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "server web1");
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(engine_lab_rev(l), 4);
}

static void
what_the_chosen_needs_of_the_rest_is_named(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") ", " POOL("app", MEMBER("web1")) "]");
    assert_int_equal(apply_object(l, K_POOL, "app"), ERR_INVALID);
    refused_naming(l, "\"web1\"", "needs_draft");
    assert_string_equal(l->problems.items[0].pointer, "/members/0/server");
    assert_string_equal(engine_lab_draft(l), "pool app, server web1");
}

static void
what_the_needed_needs_in_turn_is_named_too_each_once(void **state)
{
    static const char *const wanted[] = {"listener \"l\"", "pool \"app\"", "server \"web1\""};
    struct engine_lab *l = *state;

    engine_lab_must(
        l,
        "[" LAB_SERVER("web1") ", " POOL(
            "app",
            MEMBER(
                "web1")) ", "
                         "{'op': 'create', 'kind': 'listener', 'body': {'name': 'l', 'port': 8080}}, "
                         "{'op': 'create', 'kind': 'service', 'body': {'name': 'a', 'listeners': ['l'], "
                         "'hosts': ['a.test'], 'pool': 'app'}}, "
                         "{'op': 'create', 'kind': 'service', 'body': {'name': 'b', 'listeners': ['l'], "
                         "'hosts': ['b.test'], 'pool': 'app'}}]");
    assert_int_equal(apply_object(l, K_SERVICE, "a"), ERR_INVALID);
    assert_int_equal(l->problems.errors, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_string_equal(l->problems.items[i].code, "needs_draft");
        assert_non_null(strstr(l->problems.items[i].message, wanted[i]));
    }
}

static void
who_still_uses_what_was_chosen_to_go_is_named(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") ", " POOL("app", MEMBER("web1")) "]");
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'pool', 'name': 'app', 'body': {'members': []}}, "
           "{'op': 'delete', 'kind': 'server', 'name': 'web1'}]");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_INVALID);
    assert_string_equal(l->problems.items[0].code, "needs_draft");
    assert_string_equal(l->problems.items[0].name, "app");
    assert_int_equal(apply_object(l, K_POOL, "app"), ERR_OK);
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "");
}

static void
a_name_that_is_not_free_yet_is_named(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'name': 'old'}}]");
    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_INVALID);
    assert_string_equal(l->problems.items[0].code, "needs_draft");
    assert_int_equal(apply_object(l, K_SERVER, "old"), ERR_OK);
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_OK);
}

/* Chosen without the change that gives them another place. */
static void
what_takes_the_pages_away_is_refused_when_it_is_chosen_alone(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(
        l, "[" LAB_LISTENER ", {'op': 'merge', 'kind': 'webui', 'name': 'webui', 'body': "
           "{'listener': 'web', 'hosts': ['ui.test']}}]");
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'webui', 'name': 'webui', 'body': {'hosts': []}}]");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'listener', 'name': 'web', 'body': {'enabled': false}}]");
    assert_int_equal(apply_object(l, K_LISTENER, "web"), ERR_INVALID);
    assert_string_equal(l->problems.items[0].code, "webui_listener");
    assert_string_equal(l->problems.items[0].kind, "listener");
    assert_string_equal(l->problems.items[0].pointer, "/enabled");
    assert_int_equal(apply_object(l, K_WEBUI, "webui"), ERR_OK);
    assert_int_equal(apply_object(l, K_LISTENER, "web"), ERR_OK);
}

static void
what_the_draft_does_not_hold_is_refused_by_its_pointer(void **state)
{
    static const char *const authors[] = {"admin maria", "admin nobody"};
    struct engine_lab *l = *state;
    struct apply_object object = {K_POOL, "absent"};
    struct apply_only only = {&object, 1, authors, 2};
    json_t *task = NULL;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    assert_int_equal(apply_only(l, &only, &task), ERR_INVALID);
    assert_int_equal(l->problems.errors, 2);
    assert_string_equal(l->problems.items[0].pointer, "/only/objects/0");
    assert_non_null(strstr(l->problems.items[0].message, "no pool \"absent\""));
    assert_non_null(strstr(l->problems.items[1].message, "\"admin nobody\""));
    assert_string_equal(l->problems.items[1].pointer, "/only/authors/1");
}

static void
what_is_there_but_has_no_change_is_named(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_INVALID);
    assert_non_null(
        strstr(l->problems.items[0].message, "does not change the server \"web1\""));
    assert_string_equal(l->problems.items[0].name, "web1");
}

static void
changes_can_be_chosen_by_their_author(void **state)
{
    static const char *const authors[] = {"admin maria"};
    static const struct actor other = {"key deploy"};
    struct apply_only only = {NULL, 0, authors, 1};
    struct engine_lab *l = *state;
    struct change_set set;
    json_t *task = NULL;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    problems_init(&l->problems, l->arena);
    change_set_init(&set);
    assert_int_equal(
        change_set_add(
            &set,
            (struct change){
                .op = CHANGE_CREATE,
                .kind = K_POOL,
                .body = json_pack("{s:s}", "name", "theirs")},
            &l->error),
        ERR_OK);
    assert_int_equal(edit_draft(l->en, &set, &other, &l->problems, &l->error), ERR_OK);
    change_set_fini(&set);
    assert_int_equal(apply_only(l, &only, &task), ERR_OK);
    engine_lab_ended(task, "ok", "commit", "ok");
    json_decref(task);
    assert_string_equal(engine_lab_draft(l), "pool theirs");
}

static void
the_state_of_a_server_goes_with_it(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_apply_ok(l, "[" LAB_SERVER("web1") "]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'server_state', 'body':"
           " {'name': 'web1', 'server': 'web1', 'state': 'maint'}}]");
    engine_lab_must(
        l, "[{'op': 'delete', 'kind': 'server', 'name': 'web1'}," LAB_SERVER("web2") "]");
    assert_int_equal(apply_object(l, K_SERVER, "web1"), ERR_OK);
    assert_null(engine_lab_head_object(l, K_SERVER_STATE, "web1"));
    assert_string_equal(engine_lab_draft(l), "server web2");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(the_chosen_change_is_applied_and_the_rest_stays),
        ENGINE_LAB_TEST(an_edit_of_what_was_applied_stands_on_it),
        ENGINE_LAB_TEST(what_the_chosen_needs_of_the_rest_is_named),
        ENGINE_LAB_TEST(what_the_needed_needs_in_turn_is_named_too_each_once),
        ENGINE_LAB_TEST(who_still_uses_what_was_chosen_to_go_is_named),
        ENGINE_LAB_TEST(a_name_that_is_not_free_yet_is_named),
        ENGINE_LAB_TEST(what_takes_the_pages_away_is_refused_when_it_is_chosen_alone),
        ENGINE_LAB_TEST(what_the_draft_does_not_hold_is_refused_by_its_pointer),
        ENGINE_LAB_TEST(what_is_there_but_has_no_change_is_named),
        ENGINE_LAB_TEST(changes_can_be_chosen_by_their_author),
        ENGINE_LAB_TEST(the_state_of_a_server_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
