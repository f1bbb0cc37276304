/* SPDX-License-Identifier: Apache-2.0 */
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
#include "tests/support/member_lab.h"

static void
put(struct store_lab *l, const struct member *list, size_t count)
{
    struct error e;

    if (store_member_put(l->store, list, count, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
rekey(struct store_lab *l, const struct member *m, const struct former_key *former)
{
    struct error e;

    if (store_member_rekey(l->store, m, 1, former, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
assert_former(struct store_lab *l, const char *key, int64_t until_ms)
{
    struct former_key former = {.key = "?"};
    struct error e;

    assert_int_equal(store_former_key(l->store, &former, &e), ERR_OK);
    assert_string_equal(former.key, key);
    assert_int_equal(former.until_ms, until_ms);
}

static void
node_id_is_random_and_stays(void **state)
{
    struct store_lab *l = *state;
    struct store_lab other;
    char ids[3][MEMBER_ID_BYTES];
    struct error e;

    assert_int_equal(store_node_id(l->store, ids[0], &e), ERR_OK);
    assert_true(member_id_valid(ids[0]));
    store_lab_reopen(l);
    assert_int_equal(store_node_id(l->store, ids[1], &e), ERR_OK);
    assert_string_equal(ids[0], ids[1]);
    store_lab_init(&other);
    store_lab_open(&other);
    assert_int_equal(store_node_id(other.store, ids[2], &e), ERR_OK);
    assert_string_not_equal(ids[0], ids[2]);
    store_lab_fini(&other);
}

static void
there_are_none_at_first(void **state)
{
    member_lab_assert(*state, NULL, 0);
}

static void
records_survive_a_restart_sorted_by_id(void **state)
{
    struct store_lab *l = *state;
    struct member list[3] = {member_lab_of(3, 1), member_lab_of(1, 5), member_lab_of(2, 9)};
    struct member sorted[3] = {list[1], list[2], list[0]};
    struct error e;
    int64_t checked;

    list[2].gone = true;
    sorted[1].gone = true;
    list[0].key[0] = '\0';
    sorted[2].key[0] = '\0';
    l->now_ms = 5000;
    put(l, list, 3);
    for (int i = 0; i < 2; i++) {
        member_lab_assert(l, sorted, 3);
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_OK);
        store_lab_reopen(l);
    }
    assert_int_equal(
        store_lab_number(l, "SELECT count(*) FROM member WHERE peer_key IS NULL"), 1);
    assert_int_equal(store_lab_number(l, "SELECT min(at_ms) FROM member"), 5000);
}

static void
a_list_takes_the_place_of_the_one_before(void **state)
{
    struct store_lab *l = *state;
    struct member list[2] = {member_lab_of(1, 5), member_lab_of(2, 5)};

    put(l, list, 2);
    list[1].seq = 3;
    list[1].key[0] = '\0';
    memcpy(list[1].name, "other", 6);
    put(l, list, 2);
    member_lab_assert(l, list, 2);
    memset(list[1].key, 'k', MEMBER_KEY_BYTES - 1);
    put(l, &list[1], 1);
    member_lab_assert(l, &list[1], 1);
    store_lab_reopen(l);
    member_lab_assert(l, &list[1], 1);
}

static void
all_of_them_are_written_or_none(void **state)
{
    struct store_lab *l = *state;
    struct member good[2] = {member_lab_of(1, 4), member_lab_of(3, 7)};
    struct member bad[2] = {member_lab_of(1, 5), member_lab_of(2, 0)};
    struct error e;

    put(l, good, 2);
    assert_int_equal(store_member_put(l->store, bad, 2, &e), ERR_CONFLICT);
    member_lab_assert(l, good, 2);
    store_lab_reopen(l);
    member_lab_assert(l, good, 2);
}

static void
keys_are_not_in_the_files(void **state)
{
    static const char *const names[] = {"lockstep.db", "lockstep.db-wal", "lockstep.db-shm"};
    struct store_lab *l = *state;
    struct member m = member_lab_of(1, 5);

    rekey(l, &m, &(struct former_key){"SENTINEL-former", 60000});
    for (int i = 0; i < 2; i++) {
        bool found_name = false;

        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            CLEANUP(buf_fini) struct buf bytes = {.max = (size_t)16 << 20};
            CLEANUP(buf_fini) struct buf path = {.max = 256};
            struct error e;

            store_lab_path(l, names[n], &path);
            if (file_read_at(AT_FDCWD, buf_str(&path), &bytes, &e) != ERR_OK) {
                assert_int_equal(e.code, ERR_NOT_FOUND);
                continue;
            }
            assert_null(memmem(buf_str(&bytes), bytes.len, "SENTINEL", 8));
            found_name |= memmem(buf_str(&bytes), bytes.len, "proxy1", 6) != NULL;
        }
        assert_true(found_name);
        store_lab_reopen(l);
    }
}

static void
the_former_key_stays_until_there_is_another(void **state)
{
    struct store_lab *l = *state;
    struct member m = member_lab_of(1, 5);

    assert_former(l, "", 0);
    rekey(l, &m, &(struct former_key){"first", 60000});
    store_lab_reopen(l);
    assert_former(l, "first", 60000);
    put(l, &m, 1);
    assert_former(l, "first", 60000);
    memset(m.key, 'k', MEMBER_KEY_BYTES - 1);
    rekey(l, &m, &(struct former_key){"second", INT64_MAX});
    member_lab_assert(l, &m, 1);
    assert_former(l, "second", INT64_MAX);
    m.seq = 0;
    assert_int_equal(
        store_member_rekey(
            l->store, &m, 1, &(struct former_key){"third", 1}, &(struct error){0}),
        ERR_CONFLICT);
    assert_former(l, "second", INT64_MAX);
    m.seq = 6;
    rekey(l, &m, &(struct former_key){"", 0});
    assert_former(l, "", 0);
}

static void
damage_of_the_former_key_is_found(void **state)
{
    static const char *const damages[] = {
        "UPDATE former_key SET until_ms = until_ms + 1",
        "UPDATE former_key SET peer_key = zeroblob(300)",
        "UPDATE former_key SET peer_key = (SELECT peer_key FROM member)",
    };
    struct store_lab *l = *state;
    struct member m = member_lab_of(1, 5);

    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct former_key former;
        int64_t checked;
        struct error e;

        rekey(l, &m, &(struct former_key){"former", 60000});
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_OK);
        store_lab_script(l, damages[i]);
        assert_int_equal(store_former_key(l->store, &former, &e), ERR_CORRUPT);
        assert_string_equal(former.key, "");
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_CORRUPT);
    }
}

static void
damage_is_found(void **state)
{
    static const char *const damages[] = {
        "UPDATE member SET record = replace(record, '\"seq\":5', '\"seq\":6') WHERE seq = 5",
        "UPDATE member SET gone = 1",
        "UPDATE member SET seq = 6 WHERE seq = 5",
        "UPDATE member SET record = '{}'",
        "UPDATE member SET record = 'x'",
        "UPDATE member SET peer_key = x'00'",
        "UPDATE member SET peer_key = zeroblob(300)",
        /* The key of another: it is bound to its row. */
        "UPDATE member SET peer_key = (SELECT peer_key FROM member WHERE seq = 7) WHERE seq = 5",
    };
    struct store_lab *l = *state;
    struct member list[2] = {member_lab_of(1, 5), member_lab_of(2, 7)};

    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct member *found = NULL;
        size_t count = 0;
        int64_t checked;
        struct error e;

        put(l, list, 2);
        store_lab_script(l, damages[i]);
        if (store_members(l->store, &found, &count, &e) != ERR_CORRUPT) {
            fail_msg("not found: %s", damages[i]);
        }
        assert_null(found);
        assert_non_null(strstr(e.msg, list[0].id));
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_CORRUPT);
    }
    put(l, list, 2);
    member_lab_assert(l, list, 2);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(node_id_is_random_and_stays),
        STORE_LAB_TEST(there_are_none_at_first),
        STORE_LAB_TEST(records_survive_a_restart_sorted_by_id),
        STORE_LAB_TEST(a_list_takes_the_place_of_the_one_before),
        STORE_LAB_TEST(all_of_them_are_written_or_none),
        STORE_LAB_TEST(keys_are_not_in_the_files),
        STORE_LAB_TEST(the_former_key_stays_until_there_is_another),
        STORE_LAB_TEST(damage_of_the_former_key_is_found),
        STORE_LAB_TEST(damage_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
