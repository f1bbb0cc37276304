/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cluster_hook.h"
#include "engine/confirm.h"
#include "engine/edit.h"
#include "tests/support/engine_lab.h"

static const struct actor maria = {"admin maria"};

static err_t
start(struct engine_lab *l, int64_t confirm_s, int64_t *ret_task)
{
    problems_init(&l->problems, l->arena);
    return apply_start(
        l->en, &(struct apply_request){.who = &maria, .confirm_s = confirm_s}, ret_task,
        &l->problems, &l->error);
}

/* These changes in a revision that waits for 60 s. */
static void
apply_waiting_with(struct engine_lab *l, const char *ops)
{
    int64_t id = 0;
    json_t *task;

    engine_lab_must(l, ops);
    assert_int_equal(start(l, 60, &id), ERR_OK);
    task = engine_lab_task(l, id);
    engine_lab_ended(task, "ok", "commit", "ok");
    assert_true(
        json_is_string(json_object_get(json_object_get(task, "result"), "confirm_until")));
    json_decref(task);
}

/* Revision 2, with a server. */
static void
apply_waiting(struct engine_lab *l)
{
    apply_waiting_with(l, "[" LAB_SERVER("web1") ", " LAB_TITLE("trial") "]");
    assert_int_equal(engine_lab_rev(l), 2);
}

static struct engine_waiting
look(struct engine_lab *l)
{
    struct engine_status s;

    engine_get_status(l->en, &s);
    return s.waiting;
}

static void
pass(struct engine_lab *l, int64_t ms)
{
    l->mono_stands_ms = clock_mono_ms(&clock_system) + ms;
    l->wall_shift_ms = ms;
}

static bool
is_back(struct engine_lab *l)
{
    return engine_lab_rev(l) == 3 && !look(l).is && engine_lab_serves_head(l);
}

static bool
has_settled(struct engine_lab *l)
{
    return !look(l).is && engine_lab_serves_head(l);
}

static const char *
title(struct engine_lab *l)
{
    return object_text(engine_lab_head_object(l, K_HAPROXY, "haproxy"), F_HAPROXY_ERROR_TITLE)
        .s;
}

static void
assert_went_back(struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = NULL;

    engine_lab_await(l, is_back);
    v = engine_view(l->en);
    assert_string_equal(v->head.author, "lockstep");
    assert_string_equal(v->head.summary, "not confirmed: back to revision 1");
    assert_int_equal(v->head.confirm_until_ms, 0);
    assert_null(engine_lab_head_object(l, K_SERVER, "web1"));
    assert_string_not_equal(title(l), "trial");
}

static void
what_waits_is_shown_with_the_time_left(void **state)
{
    struct engine_lab *l = *state;
    CLEANUP(view_cleanup) struct view *v = NULL;
    struct engine_waiting w;

    assert_false(look(l).is);
    apply_waiting(l);
    v = engine_view(l->en);
    w = look(l);
    assert_true(w.is);
    assert_int_equal(w.rev, 2);
    assert_int_equal(w.back_rev, 1);
    assert_in_range(w.left_s, 30, 60);
    assert_int_equal(w.until_ms, v->head.confirm_until_ms);
    assert_true(hash_equal(&w.commit, &v->head.id));
}

static void
a_confirmed_revision_stays(void **state)
{
    struct engine_lab *l = *state;
    struct hash other = {{1}};
    struct commit c;
    int stages;

    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_CONFLICT);
    apply_waiting(l);
    stages = fake_look(&l->fake).stages;
    assert_int_equal(confirm_now(l->en, &other, &maria, &c, &l->error), ERR_CONFLICT);
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_OK);
    assert_int_equal(c.rev, 2);
    engine_lab_await(l, engine_lab_serves_head); /* nothing has to be loaded for that */
    assert_int_equal(fake_look(&l->fake).stages, stages);
    pass(l, 3600 * 1000);
    engine_lab_close(l);
    engine_lab_start(l);
    assert_false(look(l).is);
    assert_int_equal(engine_lab_rev(l), 3);
    assert_string_equal(title(l), "trial");
}

static void
an_unconfirmed_revision_goes_back(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    pass(l, 61 * 1000);
    assert_went_back(l);
    /* And the next is applied as ever. */
    engine_lab_must(l, "[" LAB_TITLE("next") "]");
    engine_lab_apply_ends(l, "ok", "ok");
}

static void
where_it_may_not_be_edited_it_is_not_confirmed(void **state)
{
    struct engine_lab *l = *state;
    const struct actor locked = {"admin maria", "n2 holds the VIP"};
    struct commit c;

    apply_waiting(l);
    assert_int_equal(confirm_now(l->en, NULL, &locked, &c, &l->error), ERR_LOCKED);
    assert_string_equal(l->error.msg, "n2 holds the VIP");
    assert_true(look(l).is);
}

/* ---- in a cluster ---- */

struct nodes {
    _Atomic enum back_by by;
    _Atomic int asked, asked_of_node, pushed;
};

static struct nodes nodes;

static enum back_by
goes_back(void *ctx, const char *node, int64_t late_ms)
{
    struct nodes *n = ctx;

    n->asked_of_node += strcmp(node, "proxy1") == 0 && late_ms >= 0;
    n->asked++;
    return n->by;
}

static json_t *
push(void *ctx, int64_t task, const char *first)
{
    (void)ctx;
    (void)task;
    (void)first;
    return json_array();
}

static void
hand_on(void *ctx)
{
    struct nodes *n = ctx;

    n->pushed++;
}

static const struct engine_cluster cluster = {

    .ctx = &nodes, .push = push, .hand_on = hand_on, .goes_back = goes_back};

static void
begin_in_cluster(struct engine_lab *l, enum back_by by)
{
    nodes = (struct nodes){.by = by};
    engine_set_cluster(l->en, &cluster);
    apply_waiting(l);
    nodes.pushed = 0;
}

static bool
has_asked(struct engine_lab *l)
{
    (void)l;
    return nodes.asked > 2;
}

static bool
says_that_nobody_goes_back(struct engine_lab *l)
{
    return look(l).failed && !look(l).going_back;
}

static void
another_node_goes_back_or_one_that_does_not_answer(void **state)
{
    struct engine_lab *l = *state;
    struct commit c;
    int64_t task = 0;

    begin_in_cluster(l, BACK_OTHER);
    assert_string_equal(look(l).node, "proxy1");
    pass(l, 61 * 1000);
    engine_lab_await(l, has_asked);
    assert_int_equal(nodes.asked_of_node, nodes.asked);
    assert_true(look(l).going_back);
    assert_int_equal(engine_lab_rev(l), 2);
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_CONFLICT);
    nodes.by = BACK_NOBODY;
    engine_lab_await(l, says_that_nobody_goes_back);
    assert_int_equal(look(l).retry_at_ms, 0);
    assert_int_equal(start(l, 0, &task), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "does not answer"));
    assert_int_equal(nodes.pushed, 0);
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_OK);
    assert_int_equal(nodes.pushed, 1);
    assert_false(look(l).is);
    engine_set_cluster(l->en, NULL);
}

static void
it_goes_back_where_that_comes_to_be_its_part(void **state)
{
    struct engine_lab *l = *state;

    begin_in_cluster(l, BACK_OTHER);
    pass(l, 61 * 1000);
    engine_lab_await(l, has_asked);
    nodes.by = BACK_SELF;
    assert_went_back(l);
    engine_set_cluster(l->en, NULL);
}

/* Nothing but the deadline itself wakes the engine then. */
static void
slow_rounds(struct engine_lab *l)
{
    engine_lab_close(l);
    l->tunables.status_round_ms = 60 * 1000;
    engine_lab_start(l);
}

static void
at_the_deadline_it_is_too_late(void **state)
{
    struct engine_lab *l = *state;
    struct commit c;
    int64_t task = 0;

    slow_rounds(l);
    apply_waiting(l);
    l->mono_stands_ms = clock_mono_ms(&clock_system) + look(l).left_s * 1000;
    assert_true(look(l).going_back);
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "not confirmed in time"));
    assert_int_equal(start(l, 0, &task), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "is going back"));
}

static void
it_goes_back_at_the_deadline_and_not_a_round_later(void **state)
{
    struct engine_lab *l = *state;
    CLEANUP(view_cleanup) struct view *v = NULL;
    int64_t from_ms;
    int64_t task = 0;

    slow_rounds(l);
    engine_lab_must(l, "[" LAB_TITLE("trial") "]");
    from_ms = clock_wall_ms(&clock_system);
    assert_int_equal(start(l, 1, &task), ERR_OK);
    engine_lab_await(l, is_back);
    v = engine_view(l->en);
    assert_true(v->head.at_ms >= from_ms + 1000);
}

static void
the_wall_clock_does_not_decide(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    l->wall_shift_ms = -86400 * (int64_t)1000;
    l->mono_stands_ms = clock_mono_ms(&clock_system) + 61 * 1000;
    assert_went_back(l);
}

static void
a_restart_before_the_deadline_goes_on_waiting(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    engine_lab_close(l);
    pass(l, 20 * 1000);
    engine_lab_start(l);
    assert_true(look(l).is);
    assert_in_range(look(l).left_s, 1, 40);
    pass(l, 61 * 1000);
    assert_went_back(l);
}

static void
a_deadline_that_passed_meanwhile_goes_back_at_start(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    engine_lab_close(l);
    pass(l, 7200 * 1000);
    engine_lab_open(l);
    assert_went_back(l);
}

static void
a_restart_with_the_clock_behind_waits_no_longer(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    engine_lab_close(l);
    l->wall_shift_ms = -7200 * (int64_t)1000;
    engine_lab_start(l);
    assert_in_range(look(l).left_s, 1, 60);
}

static void
other_applies_wait_until_it_is_settled(void **state)
{
    struct engine_lab *l = *state;
    struct commit c;
    int64_t task = 0;

    apply_waiting(l);
    engine_lab_must(l, "[" LAB_TITLE("next") "]");
    assert_int_equal(start(l, 0, &task), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "/api/v1/config/confirm"));
    assert_int_equal(start(l, 60, &task), ERR_CONFLICT);
    assert_int_equal(engine_lab_apply_ops(l, "[" LAB_SERVER("web2") "]", &task), ERR_CONFLICT);
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_OK);
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(engine_lab_rev(l), 4);
}

/* Else a node that is held where it waits could not be made to follow again. */
static void
settings_of_this_node_alone_are_applied_meanwhile(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;

    apply_waiting(l);
    assert_int_equal(
        engine_lab_apply_ops(
            l,
            "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'note': 'a'}},"
            " " LAB_TITLE("next") "]",
            &task),
        ERR_CONFLICT);
    engine_lab_apply_ok(
        l, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'note': 'a'}}]");
    assert_int_equal(look(l).rev, 2);
    pass(l, 61 * 1000);
    assert_went_back(l);
}

static void
keys_made_meanwhile_stay(void **state)
{
    struct engine_lab *l = *state;
    struct buf key;
    json_t *body = json_pack("{s:s}", "name", "deploy");

    buf_init(&key, 128);
    apply_waiting(l);
    assert_int_equal(
        account_key_create(l->en, body, &maria, &key, &l->problems, &l->error), ERR_OK);
    buf_fini(&key);
    json_decref(body);
    assert_int_equal(look(l).rev, 2);
    pass(l, 61 * 1000);
    engine_lab_await(l, has_settled);
    assert_non_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
    assert_null(engine_lab_head_object(l, K_SERVER, "web1"));
}

#define STATE(server, state)                                                                   \
    "{'op': 'create', 'kind': 'server_state', 'body': {'name': '" server                       \
    "', 'server': '" server "', 'state': '" state "'}}"
#define DELETE(kind, name) "{'op': 'delete', 'kind': '" kind "', 'name': '" name "'}"

static void
assert_drained(struct engine_lab *l, const char *server)
{
    const struct object *state = engine_lab_head_object(l, K_SERVER_STATE, server);
    const struct object *of = engine_lab_head_object(l, K_SERVER, server);

    assert_non_null(state);
    assert_string_equal(object_text(state, F_SERVER_STATE_SERVER).s, of->id);
    assert_int_equal(object_int(state, F_SERVER_STATE_STATE), V_SERVER_STATE_STATE_DRAIN);
}

static void
a_server_that_comes_back_is_drained_as_before(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("web1") ", " LAB_SERVER("web2") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    engine_lab_must(l, "[" STATE("web1", "drain") ", " STATE("web2", "drain") "]");
    /* One goes, one is another of that name, with a state of its own. */
    apply_waiting_with(
        l,
        "[" DELETE("server", "web1") ", " DELETE("server", "web2") ", " LAB_SERVER("web2") "]");
    assert_null(engine_lab_head_object(l, K_SERVER_STATE, "web2"));
    engine_lab_must(l, "[" STATE("web2", "maint") "]");
    pass(l, 61 * 1000);
    engine_lab_await(l, has_settled);
    assert_drained(l, "web1");
    assert_drained(l, "web2");
}

static void
a_key_that_came_to_need_what_goes_back_goes_with_it(void **state)
{
    struct engine_lab *l = *state;
    json_t *body =
        json_pack("{s:s, s:s, s:[s]}", "name", "deploy", "scope", "operate", "pools", "trial");
    struct buf key;

    buf_init(&key, 128);
    apply_waiting_with(l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'trial'}}]");
    assert_int_equal(
        account_key_create(l->en, body, &maria, &key, &l->problems, &l->error), ERR_OK);
    buf_fini(&key);
    json_decref(body);
    pass(l, 61 * 1000);
    engine_lab_await(l, has_settled);
    assert_null(engine_lab_head_object(l, K_POOL, "trial"));
    assert_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
}

/* Never with the rights of before: somebody took them away. */
static void
a_key_that_was_narrowed_meanwhile_stays_narrow(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_apply_ok(l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'kept'}}]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'wide'}},"
           " {'op': 'create', 'kind': 'automation_key', 'body': {'name': 'gone'}}]");
    apply_waiting_with(l, "[{'op': 'create', 'kind': 'pool', 'body': {'name': 'trial'}}]");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'automation_key', 'name': 'wide', 'body':"
           " {'scope': 'operate', 'pools': ['kept', 'trial']}},"
           " {'op': 'merge', 'kind': 'automation_key', 'name': 'gone', 'body':"
           " {'scope': 'operate', 'pools': ['trial']}}]");
    pass(l, 61 * 1000);
    engine_lab_await(l, has_settled);
    assert_null(engine_lab_head_object(l, K_POOL, "trial"));
    assert_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "gone"));
    assert_int_equal(
        object_value(
            engine_lab_head_object(l, K_AUTOMATION_KEY, "wide"), F_AUTOMATION_KEY_POOLS)
            ->count,
        1);
}

static bool
has_failed_to_go_back(struct engine_lab *l)
{
    return fake_look(&l->fake).stages >= l->seen_until_ms && !look(l).going_back;
}

static void
what_could_not_go_back_is_tried_again(void **state)
{
    struct engine_lab *l = *state;

    apply_waiting(l);
    l->seen_until_ms = fake_look(&l->fake).stages + 1;
    fake_fail(&l->fake, FAKE_CHECK, 1);
    l->mono_stands_ms = 0;
    l->wall_shift_ms = 0;
    pass(l, 61 * 1000);
    engine_lab_await(l, has_failed_to_go_back);
    assert_true(look(l).is);
    assert_int_equal(engine_lab_rev(l), 2);
    pass(l, 7200 * 1000);
    assert_went_back(l);
}

/* Else nothing could be applied ever again. */
static void
what_cannot_go_back_may_be_confirmed_late(void **state)
{
    struct engine_lab *l = *state;
    struct engine_waiting w;
    struct commit c;
    int64_t task = 0;

    apply_waiting(l);
    l->seen_until_ms = fake_look(&l->fake).stages + 1;
    fake_fail(&l->fake, FAKE_CHECK, 1);
    pass(l, 61 * 1000); /* and stands there: it is not tried again */
    assert_false(look(l).failed);
    engine_lab_await(l, has_failed_to_go_back);
    w = look(l);
    assert_true(w.failed);
    assert_false(w.going_back);
    assert_int_equal(w.left_s, 0);
    assert_in_range(w.retry_at_ms, w.until_ms, w.until_ms + 60 * 1000);
    assert_int_equal(start(l, 0, &task), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "could not go back"));
    assert_int_equal(confirm_now(l->en, NULL, &maria, &c, &l->error), ERR_OK);
    assert_false(look(l).is);
    assert_int_equal(engine_lab_rev(l), 3);
}

static void
settings_of_this_node_alone_are_refused(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;

    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'note': 'rack 4'}}]");
    assert_int_equal(start(l, 60, &task), ERR_INVALID);
    assert_string_equal(l->problems.items[0].pointer, "/confirm");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(what_waits_is_shown_with_the_time_left),
        ENGINE_LAB_TEST(a_confirmed_revision_stays),
        ENGINE_LAB_TEST(where_it_may_not_be_edited_it_is_not_confirmed),
        ENGINE_LAB_TEST(another_node_goes_back_or_one_that_does_not_answer),
        ENGINE_LAB_TEST(it_goes_back_where_that_comes_to_be_its_part),
        ENGINE_LAB_TEST(an_unconfirmed_revision_goes_back),
        ENGINE_LAB_TEST(at_the_deadline_it_is_too_late),
        ENGINE_LAB_TEST(it_goes_back_at_the_deadline_and_not_a_round_later),
        ENGINE_LAB_TEST(the_wall_clock_does_not_decide),
        ENGINE_LAB_TEST(a_restart_before_the_deadline_goes_on_waiting),
        ENGINE_LAB_TEST(a_deadline_that_passed_meanwhile_goes_back_at_start),
        ENGINE_LAB_TEST(a_restart_with_the_clock_behind_waits_no_longer),
        ENGINE_LAB_TEST(other_applies_wait_until_it_is_settled),
        ENGINE_LAB_TEST(settings_of_this_node_alone_are_applied_meanwhile),
        ENGINE_LAB_TEST(keys_made_meanwhile_stay),
        ENGINE_LAB_TEST(a_server_that_comes_back_is_drained_as_before),
        ENGINE_LAB_TEST(a_key_that_came_to_need_what_goes_back_goes_with_it),
        ENGINE_LAB_TEST(a_key_that_was_narrowed_meanwhile_stays_narrow),
        ENGINE_LAB_TEST(what_could_not_go_back_is_tried_again),
        ENGINE_LAB_TEST(what_cannot_go_back_may_be_confirmed_late),
        ENGINE_LAB_TEST(settings_of_this_node_alone_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
