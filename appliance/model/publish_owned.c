/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects belong to a service, who else uses them, and their removal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/publish_plan.h"

static int
owned_order(const void *va, const void *vb)
{
    const struct object *a = ((const struct owned *)va)->o;
    const struct object *b = ((const struct owned *)vb)->o;
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return strcmp(a->id, b->id);
}

static void
add(struct owned_set *set, const struct object *o)
{
    if (o != NULL) {
        set->items[set->count++] = (struct owned){.o = o};
    }
}

/* First position whose name is not below prefix. */
static size_t
lower_bound(const struct object *const *items, size_t count, const char *prefix)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (strcmp(items[middle]->name.s, prefix) < 0) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

static bool
is_server_of(const struct object *server, const char *service)
{
    size_t len = strlen(service);
    const char *rest = server->name.s + len;
    return strncmp(server->name.s, service, len) == 0 && rest[0] == '.' &&
           strchr(rest + 1, '.') == NULL;
}

static bool
is_placeholder(const struct object *certificate)
{
    return object_int(certificate, F_CERTIFICATE_SOURCE) == V_CERTIFICATE_SOURCE_PLACEHOLDER;
}

static void
add_servers(struct owned_set *set, const struct snapshot *shared, const char *name)
{
    const struct object *const *servers;
    size_t count = snapshot_kind(shared, K_SERVER, &servers);
    size_t len = strlen(name);
    size_t at = lower_bound(servers, count, name);
    for (; at < count && strncmp(servers[at]->name.s, name, len) == 0; at++) {
        if (is_server_of(servers[at], name)) {
            add(set, servers[at]);
        }
    }
}

struct use_scan {
    struct owned_set *set;
    const struct object *user;
};

static void
note_user(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct use_scan *scan = ctx;
    const struct owned_set *set = scan->set;
    struct object key = {.kind = kind};
    (void)pointer;
    if (strlen(id) >= sizeof(key.id)) {
        return;
    }
    memcpy(key.id, id, strlen(id) + 1);
    struct owned probe = {.o = &key};
    struct owned *own = bsearch(&probe, set->items, set->count, sizeof(probe), owned_order);
    if (own != NULL && scan->user != set->service && scan->user != set->pool) {
        own->other = scan->user;
    }
}

static void
scan_users(struct owned_set *set, const struct snapshot *shared)
{
    static const enum kind users[] = {K_LISTENER, K_POOL, K_SERVICE};
    struct use_scan scan = {.set = set};
    for (size_t k = 0; k < ARRAY_LEN(users); k++) {
        const struct object *const *items;
        size_t count = snapshot_kind(shared, users[k], &items);
        for (size_t i = 0; i < count; i++) {
            scan.user = items[i];
            object_each_ref(items[i], note_user, &scan);
        }
    }
}

/* What a pool that others use consists of is theirs too. */
static void
share_with_users_of_pool(struct owned_set *set)
{
    const struct owned *pool =
        set->pool != NULL ? owned_find(set, K_POOL, set->pool->name.s) : NULL;
    if (pool == NULL || pool->other == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct owned *own = &set->items[i];
        if (own->other == NULL && (own->o->kind == K_SERVER || own->o->kind == K_MONITOR)) {
            own->other = pool->other;
        }
    }
}

void
owned_init(struct owned_set *set, const struct snapshot *shared, const char *name)
{
    const struct object *const *servers;
    size_t most = snapshot_kind(shared, K_SERVER, &servers) + 3;
    const struct value *listeners = NULL;
    *set = (struct owned_set){
        .service = snapshot_by_name(shared, K_SERVICE, name),
        .pool = snapshot_by_name(shared, K_POOL, name),
    };
    if (set->service != NULL) {
        listeners = object_value(set->service, F_SERVICE_LISTENERS);
        most += listeners->count;
    }
    set->items = xcalloc(most, sizeof(set->items[0]));
    add(set, set->pool);
    add(set, snapshot_by_name(shared, K_MONITOR, name));
    add(set, snapshot_by_name(shared, K_CERTIFICATE, name));
    add_servers(set, shared, name);
    for (uint32_t i = 0; listeners != NULL && i < listeners->count; i++) {
        add(set, snapshot_by_id(shared, K_LISTENER, listeners->u.items[i].u.text.s));
    }
    qsort(set->items, set->count, sizeof(set->items[0]), owned_order);
    scan_users(set, shared);
    share_with_users_of_pool(set);
}

bool
owned_is_free(const struct snapshot *shared, const char *name)
{
    const struct object *const *servers;
    size_t count = snapshot_kind(shared, K_SERVER, &servers);
    size_t len = strlen(name);
    const struct object *certificate = snapshot_by_name(shared, K_CERTIFICATE, name);
    if (snapshot_by_name(shared, K_SERVICE, name) != NULL ||
        snapshot_by_name(shared, K_POOL, name) != NULL ||
        snapshot_by_name(shared, K_MONITOR, name) != NULL ||
        (certificate != NULL && is_placeholder(certificate))) {
        return false;
    }
    size_t at = lower_bound(servers, count, name);
    for (; at < count && strncmp(servers[at]->name.s, name, len) == 0; at++) {
        if (is_server_of(servers[at], name)) {
            return false;
        }
    }
    return true;
}

void
owned_fini(struct owned_set *set)
{
    free(set->items);
}

struct owned *
owned_find(const struct owned_set *set, enum kind kind, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].o->kind == kind && strcmp(set->items[i].o->name.s, name) == 0) {
            return &set->items[i];
        }
    }
    return NULL;
}

bool
owned_is_port_listener(const struct object *listener)
{
    static const char *const prefixes[] = {"tcp", "http", "https"};
    int port = (int)object_int(listener, F_LISTENER_PORT);
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s-%d", prefixes[i], port);
        if (strcmp(listener->name.s, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool
goes_with_service(const struct owned *own)
{
    if (own->o->kind == K_LISTENER && !owned_is_port_listener(own->o)) {
        return false;
    }
    if (own->o->kind == K_CERTIFICATE && !is_placeholder(own->o)) {
        return false;
    }
    return own->other == NULL;
}

static err_t
add_delete(struct change_set *set, const struct object *o, struct arena *arena, struct error *e)
{
    struct change op = {
        .op = CHANGE_DELETE, .kind = o->kind, .name = arena_strdup(arena, o->name.s)};
    return change_set_add(set, op, e);
}

err_t
publish_remove_plan(
    const char *service, const struct snapshot_pair *now, struct arena *arena,
    struct change_set *set, struct error *e)
{
    CLEANUP(owned_fini) struct owned_set owned;
    owned_init(&owned, now->shared, service);
    if (owned.service == NULL) {
        return error_set(e, ERR_NOT_FOUND, "there is no service \"%s\"", service);
    }
    err_t err = add_delete(set, owned.service, arena, e);
    for (size_t i = 0; i < owned.count && err == ERR_OK; i++) {
        if (goes_with_service(&owned.items[i])) {
            err = add_delete(set, owned.items[i].o, arena, e);
        }
    }
    return err;
}
