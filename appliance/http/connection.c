/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"

#define STREAM_SLACK_MS 2000

void
connections_init(struct connections *t, const struct tunables *tunables)
{
    *t = (struct connections){.tunables = tunables};
    lock_init(&t->lock);
}

void
connections_fini(struct connections *t)
{
    ASSERT(t->first == NULL && t->count == 0);
    (void)pthread_mutex_destroy(&t->lock);
}

/* The IPv4 address behind sa, also of one mapped into IPv6. */
static bool
to_v4(const struct sockaddr *sa, uint8_t out[4])
{
    struct sockaddr_in6 in6;
    struct sockaddr_in in;

    if (sa->sa_family == AF_INET) {
        memcpy(&in, sa, sizeof in);
        memcpy(out, &in.sin_addr, 4);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        memcpy(&in6, sa, sizeof in6);
        memcpy(out, &in6.sin6_addr.s6_addr[12], 4);
        return IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
    }
    return false;
}

struct connection_origin
connection_origin_of(const struct sockaddr *sa)
{
    struct connection_origin o = {.loopback = false};
    struct sockaddr_in6 in6;

    if (to_v4(sa, o.v4)) {
        o.prefix[7] = 1; /* no /64 that a peer can have: ::/64 is reserved */
        o.loopback = o.v4[0] == 127;
        return o;
    }
    memset(o.v4, 0, sizeof o.v4);
    if (sa->sa_family == AF_INET6) {
        memcpy(&in6, sa, sizeof in6);
        memcpy(o.prefix, &in6.sin6_addr, sizeof o.prefix);
        o.loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
    }
    return o;
}

void
connection_peer_text(const struct sockaddr *sa, char out[CONNECTION_PEER_BYTES])
{
    struct sockaddr_in6 in6;
    uint8_t v4[4];

    out[0] = '\0';
    if (to_v4(sa, v4)) {
        (void)inet_ntop(AF_INET, v4, out, CONNECTION_PEER_BYTES);
    } else if (sa->sa_family == AF_INET6) {
        memcpy(&in6, sa, sizeof in6);
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, out, CONNECTION_PEER_BYTES);
    }
}

static bool
same_origin(const struct connection_origin *a, const struct connection_origin *b)
{
    return memcmp(a->prefix, b->prefix, sizeof a->prefix) == 0 &&
           memcmp(a->v4, b->v4, sizeof a->v4) == 0;
}

static bool
has_room(const struct connections *t, const struct connection_origin *origin)
{
    size_t same = 0;

    if (t->count >= CONNECTIONS_MAX) {
        return false;
    }
    for (const struct connection *c = t->first; c != NULL && !origin->loopback; c = c->next) {
        same += same_origin(&c->origin, origin) ? 1 : 0;
    }
    return same < CONNECTIONS_MAX_ADDRESS;
}

bool
connections_admit(struct connections *t, const struct sockaddr *sa)
{
    struct connection_origin origin = connection_origin_of(sa);
    bool room;

    lock_take(&t->lock);
    room = has_room(t, &origin);
    lock_give(&t->lock);
    return room;
}

struct connection *
connection_add(struct connections *t, int fd, const struct sockaddr *sa, int64_t now_ms)
{
    struct connection *c = xcalloc(1, sizeof *c);

    c->fd = fd;
    c->origin = connection_origin_of(sa);
    connection_peer_text(sa, c->peer);
    atomic_init(&c->deadline_ms, now_ms + t->tunables->header_ms);
    lock_take(&t->lock);
    if (!has_room(t, &c->origin)) {
        c->shut = true;
        (void)shutdown(fd, SHUT_RDWR);
    }
    c->next = t->first;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    t->first = c;
    t->count++;
    lock_give(&t->lock);
    return c;
}

void
connection_remove(struct connections *t, struct connection *c)
{
    lock_take(&t->lock);
    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        t->first = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    t->count--;
    lock_give(&t->lock);
    free(c);
}

void
connection_enter(
    struct connections *t, struct connection *c, enum connection_phase phase, int64_t now_ms)
{
    const struct tunables *of = t->tunables;
    const int64_t ms[] = {
        [CONNECTION_HEADER] = of->header_ms,
        [CONNECTION_BODY] = of->request_ms,
        [CONNECTION_ANSWER] = of->answer_ms,
        /* A reader that takes its pieces is asked for the next at each ping. */
        [CONNECTION_STREAM] = 4 * of->event_ping_ms + STREAM_SLACK_MS,
        [CONNECTION_IDLE] = of->idle_ms,
    };

    atomic_store(&c->deadline_ms, now_ms + ms[phase]);
}

void
connections_scan(struct connections *t, int64_t now_ms)
{
    lock_take(&t->lock);
    for (struct connection *c = t->first; c != NULL; c = c->next) {
        if (!c->shut && atomic_load(&c->deadline_ms) <= now_ms) {
            c->shut = true;
            (void)shutdown(c->fd, SHUT_RDWR);
        }
    }
    lock_give(&t->lock);
}
