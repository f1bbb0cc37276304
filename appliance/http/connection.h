/* SPDX-License-Identifier: Apache-2.0 */
/* The table of open connections: how many there may be, and until when each must be done.
 * libmicrohttpd's own time-out starts anew with every byte and stops for a suspended
 * connection, so the deadlines here are total ones. */
#ifndef LOCKSTEP_HTTP_CONNECTION_H
#define LOCKSTEP_HTTP_CONNECTION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/tunables.h"

#define CONNECTIONS_MAX         512
#define CONNECTIONS_MAX_ADDRESS 64 /* of one IPv4 address or IPv6 /64; not for loopback */
#define CONNECTION_PEER_BYTES   46

/* What the connection is waiting for. */
enum connection_phase {
    CONNECTION_HEADER,
    CONNECTION_BODY,
    CONNECTION_ANSWER,
    CONNECTION_STREAM, /* the next piece of a stream to be taken */
    CONNECTION_IDLE,
};

/* Where it comes from, as far as it is counted. */
struct connection_origin {
    uint8_t prefix[8]; /* IPv4 and IPv6 do not meet: ::ffff:0:0/96 is told apart */
    uint8_t v4[4];
    bool loopback;
};

struct connection {
    struct connection *prev, *next;
    int fd;
    struct connection_origin origin;
    char peer[CONNECTION_PEER_BYTES]; /* address as text */
    _Atomic int64_t deadline_ms;      /* monotonic */
    bool shut;                        /* over; under the table's lock */
    bool requested;                   /* a request line has come */
    bool linger; /* answered while the body was still coming: read on a little at the end */
};

struct connections {
    pthread_mutex_t lock;
    struct connection *first;
    size_t count;
    const struct tunables *tunables;
};

void connections_init(struct connections *t, const struct tunables *tunables);
/* The table must be empty. */
void connections_fini(struct connections *t);

struct connection_origin connection_origin_of(const struct sockaddr *sa);
/* "192.0.2.1", "2001:db8::1"; an IPv4 address mapped into IPv6 as IPv4. */
void connection_peer_text(const struct sockaddr *sa, char out[CONNECTION_PEER_BYTES]);

/* Whether one more from there may come. */
bool connections_admit(struct connections *t, const struct sockaddr *sa);
/* Never NULL: one that connections_admit would refuse by now is shut down at once. */
struct connection *
connection_add(struct connections *t, int fd, const struct sockaddr *sa, int64_t now_ms);
/* Before fd is closed. Frees c. */
void connection_remove(struct connections *t, struct connection *c);
/* Starts the time of a phase. */
void connection_enter(
    struct connections *t, struct connection *c, enum connection_phase phase, int64_t now_ms);
/* Shuts down whatever is over its deadline. */
void connections_scan(struct connections *t, int64_t now_ms);

#endif
