/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: listens, answers every route of schema/routes.json. */
#ifndef LOCKSTEP_HTTP_SERVER_H
#define LOCKSTEP_HTTP_SERVER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/tunables.h"

struct engine;
struct cluster;
struct http;

#define HTTP_CLOSED_S 5 /* Retry-After of a closed server */

struct http_config {
    struct engine *engine;   /* NULL: closed */
    struct cluster *cluster; /* of the engine */
    /* NULL, or why there is no engine: every request is answered 503 with it. */
    const struct error *closed;
    const char *address;  /* IPv4 or IPv6 literal */
    int port;             /* 0: any free one, see http_port */
    const char *cert_pem; /* chain, leaf first */
    const char *key_pem;  /* both NULL: plain HTTP, for tests */
    const struct tunables *tunables;
    const struct clock *clock;
};

/* Starts to serve. What config points to must outlive the server, but for address, closed
 * and the PEM texts, which are copied. ERR_INVALID: address or certificate; ERR_UNAVAILABLE:
 * the port is taken. */
MUST_USE err_t http_open(const struct http_config *config, struct http **ret, struct error *e);
int http_port(const struct http *h);
/* Ends every stream and waits for handlers that run; the engine must still be open. NULL is
 * allowed. */
void http_close(struct http *h);

#endif
