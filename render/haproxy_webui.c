/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own pages behind a listener that all nodes share: their names in its map, one
 * backend, and its files. */
#include "model/webui.h"
#include "render/quote.h"
#include "render/rule.h"

void
layout_webui_make(struct layout *p)
{
    const struct object *o = snapshot_singleton(p->in->objects.local, K_WEBUI);
    const struct object *listener;

    p->webui = (struct layout_webui){NULL};
    if (p->in->api_port == 0 || webui_place(&p->in->objects, &listener) != WEBUI_PUBLISHED) {
        return;
    }
    p->webui = (struct layout_webui){
        .object = o,
        .listener = &p->listeners[refs_place(&p->refs, listener)],
        .first = fields_int(o, F_WEBUI_POSITION) == V_WEBUI_POSITION_FIRST,
        .certified = fields_int(listener, F_LISTENER_TLS) != 0 &&
                     fields_text(o, F_WEBUI_CHAIN).len > 0 &&
                     fields_text(o, F_WEBUI_KEY).len > 0,
    };
}

bool
layout_webui_takes(const struct layout *p, const struct object *listener, struct text host)
{
    const struct layout_webui *x = &p->webui;

    return x->first && x->listener->object == listener && webui_has_host(x->object, host);
}

void
webui_put_map(struct buf *out, const struct layout *p)
{
    const struct value *hosts = object_field(p->webui.object, F_WEBUI_HOSTS);
    const struct object *listener = p->webui.listener->object;
    uint32_t unused;

    PUT(out, "# this node's own pages\n");
    for (uint32_t i = 0; i < hosts->count; i++) {
        struct text host = hosts->u.items[i].u.text;

        if (webui_taken_by(&p->in->objects, listener, host, &unused) == NULL) {
            writer_put_text(out, host);
            PUT(out, "/ " LAYOUT_BACKEND_WEBUI "\n");
        }
    }
}

void
haproxy_webui_write(struct writer *w)
{
    const struct render_input *in = w->layout->in;
    const struct object *o = w->layout->webui.object;

    if (o == NULL) {
        return;
    }
    writer_fixed(
        w, "\n"
           "# This node's own pages and API.\n");
    w->object = o;
    PUT(w->out, "backend " LAYOUT_BACKEND_WEBUI);
    writer_end(w, F_WEBUI_HOSTS);
    writer_fixed(
        w, "    # The node itself asks whether its pages are reached.\n"
           "    http-request set-var(txn.lockstep_own) bool(true)"
           " if { path " RENDER_WEBUI_PATH " } { src 127.0.0.0/8 ::1 }\n"
           "    acl lockstep.own var(txn.lockstep_own) -m found\n"
           "    http-request set-log-level silent if lockstep.own\n");
    if (object_field(o, F_WEBUI_ALLOWED_NETWORKS)->count > 0) {
        PUT(w->out, "    http-request deny status 403 if !lockstep.own !{ src");
        list_put(w->out, LIST_WEBUI, quote_text(""));
        PUT(w->out, " }");
        writer_end(w, F_WEBUI_ALLOWED_NETWORKS);
    }
    writer_fixed(
        w, "    # Nodes speak to each other directly.\n"
           "    http-request deny status 404 if { path_beg /peer/ }\n"
           "    # An apply may be waited for, and event streams do not end.\n"
           "    timeout server 1h\n");
    PUT(w->out, "    server api ");
    writer_put_address(w->out, quote_text(in->api_address), in->api_port);
    /* The rest of lockstepd's connections is for other nodes and this machine. */
    PUT(w->out, " maxconn 128 ssl verify required ca-file " WEBUI_CA);
    writer_end(w, F_WEBUI_HOSTS);
    w->object = NULL;
}

void
webui_write(struct rendered *r, struct layout *p)
{
    const struct object *o = p->webui.object;
    const struct value *networks;
    struct artefact *a;

    if (o == NULL) {
        return;
    }
    a = rendered_add(r, WEBUI_CA, "", "");
    writer_put_text(&a->bytes, quote_text(p->in->api_pem));
    networks = object_field(o, F_WEBUI_ALLOWED_NETWORKS);
    if (networks->count == 0) {
        return;
    }
    a = rendered_add(r, LIST_FOLDER LIST_WEBUI, "", LIST_SUFFIX);
    a->object = o;
    for (uint32_t i = 0; i < networks->count; i++) {
        writer_put_text(&a->bytes, networks->u.items[i].u.text);
        buf_putc(&a->bytes, '\n');
    }
}
