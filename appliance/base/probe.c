/* SPDX-License-Identifier: Apache-2.0 */
#include "base/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/probe_conn.h"

#define REQUEST_BYTES ((size_t)16 << 10)
#define STATUS_BYTES  13 /* "HTTP/1.1 200 " */
#define CHUNK_BYTES   8192
#define PROXY_UNKNOWN "PROXY UNKNOWN\r\n"

/* TLS between two memory buffers, so that all writes to the socket are ours: OpenSSL's own
 * could raise SIGPIPE. */
struct tls {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in;  /* owned by ssl */
    BIO *out; /* owned by ssl */
};

static void
tls_cleanup(struct tls *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    ERR_clear_error();
}

static bool
is_address(const char *host)
{
    unsigned char out[sizeof(struct in6_addr)];

    return host[0] == '[' || inet_pton(AF_INET, host, out) == 1 ||
           inet_pton(AF_INET6, host, out) == 1;
}

static err_t
tls_open(struct tls *t, const char *host, struct error *e)
{
    /* A Host header may have a port, the server name indication has none. */
    int name_len = (int)strcspn(host, ":");
    char name[256];

    t->ctx = SSL_CTX_new(TLS_client_method());
    if (t->ctx == NULL) {
        return error_set(e, ERR_INTERNAL, "cannot set up TLS");
    }
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_NONE, NULL);
    /* Whatever the server speaks will do: the question is whether it answers. */
    SSL_CTX_set_security_level(t->ctx, 0);
    t->ssl = SSL_new(t->ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (t->ssl == NULL || t->in == NULL || t->out == NULL) {
        BIO_free(t->in);
        BIO_free(t->out);
        return error_set(e, ERR_INTERNAL, "cannot set up TLS");
    }
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    if (name_len > 0 && (size_t)name_len < sizeof name && !is_address(host)) {
        (void)snprintf(name, sizeof name, "%.*s", name_len, host);
        if (SSL_set_tlsext_host_name(t->ssl, name) != 1) {
            return error_set(e, ERR_INVALID, "%s cannot be asked for by TLS", host);
        }
    }
    return ERR_OK;
}

static err_t
tls_flush(struct tls *t, const struct conn *c, struct error *e)
{
    char chunk[CHUNK_BYTES];
    int n = BIO_read(t->out, chunk, (int)sizeof chunk);

    while (n > 0) {
        err_t code = conn_send_all(c, chunk, (size_t)n, e);

        if (code != ERR_OK) {
            return code;
        }
        n = BIO_read(t->out, chunk, (int)sizeof chunk);
    }
    return ERR_OK;
}

static err_t
tls_fill(struct tls *t, const struct conn *c, struct error *e)
{
    char chunk[CHUNK_BYTES];
    size_t n = 0;
    err_t code = conn_receive(c, chunk, sizeof chunk, &n, e);

    if (code != ERR_OK) {
        return code;
    }
    if (n == 0) {
        return conn_closed(c, e);
    }
    if (BIO_write(t->in, chunk, (int)n) != (int)n) {
        return error_set(e, ERR_INTERNAL, "cannot keep what %s sent", c->address);
    }
    return ERR_OK;
}

/* What to do about the result of an SSL call that was not a success; ERR_OK = call again. */
static err_t
tls_proceed(struct tls *t, const struct conn *c, int result, struct error *e)
{
    int why = SSL_get_error(t->ssl, result);
    const char *reason;

    if (why == SSL_ERROR_WANT_READ) {
        err_t code = tls_flush(t, c, e);

        return code != ERR_OK ? code : tls_fill(t, c, e);
    }
    if (why == SSL_ERROR_ZERO_RETURN) {
        return conn_closed(c, e);
    }
    reason = ERR_reason_error_string(ERR_peek_last_error());
    return error_set(
        e, ERR_INVALID, "%s does not speak TLS with us: %s", c->address,
        reason != NULL ? reason : "no reason given");
}

static err_t
tls_send(struct tls *t, const struct conn *c, const struct buf *request, struct error *e)
{
    for (;;) {
        int n;
        err_t code;

        ERR_clear_error();
        n = SSL_write(t->ssl, request->data, (int)request->len);
        if (n > 0) {
            return tls_flush(t, c, e);
        }
        code = tls_proceed(t, c, n, e);
        if (code != ERR_OK) {
            return code;
        }
    }
}

/* As conn_receive. */
static err_t
tls_receive(
    struct tls *t, const struct conn *c, char *p, size_t bytes, size_t *ret_bytes,
    struct error *e)
{
    for (;;) {
        int n;
        err_t code;

        ERR_clear_error();
        n = SSL_read(t->ssl, p, (int)bytes);
        if (n > 0) {
            *ret_bytes = (size_t)n;
            return ERR_OK;
        }
        code = tls_proceed(t, c, n, e);
        if (code != ERR_OK) {
            return code;
        }
    }
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True when line may still become a status line, len bytes of it being there. */
static bool
may_be_status_line(const char *line, size_t len)
{
    static const char form[] = "HTTP/1.d ddd";

    for (size_t i = 0; i < len && i < sizeof form - 1; i++) {
        bool fits = form[i] == 'd' ? is_digit(line[i]) : line[i] == form[i];

        if (!fits) {
            return false;
        }
    }
    return len < STATUS_BYTES || line[12] == ' ' || line[12] == '\r' || line[12] == '\n';
}

static err_t
receive_any(
    struct tls *t, const struct conn *c, char *p, size_t bytes, size_t *ret_bytes,
    struct error *e)
{
    return t != NULL ? tls_receive(t, c, p, bytes, ret_bytes, e)
                     : conn_receive(c, p, bytes, ret_bytes, e);
}

/* What follows the status line, up to the empty line. */
static err_t
read_head(struct tls *t, const struct conn *c, struct buf *out, struct error *e)
{
    while (strstr(buf_str(out), "\r\n\r\n") == NULL) {
        char chunk[CHUNK_BYTES];
        size_t n = 0;
        err_t code = receive_any(t, c, chunk, sizeof chunk, &n, e);

        if (code != ERR_OK) {
            return code;
        }
        if (n == 0) {
            return conn_closed(c, e);
        }
        buf_put(out, chunk, n);
        if (out->failed || memchr(chunk, '\0', n) != NULL) {
            return error_set(e, ERR_INVALID, "%s does not answer with HTTP", c->address);
        }
    }
    return ERR_OK;
}

static err_t
read_status(
    struct tls *t, const struct conn *c, struct buf *head, int *ret_status, struct error *e)
{
    char line[STATUS_BYTES];
    size_t len = 0;
    int status;

    while (len < sizeof line) {
        size_t n = 0;
        err_t code = receive_any(t, c, line + len, sizeof line - len, &n, e);

        if (code != ERR_OK) {
            return code;
        }
        if (n == 0) {
            return conn_closed(c, e);
        }
        len += n;
        if (!may_be_status_line(line, len)) {
            return error_set(e, ERR_INVALID, "%s does not answer with HTTP", c->address);
        }
    }
    status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    if (status < 100 || status > 599) {
        return error_set(e, ERR_INVALID, "%s answers with status %d", c->address, status);
    }
    if (head != NULL) {
        err_t code;

        buf_put(head, line, sizeof line);
        code = read_head(t, c, head, e);
        if (code != ERR_OK) {
            return code;
        }
    }
    *ret_status = status;
    return ERR_OK;
}

static err_t
check_part(const char *part, const char *what, struct error *e)
{
    for (const char *p = part; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            return error_set(
                e, ERR_INVALID, "%s of the request holds a character that it must not", what);
        }
    }
    if (part[0] == '\0') {
        return error_set(e, ERR_INVALID, "%s of the request is empty", what);
    }
    return ERR_OK;
}

static err_t
make_request(const struct probe *p, struct buf *out, struct error *e)
{
    err_t code = check_part(p->host, "host", e);

    if (code == ERR_OK) {
        code = check_part(p->path, "path", e);
    }
    if (code != ERR_OK) {
        return code;
    }
    buf_printf(
        out,
        "GET %s HTTP/1.1\r\n"
        "Host: %s\r\n"
        "User-Agent: lockstep\r\n"
        "Accept: */*\r\n"
        "Connection: close\r\n"
        "\r\n",
        p->path, p->host);
    code = buf_status(out, e);
    if (code != ERR_OK) {
        return error_set(e, ERR_INVALID, "request is longer than %zu bytes", out->max);
    }
    return ERR_OK;
}

static err_t
exchange_tls(
    const struct probe *p, const struct conn *c, const struct buf *request, int *ret_status,
    struct error *e)
{
    CLEANUP(tls_cleanup) struct tls t = {.ctx = NULL};
    err_t code = tls_open(&t, p->host, e);

    if (code == ERR_OK) {
        code = tls_send(&t, c, request, e);
    }
    return code != ERR_OK ? code : read_status(&t, c, p->head, ret_status, e);
}

err_t
probe_http(const struct probe *p, int64_t deadline_ms, int *ret_status, struct error *e)
{
    CLEANUP(buf_fini) struct buf request;
    struct conn c = {
        .fd = -1,
        .end_ms = clock_mono_ms(&clock_system) + deadline_ms,
        .address = p->address,
        .source = p->source,
    };
    err_t code;

    buf_init(&request, REQUEST_BYTES);
    code = make_request(p, &request, e);
    if (code != ERR_OK) {
        return code;
    }
    code = p->address[0] == '/' ? conn_connect_unix(&c, p->address, e)
                                : conn_connect_inet(&c, p->address, p->port, e);
    if (code == ERR_OK && p->proxied) {
        code = conn_send_all(&c, PROXY_UNKNOWN, sizeof PROXY_UNKNOWN - 1, e);
    }
    if (code == ERR_OK && p->tls) {
        code = exchange_tls(p, &c, &request, ret_status, e);
    } else if (code == ERR_OK) {
        code = conn_send_all(&c, request.data, request.len, e);
        code = code != ERR_OK ? code : read_status(NULL, &c, p->head, ret_status, e);
    }
    fd_cleanup(&c.fd);
    return code;
}

err_t
probe_connect(const char *address, int port, int64_t deadline_ms, struct error *e)
{
    struct conn c = {
        .fd = -1,
        .end_ms = clock_mono_ms(&clock_system) + deadline_ms,
        .address = address,
    };
    err_t code = conn_connect_inet(&c, address, port, e);

    fd_cleanup(&c.fd);
    return code;
}

/* Sends what the socket takes now; true when nothing is left to be sent. */
static bool
send_some(const struct conn *c, const char **p, size_t *bytes)
{
    ssize_t n = *bytes > 0 ? send(c->fd, *p, *bytes, MSG_NOSIGNAL) : 0;

    if (n > 0) {
        *p += n;
        *bytes -= (size_t)n;
    }
    /* Who closes early may have answered before: that answer counts. */
    return *bytes == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* *ret_end: the other side closed. before: length of out without any answer. */
static err_t
receive_some(
    const struct conn *c, struct buf *out, size_t before, bool *ret_end, struct error *e)
{
    char chunk[CHUNK_BYTES];
    ssize_t n = recv(c->fd, chunk, sizeof chunk, 0);

    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) {
            return ERR_OK;
        }
        /* It closed without having read all that we sent: its answer is complete. */
        *ret_end = errno == ECONNRESET && out->len > before;
        return *ret_end ? ERR_OK : conn_failed(c, errno, "receive from", e);
    }
    *ret_end = n == 0;
    buf_put(out, chunk, (size_t)n);
    if (out->failed) {
        return error_set(
            e, ERR_LIMIT, "answer of %s is longer than %zu bytes", c->address, out->max);
    }
    return ERR_OK;
}

/* Sends and receives at the same time: a server that answers while it still reads must not
 * block on an answer that nobody takes. */
static err_t
converse(const struct conn *c, const char *p, size_t bytes, struct buf *out, struct error *e)
{
    size_t before = out->len;
    bool sending = true;
    bool end = false;
    err_t code = ERR_OK;

    while (code == ERR_OK && !end) {
        short revents = 0;

        code = conn_wait(c, sending ? POLLIN | POLLOUT : POLLIN, &revents, e);
        if (code != ERR_OK) {
            return code;
        }
        if (sending && (revents & POLLOUT) != 0 && send_some(c, &p, &bytes)) {
            (void)shutdown(c->fd, SHUT_WR);
            sending = false;
        }
        if ((revents & ~POLLOUT) != 0) {
            code = receive_some(c, out, before, &end, e);
        }
    }
    return code;
}

err_t
probe_unix(
    const char *socket_path, const char *command, size_t bytes, int64_t deadline_ms,
    struct buf *out, struct error *e)
{
    struct conn c = {
        .fd = -1,
        .end_ms = clock_mono_ms(&clock_system) + deadline_ms,
        .address = socket_path,
    };
    err_t code = conn_connect_unix(&c, socket_path, e);

    if (code == ERR_OK) {
        code = converse(&c, command, bytes, out, e);
    }
    fd_cleanup(&c.fd);
    return code;
}
