/* SPDX-License-Identifier: Apache-2.0 */
#include "render/haproxy.h"

#include "render/rendered.h"
#include "render/rule.h"
#include "render/writer.h"

static size_t
write_config(struct rendered *r, struct layout *p)
{
    struct writer w = {
        .out = &rendered_add(r, "", "haproxy.cfg", "")->bytes,
        .rendered = r,
        .layout = p,
    };

    haproxy_global_write(&w);
    haproxy_frontend_write(&w);
    haproxy_internal_write(&w);
    haproxy_webui_write(&w);
    haproxy_rate_write(&w);
    haproxy_backend_write(&w);
    if (p->clients_used) {
        haproxy_clients_write(&w);
    }
    haproxy_peers_write(&w);
    if (p->names_resolved) {
        haproxy_resolvers_write(&w);
    }
    return w.digest_at;
}

err_t
render_haproxy(
    const struct render_input *in, struct rendered *out, struct problems *p, struct error *e)
{
    struct layout *layout = &out->state->layout;
    size_t errors = p->errors;
    size_t digest_at;
    err_t err;

    rendered_begin(out);
    layout_make(layout, in, p);
    digest_at = write_config(out, layout);
    map_write(out, layout);
    list_write(out, layout);
    certificate_write(out, layout);
    ca_write(out, layout);
    webui_write(out, layout);
    error_page_write(out, layout);
    if (p->errors != errors) {
        rendered_clear(out);
        return error_set(e, ERR_INVALID, "the objects cannot be rendered");
    }
    err = rendered_seal(out, digest_at, e);
    if (err != ERR_OK) {
        rendered_clear(out);
    }
    return err;
}
