/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/engine_lab.h"

#define ACTOR (&(struct actor){"admin maria"})
#define CREATE_WEB(n)                                                                          \
    "{'op': 'create', 'kind': 'server', 'body': {'name': 'web" n "', 'address': '10.0.0." n    \
    "', 'port': 8080}}"
#define CREATE_APP(members)                                                                    \
    "{'op': 'create', 'kind': 'pool', 'body': {'name': 'app', 'members': [" members "]}}"

static void
apply(struct engine_lab *l)
{
    engine_lab_apply_ends(l, "ok", "ok");
}

static void
an_edit_goes_to_the_draft_and_not_to_the_head(void **state)
{
    struct engine_lab *l = *state;
    int64_t rev = engine_lab_rev(l);

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_APP("{'server': 'web1'}") "]");
    assert_string_equal(engine_lab_draft(l), "pool app, server web1");
    assert_null(engine_lab_head_object(l, K_SERVER, "web1"));
    assert_int_equal(engine_lab_rev(l), rev);
}

static void
entries_show_both_sides(void **state)
{
    struct engine_lab *l = *state;
    const struct draft_entry *entry;
    struct view *v;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_WEB("2") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}},"
           "{'op': 'delete', 'kind': 'server', 'name': 'web2'}," CREATE_WEB("3") "]");
    v = engine_view(l->en);
    assert_int_equal(v->entry_count, 3);
    entry = view_entry_named(v, K_SERVER, "web1");
    assert_int_equal(object_int(entry->before, F_SERVER_PORT), 8080);
    assert_int_equal(object_int(entry->after, F_SERVER_PORT), 81);
    assert_string_equal(entry->author, "admin maria");
    assert_true(entry->at_ms > 0);
    assert_ptr_equal(view_entry(v, K_SERVER, entry->id), entry);
    entry = view_entry_named(v, K_SERVER, "web2");
    assert_non_null(entry->before);
    assert_null(entry->after);
    entry = view_entry_named(v, K_SERVER, "web3");
    assert_null(entry->before);
    assert_non_null(entry->after);
    view_unref(v);
}

static void
a_row_that_equals_the_head_again_leaves(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    assert_string_equal(engine_lab_draft(l), "server web1");
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 8080}}]");
    assert_string_equal(engine_lab_draft(l), "");
    engine_lab_must(l, "[" CREATE_WEB("2") "]");
    engine_lab_must(l, "[{'op': 'delete', 'kind': 'server', 'name': 'web2'}]");
    assert_string_equal(engine_lab_draft(l), "");
}

/* C102 */
static void
an_edit_that_would_block_every_apply_is_refused(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'listener', 'body': {'name': 'a', 'port': 80}}]");
    assert_int_equal(
        engine_lab_edit(
            l, "[{'op': 'create', 'kind': 'listener', 'body': {'name': 'b', 'port': 80}}]"),
        ERR_INVALID);
    assert_true(l->problems.errors > 0);
    assert_string_equal(engine_lab_draft(l), "listener a");
}

static void
a_refused_set_leaves_nothing(void **state)
{
    struct engine_lab *l = *state;

    assert_int_equal(
        engine_lab_edit(l, "[" CREATE_WEB("1") ", " CREATE_APP("{'server': 'nobody'}") "]"),
        ERR_INVALID);
    assert_string_equal(engine_lab_draft(l), "");
    assert_int_equal(
        engine_lab_edit(l, "[{'op': 'delete', 'kind': 'server', 'name': 'nobody'}]"),
        ERR_NOT_FOUND);
}

static void
trying_changes_nothing(void **state)
{
    struct engine_lab *l = *state;
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct change_set set;
    json_t *body = json_pack("{s:s, s:s, s:i}", "name", "w", "address", "10.0.0.1", "port", 80);

    problems_init(&l->problems, l->arena);
    change_set_init(&set);
    assert_int_equal(
        change_set_add(
            &set, (struct change){.op = CHANGE_CREATE, .kind = K_SERVER, .body = body}, NULL),
        ERR_OK);
    assert_int_equal(edit_try(l->en, &set, &shared, &local, &l->problems, &l->error), ERR_OK);
    assert_non_null(snapshot_by_name(shared, K_SERVER, "w"));
    assert_string_equal(engine_lab_draft(l), "");
    snapshot_unref(shared);
    snapshot_unref(local);
    change_set_fini(&set);
}

static void
local_objects_are_drafted_too(void **state)
{
    struct engine_lab *l = *state;
    struct view *v;
    int64_t rev = engine_lab_rev(l);

    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {'note': 'rack 4'}}]");
    assert_string_equal(engine_lab_draft(l), "node proxy1");
    apply(l);
    v = engine_view(l->en);
    assert_int_equal(v->head.rev, rev);
    assert_int_equal(v->entry_count, 0);
    view_unref(v);
}

/* ---- direct kinds ---- */

static void
a_key_commits_at_once(void **state)
{
    struct engine_lab *l = *state;
    struct commit *commits = NULL;
    size_t count = 0;
    int64_t rev = engine_lab_rev(l);

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]");
    assert_int_equal(engine_lab_rev(l), rev + 1);
    assert_non_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
    assert_string_equal(engine_lab_draft(l), "server web1");
    assert_int_equal(edit_commits(l->en, 0, 1, &commits, &count, &l->error), ERR_OK);
    assert_int_equal(count, 1);
    assert_string_equal(commits[0].summary, "created automation_key deploy");
    assert_string_equal(commits[0].author, "admin maria");
    assert_string_equal(commits[0].node, "proxy1");
    free(commits);
    /* HAProxy runs it without a reload. */
    engine_lab_await(l, engine_lab_serves_head);
    assert_int_equal(fake_look(&l->fake).reloads, 1);
}

static void
a_set_does_not_mix_direct_and_drafted_kinds(void **state)
{
    struct engine_lab *l = *state;

    assert_int_equal(
        engine_lab_edit(
            l, "[" CREATE_WEB("1") ", {'op': 'create', 'kind': 'automation_key', 'body': "
                                   "{'name': 'deploy'}}]"),
        ERR_INVALID);
    assert_int_equal(l->problems.errors, 1);
}

static void
a_clear_password_is_refused(void **state)
{
    struct engine_lab *l = *state;

    assert_int_equal(
        engine_lab_edit(
            l, "[{'op': 'create', 'kind': 'admin', 'body': {'name': 'otto', 'password': "
               "'correct horse battery'}}]"),
        ERR_INVALID);
    assert_string_equal(l->problems.items[0].pointer, "/password");
}

/* ---- discarding ---- */

static void
one_row_is_discarded(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_WEB("2") "]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "server web2");
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_NOT_FOUND);
}

static void
a_row_that_another_needs_stays(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_APP("{'server': 'web1'}") "]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_CONFLICT);
    assert_true(l->problems.errors > 0);
    assert_string_equal(engine_lab_draft(l), "pool app, server web1");
}

static void
a_deletion_that_another_needs_stays(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_APP("{'server': 'web1'}") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'delete', 'kind': 'pool', 'name': 'app'},"
           "{'op': 'delete', 'kind': 'server', 'name': 'web1'}]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_POOL, "app", ACTOR, &l->problems, &l->error), ERR_CONFLICT);
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "pool app");
}

static void
a_renamed_object_is_discarded_by_either_name(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'name': 'one'}}]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "");
}

static void
the_whole_draft_is_discarded(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_WEB("2") "]");
    assert_int_equal(edit_discard_all(l->en, ACTOR, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "");
    assert_int_equal(edit_discard_all(l->en, ACTOR, &l->error), ERR_OK);
}

/* ---- what others commit ---- */

static void
rows_of_other_objects_rebase(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    engine_lab_apply_ok(l, "[" CREATE_WEB("2") "]");
    assert_string_equal(engine_lab_draft(l), "server web1");
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web2"));
    apply(l);
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web1"));
    assert_non_null(engine_lab_head_object(l, K_SERVER, "web2"));
}

static void
a_row_whose_object_moved_is_a_conflict_until_discarded(void **state)
{
    struct engine_lab *l = *state;
    int64_t task = 0;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    engine_lab_apply_ok(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 82}}]");
    assert_string_equal(engine_lab_draft(l), "server web1!");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        apply_start(
            l->en, &(struct apply_request){.who = ACTOR}, &task, &l->problems, &l->error),
        ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, "server web1"));
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "web1", ACTOR, &l->problems, &l->error), ERR_OK);
    assert_int_equal(
        object_int(engine_lab_head_object(l, K_SERVER, "web1"), F_SERVER_PORT), 82);
}

static void
the_same_change_by_somebody_else_leaves_no_row(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    engine_lab_apply_ok(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    assert_string_equal(engine_lab_draft(l), "");
}

static void
a_name_that_was_taken_meanwhile_is_a_conflict(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_WEB("2") "]");
    engine_lab_apply_ok(l, "[" CREATE_WEB("1") "]");
    assert_string_equal(engine_lab_draft(l), "server web1!, server web2");
}

static void
a_reference_that_went_away_is_a_conflict(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(l, "[" CREATE_APP("{'server': 'web1'}") "]");
    engine_lab_apply_ok(l, "[{'op': 'delete', 'kind': 'server', 'name': 'web1'}]");
    assert_string_equal(engine_lab_draft(l), "pool app!");
}

static void
the_draft_survives_a_restart(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    apply(l);
    engine_lab_must(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 81}}]");
    engine_lab_apply_ok(
        l, "[{'op': 'merge', 'kind': 'server', 'name': 'web1', 'body': {'port': 82}}]");
    engine_lab_must(l, "[" CREATE_WEB("2") "]");
    engine_lab_close(l);
    engine_lab_start(l);
    assert_string_equal(engine_lab_draft(l), "server web1!, server web2");
}

/* ---- history ---- */

static void
an_old_revision_is_restored_into_the_draft(void **state)
{
    struct engine_lab *l = *state;
    const struct object *server;
    char spec[32];
    char id[OBJECT_ID_BYTES];

    engine_lab_must(l, "[" CREATE_WEB("1") ", " CREATE_WEB("2") "]");
    apply(l);
    server = engine_lab_head_object(l, K_SERVER, "web1");
    memcpy(id, server->id, sizeof id);
    (void)snprintf(spec, sizeof spec, "%lld", (long long)engine_lab_rev(l));
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]");
    engine_lab_must(
        l,
        "[{'op': 'delete', 'kind': 'server', 'name': 'web1'},"
        "{'op': 'merge', 'kind': 'server', 'name': 'web2', 'body': {'port': 81}}," CREATE_WEB(
            "3") "]");
    apply(l);
    problems_init(&l->problems, l->arena);
    assert_int_equal(edit_restore(l->en, spec, false, ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "server web1, server web2, server web3");
    apply(l);
    assert_string_equal(engine_lab_head_object(l, K_SERVER, "web1")->id, id);
    assert_null(engine_lab_head_object(l, K_SERVER, "web3"));
    /* C225: what was not there then stays, what was revoked does not come back. */
    assert_non_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
}

static void
a_revoked_key_stays_revoked(void **state)
{
    struct engine_lab *l = *state;
    char spec[32];

    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': 'deploy'}}]");
    (void)snprintf(spec, sizeof spec, "%lld", (long long)engine_lab_rev(l));
    engine_lab_must(l, "[{'op': 'delete', 'kind': 'automation_key', 'name': 'deploy'}]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(edit_restore(l->en, spec, false, ACTOR, &l->problems, &l->error), ERR_OK);
    assert_string_equal(engine_lab_draft(l), "");
    assert_null(engine_lab_head_object(l, K_AUTOMATION_KEY, "deploy"));
}

static void
a_restore_needs_an_empty_draft_and_a_known_revision(void **state)
{
    struct engine_lab *l = *state;

    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_restore(l->en, "999", false, ACTOR, &l->problems, &l->error), ERR_NOT_FOUND);
    engine_lab_must(l, "[" CREATE_WEB("1") "]");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_restore(l->en, "1", false, ACTOR, &l->problems, &l->error), ERR_CONFLICT);
}

/* ---- at the same time ---- */

#define EDITORS 50

struct editor {
    struct engine *en;
    int n;
    err_t code;
};

static void *
create_one(void *ctx)
{
    struct editor *ed = ctx;
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems p;
    struct change_set set;
    struct error e;
    char name[16];

    (void)snprintf(name, sizeof name, "web%d", ed->n);
    problems_init(&p, arena);
    change_set_init(&set);
    ed->code = change_set_add(
        &set,
        (struct change){
            .op = CHANGE_CREATE,
            .kind = K_SERVER,
            .body =
                json_pack("{s:s, s:s, s:i}", "name", name, "address", "10.0.0.1", "port", 80)},
        &e);
    if (ed->code == ERR_OK) {
        ed->code = edit_draft(ed->en, &set, ACTOR, &p, &e);
    }
    change_set_fini(&set);
    arena_free(arena);
    return NULL;
}

/* C096 */
static void
fifty_edits_at_once_are_all_kept(void **state)
{
    struct engine_lab *l = *state;
    struct editor editors[EDITORS];
    pthread_t threads[EDITORS];
    struct view *v;

    for (int i = 0; i < EDITORS; i++) {
        editors[i] = (struct editor){l->en, i, ERR_INTERNAL};
        assert_int_equal(pthread_create(&threads[i], NULL, create_one, &editors[i]), 0);
    }
    for (int i = 0; i < EDITORS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(editors[i].code, ERR_OK);
    }
    v = engine_view(l->en);
    assert_int_equal(v->entry_count, EDITORS);
    view_unref(v);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(an_edit_goes_to_the_draft_and_not_to_the_head),
        ENGINE_LAB_TEST(entries_show_both_sides),
        ENGINE_LAB_TEST(a_row_that_equals_the_head_again_leaves),
        ENGINE_LAB_TEST(an_edit_that_would_block_every_apply_is_refused),
        ENGINE_LAB_TEST(a_refused_set_leaves_nothing),
        ENGINE_LAB_TEST(trying_changes_nothing),
        ENGINE_LAB_TEST(local_objects_are_drafted_too),
        ENGINE_LAB_TEST(a_key_commits_at_once),
        ENGINE_LAB_TEST(a_set_does_not_mix_direct_and_drafted_kinds),
        ENGINE_LAB_TEST(a_clear_password_is_refused),
        ENGINE_LAB_TEST(one_row_is_discarded),
        ENGINE_LAB_TEST(a_row_that_another_needs_stays),
        ENGINE_LAB_TEST(a_deletion_that_another_needs_stays),
        ENGINE_LAB_TEST(a_renamed_object_is_discarded_by_either_name),
        ENGINE_LAB_TEST(the_whole_draft_is_discarded),
        ENGINE_LAB_TEST(rows_of_other_objects_rebase),
        ENGINE_LAB_TEST(a_row_whose_object_moved_is_a_conflict_until_discarded),
        ENGINE_LAB_TEST(the_same_change_by_somebody_else_leaves_no_row),
        ENGINE_LAB_TEST(a_name_that_was_taken_meanwhile_is_a_conflict),
        ENGINE_LAB_TEST(a_reference_that_went_away_is_a_conflict),
        ENGINE_LAB_TEST(the_draft_survives_a_restart),
        ENGINE_LAB_TEST(an_old_revision_is_restored_into_the_draft),
        ENGINE_LAB_TEST(a_revoked_key_stays_revoked),
        ENGINE_LAB_TEST(a_restore_needs_an_empty_draft_and_a_known_revision),
        ENGINE_LAB_TEST(fifty_edits_at_once_are_all_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
