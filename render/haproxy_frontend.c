/* SPDX-License-Identifier: Apache-2.0 */
/* The frontends: one for the prober, one for each listener that is on. */
#include "model/vip.h"
#include "render/rule.h"

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
    if (fields_text(w->layout->haproxy, F_HAPROXY_LOG_TARGET).len > 0) {
        writer_fixed(w, "    no log\n");
    }
    writer_fixed(
        w, "    timeout client 5s\n"
           "    monitor-uri " RENDER_PROBE_PATH "\n"
           "    # Which files HAProxy runs: \"show map " RUNNING_MAP "\" tells.\n"
           "    http-request set-var(txn.lockstep_running) str(" RUNNING_KEY
           "),map(" RUNNING_MAP ")\n");
}

/* Names of HTTP's versions behind "alpn". */
static void
put_alpn(struct buf *out, const struct object *o)
{
    const struct value *alpn = object_field(o, F_LISTENER_ALPN);
    const struct schema_field *f = &schema_kind(K_LISTENER)->fields[F_LISTENER_ALPN];

    PUT(out, " alpn ");
    if (alpn->count == 0) {
        PUT(out, "h2,http/1.1");
    }
    for (uint32_t i = 0; i < alpn->count; i++) {
        buf_puts(out, i > 0 ? "," : "");
        buf_puts(out, f->values[alpn->u.items[i].u.i]);
    }
}

static void
put_tls(struct buf *out, const struct object *o)
{
    PUT(out, " ssl crt-list crt-list/");
    writer_put_text(out, o->name);
    PUT(out, ".list");
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
        put_alpn(out, o);
    }
    if (fields_differ(o, F_LISTENER_TLS_MIN_VERSION)) {
        PUT(out, " ssl-min-ver ");
        buf_puts(out, fields_word(o, F_LISTENER_TLS_MIN_VERSION));
    }
    if (fields_int(o, F_LISTENER_STRICT_SNI) != 0) {
        PUT(out, " strict-sni");
    }
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
    /* So that it can be bound while another node has the address. */
    if (vip_holds(w->layout->in->objects.shared, address)) {
        PUT(w->out, " transparent");
    }
    if (fields_int(o, F_LISTENER_ACCEPT_PROXY) != 0 &&
        object_field(o, F_LISTENER_ACCEPT_PROXY_NETWORKS)->count == 0) {
        PUT(w->out, " accept-proxy");
    }
    if (fields_int(o, F_LISTENER_TLS) != 0) {
        put_tls(w->out, o);
    }
    writer_end(w, F_LISTENER_ADDRESSES);
}

static void
put_log(struct writer *w)
{
    static const char http_json[] =
        "    log-format \"{\\\"client\\\":\\\"%ci\\\",\\\"port\\\":%cp,"
        "\\\"listener\\\":\\\"%f\\\",\\\"pool\\\":\\\"%b\\\",\\\"server\\\":\\\"%s\\\","
        "\\\"method\\\":\\\"%[capture.req.method,bytes(0,32),json(utf8s)]\\\","
        "\\\"host\\\":\\\"%[var(txn.lockstep_host),bytes(0,255),json(utf8s)]\\\","
        "\\\"uri\\\":\\\"%[capture.req.uri,json(utf8s)]\\\","
        "\\\"status\\\":%ST,\\\"bytes\\\":%B,\\\"connect_ms\\\":%Tc,"
        "\\\"response_ms\\\":%Tr,\\\"total_ms\\\":%Tt,\\\"end\\\":\\\"%tsc\\\"}\"\n";
    static const char tcp_json[] =
        "    log-format \"{\\\"client\\\":\\\"%ci\\\",\\\"port\\\":%cp,"
        "\\\"listener\\\":\\\"%f\\\",\\\"pool\\\":\\\"%b\\\",\\\"server\\\":\\\"%s\\\","
        "\\\"bytes\\\":%B,\\\"connect_ms\\\":%Tc,\\\"total_ms\\\":%Tt,"
        "\\\"end\\\":\\\"%ts\\\"}\"\n";
    const struct object *haproxy = w->layout->haproxy;
    const struct object *listener = w->object;
    bool http = fields_int(listener, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP;
    int64_t format = fields_int(haproxy, F_HAPROXY_LOG_FORMAT);

    if (fields_text(haproxy, F_HAPROXY_LOG_TARGET).len == 0) {
        return;
    }
    w->object = NULL;
    if (format == V_HAPROXY_LOG_FORMAT_JSON) {
        writer_fixed(w, http ? http_json : tcp_json);
    } else if (!http) {
        writer_fixed(w, "    option tcplog\n");
    } else if (format == V_HAPROXY_LOG_FORMAT_CLF) {
        writer_fixed(w, "    option httplog clf\n");
    } else {
        writer_fixed(w, "    option httplog\n");
    }
    w->object = listener;
}

/* Who may connect, in the order in which HAProxy looks: before and behind the PROXY
 * protocol. */
static void
put_access(struct writer *w, const struct layout_listener *l)
{
    const struct object *o = w->object;
    bool proxy = fields_int(o, F_LISTENER_ACCEPT_PROXY) != 0;
    const char *when = proxy ? "    tcp-request session reject if !{ src"
                             : "    tcp-request connection reject if !{ src";

    if (proxy && object_field(o, F_LISTENER_ACCEPT_PROXY_NETWORKS)->count > 0) {
        PUT(w->out, "    tcp-request connection expect-proxy layer4 if { src");
        list_put(w->out, LIST_PROXY, o->name);
        PUT(w->out, " }");
        writer_end(w, F_LISTENER_ACCEPT_PROXY_NETWORKS);
    }
    if (fields_differ(o, F_LISTENER_ALLOWED_NETWORKS)) {
        buf_puts(w->out, when);
        list_put(w->out, LIST_LISTENER, o->name);
        PUT(w->out, " }");
        writer_end(w, F_LISTENER_ALLOWED_NETWORKS);
    }
    if (l->tcp_service != NULL &&
        fields_differ(l->tcp_service->object, F_SERVICE_ALLOWED_NETWORKS)) {
        buf_puts(w->out, when);
        list_put(w->out, LIST_SERVICE, l->tcp_service->object->name);
        PUT(w->out, " }");
        writer_end_of(w, l->tcp_service->object, F_SERVICE_ALLOWED_NETWORKS);
    }
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

static bool
is_ruled(const struct layout_listener *l)
{
    return l->guarded || l->rules.count > 0;
}

/* What LAYOUT_PATH cannot bring to one spelling and no client has a reason to send: segments
 * "." and ".." between slashes of any kind; backslashes and bytes that are no ASCII; characters
 * encoded without need, control characters, longer UTF-8 than there is, and "%" without two
 * digits. */
static void
put_spellings(struct writer *w)
{
    writer_fixed(
        w, "    # Rules and allowed networks are asked of one spelling of a path.\n"
           "    http-request deny status 400 if"
           " { path -m reg -i '(/|%2f|%5c)[.][.]?(/|%2f|%5c|;|%3b|$)' } ||"
           " { path -m reg '[^]-~!-[]' }\n"
           "    http-request deny status 400 if { path -m reg -i"
           " '%([01][0-9a-f]|2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9aef]|c[01]|"
           "[^0-9a-f]|.[^0-9a-f]|.?$)' }\n");
}

static void
put_route(struct writer *w, const struct layout_listener *l)
{
    static const char unless_found[] = " unless { var(txn.lockstep_backend) -m found }";

    writer_fixed(
        w,
        "    option idle-close-on-response\n"
        "    # Anything else would be looked up as another name than a server takes it for.\n"
        "    http-request deny status 400 if { req.fhdr(host) -m found } !{ req.fhdr(host) -m"
        " reg '^([A-Za-z0-9._-]*|[[][0-9A-Fa-f:.]+[]])(:[0-9]*)?$' }\n"
        "    http-request deny status 400 if !{ req.fhdr(host) -m found } !{ url -m beg / * }\n"
        "    # The node itself asks whether this listener answers.\n"
        "    http-request set-log-level silent if { req.fhdr(host) " RENDER_PROBE_HOST " }\n"
        "    http-request return status 200 if { req.fhdr(host) " RENDER_PROBE_HOST " }\n");
    if (is_ruled(l)) {
        put_spellings(w);
    }
    writer_fixed(
        w, "    # Longest path of the host as it is, else of *.(the rest of it), else of any.\n"
           "    http-request set-var(txn.lockstep_host) "
           "req.fhdr(host),host_only,lower,rtrim(.)\n"
           "    http-request set-var(txn.lockstep_rest) var(txn.lockstep_host),field(2,.,0)\n");
    writer_fixed(
        w, is_ruled(l) ? "    http-request set-var(txn.lockstep_path)"
                         " " LAYOUT_PATH ",concat(/)\n"
                       : "    http-request set-var(txn.lockstep_path) path,concat(/)\n");
    put_lookup(w, "var(txn.lockstep_host)", "");
    put_lookup(w, "str(*.),concat(,txn.lockstep_rest)", unless_found);
    put_lookup(w, "str(*)", unless_found);
    if (l->guarded) {
        writer_fixed(
            w, "    # Services with more than a pool are found by name, for their rules.\n"
               "    http-request set-var(txn.lockstep_service) var(txn.lockstep_backend)\n"
               "    http-request set-var(txn.lockstep_backend) var(txn.lockstep_service),"
               "map(map/" LAYOUT_SERVICE_MAP ".map)"
               " if { var(txn.lockstep_service) -m beg " LAYOUT_SERVICE " }\n");
    }
}

/* Headers that a proxy in front may have set; a visitor could have as well. */
static void
put_forwarded_kept(struct writer *w, bool tls)
{
    PUT(w->out, "    http-request set-var(txn.lockstep_trusted) bool(true) if { src");
    list_put(w->out, LIST_TRUSTED, w->object->name);
    PUT(w->out, " }");
    writer_end(w, F_LISTENER_TRUSTED_PROXIES);
    writer_fixed(
        w, "    acl lockstep.trusted var(txn.lockstep_trusted) -m found\n"
           "    http-request del-header Forwarded\n"
           "    http-request del-header X-Real-IP\n"
           "    http-request del-header X-Forwarded-For unless lockstep.trusted\n"
           "    http-request del-header X-Forwarded-Proto unless lockstep.trusted\n"
           "    http-request del-header X-Forwarded-Host unless lockstep.trusted\n"
           "    http-request del-header X-Forwarded-Port unless lockstep.trusted\n"
           "    http-request set-src req.hdr_ip(X-Forwarded-For,-1) if lockstep.trusted"
           " { req.hdr_ip(X-Forwarded-For,-1) -m found }\n"
           "    http-request set-header X-Forwarded-For %[src]"
           " unless { req.hdr(X-Forwarded-For) -m found }\n");
    writer_fixed(
        w, tls ? "    http-request set-header X-Forwarded-Proto https"
                 " unless { req.hdr(X-Forwarded-Proto) -m found }\n"
               : "    http-request set-header X-Forwarded-Proto http"
                 " unless { req.hdr(X-Forwarded-Proto) -m found }\n");
    writer_fixed(
        w, "    http-request set-header X-Forwarded-Host %[req.hdr(host)]"
           " if { req.hdr(host) -m found } !{ req.hdr(X-Forwarded-Host) -m found }\n"
           "    http-request set-header X-Forwarded-Port %[dst_port]"
           " unless { req.hdr(X-Forwarded-Port) -m found }\n");
}

static void
put_forwarded(struct writer *w, bool tls)
{
    writer_fixed(
        w, "    # Servers believe these: what a visitor sent under the same names goes.\n"
           "    http-request del-header Forwarded\n"
           "    http-request del-header X-Real-IP\n"
           "    http-request del-header X-Forwarded-Host\n"
           "    http-request set-header X-Forwarded-For %[src]\n");
    writer_fixed(
        w, tls ? "    http-request set-header X-Forwarded-Proto https\n"
               : "    http-request set-header X-Forwarded-Proto http\n");
    writer_fixed(
        w, "    http-request set-header X-Forwarded-Host %[req.hdr(host)]"
           " if { req.hdr(host) -m found }\n"
           "    http-request set-header X-Forwarded-Port %[dst_port]\n");
}

static void
put_http(struct writer *w, const struct layout_listener *l)
{
    bool tls = fields_int(w->object, F_LISTENER_TLS) != 0;

    put_route(w, l);
    if (fields_differ(w->object, F_LISTENER_TRUSTED_PROXIES)) {
        put_forwarded_kept(w, tls);
    } else {
        put_forwarded(w, tls);
    }
    if (is_ruled(l)) {
        rule_write_listener(w, l);
    }
    writer_fixed(
        w, "    use_backend %[var(txn.lockstep_backend)]\n"
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
    const struct value *addresses = object_field(o, F_LISTENER_ADDRESSES);

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
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_TCP) {
        writer_no_http_options(w, true);
    }
    for (uint32_t i = 0; i < addresses->count; i++) {
        put_bind(w, addresses->u.items[i].u.text);
    }
    if (fields_int(o, F_LISTENER_MAXCONN) != 0) {
        writer_int(w, "maxconn", F_LISTENER_MAXCONN);
    }
    writer_time(w, "timeout client", F_LISTENER_CLIENT_TIMEOUT_MS);
    put_log(w);
    writer_directives(w, F_LISTENER_EXTRA);
    put_access(w, l);
    if (fields_int(o, F_LISTENER_MODE) == V_LISTENER_MODE_HTTP) {
        put_http(w, l);
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
