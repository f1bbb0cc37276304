/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/attr.h"
#include "base/error.h"

#define HEAD_BYTES  8192
#define PIECE_BYTES 65536
#define WAIT_MS     10000 /* only ever reached by a failure */
#define LATENCIES   100000

struct client {
    int fd;
    SSL *ssl;
    char head[HEAD_BYTES];
    size_t head_len;
    size_t left; /* of the body */
    bool in_body;
};

struct run {
    const struct load *load;
    SSL_CTX *tls;
    struct client clients[LOAD_CONNECTIONS];
    size_t next; /* request */
    size_t answers;
};

static NORETURN void
give_up(const char *what, const char *text)
{
    (void)fprintf(stderr, "load: %s: %s\n", what, text);
    exit(1);
}

int64_t
load_now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double
load_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static void
open_client(struct run *r, struct client *c)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)r->load->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    static const int on = 1;

    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&in, sizeof in) != 0) {
        give_up("connect", strerrorname_np(errno));
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (r->load->tls) {
        c->ssl = SSL_new(r->tls);
        if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_connect(c->ssl) != 1) {
            give_up("TLS", "no handshake");
        }
    }
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        give_up("fcntl", strerrorname_np(errno));
    }
}

static void
close_client(struct client *c)
{
    SSL_free(c->ssl);
    (void)close(c->fd);
}

static void
send_next(struct run *r, struct client *c)
{
    const char *request = r->load->requests[r->next];
    size_t len = strlen(request);
    ssize_t n = c->ssl != NULL ? SSL_write(c->ssl, request, (int)len)
                               : send(c->fd, request, len, MSG_NOSIGNAL);

    /* The server has read the one before: there is room for all of it. */
    if (n != (ssize_t)len) {
        give_up("send", "the connection was closed");
    }
    r->next = (r->next + 1) % r->load->count;
}

/* Bytes, 0 when there are none now. */
static size_t
receive(struct client *c, char *piece)
{
    ssize_t n;

    if (c->ssl != NULL) {
        n = SSL_read(c->ssl, piece, PIECE_BYTES);
        if (n <= 0 && SSL_get_error(c->ssl, (int)n) == SSL_ERROR_WANT_READ) {
            return 0;
        }
    } else {
        n = recv(c->fd, piece, PIECE_BYTES, 0);
        if (n < 0 && errno == EAGAIN) {
            return 0;
        }
    }
    if (n <= 0) {
        give_up("receive", "the connection was closed");
    }
    return (size_t)n;
}

static size_t
content_length(const char *head)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *at = strcasestr(head, name);
    size_t n = 0;

    if (at == NULL) {
        give_up("an answer without a length", head);
    }
    for (at += sizeof name - 1; *at >= '0' && *at <= '9'; at++) {
        n = n * 10 + (size_t)(*at - '0');
    }
    return n;
}

/* How much of piece belongs to the header, which it may complete. */
static size_t
take_head(struct client *c, const char *piece, size_t bytes)
{
    size_t before = c->head_len;
    size_t room = sizeof c->head - 1 - before;
    size_t taken = bytes < room ? bytes : room;
    const char *end;

    memcpy(c->head + before, piece, taken);
    c->head_len += taken;
    c->head[c->head_len] = '\0';
    end = strstr(c->head + (before < 3 ? 0 : before - 3), "\r\n\r\n");
    if (end == NULL && taken < bytes) {
        give_up("header", "too long");
    }
    if (end == NULL) {
        return taken;
    }
    if (strncmp(c->head, "HTTP/1.1 200", 12) != 0) {
        give_up("answer", c->head);
    }
    c->in_body = true;
    c->left = content_length(c->head);
    return (size_t)(end + 4 - c->head) - before;
}

/* True: an answer is complete. One request is on its way at a time, so nothing is behind it. */
static bool
take(struct client *c, const char *piece, size_t bytes)
{
    size_t at = c->in_body ? 0 : take_head(c, piece, bytes);

    if (!c->in_body) {
        return false;
    }
    if (bytes - at > c->left) {
        give_up("answer", "longer than it says");
    }
    c->left -= bytes - at;
    if (c->left > 0) {
        return false;
    }
    c->in_body = false;
    c->head_len = 0;
    return true;
}

/* True: an answer is complete. */
static bool
read_client(struct client *c)
{
    static _Thread_local char piece[PIECE_BYTES];
    size_t n;

    while ((n = receive(c, piece)) > 0) {
        if (take(c, piece, n)) {
            return true;
        }
        if (c->ssl == NULL && n < PIECE_BYTES) {
            return false; /* spares a call */
        }
    }
    return false;
}

static int
open_clients(struct run *r, const struct load *l, size_t count)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    *r = (struct run){.load = l, .tls = l->tls ? SSL_CTX_new(TLS_client_method()) : NULL};
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &r->clients[i]}};

        open_client(r, &r->clients[i]);
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, r->clients[i].fd, &event) != 0) {
            give_up("epoll", strerrorname_np(errno));
        }
        send_next(r, &r->clients[i]);
    }
    return epoll_fd;
}

static void
close_clients(struct run *r, size_t count, int epoll_fd)
{
    for (size_t i = 0; i < count; i++) {
        close_client(&r->clients[i]);
    }
    SSL_CTX_free(r->tls);
    (void)close(epoll_fd);
}

static void
serve(struct run *r, int epoll_fd)
{
    struct epoll_event events[LOAD_CONNECTIONS];
    int n = epoll_wait(epoll_fd, events, LOAD_CONNECTIONS, WAIT_MS);

    if (n <= 0) {
        give_up("answer", "none comes");
    }
    for (int i = 0; i < n; i++) {
        struct client *c = events[i].data.ptr;

        if (read_client(c)) {
            r->answers++;
            send_next(r, c);
        }
    }
}

double
load_run(const struct load *l)
{
    struct run *r = calloc(1, sizeof *r);
    int64_t start_us;
    int64_t now_us;
    double rate;
    int epoll_fd;

    ASSERT(r != NULL);
    epoll_fd = open_clients(r, l, LOAD_CONNECTIONS);
    start_us = load_now_us();
    do {
        serve(r, epoll_fd);
        now_us = load_now_us();
    } while (now_us - start_us < l->ms * 1000);
    rate = (double)r->answers * 1e6 / (double)(now_us - start_us);
    close_clients(r, LOAD_CONNECTIONS, epoll_fd);
    free(r);
    return rate;
}

double
load_latency_us(const struct load *l)
{
    struct run *r = calloc(1, sizeof *r);
    double *times = calloc(LATENCIES, sizeof *times);
    int64_t end_us = load_now_us() + l->ms * 1000;
    int64_t start_us;
    size_t count = 0;
    double median;
    int epoll_fd;

    ASSERT(r != NULL && times != NULL);
    epoll_fd = open_clients(r, l, 1);
    start_us = load_now_us();
    while (count < LATENCIES && start_us < end_us) {
        size_t before = r->answers;
        int64_t now_us;

        while (r->answers == before) {
            serve(r, epoll_fd);
        }
        now_us = load_now_us();
        times[count++] = (double)(now_us - start_us);
        start_us = now_us;
    }
    median = load_median(times, count);
    close_clients(r, 1, epoll_fd);
    free(times);
    free(r);
    return median;
}
