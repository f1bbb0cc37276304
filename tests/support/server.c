/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/file.h"
#include "base/x509.h"

static void
send_answer(int fd, const char *answer, bool trickle)
{
    size_t len = strlen(answer);

    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, answer + at, trickle ? 1 : len - at, MSG_NOSIGNAL);

        if (n < 0) {
            return;
        }
        at += (size_t)n;
    }
}

static void
receive_request(struct server *s, int fd)
{
    ssize_t n = 0;
    size_t len = 0;

    while (len < sizeof s->request - 1 && strstr(s->request, "\r\n\r\n") == NULL) {
        n = recv(fd, s->request + len, sizeof s->request - 1 - len, 0);
        if (n <= 0) {
            return;
        }
        len += (size_t)n;
        s->request[len] = '\0';
    }
}

static void
receive_to_end(struct server *s, int fd, bool echo)
{
    static char chunk[65536];
    ssize_t n = recv(fd, chunk, sizeof chunk, 0);

    while (n > 0) {
        s->received += (size_t)n;
        for (ssize_t at = 0; echo && at < n;) {
            ssize_t sent = send(fd, chunk + at, (size_t)(n - at), MSG_NOSIGNAL);

            if (sent < 0) {
                return;
            }
            at += sent;
        }
        n = recv(fd, chunk, sizeof chunk, 0);
    }
}

static void
use_certificate(SSL_CTX *ctx)
{
    const char *const names[] = {"localhost", NULL};
    struct buf chain;
    struct buf key;
    BIO *bio;
    X509 *x;
    EVP_PKEY *k;

    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    if (x509_selfsigned(names, 1796000000, 30, &chain, &key, NULL) != ERR_OK) {
        return;
    }
    bio = BIO_new_mem_buf(chain.data, (int)chain.len);
    x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new_mem_buf(key.data, (int)key.len);
    k = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    (void)SSL_CTX_use_certificate(ctx, x);
    (void)SSL_CTX_use_PrivateKey(ctx, k);
    X509_free(x);
    EVP_PKEY_free(k);
    buf_fini(&chain);
    buf_fini(&key);
}

static void
serve_tls(struct server *s, int fd)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *ssl;
    int n = 0;

    use_certificate(ctx);
    ssl = SSL_new(ctx);
    (void)SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
        const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

        (void)snprintf(
            s->server_name, sizeof s->server_name, "%s", name != NULL ? name : "(none)");
        n = SSL_read(ssl, s->request, (int)sizeof s->request - 1);
    }
    if (n > 0 && s->act == ACT_TLS) {
        (void)SSL_write(ssl, s->answer, (int)strlen(s->answer));
        (void)SSL_shutdown(ssl);
    }
    if (s->act == ACT_TLS_SILENT) {
        receive_to_end(s, fd, false);
    }
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static void *
serve(void *ctx)
{
    struct server *s = ctx;
    struct sockaddr_in from = {.sin_family = AF_UNSPEC};
    socklen_t bytes = sizeof from;
    int fd = accept(s->fd, (struct sockaddr *)&from, &bytes);

    if (from.sin_family == AF_INET) {
        (void)inet_ntop(AF_INET, &from.sin_addr, s->source, sizeof s->source);
    }

    switch (s->act) {
    case ACT_ANSWER:
    case ACT_TRICKLE:
        receive_request(s, fd);
        send_answer(fd, s->answer, s->act == ACT_TRICKLE);
        break;
    case ACT_SILENT: receive_to_end(s, fd, false); break;
    case ACT_CLOSE: break;
    case ACT_TLS:
    case ACT_TLS_SILENT: serve_tls(s, fd); break;
    case ACT_TO_END:
        receive_to_end(s, fd, false);
        send_answer(fd, s->answer, false);
        break;
    case ACT_EARLY: send_answer(fd, s->answer, false); break;
    case ACT_ECHO: receive_to_end(s, fd, true); break;
    }
    (void)close(fd);
    return NULL;
}

void
server_listen_inet(struct server *s)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof sin;

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&sin, sizeof sin), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&sin, &size), 0);
    s->port = ntohs(sin.sin_port);
    assert_int_equal(listen(s->fd, 8), 0);
}

void
server_listen_unix(struct server *s, const char *path, int backlog)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    assert_true(strlen(path) < sizeof sun.sun_path);
    (void)unlink(path);
    memcpy(sun.sun_path, path, strlen(path));
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&sun, sizeof sun), 0);
    assert_int_equal(listen(s->fd, backlog), 0);
}

void
server_start(struct server *s, enum act act, const char *answer)
{
    s->act = act;
    s->answer = answer;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void
server_stop(struct server *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    fd_cleanup(&s->fd);
}
