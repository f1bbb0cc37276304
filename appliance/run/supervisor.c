/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/running.h"
#include "run/child.h"
#include "run/commands.h"
#include "run/control.h"
#include "run/record.h"
#include "run/service.h"

/* For the workers of a killed HAProxy. */
#define ORPHANS_MS 2000

enum poll_slot {
    POLL_SIGNAL,
    POLL_OUTPUT,
    POLL_HAPROXY,
    POLL_HELPER,
    POLL_DAEMON,
    POLL_CONTROL
};

#define POLL_FDS (POLL_CONTROL + CONTROL_POLL_FDS)

struct supervisor {
    const struct run_options *options;
    struct layout layout;
    int signal_fd;
    struct service haproxy;
    struct child helper;
    struct child daemon;
    struct control control;
    bool ending;
};

static const char *const our_files[] = {
    "run.sock",      "helper.sock", "master.sock",     "haproxy.sock", "probe.sock",
    "reload-window", "haproxy.out", SERVER_STATE_FILE, RECORD_NAME,    NULL,
};

static err_t
open_signals(int *ret_fd, struct error *e)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigaddset(&set, SIGHUP); /* the terminal went away, the appliance stays */
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return error_errno(e, ERR_INTERNAL, errno, "cannot block signals");
    }
    (void)sigdelset(&set, SIGPIPE);
    (void)sigdelset(&set, SIGHUP);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? ERR_OK : error_errno(e, ERR_INTERNAL, errno, "cannot take signals");
}

static err_t
open_all(struct supervisor *s, struct error *e)
{
    const struct run_options *o = s->options;
    err_t code = layout_open(&s->layout, o, e);

    if (code == ERR_OK) {
        code = open_signals(&s->signal_fd, e);
    }
    /* Workers whose master was killed become our children. */
    if (code == ERR_OK && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        code = error_errno(e, ERR_INTERNAL, errno, "cannot become the reaper");
    }
    if (code == ERR_OK) {
        code = service_open(&s->haproxy, o, &s->layout, e);
    }
    if (code == ERR_OK) {
        code = control_open(&s->control, o->run_dir, &s->haproxy, e);
    }
    return code;
}

static void
close_all(struct supervisor *s)
{
    control_close(&s->control);
    service_close(&s->haproxy);
    child_fini(&s->helper);
    child_fini(&s->daemon);
    fd_cleanup(&s->signal_fd);
    layout_close(&s->layout);
}

static void
write_record(const struct supervisor *s)
{
    const struct record r = {
        .haproxy = {s->haproxy.child.pid, s->haproxy.child.ticks},
        .helper = {s->helper.pid, s->helper.ticks},
        .daemon = {s->daemon.pid, s->daemon.ticks},
        .on_good = s->haproxy.on_good,
        .generation = s->haproxy.generation,
    };
    struct error e;

    if (record_write(s->layout.run_fd, &r, &e) != ERR_OK) {
        log_warning("%s", e.msg);
    }
}

/* What a killed lockstep-run left: HAProxy stays, the others are ended and started anew. */
static void
take_over(struct supervisor *s)
{
    struct record r = {.generation = 0};
    struct error e;

    if (record_read(s->layout.run_fd, &r, &e) != ERR_OK) {
        log_warning("%s is of no use: %s", RECORD_NAME, e.msg);
    }
    service_adopt(&s->haproxy, &r);
    if (r.helper.pid != 0 &&
        child_adopt(&s->helper, r.helper.pid, r.helper.ticks, NULL) == ERR_OK) {
        child_end(&s->helper);
    }
    if (r.daemon.pid != 0 &&
        child_adopt(&s->daemon, r.daemon.pid, r.daemon.ticks, NULL) == ERR_OK) {
        child_end(&s->daemon);
    }
}

static void
start_child(struct supervisor *s, struct child *c)
{
    struct commands_argv argv;
    struct error e;

    if (c == &s->helper) {
        commands_helper(s->options, &argv);
    } else {
        commands_daemon(s->options, &argv);
    }
    if (child_start(c, argv.items, -1, &e) != ERR_OK) {
        log_error("%s", e.msg);
        return;
    }
    log_info("%s started (pid %d)", c->name, c->pid);
}

/* One child at a time, HAProxy last. True when none is left. */
static bool
end_next(struct supervisor *s)
{
    struct child *const order[] = {&s->daemon, &s->helper, &s->haproxy.child};

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        order[i]->wanted = false;
        if (order[i]->pid != 0) {
            child_end(order[i]);
            return false;
        }
    }
    return true;
}

static bool
tick(struct supervisor *s)
{
    struct child *const children[] = {&s->helper, &s->daemon};
    bool changed = service_tick(&s->haproxy);

    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        child_tick(children[i]);
        if (child_is_due(children[i])) {
            start_child(s, children[i]);
            changed = true;
        }
    }
    return changed;
}

static void
ended(struct supervisor *s, struct child *c, const char *how)
{
    bool told = child_is_ending(c);
    pid_t pid = c->pid;

    if (c == &s->haproxy.child) {
        service_ended(&s->haproxy, how);
        return;
    }
    (void)child_ended(c);
    if (told && c->wanted) {
        child_due_now(c); /* it was one of the former lockstep-run's */
    }
    if (told) {
        log_info("%s (pid %d) %s", c->name, pid, how);
    } else {
        log_error("%s (pid %d) %s", c->name, pid, how);
    }
}

static struct child *
child_of(struct supervisor *s, pid_t pid)
{
    struct child *const all[] = {&s->haproxy.child, &s->helper, &s->daemon};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i]->pid == pid && all[i]->pidfd < 0) {
            return all[i];
        }
    }
    return NULL;
}

static void
describe(const siginfo_t *info, char *out, size_t bytes)
{
    if (info->si_code == CLD_EXITED) {
        (void)snprintf(out, bytes, "ended with status %d", info->si_status);
    } else {
        (void)snprintf(out, bytes, "was ended by signal %d", info->si_status);
    }
}

/* True when a child of ours was among them. */
static bool
reap(struct supervisor *s)
{
    bool changed = false;

    for (;;) {
        siginfo_t info = {.si_pid = 0};
        struct child *c;

        /* Looked at first: until it is reaped, its group cannot be another one's. */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
            return changed;
        }
        c = child_of(s, info.si_pid);
        if (c != NULL) {
            (void)kill(-info.si_pid, SIGKILL);
        }
        (void)waitpid(info.si_pid, NULL, 0);
        if (c != NULL) {
            char how[64];

            describe(&info, how, sizeof how);
            ended(s, c, how);
            changed = true;
        }
    }
}

static bool
take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    bool changed = false;

    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            changed = reap(s) || changed;
        } else if (!s->ending) {
            log_info("ending");
            s->ending = true;
            s->control.closing = true;
            s->haproxy.restarting = false;
        }
    }
    return changed;
}

static int64_t
min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int
timeout_ms(const struct supervisor *s)
{
    int64_t first = service_deadline_ms(&s->haproxy);
    int64_t left;

    first = min_ms(first, child_deadline_ms(&s->helper));
    first = min_ms(first, child_deadline_ms(&s->daemon));
    first = min_ms(first, control_deadline_ms(&s->control));
    if (first == CHILD_NEVER) {
        return -1;
    }
    left = first - clock_mono_ms(&clock_system);
    if (left < 0) {
        return 0;
    }
    return left > 60000 ? 60000 : (int)left;
}

static void
fill_fds(const struct supervisor *s, struct pollfd *fds)
{
    fds[POLL_SIGNAL] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    fds[POLL_OUTPUT] = (struct pollfd){.fd = s->haproxy.output.fd, .events = POLLIN};
    fds[POLL_HAPROXY] = (struct pollfd){.fd = s->haproxy.child.pidfd, .events = POLLIN};
    fds[POLL_HELPER] = (struct pollfd){.fd = s->helper.pidfd, .events = POLLIN};
    fds[POLL_DAEMON] = (struct pollfd){.fd = s->daemon.pidfd, .events = POLLIN};
    control_poll_fds(&s->control, fds + POLL_CONTROL);
}

static bool
serve_fds(struct supervisor *s, const struct pollfd *fds)
{
    struct child *const adopted[] = {&s->haproxy.child, &s->helper, &s->daemon};
    bool changed = fds[POLL_SIGNAL].revents != 0 && take_signals(s);

    if (fds[POLL_OUTPUT].revents != 0) {
        output_read(&s->haproxy.output);
    }
    for (size_t i = 0; i < ARRAY_LEN(adopted); i++) {
        if (fds[POLL_HAPROXY + i].revents != 0 && adopted[i]->pidfd >= 0) {
            ended(s, adopted[i], "ended");
            changed = true;
        }
    }
    return control_tick(&s->control, fds + POLL_CONTROL) || changed;
}

static err_t
loop(struct supervisor *s, struct error *e)
{
    struct pollfd fds[POLL_FDS];
    bool changed = true;

    while (!s->ending || !end_next(s)) {
        if (tick(s) || changed) {
            write_record(s);
        }
        fill_fds(s, fds);
        if (poll(fds, POLL_FDS, timeout_ms(s)) < 0 && errno != EINTR) {
            return error_errno(e, ERR_IO, errno, "cannot wait for events");
        }
        changed = serve_fds(s, fds);
    }
    return ERR_OK;
}

/* Orphans that became our children and were killed with their group. */
static void
reap_rest(const struct supervisor *s)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + ORPHANS_MS;
    struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};
    struct signalfd_siginfo info;
    pid_t pid;

    do {
        while (read(s->signal_fd, &info, sizeof info) > 0) {
        }
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0) {
            (void)poll(&p, 1, 100);
        }
    } while (pid >= 0 && clock_mono_ms(&clock_system) < end_ms);
}

err_t
supervise(const struct run_options *o, struct error *e)
{
    struct supervisor s = {
        .options = o,
        .layout = {.run_fd = -1, .generation_fd = -1, .lock_fd = -1},
        .signal_fd = -1,
        .haproxy.output = {.fd = -1, .writer_fd = -1},
        .haproxy.child.pidfd = -1,
        .control.listener = -1,
    };
    err_t code;

    child_init(&s.helper, "lockstep-helper", &o->tunables);
    child_init(&s.daemon, "lockstepd", &o->tunables);
    for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
        s.control.connections[i].fd = -1;
    }
    code = open_all(&s, e);
    if (code == ERR_OK) {
        child_due_now(&s.haproxy.child);
        child_due_now(&s.helper);
        if (!o->no_daemon) {
            child_due_now(&s.daemon);
        }
        take_over(&s);
        code = loop(&s, e);
        reap_rest(&s);
        layout_remove(&s.layout, our_files);
        log_info("ended");
    }
    close_all(&s);
    return code;
}
