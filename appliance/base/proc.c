/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define READ_BYTES     8192
#define LONG_SLICE_MS  60000
#define SHORT_SLICE_MS 20 /* without a pidfd, which tells the end at once */

/* A running child. */
struct child {
    pid_t pid;
    int pidfd; /* -1 = none */
    int output;
};

static void
pipe_cleanup(int (*fds)[2])
{
    fd_cleanup(&(*fds)[0]);
    fd_cleanup(&(*fds)[1]);
}

static int
set_attributes(posix_spawnattr_t *attr)
{
    sigset_t set;
    int rc;

    /* Our threads block all signals, and we ignore SIGPIPE: a child must not inherit that. */
    (void)sigemptyset(&set);
    rc = posix_spawnattr_setsigmask(attr, &set);
    (void)sigfillset(&set);
    if (rc == 0) {
        rc = posix_spawnattr_setsigdefault(attr, &set);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setpgroup(attr, 0);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setflags(
            attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    return rc;
}

static int
set_files(posix_spawn_file_actions_t *files, int output)
{
    /* Standard input last: output may be any of the three numbers. */
    int rc = posix_spawn_file_actions_adddup2(files, output, STDOUT_FILENO);

    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(files, output, STDERR_FILENO);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
    }
    return rc;
}

static int
spawn(const char *const *argv, int output, pid_t *ret_pid)
{
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char locale[] = "LC_ALL=C";
    char *const env[] = {path, locale, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;

    /* posix_spawn does not write to its argv, its type only says that it might. */
    union {
        const char *const *in;
        char *const *out;
    } args = {.in = argv};

    int rc;

    ASSERT(argv[0] != NULL && argv[0][0] == '/');
    rc = posix_spawn_file_actions_init(&files);
    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = set_attributes(&attr);
        if (rc == 0) {
            rc = set_files(&files, output);
        }
        if (rc == 0) {
            rc = posix_spawn(ret_pid, argv[0], &files, &attr, args.out, env);
        }
        (void)posix_spawnattr_destroy(&attr);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* Until the leader is reaped its group's number cannot be given to others. */
static int
kill_and_reap(pid_t pid)
{
    int status = 0;
    pid_t got;

    (void)kill(-pid, SIGKILL);
    do {
        got = waitpid(pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    ASSERT(got == pid);
    return status;
}

static void
keep(struct buf *out, const char *p, size_t bytes)
{
    size_t room = out->failed ? 0 : out->max - out->len;

    if (bytes > room) {
        buf_put(out, p, room);
        out->failed = true;
    } else {
        buf_put(out, p, bytes);
    }
}

/* False at end of file. */
static bool
read_output(int fd, struct buf *out)
{
    char chunk[READ_BYTES];
    ssize_t n = read(fd, chunk, sizeof chunk);

    if (n > 0) {
        keep(out, chunk, (size_t)n);
        return true;
    }
    return n < 0 && (errno == EINTR || errno == EAGAIN);
}

/* What the child wrote before its end is in the pipe already. */
static void
read_rest(int fd, struct buf *out)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, 0) == 1 && read_output(fd, out)) {
    }
}

static bool
has_ended(const struct child *c)
{
    siginfo_t info = {.si_pid = 0};

    /* WNOWAIT: its group is still to be killed before it is reaped. */
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == c->pid;
}

/* ERR_OK when the child ended by itself. */
static err_t
watch(const struct child *c, int64_t end_ms, struct buf *out, struct error *e)
{
    struct pollfd p[2] = {
        {.fd = c->pidfd, .events = POLLIN},
        {.fd = c->output, .events = POLLIN},
    };
    int64_t slice = c->pidfd >= 0 ? LONG_SLICE_MS : SHORT_SLICE_MS;

    while (!has_ended(c)) {
        int64_t left = end_ms - clock_mono_ms(&clock_system);
        int n;

        if (left <= 0) {
            return error_set(e, ERR_TIMEOUT, "did not end in time");
        }
        n = poll(p, 2, (int)(left < slice ? left : slice));
        if (n < 0 && errno != EINTR) {
            return error_errno(e, ERR_IO, errno, "cannot wait for it");
        }
        if (n > 0 && p[1].revents != 0 && !read_output(c->output, out)) {
            p[1].fd = -1;
        }
    }
    return ERR_OK;
}

static err_t
run(const char *const *argv, int64_t end_ms, struct buf *out, int *ret_status, struct error *e)
{
    CLEANUP(pipe_cleanup) int fds[2] = {-1, -1};
    struct child c;
    err_t code;
    int rc;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return error_errno(e, ERR_UNAVAILABLE, errno, "cannot make a pipe");
    }
    rc = spawn(argv, fds[1], &c.pid);
    if (rc != 0) {
        return error_errno(e, ERR_UNAVAILABLE, rc, "cannot start");
    }
    fd_cleanup(&fds[1]);
    /* Not everywhere to be had: some containers refuse it. */
    c.pidfd = pidfd_open(c.pid, 0);
    c.output = fds[0];
    code = watch(&c, end_ms, out, e);
    fd_cleanup(&c.pidfd);
    *ret_status = kill_and_reap(c.pid);
    read_rest(fds[0], out);
    return code;
}

err_t
proc_run(
    const char *const *argv, int64_t deadline_ms, struct buf *out, struct proc_result *ret,
    struct error *e)
{
    struct error reason;
    int status = 0;
    err_t code = run(argv, clock_mono_ms(&clock_system) + deadline_ms, out, &status, &reason);

    if (code != ERR_OK) {
        return error_set(e, code, "%s: %s", argv[0], reason.msg);
    }
    ret->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return ERR_OK;
}

err_t
proc_start(const char *const *argv, pid_t *ret_pid, struct error *e)
{
    pid_t pid;
    int rc = spawn(argv, STDERR_FILENO, &pid);

    if (rc != 0) {
        return error_errno(e, ERR_UNAVAILABLE, rc, "cannot start %s", argv[0]);
    }
    *ret_pid = pid;
    return ERR_OK;
}
