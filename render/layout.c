/* SPDX-License-Identifier: Apache-2.0 */
#include "render/layout.h"

#include <stdlib.h>

#include "render/fields.h"

void
layout_init(struct layout *p)
{
    *p = (struct layout){0};
    refs_init(&p->refs);
}

void
layout_fini(struct layout *p)
{
    refs_fini(&p->refs);
    free(p->listeners);
    free(p->services);
    free(p->pool_targets);
    free(p->pairs);
    free(p->routes);
    free(p->https_ports);
    free(p->rules);
    free(p->condition_used);
    free(p->certificate_listed);
    free(p->certificate_found);
    *p = (struct layout){0};
}

void
layout_problem(struct layout *p, const struct object *o, unsigned field, const char *text)
{
    const struct schema_kind *k = schema_kind(o->kind);
    struct error pointer;
    struct problem where = {.kind = k->name, .name = o->name.s, .pointer = pointer.msg};

    (void)error_set(&pointer, ERR_INVALID, "/%s", k->fields[field].name);
    problems_add(p->problems, SEVERITY_ERROR, "render", &where, "%s", text);
}

void
layout_dangling(struct layout *p, const struct object *o, unsigned field)
{
    layout_problem(p, o, field, "It refers to an object that does not exist.");
}

const struct object *
layout_follow(
    struct layout *p, const struct object *o, unsigned field, enum kind kind, struct text id)
{
    const struct object *to = refs_find(&p->refs, kind, id);

    if (to == NULL) {
        layout_dangling(p, o, field);
    }
    return to;
}

bool
layout_redirects(const struct layout_service *s, const struct object *listener)
{
    return s->https_port != 0 &&
           fields_int(listener, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP &&
           fields_int(listener, F_LISTENER_TLS) == 0;
}

bool
layout_serves(const struct layout_service *s, const struct object *listener)
{
    return fields_int(s->object, F_SERVICE_ENABLED) != 0 && !layout_redirects(s, listener);
}

/* Makes room for count items in an array that is filled anew. */
static void *
room(void *array, size_t *cap, size_t count, size_t item_bytes)
{
    if (count <= *cap) {
        return array;
    }
    *cap = count * 2;
    free(array);
    return xmalloc(*cap * item_bytes);
}

static void
make_listeners(struct layout *p)
{
    size_t count = p->refs.count[K_LISTENER];

    p->listeners = room(p->listeners, &p->listener_cap, count, sizeof *p->listeners);
    p->listener_count = count;
    for (size_t i = 0; i < count; i++) {
        p->listeners[i] = (struct layout_listener){.object = p->refs.objects[K_LISTENER][i]};
    }
    p->https_ports = room(p->https_ports, &p->https_port_cap, count, sizeof *p->https_ports);
    p->https_port_count = 0;
}

/* The smaller, the better as the place where plain requests are sent on to: one that is on,
 * then the port that needs no number in a URL. A listener that is off still counts, so that
 * turning it off does not make its services answer in clear. */
static uint32_t
https_rank(const struct object *listener)
{
    uint32_t port = (uint32_t)fields_int(listener, F_LISTENER_PORT);
    uint32_t off = fields_int(listener, F_LISTENER_ENABLED) != 0 ? 0 : 1;

    return off << 17 | (port == 443 ? 0u : 1u) << 16 | port;
}

static void
add_pair(struct layout *p, uint32_t listener, uint32_t service)
{
    if (p->pair_count == p->pair_cap) {
        p->pair_cap = p->pair_cap == 0 ? 64 : p->pair_cap * 2;
        p->pairs = xrealloc(p->pairs, p->pair_cap * sizeof *p->pairs);
    }
    p->pairs[p->pair_count++] = (struct layout_pair){listener, service};
}

static void
make_service(struct layout *p, uint32_t index)
{
    const struct object *o = p->refs.objects[K_SERVICE][index];
    const struct value *listeners = object_field(o, F_SERVICE_LISTENERS);
    struct layout_service *s = &p->services[index];
    uint32_t best = UINT32_MAX;

    *s = (struct layout_service){
        .object = o,
        .guarded = fields_differ(o, F_SERVICE_ALLOWED_NETWORKS) ||
                   fields_differ(o, F_SERVICE_RATE_LIMIT),
    };
    s->pool = layout_follow(p, o, F_SERVICE_POOL, K_POOL, fields_text(o, F_SERVICE_POOL));
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct object *listener;
        size_t pos;

        listener =
            layout_follow(p, o, F_SERVICE_LISTENERS, K_LISTENER, listeners->u.items[i].u.text);
        if (listener == NULL) {
            continue;
        }
        if (fields_int(listener, F_LISTENER_TLS) != 0 && https_rank(listener) < best) {
            best = https_rank(listener);
        }
        if (fields_int(listener, F_LISTENER_ENABLED) != 0) {
            pos = refs_place(&p->refs, listener);
            p->listeners[pos].count++;
            add_pair(p, (uint32_t)pos, index);
        }
    }
    if (best != UINT32_MAX && fields_int(o, F_SERVICE_REDIRECT_HTTPS) != 0) {
        s->https_port = best & 0xffffu;
    }
}

static void
add_https_port(struct layout *p, uint32_t port)
{
    size_t at = p->https_port_count;

    for (size_t i = 0; i < p->https_port_count; i++) {
        if (p->https_ports[i] == port) {
            return;
        }
    }
    for (; at > 0 && p->https_ports[at - 1] > port; at--) {
        p->https_ports[at] = p->https_ports[at - 1];
    }
    p->https_ports[at] = port;
    p->https_port_count++;
}

/* One service on one enabled listener. */
static void
make_route(struct layout *p, const struct layout_pair *pair)
{
    struct layout_listener *l = &p->listeners[pair->listener];
    struct layout_service *s = &p->services[pair->service];
    bool http = fields_int(l->object, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP;
    bool enabled = fields_int(s->object, F_SERVICE_ENABLED) != 0;

    p->routes[l->first + l->count++] = pair->service;
    if (s->pool != NULL && (fields_int(s->pool, F_POOL_MODE) == V_POOL_MODE_HTTP) != http) {
        layout_problem(
            p, s->object, F_SERVICE_POOL,
            http ? "A listener in http mode needs a pool in http mode."
                 : "A listener in tcp mode needs a pool in tcp mode.");
    }
    if (enabled && layout_redirects(s, l->object)) {
        add_https_port(p, s->https_port);
    } else if (enabled) {
        s->served = true;
        p->tables_used = p->tables_used || fields_differ(s->object, F_SERVICE_RATE_LIMIT);
        l->guarded = l->guarded || s->guarded;
    }
    if (enabled && !http && l->tcp_service != NULL) {
        layout_problem(
            p, s->object, F_SERVICE_LISTENERS,
            "Another service has this listener already: in tcp mode there is one.");
    } else if (enabled && !http) {
        l->tcp_service = s;
    }
}

static void
make_routes(struct layout *p)
{
    uint32_t first = 0;

    p->routes = room(p->routes, &p->route_cap, p->pair_count, sizeof *p->routes);
    for (size_t i = 0; i < p->listener_count; i++) {
        p->listeners[i].first = first;
        first += p->listeners[i].count;
        p->listeners[i].count = 0;
    }
    for (size_t i = 0; i < p->pair_count; i++) {
        make_route(p, &p->pairs[i]);
    }
}

void
layout_make(struct layout *p, const struct render_input *in, struct problems *problems)
{
    size_t certificates;

    p->in = in;
    p->problems = problems;
    p->haproxy = snapshot_singleton(in->objects.shared, K_HAPROXY);
    p->node = snapshot_singleton(in->objects.local, K_NODE);
    p->names_resolved = false;
    p->placeholder_used = false;
    p->tables_used = false;
    p->ca_used = false;
    p->clients_used = false;
    refs_build(&p->refs, in->objects.shared);
    make_listeners(p);
    p->service_count = p->refs.count[K_SERVICE];
    p->services = room(p->services, &p->service_cap, p->service_count, sizeof *p->services);
    p->pair_count = 0;
    for (size_t i = 0; i < p->service_count; i++) {
        if (i + 4 < p->service_count) {
            refs_fetch(p->refs.objects[K_SERVICE][i + 4], LAYOUT_SERVICE_BYTES);
        }
        make_service(p, (uint32_t)i);
    }
    layout_rules_make(p);
    make_routes(p);
    layout_webui_make(p);
    p->pool_target_count = 0;
    certificates = p->refs.count[K_CERTIFICATE];
    p->certificate_listed = room(
        p->certificate_listed, &p->listed_cap, certificates, sizeof *p->certificate_listed);
    p->certificate_found =
        room(p->certificate_found, &p->found_cap, certificates, sizeof *p->certificate_found);
    for (size_t i = 0; i < certificates; i++) {
        p->certificate_listed[i] = 0;
    }
}

void
layout_use_certificate(struct layout *p, const struct object *certificate)
{
    p->certificate_listed[refs_place(&p->refs, certificate)] = LAYOUT_CLIENT;
    p->clients_used = true;
}
