/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "store/migrate.h"
#include "tests/support/store_lab.h"

/* What may not change when an opening is refused. */
static const char *const kept_names[] = {"lockstep.db", "lockstep.db-wal", "seal.key"};

/* No file and an empty one count as the same: looking at a database may leave an empty log. */
struct files {
    struct buf bytes[ARRAY_LEN(kept_names)];
};

static void
read_files(const struct store_lab *l, struct files *f)
{
    CLEANUP(fd_cleanup) int dir = -1;
    struct error e;

    assert_int_equal(file_open_dir_at(AT_FDCWD, l->dir, &dir, &e), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(kept_names); i++) {
        buf_init(&f->bytes[i], (size_t)16 << 20);
        if (file_read_at(dir, kept_names[i], &f->bytes[i], &e) != ERR_OK) {
            assert_int_equal(e.code, ERR_NOT_FOUND);
        }
    }
}

static void
assert_files(const struct store_lab *l, struct files *before)
{
    struct files now;

    read_files(l, &now);
    for (size_t i = 0; i < ARRAY_LEN(kept_names); i++) {
        assert_int_equal(now.bytes[i].len, before->bytes[i].len);
        if (now.bytes[i].len > 0) {
            assert_memory_equal(now.bytes[i].data, before->bytes[i].data, now.bytes[i].len);
        }
        buf_fini(&now.bytes[i]);
        buf_fini(&before->bytes[i]);
    }
}

/* Opening is refused with a text that holds word, and changes no byte. */
static void
assert_refused(struct store_lab *l, err_t code, const char *word)
{
    struct store *s = NULL;
    struct files before;
    struct error e;

    read_files(l, &before);
    assert_int_equal(store_open(l->dir, "node1", &l->clock, &s, &e), code);
    assert_null(s);
    if (strstr(e.msg, word) == NULL) {
        fail_msg("no \"%s\" in: %s", word, e.msg);
    }
    assert_files(l, &before);
}

static int
set_up(void **state)
{
    static struct store_lab l;

    store_lab_init(&l);
    *state = &l;
    return 0;
}

static int
tear_down(void **state)
{
    store_lab_fini(*state);
    return 0;
}

static void
remove_name(const struct store_lab *l, const char *name)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};

    store_lab_path(l, name, &path);
    assert_int_equal(unlink(buf_str(&path)), 0);
}

static void
write_name(const struct store_lab *l, const char *name, const void *p, size_t bytes)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    struct error e;

    store_lab_path(l, name, &path);
    assert_int_equal(file_write_at(AT_FDCWD, buf_str(&path), p, bytes, 0600, &e), ERR_OK);
}

static mode_t
mode_of(const struct store_lab *l, const char *name)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    struct stat st;

    store_lab_path(l, name, &path);
    assert_int_equal(lstat(buf_str(&path), &st), 0);
    return st.st_mode & 07777;
}

static void
first_start_makes_an_initial_commit(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = snapshot_initial(SCOPE_SHARED);
    struct store_state st;
    struct error e;

    store_lab_open(l);
    assert_int_equal(store_load(l->store, &st, &e), ERR_OK);
    assert_int_equal(st.head.rev, 1);
    assert_int_equal(st.head.parent_count, 0);
    assert_string_equal(st.head.summary, "first start");
    assert_string_equal(st.head.node, "node1");
    assert_int_equal(st.local_rev, 1);
    assert_int_equal(st.draft.count, 0);
    assert_true(store_lab_equal(st.shared, shared));
    assert_string_equal(snapshot_singleton(st.local, K_NODE)->name.s, "node1");
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
}

static void
second_start_finds_the_same(void **state)
{
    struct store_lab *l = *state;
    struct store_state st[2];
    struct files before;
    struct error e;

    store_lab_open(l);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_load(l->store, &st[i], &e), ERR_OK);
        store_lab_close(l);
        if (i == 0) {
            read_files(l, &before);
            store_lab_open(l);
        }
    }
    assert_files(l, &before);
    assert_true(hash_equal(&st[0].head.id, &st[1].head.id));
    assert_true(store_lab_equal(st[0].shared, st[1].shared));
    assert_true(store_lab_equal(st[0].local, st[1].local));
    for (int i = 0; i < 2; i++) {
        snapshot_unref(st[i].shared);
        snapshot_unref(st[i].local);
    }
}

static void
a_bad_name_of_the_node_leaves_nothing_behind(void **state)
{
    struct store_lab *l = *state;
    struct store *s = NULL;
    struct error e;

    assert_int_equal(store_open(l->dir, "no name", &l->clock, &s, &e), ERR_INVALID);
    store_lab_open(l);
}

static void
files_are_for_the_owner_only(void **state)
{
    struct store_lab *l = *state;
    mode_t mask = umask(0);

    store_lab_open(l);
    assert_int_equal(mode_of(l, "."), 0700);
    assert_int_equal(mode_of(l, "lockstep.db"), 0600);
    assert_int_equal(mode_of(l, "lockstep.db-wal"), 0600);
    assert_int_equal(mode_of(l, "lockstep.db-shm"), 0600);
    assert_int_equal(mode_of(l, "seal.key"), 0600);
    (void)umask(mask);
}

static void
wider_modes_are_narrowed(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf path = {.max = 256};

    store_lab_open(l);
    store_lab_close(l);
    store_lab_path(l, "lockstep.db", &path);
    assert_int_equal(chmod(buf_str(&path), 0644), 0);
    store_lab_path(l, "seal.key", &path);
    assert_int_equal(chmod(buf_str(&path), 0644), 0);
    store_lab_open(l);
    assert_int_equal(mode_of(l, "lockstep.db"), 0600);
    assert_int_equal(mode_of(l, "seal.key"), 0600);
}

static void
database_without_key_is_refused(void **state)
{
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    remove_name(l, "seal.key");
    assert_refused(l, ERR_CORRUPT, "seal.key is missing");
    assert_refused(l, ERR_CORRUPT, "HAProxy keeps serving");
    assert_refused(l, ERR_CORRUPT, l->dir);
}

static void
key_without_database_is_refused(void **state)
{
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    remove_name(l, "lockstep.db");
    assert_refused(l, ERR_CORRUPT, "lockstep.db is missing");
    assert_refused(l, ERR_CORRUPT, "HAProxy keeps serving");
}

static void
log_without_database_is_refused(void **state)
{
    struct store_lab *l = *state;

    assert_int_equal(mkdir(l->dir, 0700), 0);
    write_name(l, "lockstep.db-wal", "left", 4);
    assert_refused(l, ERR_CORRUPT, "lockstep.db is missing");
}

static void
key_of_another_node_is_refused(void **state)
{
    static const uint8_t other[SEAL_KEY_BYTES] = {1, 2, 3};
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    write_name(l, "seal.key", other, sizeof other);
    assert_refused(l, ERR_CORRUPT, "does not belong");
    write_name(l, "seal.key", other, sizeof other - 1);
    assert_refused(l, ERR_CORRUPT, "seal.key is damaged");
    write_name(l, "seal.key", "0123456789012345678901234567890123456789", 40);
    assert_refused(l, ERR_CORRUPT, "seal.key is damaged");
}

static void
damaged_database_is_refused(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    CLEANUP(buf_fini) struct buf good = {.max = (size_t)16 << 20};
    struct error e;

    store_lab_open(l);
    store_lab_close(l);
    store_lab_path(l, "lockstep.db", &path);
    assert_int_equal(file_read_at(AT_FDCWD, buf_str(&path), &good, &e), ERR_OK);

    write_name(l, "lockstep.db", "", 0);
    assert_refused(l, ERR_CORRUPT, "no database");
    write_name(l, "lockstep.db", "node = web1\n", 12);
    assert_refused(l, ERR_CORRUPT, "no database");
    write_name(l, "lockstep.db", good.data, 4096);
    assert_refused(l, ERR_CORRUPT, "damaged");
    write_name(l, "lockstep.db", good.data, good.len / 2 / 4096 * 4096);
    assert_refused(l, ERR_CORRUPT, "damaged");
    /* A migration leaves pages before the sixth free. */
    memset(good.data + 20480, 'x', 4096);
    write_name(l, "lockstep.db", good.data, good.len);
    assert_refused(l, ERR_CORRUPT, "damaged");
    memset(good.data + 20480, 0xa5, 20000);
    write_name(l, "lockstep.db", good.data, good.len);
    assert_refused(l, ERR_CORRUPT, "it is damaged (Page 6: ");
}

static void
link_in_place_of_the_database_is_refused(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    CLEANUP(buf_fini) struct buf elsewhere = {.max = 256};
    struct store *s = NULL;
    struct error e;

    store_lab_open(l);
    store_lab_close(l);
    store_lab_path(l, "lockstep.db", &path);
    store_lab_path(l, "elsewhere", &elsewhere);
    assert_int_equal(rename(buf_str(&path), buf_str(&elsewhere)), 0);
    assert_int_equal(symlink("elsewhere", buf_str(&path)), 0);
    assert_int_equal(store_open(l->dir, "node1", &l->clock, &s, &e), ERR_IO);
}

static void
database_of_another_program_is_refused(void **state)
{
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    store_lab_script(l, "PRAGMA journal_mode = DELETE; PRAGMA application_id = 7;");
    assert_refused(l, ERR_CORRUPT, "no database of Lockstep");
}

static void
newer_schema_is_refused_untouched(void **state)
{
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    store_lab_script(l, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 1000;");
    assert_refused(l, ERR_CORRUPT, "newer release");
}

static void
newer_schema_in_the_log_is_refused_untouched(void **state)
{
    struct store_lab *l = *state;

    store_lab_open(l);
    store_lab_close(l);
    /* The version is in the write-ahead log only: store_lab_script does not check it in. */
    store_lab_script(l, "PRAGMA user_version = 1000;");
    assert_refused(l, ERR_CORRUPT, "newer release");
    assert_refused(l, ERR_CORRUPT, "newer release");
}

/* The states that a first start can leave when it is killed. */
static void
killed_first_start_is_taken_up(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf from = {.max = 256};
    CLEANUP(buf_fini) struct buf to = {.max = 256};

    assert_int_equal(mkdir(l->dir, 0700), 0);
    write_name(l, "lockstep.db.new", "half", 4);
    write_name(l, "lockstep.db.new-journal", "half", 4);
    store_lab_open(l);
    store_lab_close(l);
    store_lab_path(l, "lockstep.db", &from);
    store_lab_path(l, "lockstep.db.new", &to);
    assert_int_equal(rename(buf_str(&from), buf_str(&to)), 0);
    store_lab_open(l);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log"), 1);
}

/* -- migrations */

static const char second_sql[] =
    "CREATE TABLE extra (a INTEGER) STRICT; PRAGMA user_version = 1001;";

static err_t
migrate(const struct store_lab *l, const char *sql, struct error *e)
{
    const struct migration list[] = {{1, "first", "not SQL"}, {1001, "second", sql}};
    const struct migrate_plan plan = {list, ARRAY_LEN(list), l->dir};
    CLEANUP(db_cleanup) struct db *d = store_lab_raw(l);

    assert_int_equal(db_use(d, true, e), ERR_OK);
    return migrate_run(d, &plan, e);
}

static void
migration_makes_a_copy_first(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf copy = {.max = 256};
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    struct error e;

    store_lab_open(l);
    store_lab_close(l);
    /* Left by an earlier attempt. */
    write_name(l, "lockstep.db.before.new", "half", 4);
    assert_int_equal(migrate(l, second_sql, &e), ERR_OK);
    assert_int_equal(store_lab_number(l, "PRAGMA user_version"), 1001);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM extra"), 0);
    assert_int_equal(mode_of(l, "lockstep.db.before-1001"), 0600);
    assert_refused(l, ERR_CORRUPT, "newer release");

    store_lab_path(l, "lockstep.db.before-1001", &copy);
    store_lab_path(l, "lockstep.db", &path);
    remove_name(l, "lockstep.db");
    assert_int_equal(rename(buf_str(&copy), buf_str(&path)), 0);
    store_lab_open(l);
    assert_int_equal(store_lab_number(l, "PRAGMA user_version"), migration_count);
}

static void
second_run_of_a_migration_does_nothing(void **state)
{
    struct store_lab *l = *state;
    struct error e;

    store_lab_open(l);
    store_lab_close(l);
    assert_int_equal(migrate(l, second_sql, &e), ERR_OK);
    remove_name(l, "lockstep.db.before-1001");
    assert_int_equal(migrate(l, second_sql, &e), ERR_OK);
    assert_int_equal(store_lab_number(l, "PRAGMA user_version"), 1001);
}

static void
failed_migration_leaves_the_old_schema(void **state)
{
    static const char *const failing[] = {
        "CREATE TABLE extra (a INTEGER) STRICT; CREATE TABLE extra (a INTEGER) STRICT;"
        "PRAGMA user_version = 1001;",
        "CREATE TABLE extra (a INTEGER) STRICT;",
        "CREATE TABLE extra (a INTEGER REFERENCES meta (one)) STRICT;"
        "PRAGMA defer_foreign_keys = ON; INSERT INTO extra VALUES (77);"
        "PRAGMA user_version = 1001;",
        "DELETE FROM shared_object; PRAGMA user_version = 1001; nonsense",
    };
    struct store_lab *l = *state;
    struct error e;

    store_lab_open(l);
    store_lab_close(l);
    for (size_t i = 0; i < ARRAY_LEN(failing); i++) {
        assert_int_not_equal(migrate(l, failing[i], &e), ERR_OK);
        assert_non_null(strstr(e.msg, "migration 1001 (second)"));
        assert_int_equal(store_lab_number(l, "PRAGMA user_version"), migration_count);
        assert_int_equal(
            store_lab_number(l, "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"), 0);
        store_lab_open(l);
        store_lab_close(l);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_start_makes_an_initial_commit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(second_start_finds_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_bad_name_of_the_node_leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_are_for_the_owner_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wider_modes_are_narrowed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(database_without_key_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(key_without_database_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(log_without_database_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(key_of_another_node_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_database_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            link_in_place_of_the_database_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            database_of_another_program_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(newer_schema_is_refused_untouched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            newer_schema_in_the_log_is_refused_untouched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(killed_first_start_is_taken_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(migration_makes_a_copy_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            second_run_of_a_migration_does_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            failed_migration_leaves_the_old_schema, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
