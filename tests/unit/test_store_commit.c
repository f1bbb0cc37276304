/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "tests/support/store_lab.h"

/* The store's state equals these, now and after it was opened again. */
static void
assert_stored(struct store_lab *l, const struct snapshot *shared, const struct snapshot *local)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP(snapshot_cleanup) struct snapshot *now_shared = store_lab_shared(l);
        CLEANUP(snapshot_cleanup) struct snapshot *now_local = store_lab_local(l);
        struct error e = {0};
        int64_t checked;

        assert_true(store_lab_equal(now_shared, shared));
        assert_true(store_lab_equal(now_local, local));
        if (store_verify(l->store, &checked, &e) != ERR_OK) {
            fail_msg("%s", e.msg);
        }
        store_lab_reopen(l);
    }
}

/* Two servers and a pool with both. */
static struct snapshot *
small_site(const struct snapshot *from)
{
    static const char *const members[] = {"web1", "web2"};
    CLEANUP(snapshot_cleanup)
    struct snapshot *a = store_lab_with(from, store_lab_server(1, NULL, 8080));
    CLEANUP(snapshot_cleanup)
    struct snapshot *b = store_lab_with(a, store_lab_server(2, NULL, 8081));

    return store_lab_with(b, store_lab_pool(7, b, members, 2));
}

static void
reload_equals_what_was_committed(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(snapshot_cleanup) struct snapshot *more = NULL;
    struct commit head[2];

    head[0] = store_lab_commit(l, shared, NULL);
    assert_stored(l, shared, local);
    more = store_lab_with(shared, store_lab_server(2, "other", 9000));
    head[1] = store_lab_commit(l, more, NULL);
    assert_stored(l, more, local);
    assert_int_equal(head[0].rev, 2);
    assert_int_equal(head[1].rev, 3);
    assert_int_equal(head[1].parent_count, 1);
    assert_true(hash_equal(&head[1].parents[0], &head[0].id));
}

static void
large_objects_are_stored_compressed(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(buf_fini) struct buf line = {.max = 256};
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    struct snapshot *now = store_lab_shared(l);
    const char *names[60];
    char texts[60][8];
    size_t bytes;

    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        struct snapshot *from = now;

        (void)snprintf(texts[i], sizeof texts[i], "web%u", i);
        names[i] = texts[i];
        now = store_lab_with(from, store_lab_server(i, NULL, 80));
        snapshot_unref(from);
    }
    for (int i = 0; i < 2; i++) {
        struct snapshot *from = now;

        now = store_lab_with(
            from, i == 0 ? store_lab_pool(100, from, names, ARRAY_LEN(names))
                         : store_lab_certificate(101, &line));
        snapshot_unref(from);
    }
    (void)store_lab_commit(l, now, NULL);
    assert_int_equal(store_lab_number(l, "SELECT form FROM body WHERE kind = 'pool'"), 1);
    assert_int_equal(
        store_lab_number(l, "SELECT form FROM body WHERE kind = 'certificate'"), 3);
    assert_int_equal(
        store_lab_number(l, "SELECT max(form) FROM body WHERE kind = 'server'"), 0);
    bytes = snapshot_by_name(now, K_POOL, "pool100")->canonical_len;
    assert_in_range(
        store_lab_number(l, "SELECT length(data) FROM body WHERE kind = 'pool'"), 1, bytes / 4);
    assert_stored(l, now, local);
    snapshot_unref(now);
}

static void
commit_says_what_was_asked_for(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    struct commit_request q = store_lab_request(l, shared, NULL);
    struct commit head;
    struct commit found;
    struct hash wanted;
    int64_t local_rev;
    struct error e;

    q.summary = "two servers";
    q.at_ms = 1234567;
    q.confirm_until_ms = 1300000;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    store_lab_reopen(l);
    assert_int_equal(store_commit_find(l->store, "2", &found, &e), ERR_OK);
    assert_memory_equal(&found.id, &head.id, sizeof found.id);
    wanted = commit_compute_id(&found);
    assert_true(hash_equal(&wanted, &found.id));
    wanted = snapshot_fp(shared, SCHEMA_VERSION);
    assert_true(hash_equal(&wanted, &found.fp));
    assert_string_equal(found.node, "node1");
    assert_string_equal(found.author, "admin maria");
    assert_string_equal(found.summary, "two servers");
    assert_int_equal(found.at_ms, 1234567);
    assert_int_equal(found.confirm_until_ms, 1300000);
    assert_int_equal(found.schema_version, SCHEMA_VERSION);
    assert_int_equal(
        store_lab_number(
            l, "SELECT count(*) FROM audit WHERE author = 'admin maria' AND "
               "action = 'commit' AND at_ms = 1234567 AND text LIKE "
               "'revision 2@%: two servers'"),
        1);
}

static void
time_comes_from_the_clock_when_none_is_given(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    struct commit_request q = store_lab_request(l, shared, NULL);
    struct commit head;
    int64_t local_rev;
    struct error e;

    q.at_ms = 0;
    l->now_ms = 5000;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.at_ms, 5000);
}

static void
local_container_has_its_own_revision(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *before = store_lab_local(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *local = store_lab_with(before, store_lab_admin(3));
    struct commit_request q = store_lab_request(l, NULL, local);
    struct commit head;
    int64_t local_rev;
    struct error e;

    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.rev, 1);
    assert_int_equal(local_rev, 2);
    assert_stored(l, shared, local);
}

static void
both_containers_change_in_one_commit(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *before = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(snapshot_cleanup)
    struct snapshot *local = store_lab_with(before, store_lab_admin(3));
    struct commit_request q = store_lab_request(l, shared, local);
    struct commit head;
    int64_t local_rev;
    struct error e;

    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.rev, 2);
    assert_int_equal(local_rev, 2);
    assert_stored(l, shared, local);
}

static void
equal_content_makes_no_commit(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    struct commit_request q = store_lab_request(l, shared, local);
    struct commit head;
    int64_t local_rev;
    struct error e;

    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.rev, 1);
    assert_int_equal(local_rev, 1);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log"), 1);
}

static void
further_parents_make_a_commit_above_all_of_them(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    struct commit_request q = store_lab_request(l, shared, NULL);
    struct hash more[3] = {{{9}}};
    struct commit heads[2];
    struct commit head;
    int64_t local_rev;
    struct error e;

    heads[0] = store_lab_commit(l, shared, NULL);
    assert_int_equal(store_commit_find(l->store, "1", &heads[1], &e), ERR_OK);
    q.more_parents = more;
    q.more_parent_count = 1;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_NOT_FOUND);
    /* The head itself is not named twice. */
    more[0] = heads[0].id;
    more[1] = heads[1].id;
    q.more_parent_count = 2;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_int_equal(head.rev, 3);
    assert_int_equal(head.parent_count, 2);
    assert_true(hash_equal(&head.parents[0], &heads[0].id));
    assert_true(hash_equal(&head.parents[1], &heads[1].id));
    assert_true(hash_equal(&head.fp, &heads[0].fp));
    assert_stored(l, shared, local);
}

static void
names_can_be_swapped(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(snapshot_cleanup) struct snapshot *swapped = NULL;
    struct snapshot_edit *x = snapshot_edit_new(shared);
    struct error e;

    (void)store_lab_commit(l, shared, NULL);
    snapshot_edit_put(x, store_lab_server(1, "web2", 8080));
    snapshot_edit_put(x, store_lab_server(2, "web1", 8081));
    assert_int_equal(snapshot_seal(x, &swapped, &e), ERR_OK);
    (void)store_lab_commit(l, swapped, NULL);
    assert_stored(l, swapped, local);
}

static void
name_of_a_removed_object_is_free_again(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup)
    struct snapshot *a = store_lab_with(first, store_lab_server(1, NULL, 1));
    CLEANUP(snapshot_cleanup) struct snapshot *b = store_lab_without(a, K_SERVER, "web1");
    CLEANUP(snapshot_cleanup)
    struct snapshot *c = store_lab_with(b, store_lab_server(5, "web1", 1));

    (void)store_lab_commit(l, a, NULL);
    (void)store_lab_commit(l, c, NULL);
    assert_stored(l, c, local);
    (void)store_lab_commit(l, b, NULL);
    assert_stored(l, b, local);
}

static void
references_follow_their_object(void **state)
{
    static const char *const one[] = {"web2"};
    static const char *const another[] = {"web1"};
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(snapshot_cleanup)
    struct snapshot *less = store_lab_with(shared, store_lab_pool(7, shared, one, 1));
    CLEANUP(snapshot_cleanup)
    struct snapshot *renamed = store_lab_with(less, store_lab_server(2, "x", 1));
    CLEANUP(snapshot_cleanup)
    struct snapshot *other = store_lab_with(less, store_lab_pool(7, less, another, 1));
    CLEANUP(snapshot_cleanup) struct snapshot *none = store_lab_without(less, K_POOL, "pool7");
    CLEANUP(snapshot_cleanup) struct snapshot *bare = store_lab_without(none, K_SERVER, "web2");

    (void)store_lab_commit(l, shared, NULL);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM shared_ref"), 2);
    (void)store_lab_commit(l, less, NULL);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM shared_ref"), 1);
    (void)store_lab_commit(l, renamed, NULL);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM shared_ref"), 1);
    assert_stored(l, renamed, local);
    (void)store_lab_commit(l, other, NULL);
    assert_stored(l, other, local);
    (void)store_lab_commit(l, bare, NULL);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM shared_ref"), 0);
    assert_stored(l, bare, local);
}

/* -- failures */

static void
broken_reference_is_refused_as_a_whole(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(snapshot_cleanup)
    struct snapshot *broken = store_lab_without(shared, K_SERVER, "web2");
    struct commit_request q = store_lab_request(l, broken, NULL);
    struct commit head;
    int64_t local_rev;
    struct error e;

    (void)store_lab_commit(l, shared, NULL);
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_CONFLICT);
    assert_stored(l, shared, local);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log"), 2);
}

static void
texts_that_are_too_long_are_refused(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    struct commit_request q = store_lab_request(l, shared, NULL);
    char text[COMMIT_TEXT_BYTES + 1] = "";
    struct commit head;
    int64_t local_rev;
    struct error e;

    memset(text, 'x', COMMIT_TEXT_BYTES);
    q.summary = text;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_INVALID);
    q.summary = "";
    q.author = text;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_INVALID);
    q.author = "";
    q.node = text;
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_INVALID);
    assert_stored(l, first, local);
}

static void
another_program_that_writes_makes_it_busy(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    CLEANUP(db_cleanup) struct db *other = store_lab_raw(l);
    struct commit_request q = store_lab_request(l, shared, NULL);
    int64_t start_ms = clock_mono_ms(&clock_system);
    struct commit head;
    int64_t local_rev;
    struct error e;

    assert_int_equal(db_script(other, "BEGIN IMMEDIATE", &e), ERR_OK);
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_BUSY);
    assert_in_range(clock_mono_ms(&clock_system) - start_ms, DB_BUSY_MS - 200, 10000);
    assert_int_equal(db_script(other, "ROLLBACK", &e), ERR_OK);
    assert_stored(l, first, local);
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_OK);
    assert_stored(l, shared, local);
}

static void
head_moved_by_another_program_is_a_conflict(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *first = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *shared = small_site(first);
    struct commit_request q = store_lab_request(l, shared, NULL);
    struct commit head;
    int64_t local_rev;
    struct error e;

    store_lab_script(l, "UPDATE meta SET local_rev = local_rev + 1");
    assert_int_equal(store_commit(l->store, &q, &head, &local_rev, &e), ERR_CONFLICT);
    assert_int_equal(store_lab_number(l, "SELECT count(*) FROM commit_log"), 1);
}

static void
many_random_commits_stay_verifiable(void **state)
{
    struct store_lab *l = *state;
    CLEANUP(snapshot_cleanup) struct snapshot *now = store_lab_shared(l);
    CLEANUP(snapshot_cleanup) struct snapshot *local = store_lab_local(l);
    uint64_t random = 1;

    for (int i = 0; i < 60; i++) {
        struct snapshot *next = snapshot_ref(now);

        for (int edits = 0; edits < 3; edits++) {
            struct snapshot *from = next;
            char name[32];
            unsigned n;

            random = (random * 1103515245u + 12345u) & 0x7fffffffu;
            n = (unsigned)(random >> 16) % 20 + 1;
            (void)snprintf(name, sizeof name, "web%u", n);
            if ((random >> 8) % 3 == 0 && snapshot_by_name(from, K_SERVER, name) != NULL) {
                next = store_lab_without(from, K_SERVER, name);
            } else {
                next = store_lab_with(from, store_lab_server(n, NULL, (int)(random >> 20) + 1));
            }
            snapshot_unref(from);
        }
        (void)store_lab_commit(l, next, NULL);
        snapshot_unref(now);
        now = next;
    }
    assert_stored(l, now, local);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        STORE_LAB_TEST(reload_equals_what_was_committed),
        STORE_LAB_TEST(large_objects_are_stored_compressed),
        STORE_LAB_TEST(commit_says_what_was_asked_for),
        STORE_LAB_TEST(time_comes_from_the_clock_when_none_is_given),
        STORE_LAB_TEST(local_container_has_its_own_revision),
        STORE_LAB_TEST(both_containers_change_in_one_commit),
        STORE_LAB_TEST(equal_content_makes_no_commit),
        STORE_LAB_TEST(further_parents_make_a_commit_above_all_of_them),
        STORE_LAB_TEST(names_can_be_swapped),
        STORE_LAB_TEST(name_of_a_removed_object_is_free_again),
        STORE_LAB_TEST(references_follow_their_object),
        STORE_LAB_TEST(broken_reference_is_refused_as_a_whole),
        STORE_LAB_TEST(texts_that_are_too_long_are_refused),
        STORE_LAB_TEST(another_program_that_writes_makes_it_busy),
        STORE_LAB_TEST(head_moved_by_another_program_is_a_conflict),
        STORE_LAB_TEST(many_random_commits_stay_verifiable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
