/* SPDX-License-Identifier: Apache-2.0 */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "haproxy/span.h"

/* Who lived for so long starts without delay again. */
#define STEADY_MS 10000
/* Fields of /proc/PID/stat behind the name: the state is 3, the start time 22. */
#define STAT_STATE 3
#define STAT_START 22

static int64_t
now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

void
child_init(struct child *c, const char *name, const struct tunables *t)
{
    *c = (struct child){
        .name = name,
        .tunables = t,
        .pidfd = -1,
        .due_ms = CHILD_NEVER,
        .kill_ms = CHILD_NEVER,
        .delay_ms = t->restart_first_ms,
    };
}

void
child_fini(struct child *c)
{
    fd_cleanup(&c->pidfd);
}

err_t
process_ticks(pid_t pid, int64_t *ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    char path[64];
    struct span rest;
    struct span word = {.p = NULL};
    const char *end;
    bool ended = false;

    buf_init(&text, 4096);
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (file_read_at(AT_FDCWD, path, &text, NULL) != ERR_OK) {
        return error_set(e, ERR_NOT_FOUND, "there is no process %d", pid);
    }
    end = strrchr(buf_str(&text), ')'); /* the name may hold anything */
    rest = span_of(end != NULL ? end + 1 : "");
    for (int i = STAT_STATE; i <= STAT_START && span_word(&rest, &word); i++) {
        ended = ended || (i == STAT_STATE && span_is(word, "Z"));
    }
    return !ended && span_number(word, INT64_MAX, ret)
               ? ERR_OK
               : error_set(e, ERR_NOT_FOUND, "the process %d has ended", pid);
}

/* base/proc hands our standard error to whom it starts, so that is exchanged for a moment:
 * this program has one thread. */
static err_t
start_with_output(const char *const *argv, int output_fd, pid_t *ret_pid, struct error *e)
{
    CLEANUP(fd_cleanup) int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    err_t code;

    if (own < 0 || dup2(output_fd, STDERR_FILENO) < 0) {
        return error_errno(e, ERR_IO, errno, "cannot set the output of %s", argv[0]);
    }
    code = proc_start(argv, ret_pid, e);
    ASSERT(dup2(own, STDERR_FILENO) == STDERR_FILENO);
    return code;
}

static void
plan_next(struct child *c)
{
    c->due_ms = c->wanted ? now_ms() + c->delay_ms : CHILD_NEVER;
    c->delay_ms *= 2;
    if (c->delay_ms > c->tunables->restart_max_ms) {
        c->delay_ms = c->tunables->restart_max_ms;
    }
}

err_t
child_start(struct child *c, const char *const *argv, int output_fd, struct error *e)
{
    pid_t pid = 0;
    err_t code = output_fd >= 0 ? start_with_output(argv, output_fd, &pid, e)
                                : proc_start(argv, &pid, e);

    c->due_ms = CHILD_NEVER;
    if (code != ERR_OK) {
        plan_next(c);
        return code;
    }
    c->pid = pid;
    c->start_ms = now_ms();
    c->kill_ms = CHILD_NEVER;
    if (process_ticks(pid, &c->ticks, NULL) != ERR_OK) {
        c->ticks = 0; /* ended already: SIGCHLD is on its way */
    }
    return ERR_OK;
}

static err_t
check_process(pid_t pid, int64_t ticks, int64_t *ret_ticks, struct error *e)
{
    int64_t found = 0;
    err_t code = process_ticks(pid, &found, e);

    if (code == ERR_OK && ticks != 0 && found != ticks) {
        code = error_set(e, ERR_NOT_FOUND, "process %d is another one now", pid);
    }
    if (code == ERR_OK) {
        *ret_ticks = found;
    }
    return code;
}

err_t
child_adopt(struct child *c, pid_t pid, int64_t ticks, struct error *e)
{
    /* Before the check: from then on the descriptor means the process that was checked. */
    int pidfd = pidfd_open(pid, 0);
    err_t code = pidfd >= 0 ? check_process(pid, ticks, &c->ticks, e)
                            : error_set(e, ERR_NOT_FOUND, "there is no process %d", pid);

    if (code != ERR_OK) {
        fd_cleanup(&pidfd);
        return code;
    }
    c->pid = pid;
    c->pidfd = pidfd;
    c->start_ms = now_ms();
    c->due_ms = CHILD_NEVER;
    c->kill_ms = CHILD_NEVER;
    return ERR_OK;
}

/* A pid that was not waited for, or a pidfd, cannot mean another process. */
static void
send_signal(const struct child *c, int number)
{
    int rc =
        c->pidfd >= 0 ? pidfd_send_signal(c->pidfd, number, NULL, 0) : kill(c->pid, number);

    if (rc != 0 && errno != ESRCH) {
        log_warning("cannot send signal %d to %s (pid %d)", number, c->name, c->pid);
    }
}

void
child_end(struct child *c)
{
    if (c->pid == 0 || child_is_ending(c)) {
        return;
    }
    c->kill_ms = now_ms() + c->tunables->stop_ms;
    send_signal(c, SIGTERM);
    /* One that is stopped would not see it. */
    send_signal(c, SIGCONT);
}

void
child_tick(struct child *c)
{
    if (c->pid == 0 || c->kill_ms > now_ms()) {
        return;
    }
    log_warning("%s (pid %d) did not end in time and is killed", c->name, c->pid);
    /* Each child leads a process group of its own; HAProxy's workers are in its. */
    (void)kill(-c->pid, SIGKILL);
    send_signal(c, SIGKILL);
    c->kill_ms = now_ms() + c->tunables->stop_ms;
}

bool
child_is_due(const struct child *c)
{
    return c->pid == 0 && c->wanted && c->due_ms <= now_ms();
}

bool
child_is_ending(const struct child *c)
{
    return c->kill_ms != CHILD_NEVER;
}

void
child_due_now(struct child *c)
{
    c->wanted = true;
    c->due_ms = now_ms();
    c->delay_ms = c->tunables->restart_first_ms;
}

int64_t
child_deadline_ms(const struct child *c)
{
    if (c->pid != 0) {
        return c->kill_ms;
    }
    return c->wanted ? c->due_ms : CHILD_NEVER;
}

int64_t
child_ended(struct child *c)
{
    int64_t lived_ms = now_ms() - c->start_ms;

    fd_cleanup(&c->pidfd);
    c->pid = 0;
    c->ticks = 0;
    c->kill_ms = CHILD_NEVER;
    if (lived_ms >= STEADY_MS) {
        c->delay_ms = c->tunables->restart_first_ms;
    }
    plan_next(c);
    return lived_ms;
}
