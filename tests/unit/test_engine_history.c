/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/engine_lab.h"

struct pause {
    atomic_int begun, over, overdue;
};

static void
pause_engine(void *ctx)
{
    struct pause *p = ctx;
    int64_t end_ms = clock_mono_ms(&clock_system) + 5000;

    p->begun = 1;
    while (!p->over && !p->overdue) {
        p->overdue = clock_mono_ms(&clock_system) > end_ms;
        (void)sched_yield();
    }
}

static void
commits_are_found_with_their_content(void **state)
{
    struct engine_lab *l = *state;
    struct pause pause = {0};
    struct commit commit;
    struct snapshot *content = NULL;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(edit_commit_find(l->en, "2", &commit, &l->error), ERR_OK);
    assert_string_equal(commit.summary, "created server web1");
    /* C226: commits do not wait for it. */
    assert_int_equal(engine_post(l->en, pause_engine, &pause, &l->error), ERR_OK);
    while (!pause.begun) {
        (void)sched_yield();
    }
    assert_int_equal(edit_commit_content(l->en, &commit.id, &content, &l->error), ERR_OK);
    assert_int_equal(pause.overdue, 0);
    pause.over = 1;
    assert_ptr_equal(
        snapshot_by_name(content, K_SERVER, "web1"),
        engine_lab_head_object(l, K_SERVER, "web1"));
    snapshot_unref(content);
    engine_lab_close(l);
}

static void
a_sound_node_verifies_and_changed_files_do_not(void **state)
{
    struct engine_lab *l = *state;
    int64_t checked = 0;
    char path[512];
    FILE *file;

    engine_lab_must(l, "[" LAB_SERVER("web1") "]");
    engine_lab_apply_ends(l, "ok", "ok");
    assert_int_equal(edit_verify(l->en, &checked, &l->error), ERR_OK);
    assert_true(checked > 0);
    (void)snprintf(path, sizeof path, "%s/generation/current/haproxy.cfg", l->fake.state_dir);
    file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs("# by hand\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(edit_verify(l->en, &checked, &l->error), ERR_CORRUPT);
    assert_non_null(strstr(l->error.msg, "haproxy.cfg"));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(commits_are_found_with_their_content),
        ENGINE_LAB_TEST(a_sound_node_verifies_and_changed_files_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
