/* SPDX-License-Identifier: Apache-2.0 */
/* Which service a request without a name means, and what a new one is called. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/publish_plan.h"
#include "model/value.h"

#define SAFE_PREFIX  "site-"
#define SUFFIX_BYTES 5 /* "-9999" */
#define MAX_TRIES    9999

/* What the service is on decides what its URL is: with TLS it is the TLS listener, and the
 * others only redirect there. */
static bool
is_published_at(const struct plan *pl, const struct object *service, const struct want *want)
{
    const struct value *on = object_value(service, F_SERVICE_LISTENERS);
    bool found = false;
    for (uint32_t i = 0; i < on->count; i++) {
        const struct object *l =
            snapshot_by_id(pl->shared, K_LISTENER, on->u.items[i].u.text.s);
        if (l != NULL && object_bool(l, F_LISTENER_TLS) && !want->tls) {
            return false;
        }
        found = found || (l != NULL && plan_fits(want, l));
    }
    return found;
}

/* The service with the request's first URL; one that is on before one that is off. */
static const struct object *
find_by_url(const struct plan *pl)
{
    const struct want want = plan_want(pl);
    const struct object *const *services;
    size_t count = snapshot_kind(pl->shared, K_SERVICE, &services);
    const char *host = pl->r.host_count > 0 ? pl->r.hosts[0] : "";
    const struct object *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct object *o = services[i];
        if (!plan_has_host(o, host) ||
            !plan_same_path(object_text(o, F_SERVICE_PATH).s, pl->r.path) ||
            !is_published_at(pl, o, &want)) {
            continue;
        }
        if (found == NULL ||
            (!object_bool(found, F_SERVICE_ENABLED) && object_bool(o, F_SERVICE_ENABLED))) {
            found = o;
        }
    }
    return found;
}

static void
put_safe(struct buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                     (*s >= '0' && *s <= '9') || *s == '.' || *s == '_';
        buf_putc(out, plain ? *s : '-');
    }
}

/* The longest name that leaves room for the servers' labels and for a suffix. */
static size_t
room_for_name(const struct plan *pl)
{
    size_t label = strlen("s1000");
    for (size_t i = 0; i < pl->r.target_count; i++) {
        const char *own = pl->r.targets[i].label;
        if (own != NULL && strlen(own) > label) {
            label = strlen(own);
        }
    }
    size_t service = (size_t)schema_kind(K_SERVICE)->fields[F_SERVICE_NAME].max;
    size_t server = (size_t)schema_kind(K_SERVER)->fields[F_SERVER_NAME].max - 1 - label;
    return (service < server ? service : server) - SUFFIX_BYTES;
}

/* "app.example.test", "app.example.test-shop", "any.example.test", "tcp-5432", "http-8080". */
static const char *
made_name(const struct plan *pl)
{
    const struct publish_request *r = &pl->r;
    CLEANUP(buf_fini) struct buf name;
    buf_init(&name, 4096);
    if (r->host_count == 0) {
        buf_puts(&name, plan_want(pl).name);
    } else if (r->hosts[0][0] == '*') {
        buf_puts(&name, "any");
        put_safe(&name, r->hosts[0] + 1);
    } else {
        const char *host = r->hosts[0];
        if (strncmp(host, VALUE_RESERVED_PREFIX, strlen(VALUE_RESERVED_PREFIX)) == 0 ||
            host[0] == '_') {
            buf_puts(&name, SAFE_PREFIX);
        }
        put_safe(&name, host);
    }
    if (strcmp(r->path, "/") != 0) {
        put_safe(&name, r->path);
    }
    size_t len = name.len < room_for_name(pl) ? name.len : room_for_name(pl);
    while (len > 1 && strchr(".-_", name.data[len - 1]) != NULL) {
        len--;
    }
    return arena_memdup0(pl->arena, buf_str(&name), len);
}

const char *
plan_service_name(const struct plan *pl)
{
    if (pl->r.name != NULL) {
        return pl->r.name;
    }
    const struct object *found = find_by_url(pl);
    if (found != NULL) {
        return arena_strdup(pl->arena, found->name.s);
    }
    const char *made = made_name(pl);
    const char *name = made;
    for (int i = 2; i <= MAX_TRIES && !owned_is_free(pl->shared, name); i++) {
        name = arena_printf(pl->arena, "%s-%d", made, i);
    }
    return name;
}

err_t
publish_find(
    const char *url, const struct snapshot_pair *now, struct arena *arena, const char **ret,
    struct error *e)
{
    struct plan pl = {.shared = now->shared, .arena = arena};
    json_auto_t *text = json_string(url);
    struct problems problems;
    const struct object *found;

    problems_init(&problems, arena);
    if (!publish_parse_url(text, arena, &pl.r, &problems)) {
        return error_set(e, ERR_INVALID, "%s", problems.items[0].message);
    }
    found = find_by_url(&pl);
    if (found == NULL) {
        return error_set(e, ERR_NOT_FOUND, "no service is published at %s", url);
    }
    if (object_value(found, F_SERVICE_HOSTS)->count > 1) {
        return error_set(
            e, ERR_CONFLICT,
            "%s is one of %u hosts of the service %s: give its name to remove it with all of "
            "them, or change its hosts to remove only this one",
            pl.r.hosts[0], (unsigned)object_value(found, F_SERVICE_HOSTS)->count,
            found->name.s);
    }
    *ret = arena_strdup(arena, found->name.s);
    return ERR_OK;
}
