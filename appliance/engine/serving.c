/* SPDX-License-Identifier: Apache-2.0 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/probe.h"
#include "engine/generation.h"
#include "engine/own_traffic.h"
#include "haproxy/admin.h"
#include "model/validate.h"

#define RETRY_MS 50

err_t
serving_probe(struct engine *en, struct error *e)
{
    struct probe probe = {
        .address = en->probe_socket, .host = RENDER_PROBE_HOST, .path = RENDER_PROBE_PATH};
    int status = 0;
    err_t code = probe_http(&probe, en->config->tunables->socket_ms, &status, e);

    if (code == ERR_OK && status != 200) {
        code = error_set(e, ERR_UNAVAILABLE, "HAProxy answers its probe with %d", status);
    }
    return code;
}

/* ---- until everything answers ---- */

struct confirming {
    struct engine *en;
    const char *digest;
    struct bind *binds; /* of http listeners only; those that answered are taken out */
    size_t bind_count;
    pid_t pid; /* of the worker that was asked last */
    int64_t end_ms;
};

static int64_t
left_ms(const struct confirming *c)
{
    int64_t left = c->end_ms - clock_mono_ms(&clock_system);
    int64_t most = c->en->config->tunables->socket_ms;

    return left < most ? left : most;
}

static err_t
confirm_digest(struct confirming *c, struct error *e)
{
    struct haproxy_info info;
    err_t code = admin_info(c->en->admin_socket, left_ms(c), &info, e);

    if (code != ERR_OK) {
        return code;
    }
    c->pid = info.pid;
    if (strcmp(info.running, c->digest) != 0) {
        return error_set(e, ERR_UNAVAILABLE, "HAProxy runs another revision");
    }
    return ERR_OK;
}

const char *
serving_target(const char *address)
{
    if (strcmp(address, "0.0.0.0") == 0) {
        return "127.0.0.1";
    }
    return strcmp(address, "::") == 0 ? "::1" : address;
}

/* Whether a request from this node would get no answer though all is well. */
static bool
is_closed_to_us(const struct object *listener)
{
    return object_bool(listener, F_LISTENER_ACCEPT_PROXY) ||
           object_value(listener, F_LISTENER_ALLOWED_NETWORKS)->count > 0 ||
           (object_bool(listener, F_LISTENER_TLS) &&
            object_bool(listener, F_LISTENER_STRICT_SNI));
}

static err_t
confirm_bind(const struct confirming *c, const struct bind *b, struct error *e)
{
    struct probe probe = {
        .address = serving_target(b->address),
        .port = b->port,
        .tls = object_bool(b->object, F_LISTENER_TLS),
        .host = RENDER_PROBE_HOST,
        .path = "/",
    };
    int status;
    bool closed = is_closed_to_us(b->object);
    err_t code = closed ? probe_connect(probe.address, probe.port, left_ms(c), e)
                        : probe_http(&probe, left_ms(c), &status, e);

    /* HAProxy counts no session of a connection that it ended before a request. */
    if (code == ERR_OK && !closed) {
        own_traffic_add(c->en->own_traffic, c->pid, b->object->name.s);
    }
    return code == ERR_OK ? ERR_OK
                          : error_wrap(e, "listener %s, port %d", b->object->name.s, b->port);
}

static err_t
confirm_once(struct confirming *c, struct error *e)
{
    err_t code = confirm_digest(c, e);

    while (code == ERR_OK && c->bind_count > 0) {
        code = confirm_bind(c, &c->binds[c->bind_count - 1], e);
        if (code == ERR_OK) {
            c->bind_count--;
        }
    }
    return code == ERR_OK ? serving_probe(c->en, e) : code;
}

bool
serving_is_here(const char *address)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai = NULL;
    bool local = false;
    int fd;

    if (getaddrinfo(address, NULL, &hints, &ai) != 0) {
        return false;
    }
    fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    local = fd >= 0 && bind(fd, ai->ai_addr, ai->ai_addrlen) == 0;
    freeaddrinfo(ai);
    fd_cleanup(&fd);
    return local;
}

/* Those of tcp listeners speak no HTTP, and a VIP that is elsewhere would lead to another
 * node; that HAProxy started says that they are bound. */
static void
keep_http(struct confirming *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->bind_count; i++) {
        const struct bind *b = &c->binds[i];

        if (b->object->kind == K_LISTENER &&
            object_int(b->object, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP &&
            (!b->vip || serving_is_here(b->address))) {
            c->binds[kept++] = *b;
        }
    }
    c->bind_count = kept;
}

err_t
serving_confirm(
    struct engine *en, const char *digest, const struct snapshot *shared, struct error *e)
{
    struct confirming c = {
        .en = en,
        .digest = digest,
        .end_ms = clock_mono_ms(&clock_system) + en->config->tunables->verify_ms,
    };
    err_t code;

    if (shared != NULL) {
        c.bind_count = validate_binds(&(struct snapshot_pair){shared, NULL}, NULL, &c.binds);
        keep_http(&c);
    }
    code = confirm_once(&c, e);
    while (code != ERR_OK && left_ms(&c) > RETRY_MS && !engine_pause(en, RETRY_MS)) {
        code = confirm_once(&c, e);
    }
    free(c.binds);
    return code;
}
