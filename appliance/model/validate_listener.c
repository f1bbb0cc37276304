/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: which address HAProxy binds, and who else does. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/validate_checks.h"
#include "model/vip.h"

/* One address and port of an enabled listener, in a form that compares. */
struct socket_key {
    uint16_t port;
    bool v6;
    uint8_t address[16]; /* all zero: every address of the family */
    uint32_t listener;   /* position */
    uint32_t index;      /* in the listener's addresses */
};

static void
key_set_address(struct socket_key *key, const char *text)
{
    memset(key->address, 0, sizeof(key->address));
    key->v6 = inet_pton(AF_INET, text, key->address) != 1;
    if (key->v6) {
        int parsed = inet_pton(AF_INET6, text, key->address);
        ASSERT(parsed == 1); /* the field's type */
    }
}

/* Order of port, family and address; every address of a family comes before its single ones. */
static int
key_compare(const struct socket_key *a, const struct socket_key *b)
{
    if (a->port != b->port) {
        return a->port < b->port ? -1 : 1;
    }
    if (a->v6 != b->v6) {
        return a->v6 ? 1 : -1;
    }
    return memcmp(a->address, b->address, sizeof(a->address));
}

static int
key_order(const void *va, const void *vb)
{
    const struct socket_key *a = va;
    const struct socket_key *b = vb;
    int order = key_compare(a, b);
    if (order == 0 && a->listener != b->listener) {
        order = a->listener < b->listener ? -1 : 1;
    }
    if (order == 0 && a->index != b->index) {
        order = a->index < b->index ? -1 : 1;
    }
    return order;
}

/* The sockets of the enabled listeners in order; the caller frees. */
static size_t
collect_sockets(const struct object *const *listeners, size_t count, struct socket_key **ret)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += object_value(listeners[i], F_LISTENER_ADDRESSES)->count;
    }
    struct socket_key *keys = xcalloc(total + 1, sizeof(keys[0]));
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!object_bool(listeners[i], F_LISTENER_ENABLED)) {
            continue;
        }
        const struct value *addresses = object_value(listeners[i], F_LISTENER_ADDRESSES);
        for (uint32_t j = 0; j < addresses->count; j++) {
            struct socket_key *key = &keys[used++];
            key->port = (uint16_t)object_int(listeners[i], F_LISTENER_PORT);
            key->listener = (uint32_t)i;
            key->index = j;
            key_set_address(key, addresses->u.items[j].u.text.s);
        }
    }
    qsort(keys, used, sizeof(keys[0]), key_order);
    *ret = keys;
    return used;
}

static const char *
address_of(const struct object *listener, uint32_t index)
{
    return object_value(listener, F_LISTENER_ADDRESSES)->u.items[index].u.text.s;
}

int
validate_peers_port(const struct snapshot *local)
{
    return local != NULL ? (int)object_int(snapshot_singleton(local, K_NODE), F_NODE_PEERS_PORT)
                         : (int)schema_kind(K_NODE)->fields[F_NODE_PEERS_PORT].default_int;
}

static bool
has_limits(const struct snapshot *shared)
{
    const struct object *const *services;
    size_t count = snapshot_kind(shared, K_SERVICE, &services);
    for (size_t i = 0; i < count; i++) {
        if (object_bool(services[i], F_SERVICE_ENABLED) &&
            object_int(services[i], F_SERVICE_RATE_LIMIT) != 0) {
            return true;
        }
    }
    return false;
}

static bool
has_tables(const struct snapshot *shared)
{
    const struct object *const *pools;
    size_t count = snapshot_kind(shared, K_POOL, &pools);
    for (size_t i = 0; i < count; i++) {
        if (object_bool(pools[i], F_POOL_ENABLED) &&
            object_int(pools[i], F_POOL_STICK) == V_POOL_STICK_SOURCE) {
            return true;
        }
    }
    return false;
}

static void
add_tables(const struct snapshot *local, const char *address, bool vip, struct bind *ret)
{
    ret->port = validate_peers_port(local);
    ret->object = snapshot_singleton(local, K_NODE);
    ret->vip = vip;
    (void)snprintf(ret->address, sizeof(ret->address), "%s", address);
}

size_t
validate_binds(const struct snapshot_pair *pair, const char *peers_address, struct bind **ret)
{
    const struct object *const *listeners;
    size_t count = snapshot_kind(pair->shared, K_LISTENER, &listeners);
    struct socket_key *keys;
    size_t used = collect_sockets(listeners, count, &keys);
    struct bind *binds = xcalloc(used + 3, sizeof(binds[0]));
    for (size_t i = 0; i < used; i++) {
        binds[i].object = listeners[keys[i].listener];
        binds[i].port = keys[i].port;
        (void)snprintf(
            binds[i].address, sizeof(binds[i].address), "%s",
            address_of(binds[i].object, keys[i].index));
        binds[i].vip = vip_holds(
            pair->shared, (struct text){binds[i].address, (uint32_t)strlen(binds[i].address)});
    }
    if (pair->local != NULL && (has_tables(pair->shared) || has_limits(pair->shared))) {
        add_tables(pair->local, "127.0.0.1", false, &binds[used++]);
        if (peers_address != NULL && *peers_address != '\0') {
            /* Bound whether or not this machine has it now. */
            add_tables(pair->local, peers_address, true, &binds[used++]);
        }
    }
    free(keys);
    *ret = binds;
    return used;
}

static void
report_clash(
    const struct checks *c, const struct socket_key *own, const struct socket_key *other)
{
    const struct object *listener = c->kinds[K_LISTENER].items[own->listener];
    const struct object *with = c->kinds[K_LISTENER].items[other->listener];
    char pointer[32];
    (void)snprintf(pointer, sizeof(pointer), "/addresses/%u", own->index);
    const struct problem where = checks_at(listener, pointer);
    if (listener == with) {
        problems_add(
            c->p, SEVERITY_ERROR, "port_clash", &where,
            "The addresses %s and %s of this listener overlap: remove one of them.",
            address_of(with, other->index), address_of(listener, own->index));
        return;
    }
    problems_add(
        c->p, SEVERITY_ERROR, "port_clash", &where,
        "Port %d on %s is taken by the listener \"%s\" (%s): use another port or address, or "
        "put the services on that listener.",
        own->port, address_of(listener, own->index), with->name.s,
        address_of(with, other->index));
}

static bool
is_wildcard(const struct socket_key *key)
{
    static const uint8_t zero[16];
    return memcmp(key->address, zero, sizeof(zero)) == 0;
}

static void
check_clashes(const struct checks *c)
{
    const struct kind_list *listeners = &c->kinds[K_LISTENER];
    struct socket_key *keys;
    size_t count = collect_sockets(listeners->items, listeners->count, &keys);
    /* Two listeners that clash on several addresses are told of once. */
    uint32_t *told = xcalloc(listeners->count + 1, sizeof(told[0]));
    const struct socket_key *first = NULL; /* of this port and family */
    for (size_t i = 0; i < count; i++) {
        const struct socket_key *own = &keys[i];
        if (first == NULL || first->port != own->port || first->v6 != own->v6) {
            first = own;
            continue;
        }
        const struct socket_key *other = NULL;
        if (is_wildcard(first)) {
            other = first;
        } else if (key_compare(&keys[i - 1], own) == 0) {
            other = &keys[i - 1];
        }
        if (other != NULL && told[own->listener] != other->listener + 1) {
            told[own->listener] = other->listener + 1;
            if (checks_blame_with(
                    c, listeners->items[own->listener], listeners->items[other->listener])) {
                report_clash(c, other, own); /* NOLINT(readability-suspicious-call-argument) */
            } else {
                report_clash(c, own, other);
            }
        }
    }
    free(told);
    free(keys);
}

/* What has no meaning in mode tcp, and what the schema cannot tell. */
static void
check_fields(const struct checks *c, const struct object *o)
{
    const struct value *alpn = object_value(o, F_LISTENER_ALPN);
    if (object_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_TCP &&
        object_value(o, F_LISTENER_TRUSTED_PROXIES)->count > 0) {
        const struct problem where = checks_at(o, "/trusted_proxies");
        problems_add(
            c->p, SEVERITY_ERROR, "not_applicable", &where,
            "A listener of mode tcp sees no headers: remove the trusted proxies, or use the "
            "PROXY protocol.");
    }
    if (alpn->count == 2 && alpn->u.items[0].u.i == alpn->u.items[1].u.i) {
        const struct problem where = checks_at(o, "/alpn/1");
        problems_add(
            c->p, SEVERITY_ERROR, "duplicate", &where, "This HTTP version stands here twice.");
    }
}

void
check_listeners(const struct checks *c)
{
    const struct kind_list *listeners = &c->kinds[K_LISTENER];
    int peers_port = validate_peers_port(c->pair->local);
    if (peers_port == PORT_API) {
        const struct problem where =
            checks_at(snapshot_singleton(c->pair->local, K_NODE), "/peers_port");
        problems_add(
            c->p, SEVERITY_ERROR, "reserved_port", &where,
            "Port %d belongs to the appliance's own pages and API: choose another port.",
            PORT_API);
    }
    for (size_t i = 0; i < listeners->count; i++) {
        const struct object *o = listeners->items[i];
        int64_t port = object_int(o, F_LISTENER_PORT);
        check_fields(c, o);
        if (port == PORT_API || port == peers_port) {
            const struct problem where = checks_at(o, "/port");
            problems_add(
                c->p, SEVERITY_ERROR, "reserved_port", &where,
                "Port %d belongs to %s: choose another port.", (int)port,
                port == PORT_API ? "the appliance's own pages and API"
                                 : "the stick tables (peers_port of this node)");
        }
    }
    check_clashes(c);
}
