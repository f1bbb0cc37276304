/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/inner.h"
#include "tests/support/store_lab.h"

/* What each revision held; index 0 is revision 1. */
#define LOG_MAX ((size_t)400)

struct log {
    struct commit commits[LOG_MAX];
    struct snapshot *contents[LOG_MAX];
    size_t count;
};

static void
log_fini(struct log *g)
{
    for (size_t i = 0; i < g->count; i++) {
        snapshot_unref(g->contents[i]);
    }
}

static struct log *
log_start(struct store_lab *l)
{
    struct log *g = calloc(1, sizeof *g);
    struct error e;

    assert_non_null(g);
    assert_int_equal(store_commit_find(l->store, "1", &g->commits[0], &e), ERR_OK);
    g->contents[0] = store_lab_shared(l);
    g->count = 1;
    return g;
}

static void
log_cleanup(struct log **g)
{
    log_fini(*g);
    free(*g);
}

/* Commit number i: creates, changes, renames and removes. Every name is new, so that an old
 * content needs bodies that the head has not. */
static struct snapshot *
next_content(const struct snapshot *from, unsigned i)
{
    unsigned n = i % 9 + 1;
    char id[OBJECT_ID_BYTES];
    char name[32];
    const struct object *o;

    store_lab_id(n, id);
    o = snapshot_by_id(from, K_SERVER, id);
    if (o != NULL && i % 4 == 3) {
        return store_lab_without(from, K_SERVER, o->name.s);
    }
    (void)snprintf(name, sizeof name, "web%u-%u", n, i);
    return store_lab_with(from, store_lab_server(n, name, (int)(i % 60000) + 1));
}

static void
log_extend(struct store_lab *l, struct log *g, size_t count)
{
    while (g->count < count) {
        g->contents[g->count] = next_content(g->contents[g->count - 1], (unsigned)g->count);
        g->commits[g->count] = store_lab_commit(l, g->contents[g->count], NULL);
        g->count++;
    }
}

static void
assert_content(struct store_lab *l, const struct log *g, size_t i)
{
    CLEANUP(snapshot_cleanup) struct snapshot *found = NULL;
    struct error e;

    if (store_commit_content(l->store, &g->commits[i].id, &found, &e) != ERR_OK) {
        fail_msg("revision %zu: %s", i + 1, e.msg);
    }
    assert_true(store_lab_equal(found, g->contents[i]));
}

static void
assert_verified(struct store_lab *l)
{
    struct error e;
    int64_t checked = 0;

    if (store_verify(l->store, &checked, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
    assert_in_range(checked, 1, 100000);
}

static void
gives_back_the_content_of_every_commit(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);

    log_extend(l, g, 150);
    for (size_t i = 0; i < g->count; i++) {
        assert_content(l, g, i);
    }
    assert_verified(l);
    store_lab_reopen(l);
    /* Nothing in memory yet that could serve instead of the bodies. */
    for (size_t i = 0; i < g->count; i++) {
        assert_content(l, g, g->count - 1 - i);
    }
    assert_verified(l);
    assert_int_equal(store_lab_number(l, "SELECT count(DISTINCT seq) FROM commit_full"), 3);
}

static void
forgets_bodies_of_old_commits_only(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    size_t forgotten = 0;

    log_extend(l, g, LOG_MAX);
    store_lab_reopen(l);
    for (size_t i = 0; i < g->count; i++) {
        struct snapshot *found = NULL;
        struct error e;
        err_t code = store_commit_content(l->store, &g->commits[i].id, &found, &e);

        if (code == ERR_NOT_FOUND && i + STORE_KEPT_COMMITS < g->count) {
            assert_non_null(strstr(e.msg, "kept"));
            forgotten++;
            continue;
        }
        assert_int_equal(code, ERR_OK);
        assert_true(store_lab_equal(found, g->contents[i]));
        snapshot_unref(found);
    }
    /* Kept beyond 200 at most: back to a full index, and what came after the last prune. */
    assert_in_range(
        forgotten, LOG_MAX - STORE_KEPT_COMMITS - (size_t)2 * STORE_FULL_EVERY - 1, LOG_MAX);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log"), LOG_MAX);
    assert_verified(l);
}

/* count commits of a kind that is committed at once, on top of what there is. */
static void
commit_direct(struct store_lab *l, size_t count)
{
    struct snapshot *now = store_lab_shared(l);

    for (size_t i = 0; i < count; i++) {
        struct snapshot *from = now;
        char hash[SHA256_HEX + 1];

        (void)snprintf(hash, sizeof hash, "%064zx", i);
        now = store_lab_with(from, store_lab_key(800, hash));
        (void)store_lab_commit(l, now, NULL);
        snapshot_unref(from);
    }
    snapshot_unref(now);
}

/* Back to the schema before nodes were kept in step. */
static const char without_members_sql[] =
    "DROP TABLE former_key; DROP TABLE discarded; DROP TABLE member; ALTER TABLE meta DROP COLUMN node_id;"
    "DROP TRIGGER commit_log_no_update; ALTER TABLE commit_log DROP COLUMN kept;"
    "CREATE TRIGGER commit_log_no_update BEFORE UPDATE ON commit_log "
    "BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;"
    "PRAGMA user_version = 3;";

static void
an_old_history_is_marked_as_it_is_kept(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    int64_t kept;

    log_extend(l, g, LOG_MAX);
    kept = store_lab_number(l, "SELECT count(*) FROM commit_log WHERE kept");
    assert_in_range(kept, STORE_KEPT_COMMITS, LOG_MAX - 1);
    store_lab_close(l);
    store_lab_script(l, without_members_sql);
    store_lab_open(l);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log WHERE kept"), kept);
    assert_verified(l);
    for (size_t i = LOG_MAX - (size_t)kept; i < LOG_MAX; i++) {
        assert_content(l, g, i);
    }
}

static void
commits_of_direct_kinds_do_not_push_the_others_out(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    int64_t indexes;
    size_t extended;

    log_extend(l, g, 150);
    commit_direct(l, (size_t)2 * STORE_KEPT_COMMITS);
    indexes = store_lab_number(l, "SELECT count(DISTINCT seq) FROM commit_full");
    assert_in_range(indexes, 1, 4);
    store_lab_reopen(l);
    for (size_t i = 0; i < g->count; i++) {
        assert_content(l, g, i);
    }
    /* 150 commits leave 21 since the last full index; a restart counts the same. */
    extended =
        150 + (STORE_FULL_EVERY - 21) - (size_t)2 * STORE_KEPT_COMMITS / STORE_FULL_DIRECT;
    log_extend(l, g, extended - 1);
    assert_int_equal(
        store_lab_number(l, "SELECT count(DISTINCT seq) FROM commit_full"), indexes);
    log_extend(l, g, extended);
    assert_int_equal(
        store_lab_number(l, "SELECT count(DISTINCT seq) FROM commit_full"), indexes + 1);
    assert_verified(l);
}

static void
what_a_waiting_commit_goes_back_to_is_kept(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    CLEANUP(snapshot_cleanup) struct snapshot *trial = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *now = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *found = NULL;
    struct commit_request q;
    struct commit waiting;
    int64_t local_rev;
    struct error e;

    log_extend(l, g, 5);
    trial = store_lab_with(g->contents[4], store_lab_server(900, "trial", 1));
    q = store_lab_request(l, trial, NULL);
    q.confirm_until_ms = q.at_ms + 86400000;
    assert_int_equal(store_commit(l->store, &q, &waiting, &local_rev, &e), ERR_OK);
    commit_direct(l, STORE_KEPT_AMONG + (size_t)2 * STORE_PRUNE_WRITES);
    assert_content(l, g, 4);
    assert_int_equal(store_commit_content(l->store, &waiting.id, &found, &e), ERR_NOT_FOUND);
    assert_verified(l);
    now = store_lab_shared(l);
    q = store_lab_request(l, now, NULL);
    q.ends_wait = true;
    assert_int_equal(store_commit(l->store, &q, &waiting, &local_rev, &e), ERR_OK);
    commit_direct(l, STORE_PRUNE_WRITES + 1);
    assert_int_equal(
        store_commit_content(l->store, &g->commits[4].id, &found, &e), ERR_NOT_FOUND);
}

static void
keeps_bodies_that_the_draft_or_the_local_container_needs(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *local_to = store_lab_with(local, store_lab_admin(3));
    struct draft_row row = {.kind = K_SERVER, .name = "drafted", .author = "admin maria"};
    struct store_state st;
    struct error e;

    (void)store_lab_commit(l, NULL, local_to);
    store_lab_id(900, row.id);
    row.object = store_lab_server(900, "drafted", 1);
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    log_extend(l, g, 300);
    store_lab_reopen(l);
    assert_int_equal(store_load(l->store, &st, &e), ERR_OK);
    assert_int_equal(st.draft.count, 1);
    assert_true(hash_equal(&st.draft.rows[0].object->objhash, &row.object->objhash));
    assert_true(store_lab_equal(st.local, local_to));
    object_unref(row.object);
    draft_list_free(&st.draft);
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
    assert_verified(l);
}

static void
drafts_that_were_overwritten_do_not_pile_up(void **state)
{
    struct store_lab *l = *state;
    struct draft_row row = {.kind = K_SERVER, .name = "drafted", .author = "admin maria"};
    struct error e;

    store_lab_id(900, row.id);
    for (int i = 0; i < 2 * STORE_PRUNE_WRITES; i++) {
        row.object = store_lab_server(900, "drafted", i + 1);
        assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
        object_unref(row.object);
    }
    assert_in_range(
        store_lab_number(l, "SELECT count(*) FROM body"), 1, STORE_PRUNE_WRITES + 10);
}

static void
lists_the_newest_first(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    struct commit *page = NULL;
    size_t count = 0;
    size_t at = 25;
    int64_t before = 0;
    struct error e;

    log_extend(l, g, 25);
    do {
        assert_int_equal(store_commits(l->store, before, 10, &page, &count, &e), ERR_OK);
        for (size_t i = 0; i < count; i++) {
            at--;
            assert_true(hash_equal(&page[i].id, &g->commits[at].id));
            assert_int_equal(page[i].rev, at + 1);
            assert_int_equal(page[i].parent_count, at > 0 ? 1 : 0);
            before = page[i].rev;
        }
        free(page);
    } while (count > 0);
    assert_int_equal(at, 0);
    assert_int_equal(store_commits(l->store, 0, 0, &page, &count, &e), ERR_OK);
    assert_int_equal(count, 0);
    free(page);
    assert_int_equal(store_commits(l->store, 0, INT64_MAX, &page, &count, &e), ERR_OK);
    assert_int_equal(count, 25);
    free(page);
}

static void
finds_a_commit_by_what_people_write(void **state)
{
    static const char *const unknown[] = {
        "",
        "0",
        "12",
        "99",
        "2@00000000",
        "2@",
        "@",
        "2@1a2b3c",
        "x",
        "-1",
        "2 ",
        "00000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000"};
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    char hex[SHA256_HEX + 1];
    char spec[64];
    struct commit found;
    struct error e;

    log_extend(l, g, 3);
    assert_int_equal(store_commit_find(l->store, "2", &found, &e), ERR_OK);
    assert_true(hash_equal(&found.id, &g->commits[1].id));
    hash_hex(&g->commits[1].fp, hex);
    (void)snprintf(spec, sizeof spec, "2@%.8s", hex);
    assert_int_equal(store_commit_find(l->store, spec, &found, &e), ERR_OK);
    assert_true(hash_equal(&found.id, &g->commits[1].id));
    hash_hex(&g->commits[2].id, hex);
    assert_int_equal(store_commit_find(l->store, hex, &found, &e), ERR_OK);
    assert_int_equal(found.rev, 3);
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        assert_int_equal(store_commit_find(l->store, unknown[i], &found, &e), ERR_NOT_FOUND);
    }
}

/* As a fork leaves them. */
static void
names_the_candidates_of_a_revision_that_is_not_unique(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(log_cleanup) struct log *g = log_start(l);
    char spec[64];
    char hex[SHA256_HEX + 1];
    struct commit found;
    struct error e;

    log_extend(l, g, 3);
    store_lab_script(
        l, "INSERT INTO commit_log SELECT 100, zeroblob(32), rev, schema_version, "
           "zeroblob(32), node, author, summary, at_ms, 0, 0, 0 FROM commit_log "
           "WHERE rev = 2");
    assert_int_equal(store_commit_find(l->store, "2", &found, &e), ERR_CONFLICT);
    hash_hex(&g->commits[1].fp, hex);
    (void)snprintf(spec, sizeof spec, "2@%.8s", hex);
    assert_non_null(strstr(e.msg, spec));
    assert_non_null(strstr(e.msg, "2@00000000"));
    assert_int_equal(store_commit_find(l->store, spec, &found, &e), ERR_OK);
    assert_true(hash_equal(&found.id, &g->commits[1].id));

    store_lab_script(
        l, "INSERT INTO commit_log SELECT 101, randomblob(32), rev, schema_version, "
           "fp, node, author, summary, at_ms, 0, 0, 0 FROM commit_log WHERE seq = 2");
    assert_int_equal(store_commit_find(l->store, spec, &found, &e), ERR_CONFLICT);
    hash_hex(&g->commits[1].id, hex);
    assert_non_null(strstr(e.msg, hex));
    /* Of each other they are not told by the fingerprint. */
    assert_int_equal(store_commit_find(l->store, "2", &found, &e), ERR_CONFLICT);
    assert_non_null(strstr(e.msg, hex));

    store_lab_script(
        l, "INSERT INTO commit_log SELECT 200 + seq, randomblob(32), 2, schema_version, "
           "randomblob(32), node, author, summary, at_ms, 0, 0, 0 FROM commit_log");
    assert_int_equal(store_commit_find(l->store, "2", &found, &e), ERR_CONFLICT);
    assert_non_null(strstr(e.msg, ", ..."));
}

static void
unknown_commit_has_no_content(void **state)
{
    static const struct hash none;
    struct store_lab *l = *state;
    struct snapshot *found = NULL;
    struct error e;

    assert_int_equal(store_commit_content(l->store, &none, &found, &e), ERR_NOT_FOUND);
    assert_null(found);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(gives_back_the_content_of_every_commit),
        STORE_LAB_TEST(forgets_bodies_of_old_commits_only),
        STORE_LAB_TEST(an_old_history_is_marked_as_it_is_kept),
        STORE_LAB_TEST(commits_of_direct_kinds_do_not_push_the_others_out),
        STORE_LAB_TEST(what_a_waiting_commit_goes_back_to_is_kept),
        STORE_LAB_TEST(keeps_bodies_that_the_draft_or_the_local_container_needs),
        STORE_LAB_TEST(drafts_that_were_overwritten_do_not_pile_up),
        STORE_LAB_TEST(lists_the_newest_first),
        STORE_LAB_TEST(finds_a_commit_by_what_people_write),
        STORE_LAB_TEST(names_the_candidates_of_a_revision_that_is_not_unique),
        STORE_LAB_TEST(unknown_commit_has_no_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
