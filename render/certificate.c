/* SPDX-License-Identifier: Apache-2.0 */
/* crt-list/<listener>.list, crt/<id>.pem and ca/<pool>.pem. Of equal names the certificates of
 * services come first, those for which a service has the name before others, then the
 * listener's own in their order, but last the first, which is shown where no name fits. That of
 * this node's own pages goes before or behind all of them. */
#include <stdlib.h>

#include "render/quote.h"
#include "render/rendered.h"
#include "render/sni.h"
#include "render/writer.h"

/* A service that names a certificate. */
struct named {
    const struct object *service;
    size_t pos; /* of the certificate */
};

/* The list of one listener. */
struct list {
    struct layout *p;
    const struct layout_listener *l;
    struct sni *sni;
    uint32_t number;     /* in certificate_listed; not 0 */
    uint32_t *own;       /* places of the listener's certificates, in its order */
    struct named *named; /* by name of service */
    size_t own_count, named_count;
};

/* True the first time that a certificate is asked for by a listener. */
static bool
is_new(const struct list *x, size_t pos)
{
    if (x->p->certificate_listed[pos] == x->number) {
        return false;
    }
    x->p->certificate_listed[pos] = x->number;
    return true;
}

/* Whether this node's own pages bring a certificate here, at this position. */
static bool
has_webui(const struct list *x, bool first)
{
    const struct layout_webui *webui = &x->p->webui;

    return webui->listener == x->l && webui->certified && webui->first == first;
}

static void
find_own(struct list *x)
{
    const struct object *listener = x->l->object;
    const struct value *own = object_field(listener, F_LISTENER_CERTIFICATES);

    x->own = xmalloc((own->count + 1) * sizeof *x->own);
    for (uint32_t i = 0; i < own->count; i++) {
        const struct object *c = layout_follow(
            x->p, listener, F_LISTENER_CERTIFICATES, K_CERTIFICATE, own->u.items[i].u.text);

        if (c != NULL) {
            x->own[x->own_count++] = (uint32_t)refs_place(&x->p->refs, c);
        }
    }
}

static void
find_named(struct list *x)
{
    x->named = xmalloc((x->l->count + 1) * sizeof *x->named);
    for (uint32_t i = 0; i < x->l->count; i++) {
        const struct object *service = x->p->services[x->p->routes[x->l->first + i]].object;
        const struct value *ref = object_field(service, F_SERVICE_CERTIFICATE);
        const struct object *c;

        if (ref->is_null) {
            continue;
        }
        c = layout_follow(x->p, service, F_SERVICE_CERTIFICATE, K_CERTIFICATE, ref->u.text);
        if (c != NULL) {
            x->named[x->named_count++] = (struct named){service, refs_place(&x->p->refs, c)};
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
add_lines(const struct list *x)
{
    uint32_t *found = x->p->certificate_found;
    size_t count = 0;

    if (has_webui(x, true)) {
        sni_add_line(x->sni, SNI_WEBUI);
    } else if (x->own_count == 0) {
        sni_add_line(x->sni, SNI_PLACEHOLDER);
        x->p->placeholder_used = true;
    }
    for (size_t i = 0; i < x->own_count; i++) {
        if (is_new(x, x->own[i])) {
            sni_add_line(x->sni, x->own[i]);
        }
    }
    for (size_t i = 0; i < x->named_count; i++) {
        if (is_new(x, x->named[i].pos)) {
            found[count++] = (uint32_t)x->named[i].pos;
        }
    }
    if (count > 0) {
        qsort(found, count, sizeof *found, by_pos);
    }
    for (size_t i = 0; i < count; i++) {
        sni_add_line(x->sni, found[i]);
    }
    if (has_webui(x, false)) {
        sni_add_line(x->sni, SNI_WEBUI);
    }
}

static void
give_names(const struct list *x)
{
    if (has_webui(x, true)) {
        sni_give_webui(x->sni);
    }
    for (size_t i = 0; i < x->named_count; i++) {
        const struct value *hosts = object_field(x->named[i].service, F_SERVICE_HOSTS);

        for (uint32_t j = 0; j < hosts->count; j++) {
            sni_give_host(x->sni, x->named[i].pos, hosts->u.items[j].u.text);
        }
    }
    for (size_t i = 0; i < x->named_count; i++) {
        sni_give_names(x->sni, x->named[i].pos, SNI_OF_SERVICE);
    }
    for (size_t i = 1; i < x->own_count; i++) {
        sni_give_names(x->sni, x->own[i], SNI_OF_LISTENER);
    }
    if (x->own_count > 0) {
        sni_give_names(x->sni, x->own[0], SNI_DEFAULT);
    }
    if (has_webui(x, false)) {
        sni_give_webui(x->sni);
    }
}

static void
put_list(struct buf *out, struct list *x)
{
    sni_start(x->sni);
    find_own(x);
    find_named(x);
    add_lines(x);
    give_names(x);
    sni_write(x->sni, out);
    free(x->own);
    free(x->named);
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
    CLEANUP(sni_cleanup) struct sni *sni = NULL;

    for (size_t i = 0; i < p->listener_count; i++) {
        const struct layout_listener *l = &p->listeners[i];
        struct list x = {.p = p, .l = l, .number = (uint32_t)i + 1};
        struct artefact *a;

        if (fields_int(l->object, F_LISTENER_ENABLED) == 0 ||
            fields_int(l->object, F_LISTENER_TLS) == 0) {
            continue;
        }
        a = rendered_add(r, "crt-list/", l->object->name.s, ".list");
        a->object = l->object;
        if (sni == NULL) {
            sni = sni_new(&p->refs, p->webui.certified ? p->webui.object : NULL);
        }
        x.sni = sni;
        put_list(&a->bytes, &x);
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
    if (p->webui.certified) {
        add_pem(
            r, p->webui.object->id, fields_text(p->webui.object, F_WEBUI_CHAIN),
            fields_text(p->webui.object, F_WEBUI_KEY));
        r->items[r->count - 1].object = p->webui.object;
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
