/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mailbox.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"

#define MAILBOX_MAGIC 0x4d61696cu
#define THREADS_MAX   64
#define NAME_BYTES    16

struct job {
    mailbox_fn fn;
    void *ctx;
};

struct mailbox {
    uint32_t magic;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopped;
    char name[NAME_BYTES];
    struct job *jobs; /* ring */
    size_t max;
    size_t first;
    size_t count;
    int threads;
    pthread_t thread[THREADS_MAX];
};

/* Lives on the caller's stack. Its own lock, not the mailbox's: the mailbox may be freed as
 * soon as the job has run. */
struct call {
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
    mailbox_fn fn;
    void *ctx;
};

/* The mailbox that the running thread belongs to. */
static _Thread_local const struct mailbox *mailbox_of_thread;

static void *
run(void *ctx)
{
    struct mailbox *m = ctx;

    mailbox_of_thread = m;
    lock_take(&m->lock);
    for (;;) {
        struct job j;

        while (m->count == 0 && !m->stopped) {
            ASSERT(pthread_cond_wait(&m->wake, &m->lock) == 0);
        }
        if (m->count == 0) {
            break;
        }
        j = m->jobs[m->first];
        m->first = (m->first + 1) % m->max;
        m->count--;
        lock_give(&m->lock);
        j.fn(j.ctx);
        lock_take(&m->lock);
    }
    lock_give(&m->lock);
    return NULL;
}

static int
start_threads(struct mailbox *m, int threads)
{
    sigset_t all;
    sigset_t before;
    int rc = 0;

    /* A thread inherits the mask: it never runs with signals open. */
    (void)sigfillset(&all);
    ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    while (rc == 0 && m->threads < threads) {
        rc = pthread_create(&m->thread[m->threads], NULL, run, m);
        if (rc == 0) {
            (void)pthread_setname_np(m->thread[m->threads], m->name);
            m->threads++;
        }
    }
    ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return rc;
}

err_t
mailbox_open(
    const char *name, int threads, size_t max_queued, struct mailbox **ret, struct error *e)
{
    struct mailbox *m;
    int rc;

    ASSERT(strlen(name) < NAME_BYTES && threads >= 1 && threads <= THREADS_MAX);
    ASSERT(max_queued >= 1);
    m = xcalloc(1, sizeof *m);
    m->magic = MAILBOX_MAGIC;
    memcpy(m->name, name, strlen(name) + 1);
    m->jobs = xcalloc(max_queued, sizeof *m->jobs);
    m->max = max_queued;
    ASSERT(pthread_mutex_init(&m->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&m->wake, NULL) == 0);
    rc = start_threads(m, threads);
    if (rc != 0) {
        mailbox_close(m);
        return error_errno(e, ERR_UNAVAILABLE, rc, "cannot start the threads of %s", name);
    }
    *ret = m;
    return ERR_OK;
}

err_t
mailbox_post(struct mailbox *m, mailbox_fn fn, void *ctx, struct error *e)
{
    err_t code = ERR_OK;

    ASSERT(m != NULL && m->magic == MAILBOX_MAGIC);
    lock_take(&m->lock);
    if (m->stopped) {
        code = error_set(e, ERR_UNAVAILABLE, "%s is stopping", m->name);
    } else if (m->count == m->max) {
        code = error_set(e, ERR_BUSY, "%s has %zu jobs waiting", m->name, m->count);
    } else {
        m->jobs[(m->first + m->count) % m->max] = (struct job){fn, ctx};
        m->count++;
        ASSERT(pthread_cond_signal(&m->wake) == 0);
    }
    lock_give(&m->lock);
    return code;
}

static void
run_call(void *ctx)
{
    struct call *c = ctx;

    c->fn(c->ctx);
    lock_take(&c->lock);
    c->done = true;
    ASSERT(pthread_cond_signal(&c->done_cond) == 0);
    lock_give(&c->lock);
}

err_t
mailbox_call(struct mailbox *m, mailbox_fn fn, void *ctx, struct error *e)
{
    struct call c = {.fn = fn, .ctx = ctx};
    err_t code;

    ASSERT(mailbox_of_thread != m);
    ASSERT(pthread_mutex_init(&c.lock, NULL) == 0);
    ASSERT(pthread_cond_init(&c.done_cond, NULL) == 0);
    code = mailbox_post(m, run_call, &c, e);
    if (code == ERR_OK) {
        lock_take(&c.lock);
        while (!c.done) {
            ASSERT(pthread_cond_wait(&c.done_cond, &c.lock) == 0);
        }
        lock_give(&c.lock);
    }
    (void)pthread_cond_destroy(&c.done_cond);
    (void)pthread_mutex_destroy(&c.lock);
    return code;
}

void
mailbox_stop(struct mailbox *m)
{
    if (m == NULL) {
        return;
    }
    ASSERT(m->magic == MAILBOX_MAGIC);
    lock_take(&m->lock);
    m->stopped = true;
    ASSERT(pthread_cond_broadcast(&m->wake) == 0);
    lock_give(&m->lock);
}

void
mailbox_close(struct mailbox *m)
{
    if (m == NULL) {
        return;
    }
    ASSERT(mailbox_of_thread != m);
    mailbox_stop(m);
    for (int i = 0; i < m->threads; i++) {
        ASSERT(pthread_join(m->thread[i], NULL) == 0);
    }
    m->magic = 0;
    (void)pthread_cond_destroy(&m->wake);
    (void)pthread_mutex_destroy(&m->lock);
    free(m->jobs);
    free(m);
}
