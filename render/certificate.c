/* SPDX-License-Identifier: Apache-2.0 */
/* crt-list/<listener>.list, crt/<id>.pem and ca/<pool>.pem. HAProxy shows the first certificate
 * of a list to visitors whose name fits none. */
#include <stdlib.h>

#include "render/quote.h"
#include "render/rendered.h"
#include "render/writer.h"

static void
put_entry(struct buf *out, const struct object *c)
{
    PUT(out, "# ");
    writer_put_text(out, c->name);
    PUT(out, "\ncrt/");
    buf_puts(out, c->id);
    PUT(out, ".pem\n");
}

/* True the first time that a certificate is asked for by a listener; number is not 0. */
static bool
is_new(struct layout *p, size_t pos, uint32_t number)
{
    if (p->certificate_listed[pos] == number) {
        return false;
    }
    p->certificate_listed[pos] = number;
    return true;
}

static void
put_own(struct buf *out, struct layout *p, const struct object *listener, uint32_t number)
{
    const struct value *own = object_field(listener, F_LISTENER_CERTIFICATES);

    if (own->count == 0) {
        PUT(out, "# placeholder: the listener names none itself\ncrt/placeholder.pem\n");
        p->placeholder_used = true;
    }
    for (uint32_t i = 0; i < own->count; i++) {
        const struct object *c = layout_follow(
            p, listener, F_LISTENER_CERTIFICATES, K_CERTIFICATE, own->u.items[i].u.text);

        if (c != NULL && is_new(p, refs_place(&p->refs, c), number)) {
            put_entry(out, c);
        }
    }
}

static int
by_pos(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void
put_of_services(
    struct buf *out, struct layout *p, const struct layout_listener *l, uint32_t number)
{
    uint32_t *found = p->certificate_found;
    size_t count = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        const struct object *service = p->services[p->routes[l->first + i]].object;
        const struct value *ref = object_field(service, F_SERVICE_CERTIFICATE);
        const struct object *c;
        size_t pos;

        if (ref->is_null) {
            continue;
        }
        c = layout_follow(p, service, F_SERVICE_CERTIFICATE, K_CERTIFICATE, ref->u.text);
        if (c == NULL) {
            continue;
        }
        pos = refs_place(&p->refs, c);
        if (is_new(p, pos, number)) {
            found[count++] = (uint32_t)pos;
        }
    }
    if (count > 0) {
        qsort(found, count, sizeof *found, by_pos);
    }
    for (size_t i = 0; i < count; i++) {
        put_entry(out, p->refs.objects[K_CERTIFICATE][found[i]]);
    }
}

static void
add_pem(struct rendered *r, const char *name, struct text chain, struct text key)
{
    struct artefact *a = rendered_add(r, "crt/", name, ".pem");

    a->secret = true;
    /* In one piece, so that growing leaves no copy of a key behind. */
    if (buf_reserve(&a->bytes, (size_t)chain.len + key.len)) {
        writer_put_text(&a->bytes, chain);
        writer_put_text(&a->bytes, key);
    }
}

void
certificate_write(struct rendered *r, struct layout *p)
{
    for (size_t i = 0; i < p->listener_count; i++) {
        const struct layout_listener *l = &p->listeners[i];
        struct artefact *a;

        if (fields_int(l->object, F_LISTENER_ENABLED) == 0 ||
            fields_int(l->object, F_LISTENER_TLS) == 0) {
            continue;
        }
        a = rendered_add(r, "crt-list/", l->object->name.s, ".list");
        a->object = l->object;
        put_own(&a->bytes, p, l->object, (uint32_t)i + 1);
        put_of_services(&a->bytes, p, l, (uint32_t)i + 1);
    }
    if (p->placeholder_used) {
        add_pem(r, "placeholder", quote_text(p->in->placeholder_pem), quote_text(""));
    }
    for (size_t i = 0; i < p->refs.count[K_CERTIFICATE]; i++) {
        const struct object *c = p->refs.objects[K_CERTIFICATE][i];

        if (p->certificate_listed[i] != 0) {
            add_pem(
                r, c->id, fields_text(c, F_CERTIFICATE_CHAIN),
                fields_text(c, F_CERTIFICATE_KEY));
            r->items[r->count - 1].object = c;
        }
    }
}

void
ca_write(struct rendered *r, struct layout *p)
{
    for (size_t i = 0; p->ca_used && i < p->refs.count[K_POOL]; i++) {
        const struct object *pool = p->refs.objects[K_POOL][i];
        struct text ca = fields_text(pool, F_POOL_CA);
        struct artefact *a;

        if (ca.len == 0 || fields_int(pool, F_POOL_ENABLED) == 0 ||
            fields_int(pool, F_POOL_TLS) == 0 ||
            fields_int(pool, F_POOL_TLS_VERIFY) == V_POOL_TLS_VERIFY_NONE) {
            continue;
        }
        a = rendered_add(r, "ca/", pool->name.s, ".pem");
        a->object = pool;
        writer_put_text(&a->bytes, ca);
    }
}
