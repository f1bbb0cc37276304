/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of a pool, and how HAProxy connects to them. */
#include "render/backend.h"
#include "render/quote.h"

static void
put_verify(struct writer *w)
{
    const struct object *o = w->object;
    struct text host = fields_text(o, F_POOL_VERIFYHOST);

    PUT(w->out, "    default-server ssl verify ");
    buf_puts(w->out, fields_word(o, F_POOL_TLS_VERIFY));
    if (fields_int(o, F_POOL_TLS_VERIFY) != V_POOL_TLS_VERIFY_NONE) {
        PUT(w->out, " ca-file ");
        if (fields_text(o, F_POOL_CA).len > 0) {
            PUT(w->out, "ca/");
            writer_put_text(w->out, o->name);
            PUT(w->out, ".pem");
            w->layout->ca_used = true;
        } else {
            PUT(w->out, "@system-ca");
        }
        if (host.len > 0) {
            PUT(w->out, " verifyhost ");
            quote_word(w->out, host);
        }
    }
    writer_end(w, F_POOL_TLS);
}

static void
put_sni(struct writer *w)
{
    int64_t sni = fields_int(w->object, F_POOL_SNI);

    if (sni == V_POOL_SNI_NONE) {
        return;
    }
    if (sni == V_POOL_SNI_HOST) {
        PUT(w->out, "    default-server sni req.hdr(host),host_only,lower");
    } else {
        /* A DNS name: nothing in it has a meaning in an expression. */
        PUT(w->out, "    default-server sni str(");
        writer_put_text(w->out, fields_text(w->object, F_POOL_SNI_NAME));
        PUT(w->out, ")");
    }
    writer_end(w, F_POOL_SNI);
}

static void
put_client_certificate(struct writer *w)
{
    const struct value *ref = object_field(w->object, F_POOL_CLIENT_CERTIFICATE);
    const struct object *c;

    if (ref->is_null) {
        return;
    }
    c = layout_follow(
        w->layout, w->object, F_POOL_CLIENT_CERTIFICATE, K_CERTIFICATE, ref->u.text);
    if (c == NULL) {
        return;
    }
    layout_use_certificate(w->layout, c);
    PUT(w->out, "    default-server crt crt/");
    buf_puts(w->out, c->id);
    PUT(w->out, ".pem");
    writer_end(w, F_POOL_CLIENT_CERTIFICATE);
}

static void
put_tls(struct writer *w)
{
    static const char *const protocols[] = {
        [V_POOL_ALPN_H1] = "http/1.1",
        [V_POOL_ALPN_H2] = "h2",
        [V_POOL_ALPN_H2_H1] = "h2,http/1.1",
    };
    int64_t alpn = fields_int(w->object, F_POOL_ALPN);

    put_verify(w);
    put_sni(w);
    if (alpn != V_POOL_ALPN_NONE) {
        PUT(w->out, "    default-server alpn ");
        buf_puts(w->out, protocols[alpn]);
        writer_end(w, F_POOL_ALPN);
    }
    put_client_certificate(w);
}

static void
put_common(struct writer *w)
{
    const struct object *o = w->object;
    int64_t proxy = fields_int(o, F_POOL_SEND_PROXY);

    if (fields_set(o, FIELDS_BIT(F_POOL_SLOWSTART_MS))) {
        writer_time(w, "default-server slowstart", F_POOL_SLOWSTART_MS);
    }
    if (proxy == V_POOL_SEND_PROXY_V1) {
        PUT(w->out, "    default-server send-proxy");
        writer_end(w, F_POOL_SEND_PROXY);
    } else if (proxy == V_POOL_SEND_PROXY_V2) {
        PUT(w->out, "    default-server send-proxy-v2");
        writer_end(w, F_POOL_SEND_PROXY);
    }
    if (fields_on(o, F_POOL_TLS)) {
        put_tls(w);
    }
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

/* " keyword N" unless it is the default, which stands for no limit. */
static void
put_limit(struct buf *out, const char *keyword, const struct object *server, unsigned field)
{
    if (fields_set(server, FIELDS_BIT(field))) {
        buf_puts(out, keyword);
        writer_put_int(out, fields_int(server, field));
    }
}

static bool
has_cookie(const struct object *pool)
{
    return fields_set(pool, FIELDS_BIT(F_POOL_STICK)) &&
           fields_int(pool, F_POOL_STICK) == V_POOL_STICK_COOKIE;
}

static void
put_member(struct writer *w, const struct value *member, const struct object *server)
{
    struct text address = fields_text(server, F_SERVER_ADDRESS);

    PUT(w->out, "    server ");
    writer_put_text(w->out, server->name);
    buf_putc(w->out, ' ');
    writer_put_address(w->out, address, fields_int(server, F_SERVER_PORT));
    PUT(w->out, " weight ");
    writer_put_int(w->out, member->u.items[F_POOL_MEMBERS_WEIGHT].u.i);
    put_limit(w->out, " maxconn ", server, F_SERVER_MAXCONN);
    put_limit(w->out, " maxqueue ", server, F_SERVER_MAXQUEUE);
    if (is_backup(member)) {
        PUT(w->out, " backup");
    }
    /* The id stays when a server is renamed, and tells visitors nothing. */
    if (has_cookie(w->object)) {
        PUT(w->out, " cookie ");
        buf_puts(w->out, server->id);
    }
    if (is_name(address)) {
        PUT(w->out, " resolvers lockstep.system");
        w->layout->names_resolved = true;
    }
    writer_end_of(w, server, F_SERVER_ADDRESS);
}

void
haproxy_members_write(struct writer *w, const struct object *const *servers)
{
    static const uint64_t common = FIELDS_BIT(F_POOL_SLOWSTART_MS) |
                                   FIELDS_BIT(F_POOL_SEND_PROXY) | FIELDS_BIT(F_POOL_TLS);
    const struct value *members = object_field(w->object, F_POOL_MEMBERS);
    uint32_t backups = 0;

    for (uint32_t i = 0; i < members->count && backups < 2; i++) {
        backups += is_backup(&members->u.items[i]) ? 1 : 0;
    }
    /* Otherwise the first of them would get everything. */
    if (backups == 2) {
        PUT(w->out, "    option allbackups");
        writer_end(w, F_POOL_MEMBERS);
    }
    if (fields_set(w->object, common)) {
        put_common(w);
    }
    for (uint32_t i = 0; i < members->count; i++) {
        if (servers[i] == NULL) {
            layout_dangling(w->layout, w->object, F_POOL_MEMBERS);
            continue;
        }
        put_member(w, &members->u.items[i], servers[i]);
    }
}

void
haproxy_clients_write(struct writer *w)
{
    const struct refs *refs = &w->layout->refs;

    /* HAProxy opens the certificate of a server late, when file names are not relative to the
     * configuration any more, but first looks whether a bind has loaded it before. */
    writer_fixed(
        w, "\n"
           "# Loads the certificates that are shown to servers; opens no port.\n"
           "frontend lockstep.certificates\n"
           "    disabled\n");
    for (size_t i = 0; i < refs->count[K_CERTIFICATE]; i++) {
        const struct object *c = refs->objects[K_CERTIFICATE][i];

        if (w->layout->certificate_listed[i] == LAYOUT_CLIENT) {
            PUT(w->out, "    bind 127.0.0.1:1 ssl crt crt/");
            buf_puts(w->out, c->id);
            PUT(w->out, ".pem");
            writer_end_of(w, c, F_CERTIFICATE_CHAIN);
        }
    }
}
