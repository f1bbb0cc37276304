/* SPDX-License-Identifier: Apache-2.0 */
/* Mutex and condition variable as this program uses them: every failure is a programmer error.
 */
#ifndef LOCKSTEP_BASE_LOCK_H
#define LOCKSTEP_BASE_LOCK_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/attr.h"

static inline void
lock_init(pthread_mutex_t *m)
{
    ASSERT(pthread_mutex_init(m, NULL) == 0);
}

static inline void
lock_take(pthread_mutex_t *m)
{
    ASSERT(pthread_mutex_lock(m) == 0);
}

static inline void
lock_give(pthread_mutex_t *m)
{
    ASSERT(pthread_mutex_unlock(m) == 0);
}

/* A condition whose deadlines are on the monotonic clock. */
static inline void
lock_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;

    ASSERT(pthread_condattr_init(&attr) == 0);
    ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    ASSERT(pthread_cond_init(c, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
}

/* The point in time that is ms from now, for lock_wait. */
static inline struct timespec
lock_deadline(int64_t ms)
{
    struct timespec ts;

    ASSERT(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

/* False when the deadline has passed. */
static inline bool
lock_wait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *deadline)
{
    int rc = pthread_cond_timedwait(c, m, deadline);

    ASSERT(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

#endif
