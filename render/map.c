/* SPDX-License-Identifier: Apache-2.0 */
/* map/<listener>.map: from host and path to a backend, or to a service that is guarded;
 * map/lockstep.service.map: from there to its pool. HAProxy takes the longest key that
 * the request begins with, whatever the order of lines; the slash that closes every key and
 * every look-up keeps /api from catching /apix. Keys are compared with the path as the
 * visitor sent it: //api, /api/../x and percent-encodings are not normalised. */
#include "render/quote.h"
#include "render/rendered.h"
#include "render/writer.h"

static void
put_target(struct buf *out, const struct layout_service *s, const struct object *listener)
{
    if (fields_int(s->object, F_SERVICE_ENABLED) == 0) {
        PUT(out, LAYOUT_BACKEND_DISABLED);
    } else if (layout_redirects(s, listener)) {
        PUT(out, LAYOUT_BACKEND_REDIRECT);
        buf_i64(out, s->https_port);
    } else if (s->guarded) {
        PUT(out, LAYOUT_SERVICE);
        writer_put_text(out, s->object->name);
    } else {
        writer_put_text(out, s->pool->name);
    }
    buf_putc(out, '\n');
}

static void
put_service(
    struct buf *out, struct layout *p, const struct layout_service *s,
    const struct object *listener)
{
    const struct value *hosts = object_field(s->object, F_SERVICE_HOSTS);
    struct text path = fields_text(s->object, F_SERVICE_PATH);
    uint32_t i = 0;

    if (!quote_is_plain(path)) {
        layout_problem(
            p, s->object, F_SERVICE_PATH,
            "Write the path as it stands in a URL, with percent-encoding.");
        return;
    }
    while (path.len > 0 && path.s[path.len - 1] == '/') {
        path.len--;
    }
    PUT(out, "# ");
    writer_put_text(out, s->object->name);
    buf_putc(out, '\n');
    do {
        if (hosts->count > 0 && layout_webui_takes(p, listener, hosts->u.items[i].u.text)) {
            continue;
        }
        if (hosts->count == 0) {
            buf_putc(out, '*');
        } else {
            writer_put_text(out, hosts->u.items[i].u.text);
        }
        writer_put_text(out, path);
        PUT(out, "/ ");
        put_target(out, s, listener);
    } while (++i < hosts->count);
}

static void
write_services(struct rendered *r, const struct layout *p)
{
    struct artefact *a = rendered_add(r, "map/", LAYOUT_SERVICE_MAP, ".map");

    for (size_t i = 0; i < p->service_count; i++) {
        const struct layout_service *s = &p->services[i];

        if (s->guarded && s->served && s->pool != NULL &&
            fields_int(s->pool, F_POOL_MODE) == V_POOL_MODE_HTTP) {
            PUT(&a->bytes, LAYOUT_SERVICE);
            writer_put_text(&a->bytes, s->object->name);
            buf_putc(&a->bytes, ' ');
            writer_put_text(&a->bytes, s->pool->name);
            buf_putc(&a->bytes, '\n');
        }
    }
}

void
map_write(struct rendered *r, struct layout *p)
{
    bool guarded = false;

    for (size_t i = 0; i < p->listener_count; i++) {
        const struct layout_listener *l = &p->listeners[i];
        struct artefact *a;

        if (fields_int(l->object, F_LISTENER_ENABLED) == 0 ||
            fields_int(l->object, F_LISTENER_MODE) != V_LISTENER_MODE_HTTP) {
            continue;
        }
        a = rendered_add(r, "map/", l->object->name.s, ".map");
        a->object = l->object;
        guarded = guarded || l->guarded;
        if (l == p->webui.listener) {
            webui_put_map(&a->bytes, p);
        }
        for (uint32_t j = 0; j < l->count; j++) {
            const struct layout_service *s = &p->services[p->routes[l->first + j]];

            if (j + 4 < l->count) {
                refs_fetch(
                    p->services[p->routes[l->first + j + 4]].object, LAYOUT_SERVICE_BYTES);
            }
            if (s->pool != NULL) {
                put_service(&a->bytes, p, s, l->object);
            }
        }
    }
    if (guarded) {
        write_services(r, p);
    }
}
