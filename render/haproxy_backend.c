/* SPDX-License-Identifier: Apache-2.0 */
/* The backends: those that answer by themselves, and one for each pool. */
#include "render/quote.h"
#include "render/writer.h"

#define AHEAD 12 /* targets of pools */

static void
put_redirect(struct writer *w, uint32_t port)
{
    writer_end(w, -1);
    PUT(w->out, "backend " LAYOUT_BACKEND_REDIRECT);
    writer_put_int(w->out, port);
    writer_end(w, -1);
    PUT(w->out, "    http-request redirect location https://%[var(txn.lockstep_host)]");
    if (port != 443) {
        PUT(w->out, ":");
        writer_put_int(w->out, port);
    }
    PUT(w->out, "%[pathq] code 308 if { var(txn.lockstep_host) -m len gt 0 }");
    writer_end(w, -1);
    writer_fixed(
        w, "    http-request return status 400 content-type \"text/plain; charset=utf-8\""
           " string \"The request names no host.\\n\"\n");
}

void
haproxy_internal_write(struct writer *w)
{
    writer_fixed(
        w, "\n"
           "# No service has this host and path.\n"
           "backend " LAYOUT_BACKEND_UNKNOWN "\n"
           "    http-request return status 404 content-type \"text/plain; charset=utf-8\""
           " hdr Cache-Control no-store string \"Nothing is published at this address.\\n\"\n"
           "\n"
           "# The service is off.\n"
           "backend " LAYOUT_BACKEND_DISABLED "\n"
           "    http-request return status 503 default-errorfiles\n"
           "\n"
           "# The service is off, or there is none.\n"
           "backend " LAYOUT_BACKEND_REFUSE "\n"
           "    mode tcp\n"
           "    tcp-request content reject\n");
    for (size_t i = 0; i < w->layout->https_port_count; i++) {
        put_redirect(w, w->layout->https_ports[i]);
    }
}

static void
put_http_check(struct writer *w)
{
    const struct object *m = w->object;
    struct text host = fields_text(m, F_MONITOR_HOST);

    PUT(w->out, "    option httpchk");
    writer_end(w, F_MONITOR_TYPE);
    PUT(w->out, "    http-check send meth ");
    buf_puts(w->out, fields_word(m, F_MONITOR_METHOD));
    PUT(w->out, " uri ");
    quote_word(w->out, fields_text(m, F_MONITOR_PATH));
    /* A request of HTTP/1.1 without a host would be wrong. */
    if (host.len > 0) {
        PUT(w->out, " ver HTTP/1.1 hdr Host ");
        quote_format(w->out, host);
    } else {
        PUT(w->out, " ver HTTP/1.0");
    }
    writer_end(w, F_MONITOR_PATH);
    PUT(w->out, "    http-check expect status ");
    quote_word(w->out, fields_text(m, F_MONITOR_EXPECT_STATUS));
    writer_end(w, F_MONITOR_EXPECT_STATUS);
}

static void
put_monitor(struct writer *w, const struct object *m)
{
    const struct object *pool = w->object;
    int64_t port = fields_int(m, F_MONITOR_PORT);

    w->object = m;
    PUT(w->out, "    # check ");
    writer_put_text(w->out, m->name);
    writer_end(w, F_MONITOR_NAME);
    if (fields_int(m, F_MONITOR_TYPE) == V_MONITOR_TYPE_HTTP) {
        put_http_check(w);
    }
    writer_time_unless_default(w, "timeout check", F_MONITOR_TIMEOUT_MS);
    PUT(w->out, "    default-server check inter ");
    writer_put_ms(w->out, fields_int(m, F_MONITOR_INTERVAL_MS));
    PUT(w->out, " rise ");
    writer_put_int(w->out, fields_int(m, F_MONITOR_RISE));
    PUT(w->out, " fall ");
    writer_put_int(w->out, fields_int(m, F_MONITOR_FALL));
    if (port != 0) {
        PUT(w->out, " port ");
        writer_put_int(w->out, port);
    }
    writer_end(w, F_MONITOR_INTERVAL_MS);
    w->object = pool;
}

/* An address is a literal or a DNS name, and the last label of a name is never a number. */
static bool
is_name(struct text address)
{
    size_t i = address.len;

    if (memchr(address.s, ':', address.len) != NULL) {
        return false;
    }
    while (i > 0 && address.s[i - 1] >= '0' && address.s[i - 1] <= '9') {
        i--;
    }
    return i > 0 && address.s[i - 1] != '.';
}

static bool
is_backup(const struct value *member)
{
    return member->u.items[F_POOL_MEMBERS_ROLE].u.i == V_POOL_MEMBERS_ROLE_BACKUP;
}

static void
put_member(struct writer *w, const struct value *member, const struct object *server)
{
    struct text address = fields_text(server, F_SERVER_ADDRESS);
    int64_t maxconn = fields_int(server, F_SERVER_MAXCONN);

    PUT(w->out, "    server ");
    writer_put_text(w->out, server->name);
    buf_putc(w->out, ' ');
    writer_put_address(w->out, address, fields_int(server, F_SERVER_PORT));
    PUT(w->out, " weight ");
    writer_put_int(w->out, member->u.items[F_POOL_MEMBERS_WEIGHT].u.i);
    if (maxconn != 0) {
        PUT(w->out, " maxconn ");
        writer_put_int(w->out, maxconn);
    }
    if (is_backup(member)) {
        PUT(w->out, " backup");
    }
    if (is_name(address)) {
        PUT(w->out, " resolvers lockstep.system");
        w->layout->names_resolved = true;
    }
    writer_end_of(w, server, F_SERVER_ADDRESS);
}

static void
put_members(struct writer *w, const struct object *const *servers)
{
    const struct value *members = &w->object->fields[F_POOL_MEMBERS];
    uint32_t backups = 0;

    for (uint32_t i = 0; i < members->count && backups < 2; i++) {
        backups += is_backup(&members->u.items[i]) ? 1 : 0;
    }
    /* Otherwise the first of them would get everything. */
    if (backups == 2) {
        PUT(w->out, "    option allbackups");
        writer_end(w, F_POOL_MEMBERS);
    }
    for (uint32_t i = 0; i < members->count; i++) {
        if (servers[i] == NULL) {
            layout_dangling(w->layout, w->object, F_POOL_MEMBERS);
            continue;
        }
        put_member(w, &members->u.items[i], servers[i]);
    }
}

static void
put_pool(struct writer *w, const struct object *o, const struct object *const *targets)
{
    w->object = NULL;
    writer_end(w, -1);
    w->object = o;
    PUT(w->out, "backend ");
    writer_put_text(w->out, o->name);
    writer_end(w, F_POOL_NAME);
    writer_word_unless_default(w, "mode", F_POOL_MODE);
    writer_word_unless_default(w, "balance", F_POOL_BALANCE);
    writer_int_unless_default(w, "retries", F_POOL_RETRIES);
    writer_time_unless_default(w, "timeout connect", F_POOL_CONNECT_TIMEOUT_MS);
    writer_time_unless_default(w, "timeout queue", F_POOL_QUEUE_TIMEOUT_MS);
    writer_time_unless_default(w, "timeout server", F_POOL_SERVER_TIMEOUT_MS);
    /* Else the client's timeout would cut a WebSocket or TCP session that the pool allows. */
    writer_time_unless_default(w, "timeout tunnel", F_POOL_SERVER_TIMEOUT_MS);
    if (targets[0] != NULL) {
        put_monitor(w, targets[0]);
    } else if (!o->fields[F_POOL_MONITOR].is_null) {
        layout_dangling(w->layout, o, F_POOL_MONITOR);
    }
    put_members(w, targets + 1);
}

void
haproxy_backend_write(struct writer *w)
{
    const struct refs *refs = &w->layout->refs;
    size_t count = refs->count[K_POOL];
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        const struct object *const *targets = w->layout->pool_targets + at;
        size_t members = refs->objects[K_POOL][i]->fields[F_POOL_MEMBERS].count;

        if (i + 4 < count) {
            refs_fetch(refs->objects[K_POOL][i + 4]);
        }
        for (size_t j = 0; j <= members && at + j + AHEAD < w->layout->pool_target_count; j++) {
            if (targets[j + AHEAD] != NULL) {
                refs_fetch(targets[j + AHEAD]);
            }
        }
        put_pool(w, refs->objects[K_POOL][i], targets);
        at += 1 + members;
    }
    w->object = NULL;
}
