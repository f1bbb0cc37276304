/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/dialogue.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define COMMAND_BYTES 4096

/* False when the dialogue is to end. Waits for fd (or for the time to pass, with fd -1). */
static bool
wait_for(const struct dialogue *d, int fd, short events, int timeout_ms)
{
    struct pollfd p[2] = {{.fd = d->end, .events = POLLIN}, {.fd = fd, .events = events}};

    return poll(p, 2, timeout_ms) >= 0 && p[0].revents == 0;
}

static bool
receive(const struct dialogue *d, int fd, char *command)
{
    size_t len = 0;

    while (len < COMMAND_BYTES - 1 && wait_for(d, fd, POLLIN, -1)) {
        ssize_t n = recv(fd, command + len, COMMAND_BYTES - 1 - len, 0);

        if (n <= 0) {
            break;
        }
        len += (size_t)n;
        command[len] = '\0';
        if (strchr(command, '\n') != NULL) {
            return true;
        }
    }
    return false;
}

static void
send_answer(const struct dialogue *d, int fd, const char *answer)
{
    size_t left = strlen(answer);

    while (left > 0 && wait_for(d, fd, POLLOUT, -1)) {
        ssize_t n = send(fd, answer, d->byte_ms > 0 ? 1 : left, MSG_NOSIGNAL);

        if (n <= 0) {
            return;
        }
        answer += n;
        left -= (size_t)n;
        if (d->byte_ms > 0 && !wait_for(d, -1, 0, d->byte_ms)) {
            return;
        }
    }
}

static void *
serve(void *ctx)
{
    const struct dialogue *d = ctx;

    while (wait_for(d, d->listener, POLLIN, -1)) {
        CLEANUP(fd_cleanup) int fd = accept(d->listener, NULL, NULL);
        char command[COMMAND_BYTES] = "";

        if (fd >= 0 && d->mute != 0) {
            (void)wait_for(d, -1, 0, -1);
        } else if (fd >= 0 && receive(d, fd, command)) {
            const char *answer = d->answer(d->ctx, command);

            if (answer != NULL) {
                send_answer(d, fd, answer);
            }
        }
    }
    return NULL;
}

void
dialogue_open(struct dialogue *d, const char *path)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    assert_true(strlen(path) < sizeof sun.sun_path);
    memcpy(sun.sun_path, path, strlen(path));
    (void)unlink(path);
    d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    d->end = eventfd(0, EFD_CLOEXEC);
    assert_true(d->end >= 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&sun, sizeof sun), 0);
    assert_int_equal(listen(d->listener, 16), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

void
dialogue_close(struct dialogue *d)
{
    uint64_t one = 1;

    assert_int_equal(write(d->end, &one, sizeof one), sizeof one);
    assert_int_equal(pthread_join(d->thread, NULL), 0);
    fd_cleanup(&d->listener);
    fd_cleanup(&d->end);
}
