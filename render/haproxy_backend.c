/* SPDX-License-Identifier: Apache-2.0 */
/* The backends: those that answer by themselves, and one for each pool. */
#include "render/backend.h"
#include "render/quote.h"

/* How far ahead, in pools, they and what they refer to are fetched, and how much of each. */
#define POOLS_AHEAD   8
#define TARGETS_AHEAD 4
#define POOL_BYTES    512
#define MONITOR_BYTES 320
#define SERVER_BYTES  256

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
           "    mode tcp\n");
    writer_no_http_options(w, false);
    writer_fixed(w, "    tcp-request content reject\n");
    for (size_t i = 0; i < w->layout->https_port_count; i++) {
        put_redirect(w, w->layout->https_ports[i]);
    }
}

/* The types that are compressed where a pool names none. */
#define COMPRESSED                                                                             \
    "text/html text/plain text/css text/xml text/javascript application/javascript "           \
    "application/json application/xml application/manifest+json image/svg+xml"

static void
put_uri(struct writer *w)
{
    const struct object *o = w->object;
    int64_t len = fields_int(o, F_POOL_URI_LEN);
    int64_t depth = fields_int(o, F_POOL_URI_DEPTH);

    /* HTTP/2 has the host in front of it. */
    PUT(w->out, " path-only");
    if (len != 0) {
        PUT(w->out, " len ");
        writer_put_int(w->out, len);
    }
    if (depth != 0) {
        PUT(w->out, " depth ");
        writer_put_int(w->out, depth);
    }
    if (fields_int(o, F_POOL_URI_WHOLE) != 0) {
        PUT(w->out, " whole");
    }
}

static void
put_hash(struct writer *w)
{
    const struct object *o = w->object;
    int64_t type = fields_int(o, F_POOL_HASH_TYPE);
    int64_t function = fields_int(o, F_POOL_HASH_FUNCTION);
    bool avalanche = fields_int(o, F_POOL_HASH_AVALANCHE) != 0;

    if (type == V_POOL_HASH_TYPE_MAP_BASED && function == V_POOL_HASH_FUNCTION_SDBM &&
        !avalanche) {
        return;
    }
    PUT(w->out, "    hash-type ");
    buf_puts(w->out, fields_word(o, F_POOL_HASH_TYPE));
    buf_putc(w->out, ' ');
    buf_puts(w->out, fields_word(o, F_POOL_HASH_FUNCTION));
    if (avalanche) {
        PUT(w->out, " avalanche");
    }
    writer_end(w, F_POOL_HASH_TYPE);
}

static void
put_balance(struct writer *w, int64_t balance)
{
    const struct object *o = w->object;

    PUT(w->out, "    balance ");
    buf_puts(w->out, fields_word(o, F_POOL_BALANCE));
    if (balance == V_POOL_BALANCE_URI) {
        put_uri(w);
    } else if (balance == V_POOL_BALANCE_URL_PARAM) {
        buf_putc(w->out, ' ');
        quote_word(w->out, fields_text(o, F_POOL_URL_PARAM));
    } else if (balance == V_POOL_BALANCE_HDR) {
        /* Letters, digits, "_", "." and "-": the brackets cannot be closed by it. */
        buf_putc(w->out, '(');
        writer_put_text(w->out, fields_text(o, F_POOL_HDR_NAME));
        buf_putc(w->out, ')');
    }
    writer_end(w, F_POOL_BALANCE);
    if (balance >= V_POOL_BALANCE_SOURCE) {
        put_hash(w);
    }
}

_Static_assert(
    V_POOL_BALANCE_SOURCE < V_POOL_BALANCE_URI &&
        V_POOL_BALANCE_URI < V_POOL_BALANCE_URL_PARAM &&
        V_POOL_BALANCE_URL_PARAM < V_POOL_BALANCE_HDR,
    "the rules that make a hash come last");

static void
put_cookie(struct writer *w)
{
    static const char *const same_site[] = {
        [V_POOL_COOKIE_SAMESITE_LAX] = " attr SameSite=Lax",
        [V_POOL_COOKIE_SAMESITE_STRICT] = " attr SameSite=Strict",
        [V_POOL_COOKIE_SAMESITE_NONE] = " attr SameSite=None",
    };
    const struct object *o = w->object;
    int64_t site = fields_int(o, F_POOL_COOKIE_SAMESITE);

    PUT(w->out, "    cookie ");
    quote_word(w->out, fields_text(o, F_POOL_COOKIE_NAME));
    PUT(w->out, " insert indirect nocache");
    if (fields_int(o, F_POOL_COOKIE_HTTPONLY) != 0) {
        PUT(w->out, " httponly");
    }
    if (fields_int(o, F_POOL_COOKIE_SECURE) != 0) {
        PUT(w->out, " secure");
    }
    if (site != V_POOL_COOKIE_SAMESITE_UNSET) {
        buf_puts(w->out, same_site[site]);
    }
    writer_end(w, F_POOL_STICK);
}

static void
put_stick(struct writer *w)
{
    const struct object *o = w->object;
    int64_t stick = fields_int(o, F_POOL_STICK);

    if (stick == V_POOL_STICK_COOKIE) {
        put_cookie(w);
    } else if (stick == V_POOL_STICK_SOURCE) {
        PUT(w->out, "    stick-table type ipv6 size ");
        writer_put_int(w->out, fields_int(o, F_POOL_STICK_TABLE_SIZE));
        PUT(w->out, " expire ");
        writer_put_ms(w->out, fields_int(o, F_POOL_STICK_TABLE_EXPIRE_MS));
        PUT(w->out, " peers " BACKEND_PEERS);
        writer_end(w, F_POOL_STICK);
        w->layout->tables_used = true;
        PUT(w->out, "    stick on src");
        writer_end(w, F_POOL_STICK);
    }
}

static void
put_compression(struct writer *w)
{
    const struct value *types = object_field(w->object, F_POOL_COMPRESSION_TYPES);

    PUT(w->out, "    compression algo gzip");
    writer_end(w, F_POOL_COMPRESSION);
    PUT(w->out, "    compression type");
    if (types->count == 0) {
        PUT(w->out, " " COMPRESSED);
    }
    for (uint32_t i = 0; i < types->count; i++) {
        buf_putc(w->out, ' ');
        quote_word(w->out, types->u.items[i].u.text);
    }
    writer_end(w, F_POOL_COMPRESSION_TYPES);
}

/* "    keyword TIME" of a field, unless the section "defaults" says the same. */
static void
put_time(struct writer *w, const char *keyword, unsigned field)
{
    int64_t ms = fields_int(w->object, field);

    if (ms == schema_kind(K_POOL)->fields[F_POOL_SERVER_TIMEOUT_MS].default_int) {
        return;
    }
    PUT(w->out, "    ");
    buf_puts(w->out, keyword);
    buf_putc(w->out, ' ');
    writer_put_ms(w->out, ms);
    writer_end(w, (int)field);
}

static void
put_timeouts(struct writer *w)
{
    const struct object *o = w->object;
    unsigned server = F_POOL_SERVER_TIMEOUT_MS;
    unsigned tunnel = F_POOL_SERVER_TIMEOUT_MS;

    if (fields_set(o, FIELDS_BIT(F_POOL_IDLE_TIMEOUT_MS))) {
        server = F_POOL_IDLE_TIMEOUT_MS;
        tunnel = F_POOL_IDLE_TIMEOUT_MS;
    } else if (fields_set(o, FIELDS_BIT(F_POOL_TUNNEL_TIMEOUT_MS))) {
        tunnel = F_POOL_TUNNEL_TIMEOUT_MS;
    }
    writer_time_unless_default(w, "timeout connect", F_POOL_CONNECT_TIMEOUT_MS);
    writer_time_unless_default(w, "timeout queue", F_POOL_QUEUE_TIMEOUT_MS);
    put_time(w, "timeout server", server);
    /* Else the client's timeout would cut a WebSocket or TCP session that the pool allows:
     * this one stands for both sides as soon as bytes are only passed on. */
    put_time(w, "timeout tunnel", tunnel);
}

/* Whoever leads here need not know that the pool is off. */
static void
put_off(struct writer *w)
{
    if (backend_is_http(w->object)) {
        PUT(w->out, "    http-request return status 503 default-errorfiles");
    } else {
        PUT(w->out, "    tcp-request content reject");
    }
    writer_end(w, F_POOL_ENABLED);
}

static void
put_http(struct writer *w)
{
    writer_word_unless_default(w, "http-reuse", F_POOL_HTTP_REUSE);
    if (fields_on(w->object, F_POOL_COMPRESSION)) {
        put_compression(w);
    }
}

/* What differs from the section "defaults". */
static void
put_settings(struct writer *w)
{
    const struct object *o = w->object;

    if (fields_set(o, FIELDS_BIT(F_POOL_BALANCE))) {
        put_balance(w, fields_int(o, F_POOL_BALANCE));
    }
    if (fields_set(o, FIELDS_BIT(F_POOL_STICK))) {
        put_stick(w);
    }
    if (backend_is_http(o)) {
        put_http(w);
    }
    writer_int_unless_default(w, "retries", F_POOL_RETRIES);
    put_timeouts(w);
}

static void
put_pool(struct writer *w, const struct object *o, const struct object *const *targets)
{
    static const uint64_t others =
        FIELDS_BIT(F_POOL_NAME) | FIELDS_BIT(F_POOL_MEMBERS) | FIELDS_BIT(F_POOL_MONITOR);

    w->object = NULL;
    writer_end(w, -1);
    w->object = o;
    PUT(w->out, "backend ");
    writer_put_text(w->out, o->name);
    writer_end(w, F_POOL_NAME);
    writer_word_unless_default(w, "mode", F_POOL_MODE);
    if (fields_int(o, F_POOL_MODE) == V_POOL_MODE_TCP) {
        writer_no_http_options(w, false);
    }
    if (fields_set(o, FIELDS_BIT(F_POOL_ENABLED))) {
        put_off(w);
        return;
    }
    if (fields_set(o, ~others)) {
        put_settings(w);
    }
    if (targets[0] != NULL) {
        haproxy_monitor_write(w, targets[0]);
    } else if (!object_field(o, F_POOL_MONITOR)->is_null) {
        layout_dangling(w->layout, o, F_POOL_MONITOR);
    }
    haproxy_members_write(w, targets + 1);
}

/* What a pool refers to: its monitor or NULL, then its members' servers, at the end of
 * pool_targets; and fetches it. */
static void
follow(struct layout *p, const struct object *pool)
{
    const struct value *monitor = object_field(pool, F_POOL_MONITOR);
    const struct value *members = object_field(pool, F_POOL_MEMBERS);
    size_t needed = p->pool_target_count + 1 + members->count;
    const struct object **to;

    if (needed > p->pool_target_cap) {
        p->pool_target_cap = needed * 2;
        p->pool_targets =
            xrealloc(p->pool_targets, p->pool_target_cap * sizeof *p->pool_targets);
    }
    to = &p->pool_targets[p->pool_target_count];
    p->pool_target_count = needed;
    *to = monitor->is_null ? NULL : refs_find(&p->refs, K_MONITOR, monitor->u.text);
    if (*to != NULL) {
        refs_fetch(*to, MONITOR_BYTES);
    }
    for (uint32_t i = 0; i < members->count; i++) {
        const struct value *member = &members->u.items[i].u.items[F_POOL_MEMBERS_SERVER];

        *++to = refs_find(&p->refs, K_SERVER, member->u.text);
        if (*to != NULL) {
            refs_fetch(*to, SERVER_BYTES);
        }
    }
}

void
haproxy_backend_write(struct writer *w)
{
    struct layout *p = w->layout;
    const struct object *const *pools = p->refs.objects[K_POOL];
    size_t count = p->refs.count[K_POOL];
    size_t fetched = 0;
    size_t followed = 0;
    size_t target = 0;

    for (size_t i = 0; i < count; i++) {
        for (; fetched < count && fetched <= i + POOLS_AHEAD; fetched++) {
            refs_fetch(pools[fetched], POOL_BYTES);
        }
        for (; followed < count && followed <= i + TARGETS_AHEAD; followed++) {
            follow(p, pools[followed]);
        }
        put_pool(w, pools[i], &p->pool_targets[target]);
        target += 1 + object_field(pools[i], F_POOL_MEMBERS)->count;
    }
    w->object = NULL;
}
