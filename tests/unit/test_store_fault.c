/* SPDX-License-Identifier: Apache-2.0 */
/* Every write of SQLite fails once, at the first, second, ... call until one run gets through:
 * whatever fails, all is as before, and the store goes on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/arena.h"
#include "tests/support/member_lab.h"
#include "tests/support/store_copy.h"

static int calls_until_failure; /* 0: none fails */
static int fail_errno;
static bool failed;

static bool
fails_now(void)
{
    if (calls_until_failure > 0 && --calls_until_failure == 0) {
        failed = true;
        errno = fail_errno;
        return true;
    }
    return false;
}

static ssize_t
faulty_pwrite(int fd, const void *p, size_t bytes, off_t at)
{
    return fails_now() ? -1 : pwrite(fd, p, bytes, at);
}

static ssize_t
faulty_write(int fd, const void *p, size_t bytes)
{
    return fails_now() ? -1 : write(fd, p, bytes);
}

static int
faulty_ftruncate(int fd, off_t bytes)
{
    return fails_now() ? -1 : ftruncate(fd, bytes);
}

/* SQLite's library finds these two before those of libc. Nothing here needs a real sync. */
__attribute__((visibility("default"))) int
fsync(int fd)
{
    (void)fd;
    return fails_now() ? -1 : 0;
}

__attribute__((visibility("default"))) int
fdatasync(int fildes)
{
    (void)fildes;
    return fails_now() ? -1 : 0;
}

static void
set_call(const char *name, sqlite3_syscall_ptr call)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    assert_non_null(vfs);
    assert_int_equal(vfs->xSetSystemCall(vfs, name, call), SQLITE_OK);
}

static int
set_up_group(void **state)
{
    (void)state;
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
    set_call("pwrite", (sqlite3_syscall_ptr)faulty_pwrite);
    set_call("pwrite64", (sqlite3_syscall_ptr)faulty_pwrite);
    set_call("write", (sqlite3_syscall_ptr)faulty_write);
    set_call("ftruncate", (sqlite3_syscall_ptr)faulty_ftruncate);
    return 0;
}

static void
arm(int at, int errno_value)
{
    calls_until_failure = at;
    fail_errno = errno_value;
    failed = false;
}

static void
assert_stored(struct store_lab *l, const struct snapshot *shared, const struct snapshot *local)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP(snapshot_cleanup) struct snapshot *now_shared = NULL;
        CLEANUP(snapshot_cleanup) struct snapshot *now_local = NULL;
        struct error e;
        int64_t checked;

        if (i == 1) {
            store_lab_reopen(l);
        }
        now_shared = store_lab_shared(l);
        now_local = store_lab_local(l);
        assert_true(store_lab_equal(now_shared, shared));
        assert_true(store_lab_equal(now_local, local));
        assert_int_equal(store_verify(l->store, &checked, &e), ERR_OK);
    }
}

/* SQLite needs some calls only to be faster (the sync of a directory): their failure may stay
 * without effect, but nothing between all and nothing may be the effect. */
struct outcome {
    bool hit;     /* there was an at-th call */
    bool refused; /* and its failure was told */
};

/* Commits both containers with the at-th write failing. */
static struct outcome
commit_fails(int at, int errno_value, const char *word)
{
    struct store_lab l;
    CLEANUP(snapshot_cleanup) struct snapshot *first = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *local = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *local_to = NULL;
    struct commit_request q;
    struct commit head = {.rev = -1};
    int64_t local_rev = -1;
    struct error e;
    struct outcome out;
    err_t code;

    store_lab_init(&l);
    store_lab_open(&l);
    first = store_lab_shared(&l);
    local = store_lab_local(&l);
    shared = store_lab_with(first, store_lab_server(1, NULL, 8080));
    local_to = store_lab_with(local, store_lab_admin(2));
    q = store_lab_request(&l, shared, local_to);
    arm(at, errno_value);
    code = store_commit(l.store, &q, &head, &local_rev, &e);
    out = (struct outcome){failed, code != ERR_OK};
    arm(0, 0);
    if (out.refused) {
        assert_true(out.hit);
        assert_int_equal(code, ERR_IO);
        assert_non_null(strstr(e.msg, word));
        assert_int_equal(head.rev, -1);
        assert_int_equal(local_rev, -1);
        assert_stored(&l, first, local);
        code = store_commit(l.store, &q, &head, &local_rev, &e);
    }
    assert_int_equal(code, ERR_OK);
    assert_int_equal(head.rev, 2);
    assert_int_equal(local_rev, 2);
    assert_stored(&l, shared, local_to);
    store_lab_fini(&l);
    return out;
}

static void
failed_commit_changes_nothing(void **state)
{
    struct outcome out = {.hit = true};
    int refused = 0;

    (void)state;
    for (int at = 1; out.hit; at++) {
        out = commit_fails(at, EIO, "database");
        refused += out.refused ? 1 : 0;
    }
    assert_in_range(refused, 10, 500);
}

/* A node with a commit of its own takes over two commits of another. */
static struct outcome
adopt_fails(int at, int errno_value, const char *word)
{
    struct store_lab l;
    struct store_lab other;
    CLEANUP(store_copy_fini) struct store_copy c = {0};
    CLEANUP(snapshot_cleanup) struct snapshot *first = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *local = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *shared = NULL;
    struct adopt_request q;
    struct commit head = {.rev = -1};
    struct error e;
    struct outcome out;
    err_t code;

    store_lab_init(&other);
    other.now_ms += 1000;
    store_lab_open(&other);
    first = store_lab_shared(&other);
    shared = store_lab_with(first, store_lab_server(1, NULL, 8080));
    (void)store_lab_commit(&other, shared, NULL);
    snapshot_unref(first);
    store_lab_init(&l);
    store_lab_open(&l);
    first = store_lab_shared(&l);
    local = store_lab_local(&l);
    store_copy_take(&c, &other, &l);
    q = store_copy_request(&c);
    arm(at, errno_value);
    code = store_adopt(l.store, &q, &head, &e);
    out = (struct outcome){failed, code != ERR_OK};
    arm(0, 0);
    if (out.refused) {
        assert_int_equal(code, ERR_IO);
        assert_non_null(strstr(e.msg, word));
        assert_int_equal(head.rev, -1);
        assert_stored(&l, first, local);
        assert_int_equal(store_lab_number(&l, "SELECT count(*) FROM commit_log"), 1);
        assert_int_equal(store_lab_number(&l, "SELECT count(*) FROM discarded"), 0);
        code = store_adopt(l.store, &q, &head, &e);
    }
    assert_int_equal(code, ERR_OK);
    assert_int_equal(head.rev, 2);
    assert_stored(&l, shared, local);
    assert_int_equal(store_lab_number(&l, "SELECT count(*) FROM commit_log"), 3);
    store_lab_fini(&l);
    store_lab_fini(&other);
    return out;
}

static void
failed_adoption_changes_nothing(void **state)
{
    struct outcome out = {.hit = true};
    int refused = 0;

    (void)state;
    for (int at = 1; out.hit; at++) {
        out = adopt_fails(at, EIO, "database");
        refused += out.refused ? 1 : 0;
    }
    assert_in_range(refused, 10, 500);
}

static void
full_disk_is_named(void **state)
{
    (void)state;
    assert_true(commit_fails(1, ENOSPC, "the disk is full").refused);
    assert_true(adopt_fails(1, ENOSPC, "the disk is full").refused);
}

static void
failed_draft_changes_nothing(void **state)
{
    struct draft_row row = {.kind = K_SERVER, .name = "web1", .author = "admin maria"};
    int refused = 0;
    int at = 0;

    (void)state;
    store_lab_id(1, row.id);
    row.object = store_lab_server(1, NULL, 8080);
    do {
        struct store_state st;
        struct error e;
        struct store_lab l;
        err_t code;

        at++;
        store_lab_init(&l);
        store_lab_open(&l);
        arm(at, EIO);
        code = store_lab_draft_put(&l, &row, &e);
        calls_until_failure = 0;
        assert_true(code == ERR_OK || (failed && code == ERR_IO));
        store_lab_reopen(&l);
        assert_int_equal(store_load(l.store, &st, &e), ERR_OK);
        assert_int_equal(st.draft.count, code == ERR_OK ? 1 : 0);
        refused += code != ERR_OK ? 1 : 0;
        draft_list_free(&st.draft);
        snapshot_unref(st.shared);
        snapshot_unref(st.local);
        store_lab_fini(&l);
    } while (failed);
    object_unref(row.object);
    assert_in_range(refused, 3, 500);
}

/* One of the list goes, one gets another record, one is new. */
static void
failed_members_are_those_before(void **state)
{
    const struct member before[] = {member_lab_of(1, 1), member_lab_of(2, 1)};
    const struct member after[] = {
        member_lab_of(2, 2), member_lab_of(3, 1), member_lab_of(4, 1)};
    int refused = 0;
    int at = 0;

    (void)state;
    do {
        struct error e;
        struct store_lab l;
        err_t code;

        at++;
        store_lab_init(&l);
        store_lab_open(&l);
        assert_int_equal(store_member_put(l.store, before, ARRAY_LEN(before), &e), ERR_OK);
        arm(at, EIO);
        code = store_member_put(l.store, after, ARRAY_LEN(after), &e);
        calls_until_failure = 0;
        if (code != ERR_OK) {
            assert_true(failed);
            assert_int_equal(code, ERR_IO);
            member_lab_assert(&l, before, ARRAY_LEN(before));
            store_lab_reopen(&l);
            member_lab_assert(&l, before, ARRAY_LEN(before));
            refused++;
            code = store_member_put(l.store, after, ARRAY_LEN(after), &e);
        }
        assert_int_equal(code, ERR_OK);
        member_lab_assert(&l, after, ARRAY_LEN(after));
        store_lab_reopen(&l);
        member_lab_assert(&l, after, ARRAY_LEN(after));
        store_lab_fini(&l);
    } while (failed);
    assert_in_range(refused, 3, 500);
}

static void
failed_first_start_is_taken_up(void **state)
{
    int refused = 0;
    int at = 0;

    (void)state;
    do {
        struct error e;
        struct store_lab l;
        err_t code;

        at++;
        store_lab_init(&l);
        arm(at, EIO);
        code = store_open(l.dir, "node1", &l.clock, &l.store, &e);
        calls_until_failure = 0;
        if (code != ERR_OK) {
            assert_true(failed);
            assert_int_equal(code, ERR_IO);
            assert_null(l.store);
            store_lab_open(&l);
            refused++;
        }
        assert_int_equal(store_lab_number(&l, "SELECT count(*) FROM commit_log"), 1);
        store_lab_fini(&l);
    } while (failed);
    assert_in_range(refused, 10, 2000);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_commit_changes_nothing),
        cmocka_unit_test(failed_adoption_changes_nothing),
        cmocka_unit_test(full_disk_is_named),
        cmocka_unit_test(failed_draft_changes_nothing),
        cmocka_unit_test(failed_members_are_those_before),
        cmocka_unit_test(failed_first_start_is_taken_up),
    };

    return cmocka_run_group_tests(tests, set_up_group, NULL);
}
