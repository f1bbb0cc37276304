/* SPDX-License-Identifier: Apache-2.0 */
/* The sections "global" and "defaults". */
#include "render/writer.h"

/* A worker with a session that does not end lives on after a reload. HAProxy ends one that has
 * seen more reloads than these, whatever its age. */
#define OLD_WORKERS_MAX "50"
/* Bytes; HAProxy's own 1024 would cut a line behind a long URI, of which it logs 1023 bytes,
 * and leave broken JSON. Syslog servers take 8 KiB. */
#define LOG_LINE_MAX "8192"

/* HAProxy's "node" knows no colon, our names do. */
static void
put_node(struct writer *w)
{
    struct text name = fields_text(w->layout->node, F_NODE_NAME);

    PUT(w->out, "    node ");
    for (uint32_t i = 0; i < name.len; i++) {
        buf_putc(w->out, name.s[i] == ':' ? '-' : name.s[i]);
    }
    writer_end_of(w, w->layout->node, F_NODE_NAME);
}

/* RFC 5424 has the year and the zone in its time. */
static void
put_log(struct writer *w)
{
    struct text target = fields_text(w->object, F_HAPROXY_LOG_TARGET);

    if (target.len > 0) {
        PUT(w->out, "    log ");
        writer_put_text(w->out, target);
        PUT(w->out, " len " LOG_LINE_MAX " format rfc5424 local0");
        writer_end(w, F_HAPROXY_LOG_TARGET);
    }
}

static void
put_global(struct writer *w)
{
    writer_fixed(w, "\nglobal\n    default-path config\n");
    PUT(w->out, "    description \"" RUNNING_DESCRIPTION);
    w->digest_at = w->out->len;
    PUT(w->out, "0000000000000000\"");
    writer_end(w, -1);
    put_node(w);
    haproxy_localpeer_write(w);
    w->object = w->layout->haproxy;
    writer_int(w, "maxconn", F_HAPROXY_MAXCONN);
    PUT(w->out, "    mworker-max-reloads " OLD_WORKERS_MAX);
    writer_end(w, -1);
    PUT(w->out, "    hard-stop-after ");
    writer_put_ms(w->out, fields_int(w->object, F_HAPROXY_HARD_STOP_AFTER_S) * 1000);
    writer_end(w, F_HAPROXY_HARD_STOP_AFTER_S);
    if (fields_int(w->object, F_HAPROXY_NBTHREAD) != 0) {
        writer_int(w, "nbthread", F_HAPROXY_NBTHREAD);
    }
    put_log(w);
    w->object = NULL;
    PUT(w->out, "    stats socket ");
    writer_put_socket(w, "haproxy.sock");
    PUT(w->out, " level admin expose-fd listeners");
    writer_end(w, -1);
    PUT(w->out, "    server-state-file ");
    writer_put_run_path(w, SERVER_STATE_FILE);
    writer_end(w, -1);
    writer_fixed(
        w, "    user haproxy\n"
           "    group haproxy\n"
           "    ssl-default-bind-options ssl-min-ver TLSv1.2\n"
           "    tune.ssl.default-dh-param 2048\n");
    w->object = w->layout->haproxy;
    writer_directives(w, F_HAPROXY_EXTRA_GLOBAL);
    w->object = NULL;
}

static void
put_defaults(struct writer *w)
{
    /* The schema's defaults: pools and their checks write only what differs from them. */
    writer_fixed(
        w, "\n"
           "defaults\n"
           "    option http-keep-alive\n"
           "    option redispatch\n"
           "    load-server-state-from-file global\n");
    writer_default_word(w, "mode", K_POOL, F_POOL_MODE);
    writer_default_word(w, "balance", K_POOL, F_POOL_BALANCE);
    writer_default_word(w, "http-reuse", K_POOL, F_POOL_HTTP_REUSE);
    writer_default_int(w, "retries", K_POOL, F_POOL_RETRIES);
    writer_default_time(w, "timeout connect", K_POOL, F_POOL_CONNECT_TIMEOUT_MS);
    writer_default_time(w, "timeout queue", K_POOL, F_POOL_QUEUE_TIMEOUT_MS);
    writer_default_time(w, "timeout server", K_POOL, F_POOL_SERVER_TIMEOUT_MS);
    writer_default_time(w, "timeout tunnel", K_POOL, F_POOL_SERVER_TIMEOUT_MS);
    writer_default_time(w, "timeout check", K_MONITOR, F_MONITOR_TIMEOUT_MS);
    writer_default_time(w, "timeout client", K_LISTENER, F_LISTENER_CLIENT_TIMEOUT_MS);
    writer_default_time(w, "default-server inter", K_MONITOR, F_MONITOR_INTERVAL_MS);
    writer_default_int(w, "default-server rise", K_MONITOR, F_MONITOR_RISE);
    writer_default_int(w, "default-server fall", K_MONITOR, F_MONITOR_FALL);
    w->object = w->layout->haproxy;
    writer_time(w, "timeout http-request", F_HAPROXY_HTTP_REQUEST_TIMEOUT_MS);
    writer_time(w, "timeout http-keep-alive", F_HAPROXY_HTTP_KEEP_ALIVE_TIMEOUT_MS);
    w->object = NULL;
    /* A name server that does not answer must not keep HAProxy from starting. */
    writer_fixed(w, "    default-server init-addr last,none\n");
    w->object = w->layout->haproxy;
    for (size_t i = 0; i < ERROR_PAGE_COUNT; i++) {
        PUT(w->out, "    errorfile ");
        buf_i64(w->out, error_page_codes[i]);
        PUT(w->out, " error/");
        buf_i64(w->out, error_page_codes[i]);
        PUT(w->out, ".http");
        writer_end(w, F_HAPROXY_ERROR_TEXT);
    }
    if (fields_text(w->object, F_HAPROXY_LOG_TARGET).len > 0) {
        PUT(w->out, "    log global");
        writer_end(w, F_HAPROXY_LOG_TARGET);
    }
    writer_directives(w, F_HAPROXY_EXTRA_DEFAULTS);
    w->object = NULL;
}

void
haproxy_global_write(struct writer *w)
{
    writer_fixed(
        w, "# Written by Lockstep from its objects; the next apply replaces this file. Change\n"
           "# the objects instead. File names are relative to the folder of this file.\n");
    put_global(w);
    put_defaults(w);
}

void
haproxy_resolvers_write(struct writer *w)
{
    /* A name that does not exist any more takes its server out; a name server that is silent
     * does not: the last address stays in use. */
    writer_fixed(
        w, "\n"
           "resolvers lockstep.system\n"
           "    parse-resolv-conf\n"
           "    accepted_payload_size 8192\n"
           "    hold timeout 24h\n"
           "    hold refused 24h\n"
           "    hold other 24h\n");
}
