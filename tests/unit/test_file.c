/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

/* wrap: write fsync renameat fchmod read symlinkat syncfs */

ssize_t __real_write(int fd, const void *p, size_t bytes);
ssize_t __wrap_write(int fd, const void *p, size_t bytes);
ssize_t __real_read(int fd, void *p, size_t bytes);
ssize_t __wrap_read(int fd, void *p, size_t bytes);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_symlinkat(const char *target, int fd, const char *link);
int __wrap_symlinkat(const char *target, int fd, const char *link);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd);

/* The n-th faked call from now fails; 0 = none. */
static int fail_at;
static int calls_until_failure;
static bool failed;
static int fail_errno;
/* Reads and writes transfer one byte, and every second call is interrupted. */
static bool trickle;
static bool interrupt;

static bool
fails_now(void)
{
    if (trickle) {
        interrupt = !interrupt;
        if (interrupt) {
            errno = EINTR;
            return true;
        }
    }
    if (fail_at > 0 && --calls_until_failure == 0) {
        failed = true;
        errno = fail_errno;
        return true;
    }
    return false;
}

ssize_t
__wrap_write(int fd, const void *p, size_t bytes)
{
    return fails_now() ? -1 : __real_write(fd, p, trickle && bytes > 1 ? 1 : bytes);
}

ssize_t
__wrap_read(int fd, void *p, size_t bytes)
{
    return fails_now() ? -1 : __real_read(fd, p, trickle && bytes > 1 ? 1 : bytes);
}

int
__wrap_fsync(int fd)
{
    return !trickle && fails_now() ? -1 : __real_fsync(fd);
}

int
__wrap_renameat(int from, const char *a, int to, const char *b)
{
    return !trickle && fails_now() ? -1 : __real_renameat(from, a, to, b);
}

int
__wrap_fchmod(int fd, mode_t mode)
{
    return !trickle && fails_now() ? -1 : __real_fchmod(fd, mode);
}

int
__wrap_symlinkat(const char *target, int fd, const char *link)
{
    return !trickle && fails_now() ? -1 : __real_symlinkat(target, fd, link);
}

int
__wrap_syncfs(int fd)
{
    return fails_now() ? -1 : __real_syncfs(fd);
}

static void
fail_call(int n, int errno_value)
{
    fail_at = n;
    calls_until_failure = n;
    fail_errno = errno_value;
    failed = false;
}

static int dir = -1;
static char dir_path[] = "/tmp/lockstep-test-file-XXXXXX";

static int
make_dir(void **state)
{
    (void)state;
    memcpy(dir_path + sizeof dir_path - 7, "XXXXXX", 6);
    if (mkdtemp(dir_path) == NULL) {
        return -1;
    }
    dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int
remove_dir(void **state)
{
    (void)state;
    fail_at = 0;
    trickle = false;
    fd_cleanup(&dir);
    return file_remove_tree_at(AT_FDCWD, dir_path, NULL) == ERR_OK ? 0 : -1;
}

static void
write_file(const char *path, const char *text)
{
    struct error e;

    assert_int_equal(file_write_at(dir, path, text, strlen(text), 0644, &e), ERR_OK);
}

static void
assert_content(const char *path, const char *text)
{
    CLEANUP(buf_fini) struct buf b;
    struct error e;

    buf_init(&b, 1 << 20);
    assert_int_equal(file_read_at(dir, path, &b, &e), ERR_OK);
    assert_string_equal(buf_str(&b), text);
}

static int
entries(void)
{
    DIR *d = opendir(dir_path);
    const struct dirent *entry;
    int n = 0;

    assert_non_null(d);
    for (entry = readdir(d); entry != NULL; entry = readdir(d)) {
        n++;
    }
    (void)closedir(d);
    return n - 2;
}

static void
writes_and_reads_a_file(void **state)
{
    struct stat st;

    (void)state;
    write_file("a", "one");
    assert_content("a", "one");
    write_file("a", "second");
    assert_content("a", "second");
    assert_int_equal(entries(), 1);
    assert_int_equal(fstatat(dir, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void
mode_does_not_depend_on_the_umask(void **state)
{
    mode_t before = umask(0077);
    struct error e;
    struct stat st;

    (void)state;
    assert_int_equal(file_write_at(dir, "a", "x", 1, 0664, &e), ERR_OK);
    assert_int_equal(file_create_at(dir, "b", "x", 1, 0640, &e), ERR_OK);
    assert_int_equal(file_mkdir_at(dir, "d", 0755, &e), ERR_OK);
    (void)umask(before);
    assert_int_equal(fstatat(dir, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0664);
    assert_int_equal(fstatat(dir, "b", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(fstatat(dir, "d", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void
paths_may_have_directories(void **state)
{
    struct error e;
    char path[sizeof dir_path + 8];

    (void)state;
    assert_int_equal(file_mkdir_at(dir, "d", 0755, &e), ERR_OK);
    write_file("d/a", "x");
    assert_content("d/a", "x");
    (void)snprintf(path, sizeof path, "%s/d/b", dir_path);
    assert_int_equal(file_write_at(AT_FDCWD, path, "y", 1, 0600, &e), ERR_OK);
    assert_content("d/b", "y");
    assert_int_equal(file_write_at(dir, "no/a", "y", 1, 0600, &e), ERR_NOT_FOUND);
    assert_int_equal(
        file_write_at(AT_FDCWD, "/lockstep-no-such/a", "y", 1, 0600, &e), ERR_NOT_FOUND);
}

static void
rejects_paths_without_a_name(void **state)
{
    static const char *const bad[] = {"", "/", "a/", "a/.", "..", "."};
    struct error e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(file_write_at(dir, bad[i], "x", 1, 0600, &e), ERR_INVALID);
        assert_int_equal(file_symlink_at(dir, "x", bad[i], &e), ERR_INVALID);
    }
}

static void
longest_names_are_written(void **state)
{
    char name[257];
    struct error e;

    (void)state;
    memset(name, 'n', 256);
    name[255] = '\0';
    write_file(name, "x");
    assert_content(name, "x");
    name[255] = 'n';
    name[256] = '\0';
    assert_int_equal(file_write_at(dir, name, "x", 1, 0600, &e), ERR_INVALID);
    assert_int_equal(entries(), 1);
}

/* Every call that can fail, one after the other. */
static void
write_leaves_the_old_file_on_failure(void **state)
{
    struct error e;
    err_t code = ERR_IO;
    int n = 0;

    (void)state;
    write_file("a", "old");
    while (code != ERR_OK) {
        n++;
        fail_call(n, ENOSPC);
        code = file_write_at(dir, "a", "new", 3, 0600, &e);
        fail_at = 0;
        assert_int_equal(code, failed ? ERR_IO : ERR_OK);
        assert_int_equal(entries(), 1);
        if (failed) {
            assert_non_null(strstr(e.msg, "a: No space left on device"));
        }
        /* Call 5 is the sync of the directory, after the rename. */
        assert_content("a", n < 5 ? "old" : "new");
    }
    assert_int_equal(n, 6);
}

static void
write_of_nothing_truncates(void **state)
{
    struct error e;

    (void)state;
    write_file("a", "old");
    assert_int_equal(file_write_at(dir, "a", NULL, 0, 0600, &e), ERR_OK);
    assert_content("a", "");
}

static void
short_and_interrupted_calls_are_continued(void **state)
{
    (void)state;
    trickle = true;
    write_file("a", "some text, byte by byte");
    assert_content("a", "some text, byte by byte");
    trickle = false;
    assert_content("a", "some text, byte by byte");
}

static void
write_replaces_a_link_and_not_its_target(void **state)
{
    struct error e;

    (void)state;
    write_file("target", "keep");
    assert_int_equal(file_symlink_at(dir, "target", "link", &e), ERR_OK);
    write_file("link", "mine");
    assert_content("link", "mine");
    assert_content("target", "keep");
}

static void
create_refuses_an_existing_file(void **state)
{
    struct error e;

    (void)state;
    assert_int_equal(file_create_at(dir, "a", "one", 3, 0600, &e), ERR_OK);
    assert_int_equal(file_create_at(dir, "a", "two", 3, 0600, &e), ERR_CONFLICT);
    assert_content("a", "one");
    fail_call(2, ENOSPC);
    assert_int_equal(file_create_at(dir, "b", "one", 3, 0600, &e), ERR_IO);
    assert_false(file_exists_at(dir, "b"));
}

static void
read_stops_at_the_maximum(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    struct error e;

    (void)state;
    write_file("a", "0123456789");
    buf_init(&b, 12);
    buf_puts(&b, "xy");
    assert_int_equal(file_read_at(dir, "a", &b, &e), ERR_OK);
    assert_string_equal(buf_str(&b), "xy0123456789");
    buf_reset(&b);
    buf_puts(&b, "xyz");
    assert_int_equal(file_read_at(dir, "a", &b, &e), ERR_LIMIT);
    assert_string_equal(buf_str(&b), "xyz");
    assert_false(b.failed);
}

static void
read_of_a_file_without_a_size_is_bounded(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    struct error e;

    (void)state;
    buf_init(&b, 1 << 20);
    assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", &b, &e), ERR_OK);
    assert_non_null(strstr(buf_str(&b), "VmRSS"));
    buf_fini(&b);
    buf_init(&b, 100);
    assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", &b, &e), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_str(&b), "");
}

static void
read_reports_what_is_wrong(void **state)
{
    CLEANUP(buf_fini) struct buf b;
    struct error e;

    (void)state;
    buf_init(&b, 100);
    assert_int_equal(file_read_at(dir, "none", &b, &e), ERR_NOT_FOUND);
    assert_int_equal(file_read_at(dir, ".", &b, &e), ERR_DENIED);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(file_read_at(dir, "fifo", &b, &e), ERR_DENIED);
    write_file("a", "abc");
    assert_int_equal(symlinkat("a", dir, "link"), 0);
    assert_int_equal(file_read_at(dir, "link", &b, &e), ERR_DENIED);
    fail_call(1, EIO);
    assert_int_equal(file_read_at(dir, "a", &b, &e), ERR_IO);
    fail_at = 0;
    assert_string_equal(buf_str(&b), "");
    assert_false(buf_reserve(&b, 101));
    assert_int_equal(file_read_at(dir, "a", &b, &e), ERR_LIMIT);
}

static void
mkdir_accepts_an_existing_directory_only(void **state)
{
    struct error e;
    struct stat st;

    (void)state;
    assert_int_equal(file_mkdir_at(dir, "d", 0700, &e), ERR_OK);
    assert_int_equal(file_mkdir_at(dir, "d", 0755, &e), ERR_OK);
    assert_int_equal(fstatat(dir, "d", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    write_file("a", "x");
    assert_int_equal(file_mkdir_at(dir, "a", 0755, &e), ERR_CONFLICT);
    assert_int_equal(symlinkat("d", dir, "link"), 0);
    assert_int_equal(file_mkdir_at(dir, "link", 0755, &e), ERR_CONFLICT);
    assert_int_equal(file_mkdir_at(dir, "no/d", 0755, &e), ERR_NOT_FOUND);
    fail_call(1, EIO);
    assert_int_equal(file_mkdir_at(dir, "e", 0755, &e), ERR_IO);
}

static void
open_dir_follows_no_link(void **state)
{
    struct error e;
    int fd = -1;

    (void)state;
    assert_int_equal(file_mkdir_at(dir, "d", 0700, &e), ERR_OK);
    assert_int_equal(symlinkat("d", dir, "link"), 0);
    assert_int_equal(file_open_dir_at(dir, "link", &fd, &e), ERR_NOT_FOUND);
    assert_int_equal(fd, -1);
    assert_int_equal(file_open_dir_at(dir, "d", &fd, &e), ERR_OK);
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    assert_int_equal(file_sync_tree(fd, &e), ERR_OK);
    fail_call(1, EIO);
    assert_int_equal(file_sync_tree(fd, &e), ERR_IO);
    fd_cleanup(&fd);
    assert_int_equal(fd, -1);
    fd_cleanup(&fd);
}

static void
removes_a_tree_and_no_target_of_a_link(void **state)
{
    struct error e;

    (void)state;
    write_file("keep", "x");
    assert_int_equal(file_mkdir_at(dir, "t", 0700, &e), ERR_OK);
    assert_int_equal(file_mkdir_at(dir, "t/u", 0700, &e), ERR_OK);
    assert_int_equal(file_mkdir_at(dir, "t/u/v", 0700, &e), ERR_OK);
    for (int i = 0; i < 500; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "t/u/%d", i);
        assert_int_equal(file_create_at(dir, name, "x", 1, 0600, &e), ERR_OK);
    }
    assert_int_equal(symlinkat("../keep", dir, "t/link"), 0);
    assert_int_equal(symlinkat("..", dir, "t/up"), 0);
    assert_int_equal(file_remove_tree_at(dir, "t", &e), ERR_OK);
    assert_false(file_exists_at(dir, "t"));
    assert_content("keep", "x");
    assert_int_equal(file_remove_tree_at(dir, "t", &e), ERR_OK);
    assert_int_equal(file_remove_tree_at(dir, "keep", &e), ERR_OK);
    assert_int_equal(entries(), 0);
}

static void
removes_eight_levels_and_refuses_nine(void **state)
{
    char path[] = "1/2/3/4/5/6/7/8/9";
    struct error e;

    (void)state;
    for (size_t n = 1; n < sizeof path; n += 2) {
        path[n] = '\0';
        assert_int_equal(file_mkdir_at(dir, path, 0700, &e), ERR_OK);
        path[n] = '/';
    }
    assert_int_equal(file_remove_tree_at(dir, "1", &e), ERR_LIMIT);
    assert_int_equal(file_remove_tree_at(dir, "1/2", &e), ERR_OK);
    assert_int_equal(file_remove_tree_at(dir, "1", &e), ERR_OK);
}

static void
symlink_is_switched_or_left(void **state)
{
    struct error e;
    err_t code = ERR_IO;
    char target[16] = {0};
    int n = 0;

    (void)state;
    assert_int_equal(file_symlink_at(dir, "one", "current", &e), ERR_OK);
    while (code != ERR_OK) {
        n++;
        fail_call(n, EIO);
        code = file_symlink_at(dir, "two", "current", &e);
        fail_at = 0;
        assert_int_equal(code, failed ? ERR_IO : ERR_OK);
        assert_int_equal(entries(), 1);
        assert_int_equal(readlinkat(dir, "current", target, sizeof target), 3);
        /* Call 3 is the sync of the directory, after the rename. */
        assert_string_equal(target, n < 3 ? "one" : "two");
    }
    assert_int_equal(n, 4);
}

static void
exists_sees_a_dangling_link(void **state)
{
    (void)state;
    assert_false(file_exists_at(dir, "a"));
    assert_int_equal(symlinkat("nowhere", dir, "a"), 0);
    assert_true(file_exists_at(dir, "a"));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(writes_and_reads_a_file),
        FILE_TEST(mode_does_not_depend_on_the_umask),
        FILE_TEST(paths_may_have_directories),
        FILE_TEST(rejects_paths_without_a_name),
        FILE_TEST(longest_names_are_written),
        FILE_TEST(write_leaves_the_old_file_on_failure),
        FILE_TEST(write_of_nothing_truncates),
        FILE_TEST(short_and_interrupted_calls_are_continued),
        FILE_TEST(write_replaces_a_link_and_not_its_target),
        FILE_TEST(create_refuses_an_existing_file),
        FILE_TEST(read_stops_at_the_maximum),
        FILE_TEST(read_of_a_file_without_a_size_is_bounded),
        FILE_TEST(read_reports_what_is_wrong),
        FILE_TEST(mkdir_accepts_an_existing_directory_only),
        FILE_TEST(open_dir_follows_no_link),
        FILE_TEST(removes_a_tree_and_no_target_of_a_link),
        FILE_TEST(removes_eight_levels_and_refuses_nine),
        FILE_TEST(symlink_is_switched_or_left),
        FILE_TEST(exists_sees_a_dangling_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
