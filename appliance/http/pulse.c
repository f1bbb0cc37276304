/* SPDX-License-Identifier: Apache-2.0 */
#include "http/pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/mailbox.h"

#define EVENTS_AT_ONCE 16
#define SCRATCH_BYTES  8192
#define READS_AT_ONCE  32 /* of one connection, so that the lock is not held for long */

struct lingering {
    int fd; /* -1: free */
    size_t bytes;
    int64_t until_ms;
};

struct pulse {
    pulse_fn fn;
    void *ctx;
    struct mailbox *box;
    int epoll_fd, stop_fd;
    pthread_mutex_t lock;
    struct lingering lingers[PULSE_LINGERS];
};

static void
linger_end(struct lingering *l)
{
    (void)close(l->fd);
    l->fd = -1;
}

/* True while more may come. */
static bool
linger_read(struct lingering *l)
{
    char scratch[SCRATCH_BYTES];

    for (int i = 0; i < READS_AT_ONCE && l->bytes < PULSE_LINGER_MAX; i++) {
        ssize_t n = recv(l->fd, scratch, sizeof scratch, MSG_DONTWAIT);

        if (n <= 0) {
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        }
        l->bytes += (size_t)n;
    }
    return l->bytes < PULSE_LINGER_MAX;
}

static void
lingers_read(struct pulse *p, int64_t now_ms)
{
    lock_take(&p->lock);
    for (size_t i = 0; i < PULSE_LINGERS; i++) {
        struct lingering *l = &p->lingers[i];

        if (l->fd >= 0 && (!linger_read(l) || now_ms >= l->until_ms)) {
            linger_end(l);
        }
    }
    lock_give(&p->lock);
}

static void
run(void *ctx)
{
    struct pulse *p = ctx;
    int64_t next_ms = 0;

    for (;;) {
        struct epoll_event events[EVENTS_AT_ONCE];
        int64_t now_ms = clock_mono_ms(&clock_system);
        int n;

        if (now_ms >= next_ms) {
            p->fn(p->ctx);
            next_ms = now_ms + PULSE_MS;
        }
        n = epoll_wait(p->epoll_fd, events, EVENTS_AT_ONCE, (int)(next_ms - now_ms));
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == p->stop_fd) {
                return;
            }
        }
        lingers_read(p, clock_mono_ms(&clock_system));
    }
}

static err_t
start(struct pulse *p, struct error *e)
{
    struct epoll_event event = {.events = EPOLLIN};
    err_t code;

    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = p->stop_fd;
    if (p->epoll_fd < 0 || p->stop_fd < 0 ||
        epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->stop_fd, &event) != 0) {
        return error_errno(e, ERR_UNAVAILABLE, errno, "cannot watch connections");
    }
    code = mailbox_open("http-pulse", 1, 1, &p->box, e);
    return code != ERR_OK ? code : mailbox_post(p->box, run, p, e);
}

err_t
pulse_open(pulse_fn fn, void *ctx, struct pulse **ret, struct error *e)
{
    struct pulse *p = xcalloc(1, sizeof *p);
    err_t code;

    p->fn = fn;
    p->ctx = ctx;
    lock_init(&p->lock);
    for (size_t i = 0; i < PULSE_LINGERS; i++) {
        p->lingers[i].fd = -1;
    }
    code = start(p, e);
    if (code != ERR_OK) {
        pulse_close(p);
        return code;
    }
    *ret = p;
    return ERR_OK;
}

void
pulse_close(struct pulse *p)
{
    static const uint64_t one = 1;

    if (p == NULL) {
        return;
    }
    if (p->stop_fd >= 0) {
        ASSERT(write(p->stop_fd, &one, sizeof one) == sizeof one);
    }
    mailbox_close(p->box);
    for (size_t i = 0; i < PULSE_LINGERS; i++) {
        if (p->lingers[i].fd >= 0) {
            linger_end(&p->lingers[i]);
        }
    }
    fd_cleanup(&p->stop_fd);
    fd_cleanup(&p->epoll_fd);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

void
pulse_linger(struct pulse *p, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct lingering *l = NULL;

    lock_take(&p->lock);
    for (size_t i = 0; i < PULSE_LINGERS && l == NULL; i++) {
        l = p->lingers[i].fd < 0 ? &p->lingers[i] : NULL;
    }
    if (l != NULL) {
        l->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        l->bytes = 0;
        l->until_ms = clock_mono_ms(&clock_system) + PULSE_LINGER_MS;
        event.data.fd = l->fd;
    }
    if (l != NULL && l->fd >= 0) {
        (void)shutdown(l->fd, SHUT_WR);
        if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, l->fd, &event) != 0) {
            linger_end(l);
        }
    }
    lock_give(&p->lock);
}
