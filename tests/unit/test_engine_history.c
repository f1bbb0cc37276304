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

#include "base/x509.h"
#include "tests/support/engine_lab.h"

#define ACTOR (&(struct actor){"admin maria"})

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

static json_t *
certificate(struct engine_lab *l, const char *name, int days)
{
    const char *const names[] = {name, NULL};
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;

    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    assert_int_equal(
        x509_selfsigned(names, clock_wall_ms(&l->clock) / 1000, days, &chain, &key, &l->error),
        ERR_OK);
    return json_pack("{s:s, s:s}", "chain", buf_str(&chain), "key", buf_str(&key));
}

/* Puts it in and applies it; source NULL: as a person does. */
static void
put_named(
    struct engine_lab *l, enum change_op op, const char *name, int days, const char *source)
{
    json_t *body = certificate(l, name, days);
    struct change c = {
        .op = op, .kind = K_CERTIFICATE, .name = "tls", .by_product = source != NULL};
    struct change_set set;

    if (op == CHANGE_CREATE) {
        c.name = NULL;
        json_object_set_new(body, "name", json_string("tls"));
    }
    if (source != NULL) {
        json_object_set_new(body, "source", json_string(source));
    }
    c.body = body;
    change_set_init(&set);
    assert_int_equal(change_set_add(&set, c, NULL), ERR_OK);
    problems_init(&l->problems, l->arena);
    assert_int_equal(edit_draft(l->en, &set, ACTOR, &l->problems, &l->error), ERR_OK);
    change_set_fini(&set);
    engine_lab_apply_ends(l, "ok", "ok");
}

static void
put_certificate(struct engine_lab *l, enum change_op op, int days, const char *source)
{
    put_named(l, op, "a.test", days, source);
}

/* What a restore of the revision drafts: "certificate tls", or nothing when it is kept. */
static void
expect_restored(struct engine_lab *l, int64_t rev, bool old_certificates, const char *rows)
{
    char spec[32];

    (void)snprintf(spec, sizeof spec, "%lld", (long long)rev);
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_restore(l->en, spec, old_certificates, ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), rows);
    assert_int_equal(edit_discard_all(l->en, ACTOR, &l->error), ERR_OK);
}

/* C225 */
static void
a_restore_keeps_the_newer_certificate(void **state)
{
    struct engine_lab *l = *state;
    int64_t placeholder;
    int64_t upload;
    int64_t renewed;

    put_certificate(l, CHANGE_CREATE, 3650, "placeholder");
    placeholder = engine_lab_rev(l);
    put_certificate(l, CHANGE_MERGE, 30, NULL);
    upload = engine_lab_rev(l);
    /* A placeholder is no renewal, however long it is valid. */
    expect_restored(l, placeholder, false, "");
    assert_string_equal(l->problems.items[0].code, "kept");
    expect_restored(l, placeholder, true, "certificate tls");
    put_certificate(l, CHANGE_MERGE, 90, NULL);
    renewed = engine_lab_rev(l);
    expect_restored(l, upload, false, "");
    expect_restored(l, upload, true, "certificate tls");
    assert_int_equal(l->problems.count, 0);
    put_certificate(l, CHANGE_MERGE, 60, NULL);
    expect_restored(l, renewed, false, "certificate tls");
    /* Made anew with the same name: another object, and the same certificate for people. */
    engine_lab_must(l, "[{'op': 'delete', 'kind': 'certificate', 'name': 'tls'}]");
    engine_lab_apply_ends(l, "ok", "ok");
    put_certificate(l, CHANGE_CREATE, 60, NULL);
    expect_restored(l, upload, false, "certificate tls, certificate tls");
    assert_string_equal(l->problems.items[0].code, "kept");
}

/* What people restore for. */
static void
a_certificate_for_other_names_is_no_renewal(void **state)
{
    struct engine_lab *l = *state;
    int64_t good;

    put_certificate(l, CHANGE_CREATE, 30, NULL);
    good = engine_lab_rev(l);
    put_named(l, CHANGE_MERGE, "wrong.test", 90, NULL);
    expect_restored(l, good, false, "certificate tls");
    assert_int_equal(l->problems.count, 0);
    put_named(l, CHANGE_MERGE, "*.test", 90, NULL);
    expect_restored(l, good, false, "");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(commits_are_found_with_their_content),
        ENGINE_LAB_TEST(a_sound_node_verifies_and_changed_files_do_not),
        ENGINE_LAB_TEST(a_restore_keeps_the_newer_certificate),
        ENGINE_LAB_TEST(a_certificate_for_other_names_is_no_renewal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
