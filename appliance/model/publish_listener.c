/* SPDX-License-Identifier: Apache-2.0 */
/* Which listeners a published service is on, and whether its place there is free. */
#include <string.h>

#include "base/arena.h"
#include "model/publish_plan.h"
#include "model/validate.h"

bool
plan_fits(const struct want *want, const struct object *listener)
{
    return object_int(listener, F_LISTENER_MODE) == want->mode &&
           object_bool(listener, F_LISTENER_TLS) == want->tls &&
           object_int(listener, F_LISTENER_PORT) == want->port;
}

static bool
is_enabled(const struct object *l)
{
    return object_bool(l, F_LISTENER_ENABLED);
}

static bool
has_listener(const struct object *service, const struct object *l)
{
    const struct value *on = object_value(service, F_SERVICE_LISTENERS);
    for (uint32_t i = 0; i < on->count; i++) {
        if (strcmp(on->u.items[i].u.text.s, l->id) == 0) {
            return true;
        }
    }
    return false;
}

bool
plan_has_host(const struct object *service, const char *host)
{
    const struct value *hosts = object_value(service, F_SERVICE_HOSTS);
    if (host[0] == '\0') {
        return hosts->count == 0;
    }
    for (uint32_t i = 0; i < hosts->count; i++) {
        if (strcmp(hosts->u.items[i].u.text.s, host) == 0) {
            return true;
        }
    }
    return false;
}

/* "/shop/" and "/shop" lead to the same requests. */
bool
plan_same_path(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    a_len -= a_len > 0 && a[a_len - 1] == '/';
    b_len -= b_len > 0 && b[b_len - 1] == '/';
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* What the other service and this one would both publish: a host, "" for any, or NULL. */
static const char *
common_host(const struct publish_request *r, const struct object *other)
{
    if (!plan_same_path(object_text(other, F_SERVICE_PATH).s, r->path)) {
        return NULL;
    }
    if (r->host_count == 0) {
        return plan_has_host(other, "") ? "" : NULL;
    }
    for (size_t i = 0; i < r->host_count; i++) {
        if (plan_has_host(other, r->hosts[i])) {
            return r->hosts[i];
        }
    }
    return NULL;
}

/* Whether no other service has our place on the listener. */
static void
check_free(struct plan *pl, const struct object *l)
{
    const struct object *const *services;
    size_t count = snapshot_kind(pl->shared, K_SERVICE, &services);
    bool tcp = object_int(l, F_LISTENER_MODE) == V_LISTENER_MODE_TCP;
    for (size_t i = 0; i < count; i++) {
        const struct object *o = services[i];
        if (o == pl->owned.service || !object_bool(o, F_SERVICE_ENABLED) ||
            !has_listener(o, l)) {
            continue;
        }
        const char *host = tcp ? NULL : common_host(&pl->r, o);
        if (tcp) {
            plan_problem(
                pl, "listener_taken", pl->r.url_pointer,
                "Port %d (listener \"%s\") is the service \"%s\" already: use another port, or "
                "give \"name\": \"%s\" to change that service.",
                pl->r.port, l->name.s, o->name.s, o->name.s);
            return;
        }
        if (host != NULL) {
            plan_problem(
                pl, "published_twice", pl->r.url_pointer,
                "%s%s with this path is the service \"%s\" already (listener \"%s\"): give "
                "\"name\": \"%s\" to change that service.",
                host, host[0] == '\0' ? "Any host" : "", o->name.s, l->name.s, o->name.s);
            return;
        }
    }
}

static void
use_listener(struct plan *pl, const struct object *l)
{
    json_array_append_new(pl->listeners, json_string(l->name.s));
    check_free(pl, l);
}

/* The listeners that the service is on and that fit: whoever put it there had a reason. */
static bool
use_present(struct plan *pl, const struct want *want)
{
    bool found = false;
    for (size_t i = 0; i < pl->owned.count; i++) {
        const struct object *l = pl->owned.items[i].o;
        if (l->kind == K_LISTENER && is_enabled(l) && plan_fits(want, l)) {
            use_listener(pl, l);
            found = true;
        }
    }
    return found;
}

/* The enabled listeners of the port: the one to use, preferring the usual name, and one that
 * is in the way. */
static const struct object *
find_listener(const struct plan *pl, const struct want *want, const struct object **ret_foreign)
{
    const struct object *const *items;
    size_t count = snapshot_kind(pl->shared, K_LISTENER, &items);
    const struct object *found = NULL;
    *ret_foreign = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct object *l = items[i];
        if (!is_enabled(l) || object_int(l, F_LISTENER_PORT) != want->port) {
            continue;
        }
        if (!plan_fits(want, l)) {
            *ret_foreign = l;
        } else if (found == NULL || strcmp(l->name.s, want->name) == 0) {
            found = l;
        }
    }
    return found;
}

static void
make_listener(struct plan *pl, const struct want *want)
{
    const char *name = want->name;
    for (int i = 2; snapshot_by_name(pl->shared, K_LISTENER, name) != NULL; i++) {
        name = arena_printf(pl->arena, "%s-%d", want->name, i);
    }
    plan_create(
        pl, K_LISTENER, name,
        json_pack(
            "{s:s, s:b, s:i}", "mode", want->mode == V_LISTENER_MODE_TCP ? "tcp" : "http",
            "tls", want->tls, "port", want->port));
    json_array_append_new(pl->listeners, json_string(name));
}

static void
put_listener(struct plan *pl, const struct want *want)
{
    const struct object *foreign;
    if (want->port == PORT_API) {
        plan_problem(
            pl, "reserved_port", pl->r.url_pointer,
            "Port %d belongs to the appliance itself: use another port.", want->port);
        return;
    }
    if (want->port == validate_peers_port(pl->in->now->local)) {
        plan_problem(
            pl, "reserved_port", pl->r.url_pointer,
            "Port %d is that of this node's stick tables (peers_port of the node): use another "
            "port.",
            want->port);
        return;
    }
    if (use_present(pl, want)) {
        return;
    }
    const struct object *found = find_listener(pl, want, &foreign);
    if (found != NULL) {
        use_listener(pl, found);
        return;
    }
    if (foreign != NULL) {
        plan_problem(
            pl, "listener_mode", pl->r.url_pointer,
            "Port %d is needed with mode %s and %s TLS, but the listener \"%s\" has it with "
            "mode %s and %s TLS: use another port, or change that listener.",
            want->port, want->mode == V_LISTENER_MODE_TCP ? "tcp" : "http",
            want->tls ? "with" : "without", foreign->name.s,
            object_int(foreign, F_LISTENER_MODE) == V_LISTENER_MODE_TCP ? "tcp" : "http",
            object_bool(foreign, F_LISTENER_TLS) ? "with" : "without");
        return;
    }
    const struct object *off = snapshot_by_name(pl->shared, K_LISTENER, want->name);
    if (off != NULL && !is_enabled(off) && plan_fits(want, off)) {
        plan_problem(
            pl, "listener_off", pl->r.url_pointer,
            "The listener \"%s\" for port %d is turned off: turn it on first.", off->name.s,
            want->port);
        return;
    }
    make_listener(pl, want);
}

/* A listener that was made for the port of the service alone goes when the service leaves. */
static void
delete_left(struct plan *pl)
{
    for (size_t i = 0; i < pl->owned.count; i++) {
        const struct owned *own = &pl->owned.items[i];
        if (own->o->kind != K_LISTENER || own->other != NULL ||
            !owned_is_port_listener(own->o)) {
            continue;
        }
        bool stays = false;
        for (size_t j = 0; j < json_array_size(pl->listeners); j++) {
            const char *name = json_string_value(json_array_get(pl->listeners, j));
            stays = stays || strcmp(name, own->o->name.s) == 0;
        }
        if (!stays) {
            plan_delete(pl, own->o);
        }
    }
}

struct want
plan_want(const struct plan *pl)
{
    static const char *const names[] = {
        [PUBLISH_HTTP] = "http", [PUBLISH_HTTPS] = "https", [PUBLISH_TCP] = "tcp"};
    const struct publish_request *r = &pl->r;
    const char *name = names[r->scheme];
    bool usual = (r->scheme == PUBLISH_HTTP && r->port == 80) ||
                 (r->scheme == PUBLISH_HTTPS && r->port == 443);
    return (struct want){
        .mode = r->scheme == PUBLISH_TCP ? V_LISTENER_MODE_TCP : V_LISTENER_MODE_HTTP,
        .tls = r->scheme == PUBLISH_HTTPS,
        .port = r->port,
        .name = usual ? name : arena_printf(pl->arena, "%s-%d", name, r->port),
    };
}

void
plan_listeners(struct plan *pl)
{
    const struct want want = plan_want(pl);
    pl->listeners = json_array();
    put_listener(pl, &want);
    if (pl->r.scheme == PUBLISH_HTTPS && pl->r.port == 443) {
        const struct want redirect = {V_LISTENER_MODE_HTTP, false, 80, "http"};
        put_listener(pl, &redirect);
    }
    delete_left(pl);
}
