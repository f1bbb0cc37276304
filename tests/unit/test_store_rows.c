/* SPDX-License-Identifier: Apache-2.0 */
/* Draft, sessions, generations, audit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/sessions.h"
#include "tests/support/store_lab.h"

/* -- draft */

static struct draft_list
draft_of(struct store_lab *l)
{
    struct store_state st;
    struct error e;

    assert_int_equal(store_load(l->store, &st, &e), ERR_OK);
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
    return st.draft;
}

static void
put(struct store_lab *l, enum kind kind, unsigned n, const struct object *o, const char *name)
{
    struct draft_row row = {.kind = kind, .author = "admin maria", .at_ms = 77};
    struct error e;

    store_lab_id(n, row.id);
    row.object = o != NULL ? object_ref(o) : NULL;
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    object_unref(row.object);
}

static void
draft_survives_a_restart(void **state)
{
    struct store_lab *l = *state;
    struct object *o = store_lab_server(2, NULL, 8080);
    struct draft_row row = {
        .kind = K_SERVER,
        .name = "gone",
        .has_base = true,
        .base = {{1, 2, 3}},
        .author = "key deploy",
        .at_ms = 123};
    struct draft_list d;
    struct error e;

    put(l, K_SERVER, 2, o, "web2");
    store_lab_id(1, row.id);
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    for (int i = 0; i < 2; i++) {
        d = draft_of(l);
        assert_int_equal(d.count, 2);
        assert_string_equal(d.rows[0].id, row.id);
        assert_null(d.rows[0].object);
        assert_string_equal(d.rows[0].name, "gone");
        assert_string_equal(d.rows[0].author, "key deploy");
        assert_int_equal(d.rows[0].at_ms, 123);
        assert_true(d.rows[0].has_base);
        assert_true(hash_equal(&d.rows[0].base, &row.base));
        assert_int_equal(d.rows[1].kind, K_SERVER);
        assert_string_equal(d.rows[1].id, o->id);
        assert_true(hash_equal(&d.rows[1].object->objhash, &o->objhash));
        assert_false(d.rows[1].has_base);
        draft_list_free(&d);
        assert_int_equal(d.count, 0);
        store_lab_reopen(l);
    }
    object_unref(o);
}

static void
draft_is_sorted_by_kind_and_id(void **state)
{
    static const enum kind kinds[] = {K_SERVER, K_CERTIFICATE, K_POOL, K_MONITOR};
    struct store_lab *l = *state;
    struct draft_list d;

    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
        for (unsigned n = 3; n > 0; n--) {
            put(l, kinds[i], n, NULL, "x");
        }
    }
    d = draft_of(l);
    assert_int_equal(d.count, 3 * ARRAY_LEN(kinds));
    for (size_t i = 1; i < d.count; i++) {
        int kind =
            strcmp(schema_kind(d.rows[i - 1].kind)->name, schema_kind(d.rows[i].kind)->name);

        assert_true(kind < 0 || (kind == 0 && strcmp(d.rows[i - 1].id, d.rows[i].id) < 0));
    }
    draft_list_free(&d);
}

static void
second_edit_of_an_object_replaces_its_row(void **state)
{
    struct store_lab *l = *state;
    struct draft_row row = {
        .kind = K_SERVER,
        .name = "web1",
        .has_base = true,
        .base = {{1}},
        .author = "admin maria",
        .at_ms = 1};
    struct draft_list d;
    struct error e;

    store_lab_id(1, row.id);
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    row.object = store_lab_server(1, "web9", 1);
    row.base.b[0] = 2;
    row.at_ms = 2;
    (void)snprintf(row.name, sizeof row.name, "web9");
    (void)snprintf(row.author, sizeof row.author, "admin otto");
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    d = draft_of(l);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.rows[0].base.b[0], 2);
    assert_int_equal(d.rows[0].at_ms, 2);
    assert_string_equal(d.rows[0].name, "web9");
    assert_string_equal(d.rows[0].author, "admin otto");
    assert_non_null(d.rows[0].object);
    draft_list_free(&d);
    object_unref(row.object);
}

static void
rows_leave_the_draft_one_by_one_and_all_at_once(void **state)
{
    struct store_lab *l = *state;
    static const struct draft_list none;
    struct draft_row rows[2] = {{.kind = K_POOL}, {.kind = K_SERVER}};
    struct draft_list drop = {rows, 2};
    char id[OBJECT_ID_BYTES];
    struct draft_list d;
    struct error e;

    for (unsigned n = 1; n <= 3; n++) {
        put(l, K_SERVER, n, NULL, "x");
    }
    store_lab_id(2, id);
    memcpy(rows[0].id, id, sizeof id); /* there is no such row */
    memcpy(rows[1].id, id, sizeof id);
    assert_int_equal(store_draft_write(l->store, &none, &drop, &e), ERR_OK);
    d = draft_of(l);
    assert_int_equal(d.count, 2);
    assert_string_not_equal(d.rows[0].id, id);
    assert_string_not_equal(d.rows[1].id, id);
    draft_list_free(&d);
    assert_int_equal(store_draft_clear(l->store, &e), ERR_OK);
    store_lab_reopen(l);
    d = draft_of(l);
    assert_int_equal(d.count, 0);
    draft_list_free(&d);
}

static void
commit_takes_its_rows_out_of_the_draft(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *shared = store_lab_with(first, store_lab_server(1, NULL, 8080));
    struct commit_request q = store_lab_request(l, shared, NULL);
    struct draft_row drop = {.kind = K_SERVER};
    struct commit head;
    struct draft_list d;
    int64_t local_rev;
    struct error e;

    put(l, K_SERVER, 1, NULL, "web1");
    put(l, K_SERVER, 2, NULL, "web2");
    store_lab_id(1, drop.id);
    q.drop_draft = &drop;
    q.drop_draft_count = 1;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    d = draft_of(l);
    assert_int_equal(d.count, 1);
    assert_string_equal(d.rows[0].name, "web2");
    draft_list_free(&d);
}

static void
many_rows_are_written_at_once(void **state)
{
    struct store_lab *l = *state;
    struct draft_row rows[3] = {0};
    struct draft_row drop = {.kind = K_SERVER};
    struct draft_list put_list = {rows, ARRAY_LEN(rows)};
    struct draft_list drop_list = {&drop, 1};
    struct draft_list d;
    struct error e;

    put(l, K_SERVER, 1, NULL, "one");
    put(l, K_SERVER, 9, NULL, "nine");
    store_lab_id(9, drop.id);
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        rows[i] = (struct draft_row){.kind = K_SERVER, .has_base = true, .at_ms = 7};
        store_lab_id(i + 1, rows[i].id);
        (void)snprintf(rows[i].name, sizeof rows[i].name, "web%u", i + 1);
    }
    rows[1].object = store_lab_server(2, NULL, 80);
    assert_int_equal(store_draft_write(l->store, &put_list, &drop_list, &e), ERR_OK);
    store_lab_reopen(l);
    d = draft_of(l);
    assert_int_equal(d.count, 3);
    for (size_t i = 0; i < d.count; i++) {
        assert_string_equal(d.rows[i].name, rows[i].name);
        assert_true(d.rows[i].has_base);
        assert_int_equal(d.rows[i].object != NULL, i == 1);
    }
    draft_list_free(&d);
    object_unref(rows[1].object);
}

static void
damaged_draft_is_refused(void **state)
{
    static const char *const damages[] = {
        "UPDATE draft SET objhash = zeroblob(32)",
        "UPDATE draft SET kind = 'wrong'",
        "UPDATE draft SET name = printf('%100s', 'x')",
        "UPDATE draft SET author = printf('%300s', 'x')",
        "UPDATE draft SET id = printf('%30s', 'x')",
        "PRAGMA ignore_check_constraints = ON; UPDATE draft SET base = x'00'",
        "PRAGMA ignore_check_constraints = ON; UPDATE draft SET objhash = x'00'",
    };
    struct store_lab *l = *state;
    struct error e;

    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct object *o = store_lab_server(2, NULL, 80);
        struct store_state st;

        put(l, K_SERVER, 2, o, "web2");
        object_unref(o);
        store_lab_script(l, damages[i]);
        assert_int_equal(store_load(l->store, &st, &e), ERR_CORRUPT);
        assert_int_equal(store_draft_clear(l->store, &e), ERR_OK);
    }
}

/* -- sessions */

static void
put_session(struct store_lab *l, uint8_t token, const char *admin, int64_t used_ms)
{
    struct session_row r = {.token = {{token}}, .created_ms = token, .used_ms = used_ms};
    struct error e;

    (void)snprintf(r.admin, sizeof r.admin, "%s", admin);
    (void)snprintf(r.csrf, sizeof r.csrf, "csrf%d", token);
    assert_int_equal(store_session_put(l->store, &r, &e), ERR_OK);
}

static size_t
session_count(struct store_lab *l)
{
    struct session_row *rows = NULL;
    size_t count = 0;
    struct error e;

    assert_int_equal(store_sessions(l->store, &rows, &count, &e), ERR_OK);
    free(rows);
    return count;
}

static void
sessions_survive_a_restart(void **state)
{
    struct store_lab *l = *state;
    struct session_row *rows = NULL;
    size_t count = 0;
    struct error e;

    put_session(l, 1, "maria", 10);
    put_session(l, 2, "otto", 20);
    put_session(l, 1, "maria", 30);
    store_lab_reopen(l);
    assert_int_equal(store_sessions(l->store, &rows, &count, &e), ERR_OK);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].token.b[0], 1);
    assert_string_equal(rows[0].admin, "maria");
    assert_string_equal(rows[0].csrf, "csrf1");
    assert_int_equal(rows[0].created_ms, 1);
    assert_int_equal(rows[0].used_ms, 30);
    assert_string_equal(rows[1].admin, "otto");
    free(rows);
}

static void
sessions_end_by_token_by_admin_and_all(void **state)
{
    static const struct hash first = {{1}};
    struct store_lab *l = *state;
    struct error e;

    for (uint8_t i = 1; i <= 6; i++) {
        put_session(l, i, i % 2 == 0 ? "maria" : "otto", 1);
    }
    assert_int_equal(store_session_remove(l->store, &first, &e), ERR_OK);
    assert_int_equal(session_count(l), 5);
    assert_int_equal(store_session_remove(l->store, &first, &e), ERR_OK);
    assert_int_equal(store_session_remove_admin(l->store, "maria", &e), ERR_OK);
    assert_int_equal(session_count(l), 2);
    assert_int_equal(store_session_remove_admin(l->store, "nobody", &e), ERR_OK);
    assert_int_equal(session_count(l), 2);
    assert_int_equal(store_session_remove_admin(l->store, NULL, &e), ERR_OK);
    assert_int_equal(session_count(l), 0);
}

/* -- generations */

static void
number_of_a_generation_is_given_once(void **state)
{
    struct store_lab *l = *state;
    struct error e;

    for (int64_t wanted = 1; wanted <= 5; wanted++) {
        int64_t number = 0;

        assert_int_equal(store_generation_next(l->store, &number, &e), ERR_OK);
        assert_int_equal(number, wanted);
        store_lab_reopen(l);
    }
}

static void
generation_is_found_by_number_and_by_digest(void **state)
{
    static const enum generation_state states[] = {
        GENERATION_STAGED, GENERATION_ACTIVE, GENERATION_GOOD, GENERATION_FAILED};
    struct store_lab *l = *state;
    struct generation g = {
        .digest = "0123456789abcdef",
        .commit = {{7}},
        .local_rev = 3,
        .release = "0.1.0",
        .at_ms = 99};
    struct generation found;
    struct error e;

    for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
        g.number = 1 + i / 2;
        g.state = states[i];
        assert_int_equal(store_generation_put(l->store, &g, &e), ERR_OK);
        assert_int_equal(store_generation_find(l->store, NULL, g.number, &found, &e), ERR_OK);
        assert_int_equal(found.state, states[i]);
    }
    assert_int_equal(store_generation_find(l->store, g.digest, 0, &found, &e), ERR_OK);
    assert_int_equal(found.number, 1); /* the newest has failed */
    assert_string_equal(found.digest, g.digest);
    assert_true(hash_equal(&found.commit, &g.commit));
    assert_int_equal(found.local_rev, 3);
    assert_string_equal(found.release, "0.1.0");
    assert_int_equal(found.at_ms, 99);
    assert_int_equal(store_generation_find(l->store, NULL, 3, &found, &e), ERR_NOT_FOUND);
    assert_int_equal(store_generation_find(l->store, "0", 1, &found, &e), ERR_NOT_FOUND);
}

static void
old_generations_are_forgotten_but_for_the_last_good_one(void **state)
{
    struct store_lab *l = *state;
    struct generation g = {.digest = "0123456789abcdef", .release = "0.1.0"};
    struct generation found;
    struct error e;
    int64_t number = 0;

    for (int64_t n = 1; n <= 3; n++) {
        g.number = n;
        g.state = n == 2 ? GENERATION_GOOD : GENERATION_FAILED;
        assert_int_equal(store_generation_put(l->store, &g, &e), ERR_OK);
    }
    store_lab_script(l, "UPDATE meta SET last_generation = 1000");
    assert_int_equal(store_generation_next(l->store, &number, &e), ERR_OK);
    assert_int_equal(store_generation_find(l->store, NULL, 1, &found, &e), ERR_NOT_FOUND);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_generation_next(l->store, &number, &e), ERR_OK);
    }
    assert_int_equal(number, 1004);
    assert_int_equal(store_generation_find(l->store, NULL, 2, &found, &e), ERR_OK);
    assert_int_equal(store_generation_find(l->store, NULL, 3, &found, &e), ERR_OK);
}

/* -- audit */

static void
audit_and_history_are_append_only(void **state)
{
    static const char *const forbidden[] = {
        "UPDATE audit SET text = ''",
        "DELETE FROM audit",
        "UPDATE commit_log SET summary = ''",
        "DELETE FROM commit_log",
        "UPDATE commit_parent SET position = 1",
        "DELETE FROM commit_parent",
        "UPDATE commit_entry SET objhash = NULL",
        "DELETE FROM commit_entry",
        "UPDATE commit_full SET objhash = zeroblob(32)",
    };
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *shared = store_lab_with(first, store_lab_server(1, NULL, 8080));
    CLEANUP(db_cleanup) struct db *d = store_lab_raw(l);
    struct error e;

    (void)store_lab_commit(l, shared, NULL);
    assert_int_equal(
        store_audit(l->store, 5, "admin maria", "sign_in", "from 192.0.2.1", &e), ERR_OK);
    assert_int_equal(
        store_lab_number(l, "SELECT at_ms FROM audit WHERE action = 'sign_in'"), 5);
    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        assert_int_equal(db_script(d, forbidden[i], &e), ERR_CONFLICT);
        assert_non_null(strstr(e.msg, "append-only"));
    }
}

/* -- what a statement may do once the store is open */

static void
restricted_connection_works_on_rows_only(void **state)
{
    static const char *const forbidden[] = {
        "CREATE TABLE extra (a INTEGER)",  "DROP TABLE audit",
        "DROP TRIGGER audit_no_delete",    "ALTER TABLE audit RENAME TO b",
        "ATTACH '/tmp/other.db' AS other", "VACUUM INTO '/tmp/other.db'",
        "PRAGMA foreign_keys = OFF",       "PRAGMA writable_schema = ON",
        "PRAGMA user_version = 7",         "PRAGMA journal_mode = DELETE",
        "SELECT load_extension('x')",      "DELETE FROM sqlite_schema",
        "CREATE TEMP TABLE a (b)",
    };
    static const char *const allowed[] = {
        "PRAGMA quick_check",
        "PRAGMA integrity_check",
        "PRAGMA foreign_key_check",
        "SELECT count(*) FROM audit",
        "BEGIN IMMEDIATE",
        "ROLLBACK",
        "UPDATE meta SET last_generation = 3"};
    struct store_lab *l = *state;
    CLEANUP(db_cleanup) struct db *d = store_lab_raw(l);
    struct error e;

    assert_int_equal(db_use(d, true, &e), ERR_OK);
    db_restrict(d);
    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        if (db_script(d, forbidden[i], &e) == ERR_OK) {
            fail_msg("allowed: %s", forbidden[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        if (db_script(d, allowed[i], &e) != ERR_OK) {
            fail_msg("refused: %s: %s", allowed[i], e.msg);
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(draft_survives_a_restart),
        STORE_LAB_TEST(draft_is_sorted_by_kind_and_id),
        STORE_LAB_TEST(second_edit_of_an_object_replaces_its_row),
        STORE_LAB_TEST(rows_leave_the_draft_one_by_one_and_all_at_once),
        STORE_LAB_TEST(commit_takes_its_rows_out_of_the_draft),
        STORE_LAB_TEST(many_rows_are_written_at_once),
        STORE_LAB_TEST(damaged_draft_is_refused),
        STORE_LAB_TEST(sessions_survive_a_restart),
        STORE_LAB_TEST(sessions_end_by_token_by_admin_and_all),
        STORE_LAB_TEST(number_of_a_generation_is_given_once),
        STORE_LAB_TEST(generation_is_found_by_number_and_by_digest),
        STORE_LAB_TEST(old_generations_are_forgotten_but_for_the_last_good_one),
        STORE_LAB_TEST(audit_and_history_are_append_only),
        STORE_LAB_TEST(restricted_connection_works_on_rows_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
