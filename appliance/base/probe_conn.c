/* SPDX-License-Identifier: Apache-2.0 */
#include "base/probe_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

static err_t
conn_timed_out(const struct conn *c, struct error *e)
{
    return error_set(e, ERR_TIMEOUT, "no answer from %s in time", c->address);
}

err_t
conn_failed(const struct conn *c, int errno_value, const char *doing, struct error *e)
{
    return error_errno(e, ERR_UNAVAILABLE, errno_value, "cannot %s %s", doing, c->address);
}

err_t
conn_closed(const struct conn *c, struct error *e)
{
    return error_set(e, ERR_UNAVAILABLE, "%s closed the connection", c->address);
}

err_t
conn_wait(const struct conn *c, short events, short *ret_revents, struct error *e)
{
    struct pollfd p = {.fd = c->fd, .events = events};

    for (;;) {
        int64_t left = c->end_ms - clock_mono_ms(&clock_system);
        int n;

        if (left <= 0) {
            return conn_timed_out(c, e);
        }
        n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0) {
            *ret_revents = p.revents;
            return ERR_OK;
        }
        if (n < 0 && errno != EINTR) {
            return conn_failed(c, errno, "wait for", e);
        }
    }
}

/* True also where there is none to bind to. */
static bool
bind_source(const struct conn *c)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai = NULL;
    int rc;

    if (c->source == NULL) {
        return true;
    }
    if (getaddrinfo(c->source, NULL, &hints, &ai) != 0) {
        errno = EINVAL;
        return false;
    }
    rc = bind(c->fd, ai->ai_addr, ai->ai_addrlen);
    freeaddrinfo(ai);
    return rc == 0;
}

err_t
conn_connect_inet(struct conn *c, const char *address, int port, struct error *e)
{
    struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    struct addrinfo *ai = NULL;
    char service[12];
    socklen_t size = sizeof(int);
    short revents;
    int status = 0;
    err_t code;
    int rc;

    (void)snprintf(service, sizeof service, "%d", port);
    if (port < 1 || port > 65535 || getaddrinfo(address, service, &hints, &ai) != 0) {
        return error_set(
            e, ERR_INVALID, "%s port %d is not an address to connect to", address, port);
    }
    c->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    rc = c->fd < 0 || !bind_source(c) ? -1 : connect(c->fd, ai->ai_addr, ai->ai_addrlen);
    status = errno;
    freeaddrinfo(ai);
    if (rc == 0) {
        return ERR_OK;
    }
    if (c->fd < 0 || status != EINPROGRESS) {
        return conn_failed(c, status, "connect to", e);
    }
    code = conn_wait(c, POLLOUT, &revents, e);
    if (code != ERR_OK) {
        return code;
    }
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &status, &size) != 0) {
        status = errno;
    }
    /* Only a connection that was accepted can be reset; else it is refused. */
    return status == 0 || status == ECONNRESET || status == EPIPE
               ? ERR_OK
               : conn_failed(c, status, "connect to", e);
}

err_t
conn_connect_unix(struct conn *c, const char *path, struct error *e)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    int64_t left = c->end_ms - clock_mono_ms(&clock_system);
    struct timeval tv;

    if (len >= sizeof sun.sun_path) {
        return error_set(
            e, ERR_INVALID, "path of a socket is longer than %zu bytes: %s",
            sizeof sun.sun_path - 1, path);
    }
    if (left <= 0) {
        return conn_timed_out(c, e);
    }
    memcpy(sun.sun_path, path, len + 1);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        return conn_failed(c, errno, "connect to", e);
    }
    /* A non-blocking connect to a full backlog fails at once, and poll(2) cannot wait for
     * room in it; a blocking one waits as long as a send may. */
    tv.tv_sec = left / 1000;
    tv.tv_usec = left % 1000 * 1000;
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv) != 0) {
        return conn_failed(c, errno, "connect to", e);
    }
    if (connect(c->fd, (const struct sockaddr *)&sun, sizeof sun) != 0) {
        return errno == EAGAIN ? conn_timed_out(c, e) : conn_failed(c, errno, "connect to", e);
    }
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        return conn_failed(c, errno, "connect to", e);
    }
    return ERR_OK;
}

err_t
conn_send_all(const struct conn *c, const char *p, size_t bytes, struct error *e)
{
    while (bytes > 0) {
        short revents;
        ssize_t n = send(c->fd, p, bytes, MSG_NOSIGNAL);

        if (n >= 0) {
            p += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            err_t code = conn_wait(c, POLLOUT, &revents, e);

            if (code != ERR_OK) {
                return code;
            }
        } else if (errno != EINTR) {
            return conn_failed(c, errno, "send to", e);
        }
    }
    return ERR_OK;
}

err_t
conn_receive(const struct conn *c, char *p, size_t bytes, size_t *ret_bytes, struct error *e)
{
    for (;;) {
        short revents;
        ssize_t n = recv(c->fd, p, bytes, 0);

        if (n >= 0) {
            *ret_bytes = (size_t)n;
            return ERR_OK;
        }
        if (errno == EAGAIN) {
            err_t code = conn_wait(c, POLLIN, &revents, e);

            if (code != ERR_OK) {
                return code;
            }
        } else if (errno != EINTR) {
            return conn_failed(c, errno, "receive from", e);
        }
    }
}
