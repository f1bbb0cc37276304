/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that dies before or after each step of an apply: the next start finds the change
 * either saved or still drafted, and HAProxy runs what is saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/proc.h"
#include "engine/apply_fsm.h"
#include "tests/support/engine_lab.h"
#include "tests/support/self.h"
/* The variant for test builds, whichever the library was built with. */
#include "base/crashpoint_hooks.c" // NOLINT(bugprone-suspicious-include)

#define TEXT_BYTES 256

static int
lab_open(void **state)
{
    (void)engine_lab_setup(state);
    engine_lab_close(*state);
    return 0;
}

/* ---- the daemon that dies ---- */

static void
edit_title(struct engine_lab *l, const char *title)
{
    char ops[TEXT_BYTES];

    (void)snprintf(
        ops, sizeof ops,
        "[{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': '%s'}}]",
        title);
    engine_lab_must(l, ops);
}

static int
die(const char *dir, const char *point)
{
    struct engine_lab l;

    engine_lab_join(&l, dir);
    engine_lab_start(&l);
    edit_title(&l, point);
    crashpoint_arm(point);
    json_decref(engine_lab_applied(&l));
    engine_lab_close(&l);
    return 0;
}

static void
run_and_die(struct engine_lab *l, const char *point)
{
    const char *argv[] = {self_path(), l->fake.dir, point, NULL};
    struct proc_result r = {.exit_status = -1};
    struct buf out;

    buf_init(&out, 65536);
    assert_int_equal(proc_run(argv, SELF_LONG_MS, &out, &r, NULL), ERR_OK);
    if (r.exit_status != 128 + SIGKILL) {
        fail_msg("%s: status %d: %s", point, r.exit_status, buf_str(&out));
    }
    buf_fini(&out);
}

/* ---- the one after it ---- */

static bool
has_title(struct engine_lab *l, const char *title)
{
    const struct object *o = engine_lab_head_object(l, K_HAPROXY, "haproxy");

    return strcmp(object_text(o, F_HAPROXY_ERROR_TITLE).s, title) == 0;
}

static void
is_sound(struct engine_lab *l, const char *point)
{
    int64_t checked = 0;

    if (edit_verify(l->en, &checked, &l->error) != ERR_OK) {
        fail_msg("%s: %s", point, l->error.msg);
    }
    assert_int_equal(fake_look(&l->fake).current, fake_look(&l->fake).good);
    assert_string_equal(fake_look(&l->fake).running, fake_look(&l->fake).current_digest);
}

static void
crash_at(struct engine_lab *l, enum apply_state step, const char *when)
{
    char point[TEXT_BYTES];
    bool saved;

    (void)snprintf(point, sizeof point, "apply_%s_%s", apply_state_name(step), when);
    run_and_die(l, point);
    engine_lab_start(l);
    saved = has_title(l, point);
    print_message("%s: %s\n", point, saved ? "saved" : "drafted");
    assert_string_equal(engine_lab_draft(l), saved ? "" : "haproxy haproxy");
    /* Before the commit nothing is saved, after it everything. */
    assert_int_equal(
        saved, step == AS_SETTLE || (step == AS_COMMIT && strcmp(when, "after") == 0));
    is_sound(l, point);
    if (!saved) {
        engine_lab_apply_ends(l, "ok", "ok");
        assert_true(has_title(l, point));
        is_sound(l, point);
    }
    engine_lab_close(l);
}

static void
a_crash_at_any_step_forward_loses_nothing(void **state)
{
    struct engine_lab *l = *state;

    for (enum apply_state step = AS_PLAN; step <= AS_SETTLE; step++) {
        if (step == AS_PEERS || step == AS_TRIAL) {
            continue; /* there are none */
        }
        crash_at(l, step, "before");
        crash_at(l, step, "after");
    }
}

static void
a_crash_at_any_step_back_loses_nothing(void **state)
{
    struct engine_lab *l = *state;

    for (enum apply_state step = AS_BACK; step <= AS_BACK_VERIFY; step++) {
        fake_fail(&l->fake, FAKE_LOAD, 1);
        crash_at(l, step, "before");
        fake_fail(&l->fake, FAKE_LOAD, 1);
        crash_at(l, step, "after");
    }
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_crash_at_any_step_forward_loses_nothing, lab_open, engine_lab_teardown),
        cmocka_unit_test_setup_teardown(
            a_crash_at_any_step_back_loses_nothing, lab_open, engine_lab_teardown),
    };

    if (argc == 3) {
        return die(argv[1], argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
