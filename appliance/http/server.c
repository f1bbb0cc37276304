/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crypt.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/x509.h"
#include "http/auth.h"
#include "http/cache.h"
#include "http/dispatch.h"
#include "http/inner.h"
#include "http/reply.h"
#include "http/stream.h"
#include "http/wait.h"
#include "peer/trial.h"

#define POOL_THREADS 2
#define BACKLOG      256
#define DRAIN_MS     50
/* Header of a request and of its answer, and what of a body is not taken yet. */
#define CONNECTION_MEMORY ((size_t)32 << 10)
#define ETAG_HEX          20
/* Ours is the limit that counts; libmicrohttpd's is per thread. */
#define LIBRARY_CONNECTIONS (POOL_THREADS * (CONNECTIONS_MAX + 16))
#define TLS_PRIORITIES      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

int64_t
http_now_ms(const struct http *h)
{
    return clock_mono_ms(h->config.clock);
}

/* ---- what libmicrohttpd calls ---- */

static enum MHD_Result
on_accept(void *ctx, const struct sockaddr *addr, socklen_t len)
{
    struct http *h = ctx;

    (void)len;
    return connections_admit(&h->connections, addr) ? MHD_YES : MHD_NO;
}

static void
on_connection(
    void *ctx, struct MHD_Connection *mhd, void **socket_ctx,
    enum MHD_ConnectionNotificationCode what)
{
    struct http *h = ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *addr =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

        *socket_ctx =
            connection_add(&h->connections, fd->connect_fd, addr->client_addr, http_now_ms(h));
    } else if (*socket_ctx != NULL) {
        struct connection *c = *socket_ctx;

        if (c->linger) {
            pulse_linger(h->pulse, c->fd);
        }
        connection_remove(&h->connections, c);
        *socket_ctx = NULL;
    }
}

/* With the request line, before libmicrohttpd decodes it. */
static void *
on_target(void *ctx, const char *raw, struct MHD_Connection *mhd)
{
    struct http *h = ctx;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;

    /* The first request's header has time since the connection was made. */
    if (c->requested) {
        connection_enter(&h->connections, c, CONNECTION_HEADER, http_now_ms(h));
    }
    c->requested = true;
    return request_new(h, mhd, c, raw);
}

static void
on_completed(
    void *ctx, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode why)
{
    struct http *h = ctx;
    struct request *r = *request;

    (void)mhd;
    (void)why;
    if (r != NULL) {
        connection_enter(&h->connections, r->connection, CONNECTION_IDLE, http_now_ms(h));
        /* A connection that broke while it was suspended ends without another call. */
        r->suspended = false;
        request_free(r);
        *request = NULL;
    }
}

static enum MHD_Result
send_answer(struct request *r)
{
    return MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
}

static enum MHD_Result
on_header(struct request *r, const char *method, const char *version)
{
    struct connections *t = &r->http->connections;

    request_begin(r, method, version);
    r->phase = REQUEST_BODY;
    if (r->response != NULL && request_has_body(r)) {
        /* An answer at this point makes libmicrohttpd close the connection behind it. */
        connection_enter(t, r->connection, CONNECTION_ANSWER, http_now_ms(r->http));
        r->connection->linger = true;
        return send_answer(r);
    }
    connection_enter(t, r->connection, CONNECTION_BODY, http_now_ms(r->http));
    return MHD_YES;
}

static enum MHD_Result
on_request(
    void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *bytes, void **request)
{
    struct request *r = *request;

    (void)ctx;
    (void)mhd;
    (void)url;
    switch (r->phase) {
    case REQUEST_HEAD: return on_header(r, method, version);
    case REQUEST_BODY:
        if (*bytes > 0) {
            size_t taken = *bytes;

            *bytes = 0;
            return request_take(r, data, taken) ? MHD_YES : MHD_NO;
        }
        r->phase = REQUEST_WORK;
        connection_enter(
            &r->http->connections, r->connection, CONNECTION_ANSWER, http_now_ms(r->http));
        if (r->response == NULL) {
            dispatch_run(r);
        }
        return r->suspended ? MHD_YES : send_answer(r);
    case REQUEST_WORK: r->suspended = false; return send_answer(r);
    }
    return MHD_NO;
}

static void
on_pulse(void *ctx)
{
    struct http *h = ctx;

    wait_scan(h, false);
    streams_tick(h);
    connections_scan(&h->connections, http_now_ms(h));
}

/* ---- open and close ---- */

/* *ret_len: 0 when text is no address. */
static void
read_address(const char *text, int port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    *ret_len = 0;
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(ret, &in, sizeof in);
        *ret_len = sizeof in;
    } else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
        memcpy(ret, &in6, sizeof in6);
        *ret_len = sizeof in6;
    }
}

static err_t
listen_on(struct http *h, struct error *e)
{
    const char *address = h->config.address;
    static const int on = 1;
    struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
    struct sockaddr_in6 bound; /* the port stands in one place for both families */
    socklen_t len;
    int fd;

    read_address(address, h->config.port, &sa, &len);
    if (len == 0) {
        return error_set(e, ERR_INVALID, "%s is no IPv4 or IPv6 address", address);
    }
    connection_peer_text((const struct sockaddr *)&sa, h->address);
    fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    h->listen_fd = fd;
    if (fd < 0) {
        return error_errno(e, ERR_UNAVAILABLE, errno, "cannot make a socket");
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&sa, len) != 0 || listen(fd, BACKLOG) != 0) {
        return error_errno(
            e, ERR_UNAVAILABLE, errno, "cannot listen on %s port %d", address, h->config.port);
    }
    len = sizeof sa;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
        return error_errno(e, ERR_UNAVAILABLE, errno, "cannot read the port of a socket");
    }
    memcpy(&bound, &sa, sizeof bound);
    h->port = ntohs(bound.sin6_port);
    return ERR_OK;
}

static err_t
check_certificate(const struct http *h, struct error *e)
{
    const char *cert = h->config.cert_pem;
    const char *key = h->config.key_pem;
    err_t code = x509_check_key(cert, strlen(cert), key, strlen(key), e);

    return code != ERR_OK ? error_wrap(e, "certificate of the API") : ERR_OK;
}

/* libmicrohttpd's threads take no signals: main has signalfd. */
static err_t
start(struct http *h, struct error *e)
{
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    sigset_t all, before;

    union {
        const char *in;
        char *out;
    } cert = {.in = h->config.cert_pem}, key = {.in = h->config.key_pem},
      priorities = {.in = TLS_PRIORITIES};

    if (h->tls) {
        flags |= MHD_USE_TLS;
        tls[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert.out};
        tls[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, key.out};
        tls[2] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, priorities.out};
    }
    (void)sigfillset(&all);
    ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    h->daemon = MHD_start_daemon(
        flags, 0, on_accept, h, on_request, h, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)POOL_THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)LIBRARY_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (h->daemon == NULL) {
        return error_set(e, ERR_UNAVAILABLE, "cannot start the HTTP server");
    }
    return ERR_OK;
}

static void
document_init(struct http_document *d, const char *text)
{
    char hex[SHA256_HEX + 1];
    struct hash hash;

    d->text = text;
    d->bytes = strlen(text);
    hash = sha256(text, d->bytes);
    hash_hex(&hash, hex);
    (void)snprintf(d->etag, sizeof d->etag, "\"%.*s\"", ETAG_HEX, hex);
}

static struct http *
http_new(const struct http_config *config)
{
    struct http *h = xcalloc(1, sizeof *h);
    struct buf hex;
    uint8_t random[HTTP_INSTANCE_HEX / 2];

    h->magic = HTTP_MAGIC;
    h->config = *config;
    h->listen_fd = -1;
    h->tls = config->cert_pem != NULL;
    if (config->closed != NULL) {
        h->closed = *config->closed;
        h->config.closed = &h->closed;
    }
    buf_init(&hex, HTTP_INSTANCE_HEX);
    crypt_random(random, sizeof random);
    hex_put(&hex, random, sizeof random);
    memcpy(h->instance, buf_str(&hex), HTTP_INSTANCE_HEX);
    buf_fini(&hex);
    document_init(&h->schema, schema_json);
    document_init(&h->openapi, schema_openapi_json);
    connections_init(&h->connections, config->tunables);
    lock_init(&h->work_lock);
    lock_cond_init(&h->work_done);
    lock_init(&h->wait_lock);
    lock_init(&h->status_lock);
    cache_init(&h->cache);
    streams_open(h);
    return h;
}

static err_t
open_tries(struct http *h, struct error *e)
{
    err_t code = trials_open(&h->trials, e);

    if (code != ERR_OK) {
        return code;
    }
    code = mailbox_open("tries", HTTP_TRY_THREADS, HTTP_TRIES_MAX, &h->try_box, e);
    if (code != ERR_OK) {
        trials_close(h->trials);
    }
    return code;
}

/* No request is being worked on any more. */
static void
close_tries(struct http *h)
{
    if (h->try_box != NULL) {
        mailbox_close(h->try_box);
        trials_close(h->trials);
    }
}

err_t
http_open(const struct http_config *config, struct http **ret, struct error *e)
{
    struct http *h = http_new(config);
    err_t code = h->tls ? check_certificate(h, e) : ERR_OK;

    if (code == ERR_OK) {
        code = listen_on(h, e);
    }
    if (code == ERR_OK) {
        auth_name_cookie(h);
        code = pulse_open(on_pulse, h, &h->pulse, e);
    }
    if (code == ERR_OK) {
        code = open_tries(h, e);
    }
    if (code == ERR_OK) {
        code = start(h, e);
    }
    h->config.address = NULL;
    h->config.cert_pem = NULL;
    h->config.key_pem = NULL;
    if (code != ERR_OK) {
        http_close(h);
        return code;
    }
    *ret = h;
    return ERR_OK;
}

int
http_port(const struct http *h)
{
    ASSERT(h->magic == HTTP_MAGIC);
    return h->port;
}

void
http_close(struct http *h)
{
    if (h == NULL) {
        return;
    }
    ASSERT(h->magic == HTTP_MAGIC);
    if (h->daemon != NULL) {
        (void)MHD_quiesce_daemon(h->daemon);
    }
    dispatch_close(h);
    streams_close(h);
    do {
        wait_scan(h, true);
    } while (!dispatch_drain(h, DRAIN_MS));
    if (h->daemon != NULL) {
        MHD_stop_daemon(h->daemon);
    }
    close_tries(h);
    pulse_close(h->pulse);
    fd_cleanup(&h->listen_fd);
    streams_fini(h);
    connections_fini(&h->connections);
    ASSERT(h->waiting == NULL && h->body_bytes == 0);
    (void)pthread_cond_destroy(&h->work_done);
    (void)pthread_mutex_destroy(&h->work_lock);
    (void)pthread_mutex_destroy(&h->wait_lock);
    cache_fini(&h->cache);
    reply_shared_unref(h->status_reply);
    (void)pthread_mutex_destroy(&h->status_lock);
    h->magic = 0;
    free(h);
}
