/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/lock.h"
#include "http/pulse.h"

#define LONG_MS 20000 /* only ever reached by a failure */

struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
};

static void
count(void *ctx)
{
    struct counter *c = ctx;

    lock_take(&c->lock);
    c->count++;
    (void)pthread_cond_signal(&c->changed);
    lock_give(&c->lock);
}

static void
nothing(void *ctx)
{
    (void)ctx;
}

static void
calls_again_and_again(void **state)
{
    struct counter c = {.count = 0};
    struct timespec deadline = lock_deadline(LONG_MS);
    int64_t from_ms = clock_mono_ms(&clock_system);
    struct pulse *p = NULL;

    (void)state;
    lock_init(&c.lock);
    lock_cond_init(&c.changed);
    assert_int_equal(pulse_open(count, &c, &p, NULL), ERR_OK);
    lock_take(&c.lock);
    while (c.count < 3) {
        assert_true(lock_wait(&c.changed, &c.lock, &deadline));
    }
    lock_give(&c.lock);
    pulse_close(p);
    assert_true(clock_mono_ms(&clock_system) - from_ms >= 2 * PULSE_MS - 50);
    (void)pthread_cond_destroy(&c.changed);
    (void)pthread_mutex_destroy(&c.lock);
}

static void
reads_what_still_comes(void **state)
{
    static const char piece[65536];
    struct pulse *p = NULL;
    int fds[2];
    char c;

    (void)state;
    assert_int_equal(pulse_open(nothing, NULL, &p, NULL), ERR_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pulse_linger(p, fds[0]);
    (void)close(fds[0]);
    /* Far more than the socket holds. */
    for (int i = 0; i < 64; i++) {
        assert_int_equal(send(fds[1], piece, sizeof piece, MSG_NOSIGNAL), sizeof piece);
    }
    /* Nothing more will be sent from there. */
    assert_int_equal(recv(fds[1], &c, 1, 0), 0);
    (void)close(fds[1]);
    pulse_close(p);
}

static void
gives_up_after_a_while(void **state)
{
    struct pulse *p = NULL;
    struct pollfd wait = {.events = POLLOUT};
    int fds[2];

    (void)state;
    assert_int_equal(pulse_open(nothing, NULL, &p, NULL), ERR_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pulse_linger(p, fds[0]);
    (void)close(fds[0]);
    wait.fd = fds[1];
    wait.events = 0; /* POLLHUP comes by itself when both ways are closed */
    assert_int_equal(poll(&wait, 1, LONG_MS), 1);
    assert_true((wait.revents & POLLHUP) != 0);
    (void)close(fds[1]);
    pulse_close(p);
}

static void
takes_only_so_many(void **state)
{
    struct pulse *p = NULL;
    int fds[PULSE_LINGERS + 1][2];

    (void)state;
    assert_int_equal(pulse_open(nothing, NULL, &p, NULL), ERR_OK);
    for (int i = 0; i <= PULSE_LINGERS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        pulse_linger(p, fds[i][0]);
        (void)close(fds[i][0]);
    }
    /* The last one was closed with its only descriptor. */
    assert_int_equal(send(fds[PULSE_LINGERS][1], "x", 1, MSG_NOSIGNAL), -1);
    assert_int_equal(send(fds[0][1], "x", 1, MSG_NOSIGNAL), 1);
    for (int i = 0; i <= PULSE_LINGERS; i++) {
        (void)close(fds[i][1]);
    }
    pulse_close(p);
    pulse_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_again_and_again),
        cmocka_unit_test(reads_what_still_comes),
        cmocka_unit_test(gives_up_after_a_while),
        cmocka_unit_test(takes_only_so_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
