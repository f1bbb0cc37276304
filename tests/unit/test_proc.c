/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"
#include "tests/support/self.h"

/* wrap: pipe2 pidfd_open poll */

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __real_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

/* The errno that the next call gives; 0 = the call works. */
static int pipe2_errno;
static int pidfd_errno;
static int poll_errno;

static bool
fails(int *errno_value)
{
    if (*errno_value == 0) {
        return false;
    }
    errno = *errno_value;
    *errno_value = 0;
    return true;
}

int
__wrap_pipe2(int fds[2], int flags)
{
    return fails(&pipe2_errno) ? -1 : __real_pipe2(fds, flags);
}

int
__wrap_pidfd_open(pid_t pid, unsigned flags)
{
    return fails(&pidfd_errno) ? -1 : __real_pidfd_open(pid, flags);
}

int
__wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return fails(&poll_errno) ? -1 : __real_poll(fds, count, timeout);
}

static void
output_is(const char *how, int want_status, const char *want)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    buf_init(&out, 65536);
    assert_int_equal(self_run(how, SELF_LONG_MS, &out, &status, &e), ERR_OK);
    assert_string_equal(buf_str(&out), want);
    assert_int_equal(status, want_status);
}

static void
assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void
both_outputs_and_the_status_are_returned(void **state)
{
    (void)state;
    output_is("outputs", 7, "to output\nto error\nsecond argument\n");
    assert_no_children();
}

static void
environment_holds_nothing_of_ours(void **state)
{
    (void)state;
    assert_int_equal(setenv("LOCKSTEP_SECRET", "x", 1), 0);
    output_is(
        "env", 0,
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\n");
}

static void
descriptors_are_closed_and_input_is_empty(void **state)
{
    /* Inherited unless closed on purpose: without FD_CLOEXEC. */
    CLEANUP(fd_cleanup) int fd = dup(STDERR_FILENO);

    (void)state;
    assert_true(fd > STDERR_FILENO);
    output_is("fds", 0, "0 1 2\n");
    output_is("stdin", 0, "");
}

static void
signals_are_neither_blocked_nor_ignored(void **state)
{
    sigset_t all;
    sigset_t before;

    (void)state;
    (void)sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    output_is("ignore-and-run", 0, "");
    output_is("terminate", 128 + SIGTERM, "");
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void
works_when_our_standard_descriptors_are_closed(void **state)
{
    (void)state;
    output_is("closed", 0, "");
}

static void
output_over_the_maximum_is_dropped(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 1000);
    buf_puts(&out, "before ");
    assert_int_equal(self_run("much", SELF_LONG_MS, &out, &status, &e), ERR_OK);
    assert_int_equal(status, 3);
    assert_int_equal(out.len, 1000);
    assert_true(out.failed);
    assert_memory_equal(out.data, "before xxxx", 11);
}

static void
large_output_is_complete(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 10 << 20);
    assert_int_equal(self_run("much", SELF_LONG_MS, &out, &status, &e), ERR_OK);
    assert_int_equal(out.len, 1 << 20);
    assert_false(out.failed);
}

static void
closed_output_does_not_end_the_wait(void **state)
{
    (void)state;
    output_is("close-output", 4, "");
}

/* True when the process has ended, within a time that is only reached by a failure. */
static bool
has_ended(long pid)
{
    int64_t end = clock_mono_ms(&clock_system) + SELF_LONG_MS;
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    while (clock_mono_ms(&clock_system) < end) {
        CLEANUP(buf_fini) struct buf stat;

        buf_init(&stat, 4096);
        /* Nobody may be there to reap it: a zombie has ended, too. */
        if (file_read_at(AT_FDCWD, path, &stat, NULL) != ERR_OK ||
            strstr(buf_str(&stat), ") Z ") != NULL) {
            return true;
        }
        (void)__real_poll(NULL, 0, 5);
    }
    return false;
}

static long
printed_pid(const struct buf *out)
{
    long pid = 0;

    for (const char *p = buf_str(out); *p >= '0' && *p <= '9'; p++) {
        pid = pid * 10 + (*p - '0');
    }
    assert_true(pid > 1);
    return pid;
}

static void
deadline_kills_child_and_grandchild(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int64_t before = clock_mono_ms(&clock_system);
    int status;

    (void)state;
    buf_init(&out, 65536);
    assert_int_equal(self_run("hang-with-child", 1000, &out, &status, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.msg, ": did not end in time"));
    assert_memory_equal(e.msg, self_path(), strlen(self_path()));
    assert_true(clock_mono_ms(&clock_system) - before >= 1000);
    assert_true(clock_mono_ms(&clock_system) - before < SELF_LONG_MS);
    assert_int_equal(status, -1);
    assert_true(has_ended(printed_pid(&out)));
    assert_no_children();
}

static void
what_the_child_leaves_behind_is_killed(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 65536);
    assert_int_equal(self_run("leave-child", SELF_LONG_MS, &out, &status, &e), ERR_OK);
    assert_int_equal(status, 5);
    assert_true(has_ended(printed_pid(&out)));
}

static void
deadline_in_the_past_is_a_timeout(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 65536);
    assert_int_equal(self_run("hang", 0, &out, &status, &e), ERR_TIMEOUT);
    assert_int_equal(self_run("hang", -5, &out, &status, &e), ERR_TIMEOUT);
    assert_no_children();
}

static void
unstartable_program_is_unavailable(void **state)
{
    const char *const missing[] = {"/lockstep/no/such", NULL};
    const char *const directory[] = {"/tmp", NULL};
    CLEANUP(buf_fini) struct buf out = {.data = NULL};
    struct proc_result r = {.exit_status = -1};
    struct error e;
    pid_t pid = -1;

    (void)state;
    if (!self_spawn_reports()) {
        return;
    }
    buf_init(&out, 65536);
    assert_int_equal(proc_run(missing, SELF_LONG_MS, &out, &r, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.msg, "/lockstep/no/such: cannot start: No such file or directory");
    assert_int_equal(proc_run(directory, SELF_LONG_MS, &out, &r, NULL), ERR_UNAVAILABLE);
    assert_int_equal(r.exit_status, -1);
    assert_int_equal(proc_start(missing, &pid, &e), ERR_UNAVAILABLE);
    assert_int_equal(pid, -1);
    assert_no_children();
}

static void
failing_system_calls_leave_no_child(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 65536);
    pipe2_errno = EMFILE;
    assert_int_equal(self_run("hang", SELF_LONG_MS, &out, &status, &e), ERR_UNAVAILABLE);
    assert_no_children();
    poll_errno = ENOMEM;
    assert_int_equal(self_run("hang", SELF_LONG_MS, &out, &status, &e), ERR_IO);
    assert_no_children();
    poll_errno = EINTR;
    assert_int_equal(self_run("stdin", SELF_LONG_MS, &out, &status, &e), ERR_OK);
}

static void
works_without_a_pidfd(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    int status;

    (void)state;
    buf_init(&out, 65536);
    pidfd_errno = EPERM;
    output_is("close-output", 4, "");
    pidfd_errno = ENOSYS;
    assert_int_equal(self_run("hang", 100, &out, &status, &e), ERR_TIMEOUT);
    assert_no_children();
}

static void
no_descriptor_leaks(void **state)
{
    int before = dup(0);
    int after;

    (void)state;
    (void)close(before);
    for (int i = 0; i < 20; i++) {
        output_is("stdin", 0, "");
    }
    after = dup(0);
    (void)close(after);
    assert_int_equal(after, before);
}

static void
started_process_writes_to_our_standard_error(void **state)
{
    (void)state;
    output_is("start", 0, "to output\nto error\nsecond argument\n");
}

static void
relative_program_names_abort(void **state)
{
    (void)state;
    self_aborts("relative", "argv[0][0] == '/'");
}

static void
list_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *entry;
    int own = d != NULL ? dirfd(d) : -1;
    bool open[64] = {false};

    for (entry = d != NULL ? readdir(d) : NULL; entry != NULL; entry = readdir(d)) {
        int fd = entry->d_name[0] - '0';

        if (fd >= 0 && fd < 10 && fd != own) {
            open[fd] = true;
        }
    }
    for (int fd = 0; fd < 10; fd++) {
        if (open[fd]) {
            (void)dprintf(1, "%s%d", fd > 0 ? " " : "", fd);
        }
    }
    (void)dprintf(1, "\n");
    if (d != NULL) {
        (void)closedir(d);
    }
}

/* In the process group of the caller, unlike a child of proc_start. */
static void
leave_grandchild(void)
{
    CLEANUP(xfree_cleanup) char *path = xstrdup(self_path());
    char how[] = "hang";
    char *argv[] = {path, how, NULL};
    char *env[] = {NULL};
    pid_t pid = 0;

    if (posix_spawn(&pid, path, NULL, NULL, argv, env) == 0) {
        (void)dprintf(1, "%ld\n", (long)pid);
    }
}

NORETURN static void
hang(void)
{
    for (;;) {
        (void)pause();
    }
}

static int
run_with_closed_descriptors(void)
{
    CLEANUP(buf_fini) struct buf out;
    int status = -1;

    buf_init(&out, 65536);
    (void)close(0);
    (void)close(1);
    (void)close(2);
    if (self_run("outputs", SELF_LONG_MS, &out, &status, NULL) != ERR_OK || status != 7) {
        return 1;
    }
    return strcmp(buf_str(&out), "to output\nto error\nsecond argument\n") == 0 ? 0 : 2;
}

static int
start_and_wait(void)
{
    const char *const argv[] = {self_path(), "outputs", "second argument", NULL};
    pid_t pid = -1;
    int status = 0;

    /* What goes to standard output would be lost. */
    (void)close(1);
    if (proc_start(argv, &pid, NULL) != ERR_OK || waitpid(pid, &status, 0) != pid) {
        return 1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 2;
}

/* SIGTERM ends the grandchild although it is ignored here. */
static int
ignore_and_run(void)
{
    CLEANUP(buf_fini) struct buf out;
    int status = -1;
    struct sigaction ignore;

    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    buf_init(&out, 65536);
    if (sigaction(SIGTERM, &ignore, NULL) != 0 ||
        self_run("terminate", SELF_LONG_MS, &out, &status, NULL) != ERR_OK) {
        return 1;
    }
    return status == 128 + SIGTERM ? 0 : 2;
}

static int
run_relative(void)
{
    const char *const argv[] = {"true", NULL};
    pid_t pid;

    return proc_start(argv, &pid, NULL) == ERR_OK ? 0 : 3;
}

static void
write_much(void)
{
    char block[4096];

    memset(block, 'x', sizeof block);
    for (int i = 0; i < 256; i++) {
        if (write(1, block, sizeof block) != (ssize_t)sizeof block) {
            return;
        }
    }
}

static int
child_that_ends(const char *how, const char *argument)
{
    char byte;

    if (strcmp(how, "outputs") == 0) {
        (void)dprintf(1, "to output\n");
        (void)dprintf(2, "to error\n");
        (void)dprintf(1, "%s\n", argument);
        return 7;
    }
    if (strcmp(how, "env") == 0) {
        for (char **p = environ; *p != NULL; p++) {
            (void)dprintf(1, "%s\n", *p);
        }
        return 0;
    }
    if (strcmp(how, "fds") == 0) {
        list_descriptors();
        return 0;
    }
    if (strcmp(how, "stdin") == 0) {
        return read(0, &byte, 1) == 0 ? 0 : 1;
    }
    if (strcmp(how, "much") == 0) {
        write_much();
        return 3;
    }
    if (strcmp(how, "close-output") == 0) {
        (void)close(1);
        (void)close(2);
        (void)__real_poll(NULL, 0, 50);
        return 4;
    }
    leave_grandchild();
    return 5;
}

static int
child(const char *how, const char *argument)
{
    if (strcmp(how, "hang-with-child") == 0) {
        leave_grandchild();
        hang();
    }
    if (strcmp(how, "hang") == 0) {
        hang();
    }
    if (strcmp(how, "terminate") == 0) {
        (void)raise(SIGTERM);
        return 1;
    }
    if (strcmp(how, "closed") == 0) {
        return run_with_closed_descriptors();
    }
    if (strcmp(how, "start") == 0) {
        return start_and_wait();
    }
    if (strcmp(how, "ignore-and-run") == 0) {
        return ignore_and_run();
    }
    if (strcmp(how, "relative") == 0) {
        return run_relative();
    }
    return child_that_ends(how, argument);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_outputs_and_the_status_are_returned),
        cmocka_unit_test(environment_holds_nothing_of_ours),
        cmocka_unit_test(descriptors_are_closed_and_input_is_empty),
        cmocka_unit_test(signals_are_neither_blocked_nor_ignored),
        cmocka_unit_test(works_when_our_standard_descriptors_are_closed),
        cmocka_unit_test(output_over_the_maximum_is_dropped),
        cmocka_unit_test(large_output_is_complete),
        cmocka_unit_test(closed_output_does_not_end_the_wait),
        cmocka_unit_test(deadline_kills_child_and_grandchild),
        cmocka_unit_test(what_the_child_leaves_behind_is_killed),
        cmocka_unit_test(deadline_in_the_past_is_a_timeout),
        cmocka_unit_test(unstartable_program_is_unavailable),
        cmocka_unit_test(failing_system_calls_leave_no_child),
        cmocka_unit_test(works_without_a_pidfd),
        cmocka_unit_test(no_descriptor_leaks),
        cmocka_unit_test(started_process_writes_to_our_standard_error),
        cmocka_unit_test(relative_program_names_abort),
    };

    if (argc > 1) {
        return child(argv[1], argc > 2 ? argv[2] : "");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
