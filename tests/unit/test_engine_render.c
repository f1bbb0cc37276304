/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "render/haproxy.h"
#include "tests/support/engine_lab.h"

/* wrap: render_haproxy */

err_t __real_render_haproxy(
    const struct render_input *in, struct rendered *out, struct problems *p, struct error *e);
err_t __wrap_render_haproxy(
    const struct render_input *in, struct rendered *out, struct problems *p, struct error *e);

/* What the generator fails with; ERR_OK: it works. Read by other threads, set between tasks. */
static _Atomic err_t fault;

err_t
__wrap_render_haproxy(
    const struct render_input *in, struct rendered *out, struct problems *p, struct error *e)
{
    static const struct problem where = {
        .kind = "haproxy", .name = "haproxy", .pointer = "/error_title"};

    if (fault == ERR_OK) {
        return __real_render_haproxy(in, out, p, e);
    }
    if (fault == ERR_INVALID) {
        problems_add(p, SEVERITY_ERROR, "render", &where, "The title is of no use.");
    }
    return error_set(e, fault, "the generator is out of order");
}

static int
lab_open(void **state)
{
    struct engine_lab *l = engine_lab_new();

    fault = ERR_OK;
    engine_lab_start(l);
    *state = l;
    return 0;
}

static int
lab_close(void **state)
{
    engine_lab_delete(*state);
    return 0;
}

static const char *
text_of(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static void
assert_untouched(const struct fake_facts *before, const struct fake_facts *now)
{
    assert_int_equal(now->current, before->current);
    assert_int_equal(now->good, before->good);
    assert_string_equal(now->running, before->running);
    assert_int_equal(now->stages, before->stages);
    assert_int_equal(now->installs, before->installs);
    assert_int_equal(now->reloads, before->reloads);
    assert_int_equal(now->changes, before->changes);
}

/* An apply that the generator fails; what serves and what is stored is as before. */
static json_t *
applied_with(struct engine_lab *l, err_t code)
{
    struct fake_facts before = fake_look(&l->fake);
    struct fake_facts after;
    struct engine_status status;
    json_t *task;

    fault = code;
    task = engine_lab_applied(l);
    fault = ERR_OK;
    engine_lab_ended(task, "failed", "render", "failed");
    assert_string_equal(engine_lab_step(task, "check"), "");
    after = fake_look(&l->fake);
    assert_untouched(&before, &after);
    assert_int_equal(engine_lab_rev(l), 1);
    assert_string_equal(engine_lab_draft(l), "haproxy haproxy");
    engine_get_status(l->en, &status);
    assert_int_equal(status.running_rev, 1);
    assert_int_equal(status.serving, FACT_YES);
    return task;
}

static void
a_generator_that_fails_changes_nothing(void **state)
{
    static const err_t faults[] = {ERR_INVALID, ERR_INTERNAL, ERR_LIMIT, ERR_IO};
    struct engine_lab *l = *state;
    json_t *task;

    engine_lab_must(l, "[" LAB_TITLE("Back soon") "]");
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        json_decref(applied_with(l, faults[i]));
    }
    task = engine_lab_applied(l);
    engine_lab_ended(task, "ok", "settle", "ok");
    json_decref(task);
    assert_int_equal(engine_lab_rev(l), 2);
    assert_string_equal(fake_look(&l->fake).running, fake_look(&l->fake).current_digest);
}

static void
what_cannot_be_rendered_is_told_at_its_object(void **state)
{
    struct engine_lab *l = *state;
    const json_t *problem;
    json_t *task;

    engine_lab_must(l, "[" LAB_TITLE("Back soon") "]");
    task = applied_with(l, ERR_INVALID);
    assert_string_equal(text_of(task, "code"), "invalid");
    problem = json_array_get(json_object_get(task, "problems"), 0);
    assert_string_equal(text_of(problem, "kind"), "haproxy");
    assert_string_equal(text_of(problem, "name"), "haproxy");
    assert_string_equal(text_of(problem, "pointer"), "/error_title");
    json_decref(task);
}

static bool
could_not_follow(struct engine_lab *l)
{
    struct engine_status s;

    engine_get_status(l->en, &s);
    return strstr(s.reason, "out of order") != NULL;
}

/* A start-up cannot render what is stored: what HAProxy runs is left alone. */
static void
a_start_whose_generator_fails_leaves_haproxy_alone(void **state)
{
    struct engine_lab *l = *state;
    struct fake_facts before;
    struct fake_facts after;

    engine_lab_close(l);
    before = fake_look(&l->fake);
    fault = ERR_INTERNAL;
    engine_lab_open(l);
    engine_lab_await(l, could_not_follow);
    after = fake_look(&l->fake);
    assert_untouched(&before, &after);
    fault = ERR_OK;
    engine_lab_await(l, engine_lab_serves_head);
}

#define RENDER_TEST(f) cmocka_unit_test_setup_teardown(f, lab_open, lab_close)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RENDER_TEST(a_generator_that_fails_changes_nothing),
        RENDER_TEST(what_cannot_be_rendered_is_told_at_its_object),
        RENDER_TEST(a_start_whose_generator_fails_leaves_haproxy_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
