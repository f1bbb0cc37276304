/* SPDX-License-Identifier: Apache-2.0 */
/* How the servers of a pool are checked. */
#include "model/probe_text.h"
#include "render/backend.h"
#include "render/monitor.h"
#include "render/quote.h"

#define BYTES_MAX ((size_t)4096) /* of what is sent or expected */

/* The check that is being written, and the pool whose servers it is for. */
struct check {
    struct writer *w;
    const struct object *monitor, *pool;
    int64_t type;
    int64_t port; /* the one that is checked, 0: the server's own */
};

static void
put_body(struct writer *w, int64_t match)
{
    if (match == V_MONITOR_BODY_MATCH_STRING) {
        PUT(w->out, "    http-check expect string ");
    } else {
        PUT(w->out, "    http-check expect rstring ");
    }
    quote_word(w->out, fields_text(w->object, F_MONITOR_EXPECT_BODY));
    writer_end(w, F_MONITOR_EXPECT_BODY);
}

static void
put_http(struct writer *w)
{
    static const uint64_t expected =
        FIELDS_BIT(F_MONITOR_EXPECT_STATUS) | FIELDS_BIT(F_MONITOR_BODY_MATCH);
    const struct object *m = w->object;
    struct text host = fields_text(m, F_MONITOR_HOST);

    PUT(w->out, "    option httpchk");
    writer_end(w, F_MONITOR_TYPE);
    PUT(w->out, "    http-check send meth ");
    buf_puts(w->out, fields_word(m, F_MONITOR_METHOD));
    PUT(w->out, " uri ");
    quote_word(w->out, fields_text(m, F_MONITOR_PATH));
    /* A request of HTTP/1.1 without a host would be wrong. */
    if (host.len > 0 &&
        fields_int(m, F_MONITOR_HTTP_VERSION) != V_MONITOR_HTTP_VERSION_HTTP1_0) {
        PUT(w->out, " ver HTTP/1.1");
    } else {
        PUT(w->out, " ver HTTP/1.0");
    }
    if (host.len > 0) {
        PUT(w->out, " hdr Host ");
        quote_format(w->out, host);
    }
    writer_end(w, F_MONITOR_PATH);
    /* Where nothing is expected HAProxy takes what the default names, 200 to 399. */
    if (fields_set(m, expected)) {
        PUT(w->out, "    http-check expect status ");
        quote_word(w->out, fields_text(m, F_MONITOR_EXPECT_STATUS));
        writer_end(w, F_MONITOR_EXPECT_STATUS);
    }
    if (fields_set(m, FIELDS_BIT(F_MONITOR_BODY_MATCH))) {
        put_body(w, fields_int(m, F_MONITOR_BODY_MATCH));
    }
}

/* A text with escapes as one word that stands for its bytes. */
static void
put_bytes(struct buf *out, struct text t)
{
    struct buf CLEANUP(buf_fini) bytes;

    buf_init(&bytes, BYTES_MAX);
    probe_text_put(&bytes, t);
    quote_word(out, (struct text){buf_str(&bytes), (uint32_t)bytes.len});
}

static void
put_step(struct writer *w, const struct value *step)
{
    static const char *const verbs[] = {
        [V_MONITOR_STEPS_ACTION_SEND] = "send ",
        [V_MONITOR_STEPS_ACTION_SEND_HEX] = "send-binary ",
        [V_MONITOR_STEPS_ACTION_EXPECT] = "expect string ",
        [V_MONITOR_STEPS_ACTION_EXPECT_HEX] = "expect binary ",
        [V_MONITOR_STEPS_ACTION_EXPECT_REGEX] = "expect rstring ",
    };
    int64_t action = step[F_MONITOR_STEPS_ACTION].u.i;
    struct text data = step[F_MONITOR_STEPS_DATA].u.text;

    PUT(w->out, "    tcp-check ");
    buf_puts(w->out, verbs[action]);
    if (action == V_MONITOR_STEPS_ACTION_SEND || action == V_MONITOR_STEPS_ACTION_EXPECT) {
        put_bytes(w->out, data);
    } else {
        quote_word(w->out, data);
    }
    writer_end(w, F_MONITOR_STEPS);
}

static void
put_script(struct writer *w)
{
    const struct value *steps = object_field(w->object, F_MONITOR_STEPS);

    PUT(w->out, "    option tcp-check");
    writer_end(w, F_MONITOR_TYPE);
    for (uint32_t i = 0; i < steps->count; i++) {
        put_step(w, steps->u.items[i].u.items);
    }
}

/* "    option NAME-check user USER" */
static void
put_database(struct writer *w, const char *option)
{
    struct text user = fields_text(w->object, F_MONITOR_USER);

    PUT(w->out, "    option ");
    buf_puts(w->out, option);
    if (user.len > 0) {
        PUT(w->out, " user ");
        quote_word(w->out, user);
    }
    writer_end(w, F_MONITOR_USER);
}

static void
put_talk(struct writer *w, int64_t type)
{
    switch (type) {
    case V_MONITOR_TYPE_HTTP: put_http(w); break;
    case V_MONITOR_TYPE_PGSQL: put_database(w, "pgsql-check"); break;
    case V_MONITOR_TYPE_MYSQL: put_database(w, "mysql-check"); break;
    case V_MONITOR_TYPE_REDIS:
        PUT(w->out, "    option redis-check");
        writer_end(w, F_MONITOR_TYPE);
        break;
    case V_MONITOR_TYPE_SMTP:
        PUT(w->out, "    option smtpchk EHLO ");
        quote_word(w->out, fields_text(w->object, F_MONITOR_DOMAIN));
        writer_end(w, F_MONITOR_DOMAIN);
        break;
    case V_MONITOR_TYPE_LDAP:
        PUT(w->out, "    option ldap-check");
        writer_end(w, F_MONITOR_TYPE);
        break;
    case V_MONITOR_TYPE_TCP_SCRIPT: put_script(w); break;
    case V_MONITOR_TYPE_TCP:
    case V_MONITOR_TYPE_TLS:
    case V_MONITOR_TYPE_AGENT: break; /* a connection is all there is to it */
    }
}

int64_t
monitor_port(const struct object *monitor)
{
    return fields_int(monitor, F_MONITOR_TYPE) == V_MONITOR_TYPE_AGENT
               ? 0
               : fields_int(monitor, F_MONITOR_PORT);
}

bool
monitor_uses_tls(const struct object *monitor, const struct object *pool)
{
    int64_t type = fields_int(monitor, F_MONITOR_TYPE);
    bool chosen = fields_set(monitor, FIELDS_BIT(F_MONITOR_TLS));

    if (type == V_MONITOR_TYPE_TLS) {
        return true;
    }
    /* The agent's check of the server itself has no choice of its own. */
    if (!chosen || type == V_MONITOR_TYPE_AGENT) {
        return monitor_port(monitor) == 0 && fields_on(pool, F_POOL_TLS);
    }
    return fields_int(monitor, F_MONITOR_TLS) == V_MONITOR_TLS_ON;
}

struct text
monitor_sni(const struct object *monitor, const struct object *pool)
{
    struct text sni = fields_text(monitor, F_MONITOR_SNI);
    int64_t of_pool =
        fields_on(pool, F_POOL_TLS) ? fields_int(pool, F_POOL_SNI) : V_POOL_SNI_NONE;
    const char *colon;

    if (sni.len > 0) {
        return sni;
    }
    if (of_pool == V_POOL_SNI_NAME) {
        return fields_text(pool, F_POOL_SNI_NAME);
    }
    if (of_pool == V_POOL_SNI_HOST &&
        fields_int(monitor, F_MONITOR_TYPE) == V_MONITOR_TYPE_HTTP) {
        sni = fields_text(monitor, F_MONITOR_HOST);
        colon = sni.len > 0 && sni.s[0] != '[' ? memchr(sni.s, ':', sni.len) : NULL;
        sni.len = colon != NULL ? (uint32_t)(colon - sni.s) : sni.len;
        return sni.len > 0 && sni.s[0] == '[' ? quote_text("") : sni;
    }
    return sni;
}

static void
put_check_tls(const struct check *c)
{
    struct writer *w = c->w;
    struct text sni = monitor_sni(c->monitor, c->pool);

    PUT(w->out, "    default-server check-ssl");
    /* HAProxy asks for it although the connections of visitors have no TLS. */
    if (!fields_on(c->pool, F_POOL_TLS)) {
        PUT(w->out, " verify none");
    } else if (
        c->type == V_MONITOR_TYPE_HTTP && fields_int(c->pool, F_POOL_ALPN) == V_POOL_ALPN_H2) {
        PUT(w->out, " check-alpn h2");
    }
    if (sni.len > 0) {
        PUT(w->out, " check-sni ");
        quote_word(w->out, sni);
    }
    writer_end(w, F_MONITOR_TLS);
}

/* What a check has in common with the connections of visitors, or not. */
static void
put_connection(const struct check *c)
{
    struct writer *w = c->w;

    if (monitor_uses_tls(c->monitor, c->pool)) {
        put_check_tls(c);
    } else if (c->port == 0 && fields_on(c->pool, F_POOL_TLS)) {
        PUT(w->out, "    default-server no-check-ssl");
        writer_end(w, F_MONITOR_TLS);
    }
    if (c->port != 0 && fields_on(c->monitor, F_MONITOR_SEND_PROXY)) {
        PUT(w->out, "    default-server check-send-proxy");
        writer_end(w, F_MONITOR_SEND_PROXY);
    }
}

static void
put_agent(struct writer *w)
{
    struct text send = fields_text(w->object, F_MONITOR_AGENT_SEND);

    PUT(w->out, "    default-server agent-check agent-port ");
    writer_put_int(w->out, fields_int(w->object, F_MONITOR_PORT));
    PUT(w->out, " agent-inter ");
    writer_put_ms(w->out, fields_int(w->object, F_MONITOR_INTERVAL_MS));
    if (send.len > 0) {
        PUT(w->out, " agent-send ");
        put_bytes(w->out, send);
    }
    writer_end(w, F_MONITOR_PORT);
}

/* What differs from the section "defaults". */
static void
put_pace(struct writer *w)
{
    const struct object *m = w->object;

    if (fields_differ(m, F_MONITOR_INTERVAL_MS)) {
        PUT(w->out, " inter ");
        writer_put_ms(w->out, fields_int(m, F_MONITOR_INTERVAL_MS));
    }
    if (fields_differ(m, F_MONITOR_RISE)) {
        PUT(w->out, " rise ");
        writer_put_int(w->out, fields_int(m, F_MONITOR_RISE));
    }
    if (fields_differ(m, F_MONITOR_FALL)) {
        PUT(w->out, " fall ");
        writer_put_int(w->out, fields_int(m, F_MONITOR_FALL));
    }
}

void
haproxy_monitor_write(struct writer *w, const struct object *monitor)
{
    static const uint64_t pace = FIELDS_BIT(F_MONITOR_INTERVAL_MS) |
                                 FIELDS_BIT(F_MONITOR_RISE) | FIELDS_BIT(F_MONITOR_FALL);
    struct check c = {
        .w = w,
        .monitor = monitor,
        .pool = w->object,
        .type = fields_int(monitor, F_MONITOR_TYPE),
        .port = monitor_port(monitor),
    };

    w->object = monitor;
    PUT(w->out, "    # check ");
    writer_put_text(w->out, monitor->name);
    writer_end(w, F_MONITOR_NAME);
    put_talk(w, c.type);
    writer_time_unless_default(w, "timeout check", F_MONITOR_TIMEOUT_MS);
    PUT(w->out, "    default-server check");
    if (fields_set(monitor, pace)) {
        put_pace(w);
    }
    if (c.port != 0) {
        PUT(w->out, " port ");
        writer_put_int(w->out, c.port);
    }
    writer_end(w, F_MONITOR_INTERVAL_MS);
    put_connection(&c);
    if (c.type == V_MONITOR_TYPE_AGENT) {
        put_agent(w);
    }
    w->object = c.pool;
}
