/* SPDX-License-Identifier: Apache-2.0 */
/* One request as a client would make it: connect, TLS if asked, one HTTP/1.1 request, the
 * status line. Used to see whether HAProxy serves. */
#ifndef LOCKSTEP_BASE_PROBE_H
#define LOCKSTEP_BASE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct probe {
    const char *address; /* IPv4 or IPv6 literal, or an absolute path of a unix socket */
    int port;            /* ignored for a unix socket */
    bool tls;            /* no verification: the question is whether it answers */
    const char *host;    /* Host header, and SNI with TLS */
    const char *path;    /* request target */
    const char *source;  /* literal to connect from, of the same family; NULL: any */
    bool proxied;        /* says first, by the PROXY protocol, that it is nobody's proxy */
    struct buf *head;    /* gets the head of the answer; NULL: only its status is read */
};

/* *ret_status: HTTP status 100-599. ERR_TIMEOUT deadline_ms after the call (for all of it),
 * ERR_UNAVAILABLE when refused or closed, ERR_INVALID when the answer is not HTTP, its head
 * does not fit into p->head, or *p is not usable (a path of a socket over 107 bytes, spaces or
 * control characters in host or path). */
MUST_USE err_t
probe_http(const struct probe *p, int64_t deadline_ms, int *ret_status, struct error *e);

/* The same for who does not answer strangers: a connection is accepted. */
MUST_USE err_t
probe_connect(const char *address, int port, int64_t deadline_ms, struct error *e);

/* Sends a command line to a stream unix socket, half-closes, reads to end of file into
 * out. For HAProxy's admin socket and master CLI. deadline_ms as above. ERR_TIMEOUT,
 * ERR_UNAVAILABLE, ERR_LIMIT, ERR_INVALID. */
MUST_USE err_t probe_unix(
    const char *socket_path, const char *command, size_t bytes, int64_t deadline_ms,
    struct buf *out, struct error *e);

#endif
