/* SPDX-License-Identifier: Apache-2.0 */
/* The frontends: one for the prober, one for each listener that is on. */
#include "render/writer.h"

static void
put_probe(struct writer *w)
{
    writer_fixed(
        w, "\n"
           "# Answers the prober with 200 while HAProxy serves.\n"
           "frontend lockstep.probe\n");
    PUT(w->out, "    bind unix@");
    writer_put_socket(w, "probe.sock");
    writer_end(w, -1);
    writer_fixed(
        w, "    timeout client 5s\n"
           "    monitor-uri " RENDER_PROBE_PATH "\n"
           "    # Which files HAProxy runs: \"show map " RUNNING_MAP "\" tells.\n"
           "    http-request set-var(txn.lockstep_running) str(" RUNNING_KEY
           "),map(" RUNNING_MAP ")\n");
}

static void
put_bind(struct writer *w, struct text address)
{
    const struct object *o = w->object;

    PUT(w->out, "    bind ");
    writer_put_address(w->out, address, fields_int(o, F_LISTENER_PORT));
    /* The wildcard would take the IPv4 connections too. */
    if (address.len == 2 && memcmp(address.s, "::", 2) == 0) {
        PUT(w->out, " v6only");
    }
    if (fields_int(o, F_LISTENER_TLS) != 0) {
        PUT(w->out, " ssl crt-list crt-list/");
        writer_put_text(w->out, o->name);
        PUT(w->out, ".list");
        if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
            PUT(w->out, " alpn h2,http/1.1");
        }
    }
    writer_end(w, F_LISTENER_ADDRESSES);
}

/* "    http-request set-var(txn.lockstep_backend) KEY,map_beg(map/NAME.map)TAIL" */
static void
put_lookup(struct writer *w, const char *key, const char *tail)
{
    PUT(w->out, "    http-request set-var(txn.lockstep_backend) ");
    buf_puts(w->out, key);
    PUT(w->out, ",concat(,txn.lockstep_path),map_beg(map/");
    writer_put_text(w->out, w->object->name);
    PUT(w->out, ".map)");
    buf_puts(w->out, tail);
    writer_end(w, -1);
}

static void
put_http(struct writer *w)
{
    static const char unless_found[] = " unless { var(txn.lockstep_backend) -m found }";

    writer_fixed(
        w, "    option idle-close-on-response\n"
           "    # Longest path of the host as it is, else of *.(the rest of it), else of any.\n"
           "    http-request set-var(txn.lockstep_host) "
           "req.hdr(host),host_only,lower,rtrim(.)\n"
           "    http-request set-var(txn.lockstep_rest) var(txn.lockstep_host),field(2,.,0)\n"
           "    http-request set-var(txn.lockstep_path) path,concat(/)\n");
    put_lookup(w, "var(txn.lockstep_host)", "");
    put_lookup(w, "str(*.),concat(,txn.lockstep_rest)", unless_found);
    put_lookup(w, "str(*)", unless_found);
    writer_fixed(
        w, "    # Servers believe these: what a visitor sent under the same names goes.\n"
           "    http-request del-header Forwarded\n"
           "    http-request del-header X-Real-IP\n"
           "    http-request del-header X-Forwarded-Host\n"
           "    http-request set-header X-Forwarded-For %[src]\n");
    if (fields_int(w->object, F_LISTENER_TLS) != 0) {
        writer_fixed(w, "    http-request set-header X-Forwarded-Proto https\n");
    } else {
        writer_fixed(w, "    http-request set-header X-Forwarded-Proto http\n");
    }
    writer_fixed(
        w, "    http-request set-header X-Forwarded-Host %[req.hdr(host)]"
           " if { req.hdr(host) -m found }\n"
           "    http-request set-header X-Forwarded-Port %[dst_port]\n"
           "    use_backend %[var(txn.lockstep_backend)]\n"
           "    default_backend " LAYOUT_BACKEND_UNKNOWN "\n");
}

static void
put_tcp(struct writer *w, const struct layout_listener *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct object *service =
            w->layout->services[w->layout->routes[l->first + i]].object;

        PUT(w->out, "    # service ");
        writer_put_text(w->out, service->name);
        if (fields_int(service, F_SERVICE_ENABLED) == 0) {
            PUT(w->out, " (off)");
        }
        writer_end_of(w, service, F_SERVICE_NAME);
    }
    PUT(w->out, "    default_backend ");
    if (l->tcp_service != NULL && l->tcp_service->pool != NULL) {
        writer_put_text(w->out, l->tcp_service->pool->name);
        writer_end_of(w, l->tcp_service->object, F_SERVICE_POOL);
    } else {
        PUT(w->out, LAYOUT_BACKEND_REFUSE);
        writer_end(w, -1);
    }
}

static void
put_listener(struct writer *w, const struct layout_listener *l)
{
    const struct object *o = l->object;
    const struct value *addresses = &o->fields[F_LISTENER_ADDRESSES];

    writer_end(w, -1);
    w->object = o;
    PUT(w->out, "frontend ");
    writer_put_text(w->out, o->name);
    writer_end(w, F_LISTENER_NAME);
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
        PUT(w->out, "    mode http");
    } else {
        PUT(w->out, "    mode tcp");
    }
    writer_end(w, F_LISTENER_MODE);
    for (uint32_t i = 0; i < addresses->count; i++) {
        put_bind(w, addresses->u.items[i].u.text);
    }
    if (fields_int(o, F_LISTENER_MAXCONN) != 0) {
        writer_int(w, "maxconn", F_LISTENER_MAXCONN);
    }
    writer_time(w, "timeout client", F_LISTENER_CLIENT_TIMEOUT_MS);
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
        put_http(w);
    } else {
        put_tcp(w, l);
    }
    w->object = NULL;
}

void
haproxy_frontend_write(struct writer *w)
{
    put_probe(w);
    for (size_t i = 0; i < w->layout->listener_count; i++) {
        const struct layout_listener *l = &w->layout->listeners[i];

        if (fields_int(l->object, F_LISTENER_ENABLED) != 0) {
            put_listener(w, l);
        }
    }
}
