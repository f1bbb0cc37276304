/* SPDX-License-Identifier: Apache-2.0 */
#include "model/webui.h"

#include <string.h>

enum webui_place
webui_place(const struct snapshot_pair *pair, const struct object **ret_listener)
{
    const struct object *o =
        pair->local != NULL ? snapshot_singleton(pair->local, K_WEBUI) : NULL;
    const struct object *l;

    *ret_listener = NULL;
    if (o == NULL || object_value(o, F_WEBUI_HOSTS)->count == 0) {
        return WEBUI_UNPUBLISHED;
    }
    l = pair->shared == NULL
            ? NULL
            : snapshot_by_name(pair->shared, K_LISTENER, object_text(o, F_WEBUI_LISTENER).s);
    *ret_listener = l;
    if (l == NULL) {
        return WEBUI_NO_LISTENER;
    }
    if (object_int(l, F_LISTENER_MODE) != V_LISTENER_MODE_HTTP) {
        return WEBUI_LISTENER_TCP;
    }
    return object_bool(l, F_LISTENER_ENABLED) ? WEBUI_PUBLISHED : WEBUI_LISTENER_OFF;
}

static bool
find_text(const struct value *list, struct text text, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct text item = list->u.items[i].u.text;

        if (item.len == text.len && memcmp(item.s, text.s, text.len) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool
has_text(const struct value *list, struct text text)
{
    uint32_t unused;

    return find_text(list, text, &unused);
}

static bool
is_on(const struct object *service, const struct object *listener)
{
    const struct text id = {listener->id, (uint32_t)strlen(listener->id)};

    return has_text(object_value(service, F_SERVICE_LISTENERS), id);
}

bool
webui_has_host(const struct object *webui, struct text host)
{
    return has_text(object_value(webui, F_WEBUI_HOSTS), host);
}

const struct object *
webui_taken_by(
    const struct snapshot_pair *pair, const struct object *listener, struct text host,
    uint32_t *ret_index)
{
    const struct object *o = snapshot_singleton(pair->local, K_WEBUI);
    const struct object *const *services;
    size_t count = snapshot_kind(pair->shared, K_SERVICE, &services);

    if (object_int(o, F_WEBUI_POSITION) == V_WEBUI_POSITION_FIRST) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct object *service = services[i];

        if (find_text(object_value(service, F_SERVICE_HOSTS), host, ret_index) &&
            strcmp(object_text(service, F_SERVICE_PATH).s, "/") == 0 &&
            is_on(service, listener)) {
            return service;
        }
    }
    return NULL;
}

bool
webui_meets(
    const struct object *webui, const struct object *service, const struct object *listener,
    uint32_t *ret_index)
{
    const struct value *hosts = object_value(service, F_SERVICE_HOSTS);

    for (uint32_t i = 0; i < hosts->count; i++) {
        if (webui_has_host(webui, hosts->u.items[i].u.text) && is_on(service, listener)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}
