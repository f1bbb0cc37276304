/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the server share; only for this folder. */
#ifndef LOCKSTEP_HTTP_INNER_H
#define LOCKSTEP_HTTP_INNER_H

#include <pthread.h>

#include <microhttpd.h>

#include "engine/account.h"
#include "engine/engine.h"
#include "http/connection.h"
#include "http/pulse.h"
#include "http/server.h"

#define HTTP_MAGIC        0x4c687474u
#define HTTP_COOKIE_BYTES 32
#define HTTP_INSTANCE_HEX 16

/* Requests whose checks are being tried, or wait for that. The tunable try_ms counts from the
 * moment a request takes its place: what has to wait for so long is not tried. */
#define HTTP_TRIES_MAX   8
#define HTTP_TRY_THREADS 2

/* Bodies of requests being received or worked on, all together. */
#define HTTP_BODIES_MAX ((size_t)128 << 20)

struct stream;
struct request;

/* A text that is the same as long as the program runs. */
struct http_document {
    const char *text;
    size_t bytes;
    char etag[24]; /* with its quotes */
};

/* An answer that many requests get. */
struct shared_reply {
    _Atomic unsigned refs;
    struct MHD_Response *response;
    /* What it was made of. */
    int64_t version; /* of the view */
    const struct object *about;
    struct engine_status status;
};

#define CACHE_SLOTS 64

struct cache {
    pthread_mutex_t lock;
    struct shared_reply *slots[CACHE_SLOTS]; /* NULL: none */
};

struct http {
    unsigned magic;
    struct http_config config;
    struct MHD_Daemon *daemon;
    int listen_fd, port;
    char address[CONNECTION_PEER_BYTES]; /* where it listens, as peers are written */
    bool tls;
    struct error closed; /* what config.closed points to */
    /* Cookies ignore the port: nodes behind one host name must not overwrite each other's
     * session, so the name has digits of the node's certificate. */
    char cookie_name[HTTP_COOKIE_BYTES];
    char instance[HTTP_INSTANCE_HEX + 1]; /* another one after each start */
    struct http_document schema, openapi;
    struct connections connections;
    struct pulse *pulse;
    _Atomic size_t body_bytes;

    /* dispatch.c: requests that are being worked on outside libmicrohttpd's threads. */
    pthread_mutex_t work_lock;
    pthread_cond_t work_done;
    size_t working;
    bool closing;

    _Atomic int long_work; /* api_long_begin: running now */

    /* api_try.c: what waits for servers of others must not hold up anybody else. */
    struct trials *trials;
    _Atomic int tries;
    struct mailbox *try_box;

    /* wait.c: requests that wait for a task to end. */
    pthread_mutex_t wait_lock;
    struct request *waiting;

    struct cache cache;

    /* api_status.c */
    pthread_mutex_t status_lock;
    struct shared_reply *status_reply; /* NULL: none yet */

    /* stream.c */
    pthread_mutex_t stream_lock;
    struct stream *streams;
    size_t stream_count;
    bool streams_closed;
};

int64_t http_now_ms(const struct http *h); /* monotonic */

#endif
