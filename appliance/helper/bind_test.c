/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "haproxy/master.h"
#include "helper/holder.h"
#include "helper/protocol.h"
#include "helper/verbs.h"

#define REASON_BYTES 128

/* One address and port to try, and what came of it. */
struct target {
    const char *address; /* in the request */
    int port;
    bool vip; /* the node need not have the address */

    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sa;

    socklen_t sa_bytes;
    size_t claim;              /* index + 1 of its claim when it is in use */
    char reason[REASON_BYTES]; /* "": free */
};

struct trial {
    struct target *targets;
    size_t count;
    struct claim *claims;
    size_t claim_count;
};

static void
trial_cleanup(struct trial *t)
{
    free(t->targets);
    free(t->claims);
}

/* IPv6 with a zone: "fe80::1%eth0". */
static bool
parse_v6(const char *address, struct sockaddr_in6 *sa)
{
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
    char *zone;

    if (strlen(address) >= sizeof text) {
        return false;
    }
    memcpy(text, address, strlen(address) + 1);
    zone = strchr(text, '%');
    if (zone != NULL) {
        *zone++ = '\0';
        sa->sin6_scope_id = if_nametoindex(zone);
    }
    sa->sin6_family = AF_INET6;
    return inet_pton(AF_INET6, text, &sa->sin6_addr) == 1 &&
           (zone == NULL || sa->sin6_scope_id != 0);
}

static err_t
parse_target(const json_t *v, struct target *t, struct error *e)
{
    static const char *const keys[] = {"address", "port", "vip", NULL};
    const json_t *vip = json_object_get(v, "vip");
    int64_t port = 0;
    err_t code = json_is_object(v) ? json_only_keys(v, keys, e)
                                   : error_set(e, ERR_SYNTAX, "a bind is not an object");

    if (code == ERR_OK) {
        code = json_get_str(v, "address", &t->address, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(v, "port", 1, 65535, &port, e);
    }
    if (code == ERR_OK && vip != NULL && !json_is_boolean(vip)) {
        code = error_set(e, ERR_SYNTAX, "\"vip\" is not true or false");
    }
    if (code != ERR_OK) {
        return code;
    }
    t->port = (int)port;
    t->vip = json_is_true(vip);
    if (inet_pton(AF_INET, t->address, &t->sa.v4.sin_addr) == 1) {
        t->sa.v4.sin_family = AF_INET;
        t->sa.v4.sin_port = htons((uint16_t)port);
        t->sa_bytes = sizeof t->sa.v4;
        return ERR_OK;
    }
    memset(&t->sa, 0, sizeof t->sa);
    if (!parse_v6(t->address, &t->sa.v6)) {
        return error_set(e, ERR_INVALID, "a bind's address is not a literal address");
    }
    t->sa.v6.sin6_port = htons((uint16_t)port);
    t->sa_bytes = sizeof t->sa.v6;
    return ERR_OK;
}

static err_t
parse_binds(const json_t *request, struct trial *t, struct error *e)
{
    const json_t *binds = json_object_get(request, "binds");
    size_t count = json_array_size(binds);

    if (!json_is_array(binds)) {
        return error_set(e, ERR_SYNTAX, "\"binds\" is not an array");
    }
    if (count > HELPER_BINDS_MAX) {
        return error_set(e, ERR_LIMIT, "more than %d binds", HELPER_BINDS_MAX);
    }
    t->targets = xcalloc(count + 1, sizeof *t->targets);
    t->claims = xcalloc(count + 1, sizeof *t->claims);
    for (t->count = 0; t->count < count; t->count++) {
        err_t code = parse_target(json_array_get(binds, t->count), &t->targets[t->count], e);

        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

/* As HAProxy would, but without SO_REUSEPORT, which shares a port instead of refusing it.
 * Only listen(2) tells when another socket may be bound to the same port and not listen. */
static int
bind_and_listen(int fd, const struct target *t)
{
    int on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return errno;
    }
    if (t->sa.any.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) {
        return errno;
    }
    /* What HAProxy's "transparent" comes to. For both families, whatever its name. */
    if (t->vip && setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on) != 0) {
        return errno;
    }
    return bind(fd, &t->sa.any, t->sa_bytes) == 0 && listen(fd, 1) == 0 ? 0 : errno;
}

/* 0 or an errno value. */
static int
try_bind(const struct target *t)
{
    int fd = socket(t->sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc;

    if (fd < 0) {
        return errno;
    }
    rc = bind_and_listen(fd, t);
    (void)close(fd);
    return rc;
}

static void
add_claim(struct trial *t, struct target *target)
{
    struct claim *c = &t->claims[t->claim_count++];

    c->family = target->sa.any.sa_family;
    c->port = (uint16_t)target->port;
    if (c->family == AF_INET) {
        memcpy(c->address, &target->sa.v4.sin_addr, 4);
    } else {
        memcpy(c->address, &target->sa.v6.sin6_addr, 16);
    }
    target->claim = t->claim_count;
}

static void
try_target(struct trial *t, struct target *target)
{
    int rc = try_bind(target);
    struct error reason;

    if (rc == EADDRINUSE) {
        add_claim(t, target);
        (void)snprintf(target->reason, sizeof target->reason, "Address already in use");
    } else if (rc == EADDRNOTAVAIL) {
        (void)snprintf(
            target->reason, sizeof target->reason, "no interface of this node has %.64s",
            target->address);
    } else if (rc != 0) {
        (void)error_errno(&reason, ERR_IO, rc, "cannot bind");
        (void)snprintf(target->reason, sizeof target->reason, "%.100s", reason.msg);
    }
}

static json_t *
failures_of(const struct trial *t)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < t->count; i++) {
        const struct target *target = &t->targets[i];
        const struct claim *c = target->claim != 0 ? &t->claims[target->claim - 1] : NULL;
        json_t *item;

        if (target->reason[0] == '\0' || (c != NULL && c->ours)) {
            continue;
        }
        item = json_pack(
            "{s:s, s:i, s:s, s:s}", "address", target->address, "port", target->port, "reason",
            target->reason, "holder", c != NULL ? c->holder : "");
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

err_t
verb_bind_test(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    CLEANUP(trial_cleanup) struct trial t = {.count = 0};
    int64_t end_ms = clock_mono_ms(&clock_system) + c->tunables.bind_test_ms;
    struct master_state st = {.master = 0};
    err_t code = parse_binds(request, &t, e);

    for (size_t i = 0; code == ERR_OK && i < t.count; i++) {
        if (clock_mono_ms(&clock_system) > end_ms) {
            return error_set(e, ERR_TIMEOUT, "the binds could not be tried in time");
        }
        try_target(&t, &t.targets[i]);
    }
    if (code == ERR_OK && t.claim_count > 0) {
        /* Without an answer no holder is ours. */
        if (master_show(c->master_path, c->tunables.socket_ms, &st, NULL) != ERR_OK) {
            st.master = 0;
        }
        code = holder_find(t.claims, t.claim_count, st.master, e);
    }
    if (code == ERR_OK && json_object_set_new(answer, "failures", failures_of(&t)) != 0) {
        code = error_set(e, ERR_INTERNAL, "cannot tell the outcome of the binds");
    }
    return code;
}
