/* SPDX-License-Identifier: Apache-2.0 */
/* Damage is found, and secrets are not in the files. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/store_lab.h"

/* Servers, a pool, a certificate (sealed), an administrator; 70 revisions. */
static void
fill(struct store_lab *l, struct buf *key_line)
{
    static const char *const members[] = {"web1", "web2"};
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *local_to = store_lab_with(local, store_lab_admin(4));
    struct snapshot *now = store_lab_shared(l);

    for (unsigned i = 0; i < 70; i++) {
        struct snapshot *from = now;

        if (i == 5) {
            now = store_lab_with(from, store_lab_certificate(6, key_line));
        } else if (i == 6) {
            now = store_lab_with(from, store_lab_pool(7, from, members, 2));
        } else {
            now = store_lab_with(from, store_lab_server(i % 3 + 1, NULL, (int)i + 1));
        }
        (void)store_lab_commit(l, now, i == 9 ? local_to : NULL);
        snapshot_unref(from);
    }
    snapshot_unref(now);
}

static void
assert_sound(struct store_lab *l)
{
    struct error e;
    int64_t checked;

    if (store_verify(l->store, &checked, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

/* -- damage */

/* What is done to a row, and what verify must name. */
struct damage {
    const char *sql;
    const char *word;
};

static const struct damage damages[] = {
    /* bodies */
    {"UPDATE body SET form = form | 1 WHERE kind = 'pool'", "content of a pool"},
    {"UPDATE body SET form = form & ~2 WHERE kind = 'certificate'", "certificate"},
    {"UPDATE body SET kind = 'monitor' WHERE kind = 'pool'", "pool"},
    {"UPDATE body SET kind = 'wrong' WHERE kind = 'pool'", "no kind is called wrong"},
    {"UPDATE body SET data = x'' WHERE kind = 'pool'", "content of a pool"},
    {"DELETE FROM body WHERE kind = 'pool'", "pool"},
    {"DELETE FROM body WHERE kind = 'admin'", "admin"},
    {"DELETE FROM body WHERE objhash = (SELECT objhash FROM commit_entry WHERE seq = 11)",
     "content of a server"},
    {"UPDATE body SET data = (SELECT data FROM body WHERE kind = 'server' LIMIT 1) "
     "WHERE objhash = (SELECT max(objhash) FROM body WHERE kind = 'server')",
     "hash differs"},
    /* commits */
    {"UPDATE commit_log SET summary = 'another' WHERE seq = 20", "revision 20"},
    {"UPDATE commit_log SET author = 'another' WHERE seq = 71", "revision 71"},
    {"UPDATE commit_log SET at_ms = at_ms + 1 WHERE seq = 1", "revision 1 "},
    {"UPDATE commit_log SET rev = rev + 100 WHERE seq = 40", "revision 140"},
    {"UPDATE commit_log SET fp = zeroblob(32) WHERE seq = 30", "revision 30"},
    {"UPDATE commit_parent SET parent_seq = 3 WHERE seq = 50", "revision 50"},
    {"DELETE FROM commit_parent WHERE seq = 50", "revision 50"},
    {"UPDATE meta SET head_seq = 70", "head commit"},
    /* what a commit holds */
    {"UPDATE commit_full SET objhash = (SELECT objhash FROM commit_full WHERE kind = 'pool') "
     "WHERE kind = 'server' AND seq = 65",
     "revision 65"},
    {"DELETE FROM commit_full WHERE seq = 65 AND kind = 'pool'", "revision 65"},
    {"DELETE FROM commit_full WHERE seq = 1", "full index of revision 1"},
    {"DELETE FROM commit_full WHERE seq = 65", "full index of revision 65"},
    {"UPDATE commit_entry SET objhash = NULL WHERE seq = 64", "changes of revision 65"},
    {"DELETE FROM commit_entry WHERE seq = 70", "revision 71"},
    {"UPDATE commit_log SET kept = 0 WHERE seq = 71", "revision 71"},
    {"UPDATE commit_log SET kept = 0 WHERE seq = 50", "revision 51"},
    /* objects */
    {"UPDATE shared_object SET name = 'web9' WHERE name = 'web1'", "web1"},
    {"UPDATE shared_object SET objhash = (SELECT objhash FROM commit_entry WHERE seq = 4) "
     "WHERE id = '0000000000000003'",
     "head commit"},
    {"UPDATE shared_unique SET value = 'web9' WHERE value = 'web1'", "web1"},
    {"DELETE FROM shared_unique WHERE value = 'web1'", "web1"},
    {"UPDATE shared_ref SET to_id = '0000000000000003' WHERE to_id = '0000000000000001'",
     "pool7"},
    {"UPDATE shared_ref SET to_id = '00000000000000ff' WHERE to_id = '0000000000000001'",
     "shared_ref"},
    {"UPDATE shared_ref SET pointer = pointer || 'x' WHERE to_id = '0000000000000002'",
     "pool7"},
    {"DELETE FROM shared_ref WHERE to_id = '0000000000000001'", "pool7"},
    {"INSERT INTO shared_ref VALUES ('server', '0000000000000001', '/x', 'server', "
     "'0000000000000002')",
     "server"},
    {"UPDATE local_object SET name = 'root' WHERE kind = 'admin'", "admin4"},
    {"DELETE FROM local_object WHERE kind = 'admin'", "local_unique"},
    {"UPDATE meta SET local_fp = zeroblob(32)", "local objects"},
    /* draft */
    {"INSERT INTO draft VALUES ('server', '0000000000000001', 'web1', zeroblob(32), NULL, '', 1)",
     "content of a server"},
};

static const char drop_triggers[] = "DROP TRIGGER commit_log_no_update;"
                                    "DROP TRIGGER commit_log_no_delete;"
                                    "DROP TRIGGER commit_parent_no_update;"
                                    "DROP TRIGGER commit_parent_no_delete;"
                                    "DROP TRIGGER commit_entry_no_update;"
                                    "DROP TRIGGER commit_entry_no_delete;"
                                    "DROP TRIGGER commit_full_no_update;";

static void
read_whole(const struct store_lab *l, const char *name, struct buf *out)
{
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    struct error e;

    store_lab_path(l, name, &path);
    buf_reset(out);
    if (file_read_at(AT_FDCWD, buf_str(&path), out, &e) != ERR_OK) {
        assert_int_equal(e.code, ERR_NOT_FOUND);
    }
}

static void
finds_every_damage(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf good = {.max = (size_t)16 << 20};
    CLEANUP(buf_fini) struct buf path = {.max = 256};
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct error e;

    fill(l, &line);
    assert_sound(l);
    store_lab_script(l, drop_triggers);
    assert_sound(l);
    store_lab_close(l);
    read_whole(l, "lockstep.db", &good);
    store_lab_path(l, "lockstep.db", &path);
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        int64_t checked = -1;
        err_t code;

        store_lab_open(l);
        store_lab_script(l, damages[i].sql);
        code = store_verify(l->store, &checked, &e);
        if (code != ERR_CORRUPT) {
            fail_msg("not found: %s", damages[i].sql);
        }
        if (strstr(e.msg, damages[i].word) == NULL) {
            fail_msg("no \"%s\" for %s: %s", damages[i].word, damages[i].sql, e.msg);
        }
        assert_int_equal(checked, -1);
        store_lab_close(l);
        assert_int_equal(
            file_write_at(AT_FDCWD, buf_str(&path), good.data, good.len, 0600, &e), ERR_OK);
    }
    store_lab_open(l);
    assert_sound(l);
}

/* One bit of each body in turn. */
static void
finds_a_flipped_bit_of_a_body(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    CLEANUP(db_cleanup) struct db *d = NULL;
    struct error e;
    int64_t count;

    fill(l, &line);
    d = store_lab_raw(l);
    count = store_lab_number(l, "SELECT count(*) FROM body");
    for (int64_t row = 0; row < count; row += 7) {
        static const char read_sql[] =
            "SELECT data FROM body ORDER BY objhash, kind LIMIT 1 OFFSET ?";
        static const char write_sql[] =
            "UPDATE body SET data = ? WHERE (objhash, kind) = (SELECT objhash, kind FROM body "
            "ORDER BY objhash, kind LIMIT 1 OFFSET ?)";
        struct query read = {0};
        struct query write = {0};
        uint8_t bytes[8192];
        const uint8_t *p;
        int64_t checked;
        size_t n;

        assert_int_equal(query_open(d, read_sql, &read, &e), ERR_OK);
        bind_i64(&read, 1, row);
        assert_int_equal(query_need(&read, "a body", &e), ERR_OK);
        p = col_blob(&read, 0, &n);
        assert_in_range(n, 1, sizeof bytes);
        memcpy(bytes, p, n);
        query_cleanup(&read);
        for (int flips = 0; flips < 2; flips++) {
            bytes[(size_t)row % n] ^= 0x08;
            assert_int_equal(query_open(d, write_sql, &write, &e), ERR_OK);
            bind_blob(&write, 1, bytes, n);
            bind_i64(&write, 2, row);
            assert_int_equal(query_run(&write, &e), ERR_OK);
            query_cleanup(&write);
            assert_int_equal(
                store_verify(l->store, &checked, &e), flips == 0 ? ERR_CORRUPT : ERR_OK);
        }
    }
}

static void
load_refuses_a_damaged_object(void **state)
{
    static const struct damage in_order[] = {
        {"UPDATE body SET data = x'7b7d' WHERE kind = 'pool'", "pool"},
        {"UPDATE body SET data = x'' WHERE kind = 'pool'", "pool"},
        {"DELETE FROM body WHERE kind = 'pool'", "pool"},
        {"UPDATE body SET data = x'00' WHERE kind = 'certificate'", "certificate"},
        {"UPDATE shared_object SET kind = 'above' WHERE kind = 'certificate'", "above"},
        {"DELETE FROM meta", "meta"},
    };
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct store_state st;
    struct error e;

    fill(l, &line);
    store_lab_reopen(l);
    for (size_t i = 0; i < ARRAY_LEN(in_order); i++) {
        store_lab_script(l, in_order[i].sql);
        assert_int_equal(store_load(l->store, &st, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.msg, in_order[i].word));
    }
}

/* The bytes are sound, but of another server. */
static void
load_refuses_an_object_in_place_of_another(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct store_state st;
    struct error e;

    fill(l, &line);
    store_lab_reopen(l);
    store_lab_script(
        l, "UPDATE body SET data = (SELECT data FROM body WHERE kind = 'server' LIMIT 1) "
           "WHERE objhash = (SELECT objhash FROM shared_object WHERE name = 'web1')");
    assert_int_equal(store_load(l->store, &st, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.msg, "hash differs"));
}

static void
content_refuses_what_is_not_of_the_commit(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct snapshot *found = NULL;
    struct commit c;
    struct error e;

    fill(l, &line);
    store_lab_script(l, drop_triggers);
    assert_int_equal(store_commit_find(l->store, "20", &c, &e), ERR_OK);
    store_lab_script(
        l,
        "DELETE FROM body WHERE objhash = (SELECT objhash FROM commit_entry WHERE seq = 20)");
    assert_int_equal(store_commit_content(l->store, &c.id, &found, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "revision 20"));
    store_lab_script(l, "DELETE FROM commit_entry WHERE seq = 20");
    assert_int_equal(store_commit_content(l->store, &c.id, &found, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.msg, "revision 20"));
    assert_null(found);
}

static void
load_refuses_objects_that_are_not_those_of_the_head(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    struct store_state st;
    struct error e;

    fill(l, &line);
    store_lab_close(l);
    store_lab_script(l, "DELETE FROM shared_object WHERE kind = 'pool'");
    store_lab_open(l);
    assert_int_equal(store_load(l->store, &st, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.msg, "head"));
}

/* -- secrets */

static bool
holds(const struct buf *b, const char *text, size_t n)
{
    return b->len > 0 && memmem(b->data, b->len, text, n) != NULL;
}

static void
secrets_are_not_in_the_files(void **state)
{
    static const char *const names[] = {
        "lockstep.db", "lockstep.db-wal", "lockstep.db-shm", "seal.key"};
    static const char key_hash[] =
        "5e17145e17145e17145e17145e17145e17145e17145e17145e17145e17145e17";
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf key_line = {.max = 256};
    CLEANUP(buf_fini) struct buf drafted_line = {.max = 256};
    CLEANUP(buf_fini) struct buf bytes = {.max = (size_t)64 << 20};
    struct draft_row row = {.kind = K_CERTIFICATE, .name = "cert9", .author = "admin maria"};
    struct store_state st;
    struct error e;

    fill(l, &key_line);
    store_lab_id(9, row.id);
    row.object = store_lab_certificate(9, &drafted_line);
    assert_int_equal(store_lab_draft_put(l, &row, &e), ERR_OK);
    object_unref(row.object);
    {
        CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
        CLEANUP(snapshot_cleanup)
        struct snapshot *to = store_lab_with(now, store_lab_key(8, key_hash));

        (void)store_lab_commit(l, to, NULL);
    }
    for (int i = 0; i < 2; i++) {
        bool found_server = false;

        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            read_whole(l, names[n], &bytes);
            assert_false(holds(&bytes, key_line.data, key_line.len));
            assert_false(holds(&bytes, drafted_line.data, drafted_line.len));
            assert_false(holds(&bytes, key_hash, strlen(key_hash)));
            assert_false(holds(&bytes, "SENTINEL", 8));
            found_server |= holds(&bytes, "192.0.2.1", 9);
        }
        /* What is no secret can be seen: the search does find things. */
        assert_true(found_server);
        store_lab_reopen(l);
    }
    assert_int_equal(store_load(l->store, &st, &e), ERR_OK);
    {
        const struct object *o = snapshot_by_name(st.shared, K_CERTIFICATE, "cert6");

        assert_non_null(o);
        assert_non_null(strstr(o->canonical, buf_str(&key_line)));
        assert_non_null(strstr(st.draft.rows[0].object->canonical, buf_str(&drafted_line)));
    }
    draft_list_free(&st.draft);
    snapshot_unref(st.shared);
    snapshot_unref(st.local);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(finds_every_damage),
        STORE_LAB_TEST(finds_a_flipped_bit_of_a_body),
        STORE_LAB_TEST(load_refuses_a_damaged_object),
        STORE_LAB_TEST(load_refuses_an_object_in_place_of_another),
        STORE_LAB_TEST(content_refuses_what_is_not_of_the_commit),
        STORE_LAB_TEST(load_refuses_objects_that_are_not_those_of_the_head),
        STORE_LAB_TEST(secrets_are_not_in_the_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
