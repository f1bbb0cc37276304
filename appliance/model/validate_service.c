/* SPDX-License-Identifier: Apache-2.0 */
/* Services: modes, what a tcp listener can carry, what is published twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/validate_checks.h"

/* One (listener, host, path) of an enabled service; host_index CHECKS_NONE: any host. */
struct published {
    uint32_t hash;
    uint32_t listener;
    uint32_t service; /* position + 1; 0: free */
    uint32_t host_index;
};

struct service_check {
    const struct checks *c;
    uint32_t *carried; /* by position of a tcp listener: position + 1 of its service */
    struct published *slots;
    size_t slot_mask;
    uint32_t told; /* position + 1 of the service that the current one was told of last */
};

static bool
is_tcp(const struct object *listener)
{
    return object_int(listener, F_LISTENER_MODE) == V_LISTENER_MODE_TCP;
}

static const char *
mode_name(bool tcp)
{
    return tcp ? "tcp" : "http";
}

static struct text
host_of(const struct object *service, uint32_t index)
{
    if (index == CHECKS_NONE) {
        return (struct text){"", 0};
    }
    return object_value(service, F_SERVICE_HOSTS)->u.items[index].u.text;
}

/* "/shop/" and "/shop" lead to the same requests. */
static struct text
path_of(const struct object *service)
{
    struct text path = object_text(service, F_SERVICE_PATH);
    while (path.len > 0 && path.s[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

static bool
same_text(struct text a, struct text b)
{
    return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

/* False when the listeners have two modes, so that nothing more can be said. */
static bool
check_modes(const struct checks *c, uint32_t service)
{
    const struct object *o = c->kinds[K_SERVICE].items[service - 1];
    const uint32_t *on = checks_targets(c, K_SERVICE, service - 1, F_SERVICE_LISTENERS);
    const uint32_t *pool_pos = checks_targets(c, K_SERVICE, service - 1, F_SERVICE_POOL);
    uint32_t listeners = object_value(o, F_SERVICE_LISTENERS)->count;
    const struct object *pool = checks_object(c, K_POOL, *pool_pos);
    const struct object *first = NULL;
    for (uint32_t i = 0; i < listeners; i++) {
        const struct object *l = checks_object(c, K_LISTENER, on[i]);
        if (l != NULL && first != NULL && is_tcp(l) != is_tcp(first)) {
            char pointer[48];
            (void)snprintf(pointer, sizeof(pointer), "/listeners/%u", i);
            const struct problem where = checks_at(o, pointer);
            problems_add(
                c->p, SEVERITY_ERROR, "mode_mismatch", &where,
                "The listener \"%s\" has mode %s and the listener \"%s\" has mode %s: a "
                "service can be on listeners of one mode only.",
                first->name.s, mode_name(is_tcp(first)), l->name.s, mode_name(is_tcp(l)));
            return false;
        }
        first = first != NULL ? first : l;
    }
    bool pool_tcp = pool != NULL && object_int(pool, F_POOL_MODE) == V_POOL_MODE_TCP;
    if (first != NULL && pool != NULL && pool_tcp != is_tcp(first)) {
        const struct problem where = checks_at(o, "/pool");
        problems_add(
            c->p, SEVERITY_ERROR, "mode_mismatch", &where,
            "The pool \"%s\" has mode %s and the listener \"%s\" has mode %s: choose a pool and "
            "listeners of one mode.",
            pool->name.s, mode_name(pool_tcp), first->name.s, mode_name(is_tcp(first)));
    }
    return true;
}

/* A tcp listener sees no request: nothing there can choose by host or path. */
static void
check_tcp_fields(const struct checks *c, const struct object *o, const struct object *listener)
{
    if (object_value(o, F_SERVICE_HOSTS)->count > 0) {
        const struct problem where = checks_at(o, "/hosts");
        problems_add(
            c->p, SEVERITY_ERROR, "not_applicable", &where,
            "The listener \"%s\" has mode tcp and sees no host names: remove them, or use "
            "listeners of mode http.",
            listener->name.s);
    }
    if (strcmp(object_text(o, F_SERVICE_PATH).s, "/") != 0) {
        const struct problem where = checks_at(o, "/path");
        problems_add(
            c->p, SEVERITY_ERROR, "not_applicable", &where,
            "The listener \"%s\" has mode tcp and sees no path: set it to \"/\", or use "
            "listeners of mode http.",
            listener->name.s);
    }
    if (object_int(o, F_SERVICE_RATE_LIMIT) != 0) {
        const struct problem where = checks_at(o, "/rate_limit");
        problems_add(
            c->p, SEVERITY_ERROR, "not_applicable", &where,
            "The listener \"%s\" has mode tcp and sees no requests: set the limit to 0, or use "
            "listeners of mode http.",
            listener->name.s);
    }
}

static void
report_twice(
    const struct service_check *sc, const struct object *o, const struct published *own,
    const struct object *other)
{
    char pointer[48];
    const char *host = host_of(o, own->host_index).s;
    (void)snprintf(pointer, sizeof(pointer), "/hosts");
    if (own->host_index != CHECKS_NONE) {
        (void)snprintf(pointer, sizeof(pointer), "/hosts/%u", own->host_index);
    }
    const struct problem where = checks_at(o, pointer);
    const char *listener = sc->c->kinds[K_LISTENER].items[own->listener]->name.s;
    problems_add(
        sc->c->p, SEVERITY_ERROR, "published_twice", &where,
        "The service \"%s\" publishes %s%s%s with the path \"%s\" on the listener \"%s\" "
        "already: change host or path here, or turn one of the two off.",
        other->name.s, host[0] != '\0' ? "\"" : "", host[0] != '\0' ? host : "any host",
        host[0] != '\0' ? "\"" : "", object_text(o, F_SERVICE_PATH).s, listener);
}

static void
publish(struct service_check *sc, struct published own)
{
    const struct kind_list *services = &sc->c->kinds[K_SERVICE];
    const struct object *o = services->items[own.service - 1];
    struct text host = host_of(o, own.host_index);
    struct text path = path_of(o);
    own.hash = value_hash(value_hash(own.listener, host.s, host.len), path.s, path.len);
    size_t at = own.hash & sc->slot_mask;
    for (; sc->slots[at].service != 0; at = (at + 1) & sc->slot_mask) {
        const struct published *slot = &sc->slots[at];
        const struct object *other = services->items[slot->service - 1];
        if (slot->hash != own.hash || slot->listener != own.listener ||
            !same_text(host_of(other, slot->host_index), host) ||
            !same_text(path_of(other), path)) {
            continue;
        }
        if (sc->told != slot->service) {
            sc->told = slot->service;
            if (checks_blame_with(sc->c, o, other)) {
                report_twice(sc, other, slot, o);
            } else {
                report_twice(sc, o, &own, other);
            }
        }
        return;
    }
    sc->slots[at] = own;
}

static void
carry(struct service_check *sc, uint32_t service, uint32_t listener)
{
    const struct kind_list *services = &sc->c->kinds[K_SERVICE];
    const struct object *o = services->items[service - 1];
    const struct object *l = sc->c->kinds[K_LISTENER].items[listener];
    uint32_t before = sc->carried[listener];
    sc->carried[listener] = service;
    if (before == 0) {
        return;
    }
    const struct object *with = services->items[before - 1];
    bool turn = checks_blame_with(sc->c, o, with);
    const struct problem where = checks_at(turn ? with : o, "/listeners");
    problems_add(
        sc->c->p, SEVERITY_ERROR, "listener_taken", &where,
        "The listener \"%s\" has mode tcp and carries the service \"%s\" already: use a "
        "listener with another port, or turn one of the two services off.",
        l->name.s, turn ? o->name.s : with->name.s);
}

static void
check_service(struct service_check *sc, uint32_t service)
{
    const struct object *o = sc->c->kinds[K_SERVICE].items[service - 1];
    bool enabled = object_bool(o, F_SERVICE_ENABLED);
    const uint32_t *on = checks_targets(sc->c, K_SERVICE, service - 1, F_SERVICE_LISTENERS);
    uint32_t listeners = object_value(o, F_SERVICE_LISTENERS)->count;
    uint32_t hosts = object_value(o, F_SERVICE_HOSTS)->count;
    const struct object *tcp = NULL;
    sc->told = 0;
    bool one_mode = check_modes(sc->c, service);
    for (uint32_t i = 0; i < listeners; i++) {
        uint32_t pos = on[i];
        const struct object *l = checks_object(sc->c, K_LISTENER, pos);
        if (l == NULL) {
            continue;
        }
        if (is_tcp(l)) {
            tcp = l;
            if (enabled) {
                carry(sc, service, pos);
            }
            continue;
        }
        if (enabled && hosts == 0) {
            publish(sc, (struct published){0, pos, service, CHECKS_NONE});
        }
        for (uint32_t j = 0; enabled && j < hosts; j++) {
            publish(sc, (struct published){0, pos, service, j});
        }
    }
    if (tcp != NULL && one_mode) {
        check_tcp_fields(sc->c, o, tcp);
    }
}

static size_t
count_published(const struct kind_list *services)
{
    size_t count = 0;
    for (size_t i = 0; i < services->count; i++) {
        size_t hosts = object_value(services->items[i], F_SERVICE_HOSTS)->count;
        size_t listeners = object_value(services->items[i], F_SERVICE_LISTENERS)->count;
        count += listeners * (hosts > 0 ? hosts : 1);
    }
    return count;
}

static void
check_idle_listeners(const struct service_check *sc)
{
    const struct kind_list *listeners = &sc->c->kinds[K_LISTENER];
    for (size_t i = 0; i < listeners->count; i++) {
        const struct object *o = listeners->items[i];
        if (!is_tcp(o) || !object_bool(o, F_LISTENER_ENABLED) || sc->carried[i] != 0) {
            continue;
        }
        const struct problem where = checks_at(o, "");
        problems_add(
            sc->c->p, SEVERITY_WARNING, "no_service", &where,
            "No service that is on uses this listener of mode tcp, so connections "
            "to it lead nowhere: give it a service, or turn it off.");
    }
}

void
check_services(const struct checks *c)
{
    const struct kind_list *services = &c->kinds[K_SERVICE];
    struct service_check sc = {
        .c = c,
        .carried = xcalloc(c->kinds[K_LISTENER].count + 1, sizeof(uint32_t)),
        .slot_mask = checks_slots(count_published(services)) - 1,
    };
    sc.slots = xcalloc(sc.slot_mask + 1, sizeof(sc.slots[0]));
    for (size_t i = 0; i < services->count; i++) {
        check_service(&sc, (uint32_t)i + 1);
    }
    check_idle_listeners(&sc);
    free(sc.carried);
    free(sc.slots);
}
