/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/refuse_tables.h"

#include <stdlib.h>
#include <string.h>

static const char *const global_words[] = {
    "busy-polling",
    "chroot",
    "close-spread-time",
    "cluster-secret",
    "cpu-map",
    "default-path",
    "description",
    "fd-hard-limit",
    "grace",
    "group",
    "h1-accept-payload-with-any-method",
    "h1-case-adjust",
    "h1-do-not-close-on-insecure-transfer-encoding",
    "h2-workaround-bogus-websocket-clients",
    "hard-stop-after",
    "http-err-codes",
    "http-fail-codes",
    "limited-quic",
    "localpeer",
    "log",
    "log-send-hostname",
    "log-tag",
    "max-spread-checks",
    "maxcompcpuusage",
    "maxcomprate",
    "maxconn",
    "maxconnrate",
    "maxpipes",
    "maxsessrate",
    "maxsslconn",
    "maxsslrate",
    "maxzlibmem",
    "mworker-max-reloads",
    "nbthread",
    "no-quic",
    "node",
    "numa-cpu-mapping",
    "pp2-never-send-local",
    "prealloc-fd",
    "server-state-base",
    "server-state-file",
    "set-var",
    "set-var-fmt",
    "spread-checks",
    "ssl-default-bind-ciphers",
    "ssl-default-bind-ciphersuites",
    "ssl-default-bind-client-sigalgs",
    "ssl-default-bind-curves",
    "ssl-default-bind-options",
    "ssl-default-bind-sigalgs",
    "ssl-default-server-ciphers",
    "ssl-default-server-ciphersuites",
    "ssl-default-server-client-sigalgs",
    "ssl-default-server-curves",
    "ssl-default-server-options",
    "ssl-default-server-sigalgs",
    "ssl-dh-param-file",
    "ssl-load-extra-del-ext",
    "ssl-load-extra-files",
    "ssl-security-level",
    "ssl-server-verify",
    "ssl-skip-self-issued-ca",
    "stats",
    "strict-limits",
    "thread-group",
    "thread-groups",
    "thread-hard-limit",
    "tune.applet.zero-copy-forwarding",
    "tune.buffers.limit",
    "tune.bufsize",
    "tune.comp.maxlevel",
    "tune.h1.zero-copy-fwd-recv",
    "tune.h1.zero-copy-fwd-send",
    "tune.h2.be.initial-window-size",
    "tune.h2.be.max-concurrent-streams",
    "tune.h2.fe.initial-window-size",
    "tune.h2.fe.max-concurrent-streams",
    "tune.h2.header-table-size",
    "tune.h2.initial-window-size",
    "tune.h2.max-concurrent-streams",
    "tune.h2.max-frame-size",
    "tune.http.cookielen",
    "tune.http.logurilen",
    "tune.http.maxhdr",
    "tune.idle-pool.shared",
    "tune.idletimer",
    "tune.listener.default-shards",
    "tune.listener.multi-queue",
    "tune.maxaccept",
    "tune.maxpollevents",
    "tune.maxrewrite",
    "tune.pattern.cache-size",
    "tune.peers.max-updates-at-once",
    "tune.pipesize",
    "tune.rcvbuf.client",
    "tune.rcvbuf.server",
    "tune.runqueue-depth",
    "tune.sched.low-latency",
    "tune.sndbuf.client",
    "tune.sndbuf.server",
    "tune.ssl.cachesize",
    "tune.ssl.capture-buffer-size",
    "tune.ssl.default-dh-param",
    "tune.ssl.force-private-cache",
    "tune.ssl.hard-maxrecord",
    "tune.ssl.lifetime",
    "tune.ssl.maxrecord",
    "tune.ssl.ssl-ctx-cache-size",
    "tune.stick-counters",
    "tune.vars.global-max-size",
    "tune.vars.proc-max-size",
    "tune.vars.reqres-max-size",
    "tune.vars.sess-max-size",
    "tune.vars.txn-max-size",
    "tune.zlib.memlevel",
    "tune.zlib.windowsize",
    "ulimit-n",
    "user",
};

/* defaults, frontend, backend and listen */
static const char *const proxy_words[] = {
    "acl",
    "backlog",
    "balance",
    "bind",
    "bind-process",
    "capture",
    "clitcpka-cnt",
    "clitcpka-idle",
    "clitcpka-intvl",
    "compression",
    "cookie",
    "declare",
    "default-server",
    "default_backend",
    "description",
    "disabled",
    "dispatch",
    "dynamic-cookie-key",
    "enabled",
    "error-log-format",
    "errorfile",
    "errorfiles",
    "errorloc",
    "errorloc302",
    "errorloc303",
    "filter",
    "force-persist",
    "fullconn",
    "guid",
    "hash-balance-factor",
    "hash-type",
    "http-after-response",
    "http-check",
    "http-error",
    "http-request",
    "http-response",
    "http-reuse",
    "http-send-name-header",
    "id",
    "ignore-persist",
    "load-server-state-from-file",
    "log",
    "log-format",
    "log-format-sd",
    "log-tag",
    "max-keep-alive-queue",
    "max-session-srv-conns",
    "maxconn",
    "mode",
    "monitor",
    "monitor-uri",
    "option",
    "persist",
    "rate-limit",
    "redirect",
    "retries",
    "retry-on",
    "server",
    "server-state-file-name",
    "server-template",
    "source",
    "srvtcpka-cnt",
    "srvtcpka-idle",
    "srvtcpka-intvl",
    "stick",
    "stick-table",
    "tcp-check",
    "tcp-request",
    "tcp-response",
    "timeout",
    "unique-id-format",
    "unique-id-header",
    "use-server",
    "use_backend",
};

static const char *const peers_words[] = {
    "bind", "default-bind", "default-server", "disabled", "enabled",
    "log",  "peer",         "server",         "shards",   "table",
};

static const char *const resolvers_words[] = {
    "accepted_payload_size", "hold",    "nameserver", "parse-resolv-conf",
    "resolve_retries",       "timeout",
};

static const char *const userlist_words[] = {"group", "user"};

static const char *const cache_words[] = {
    "max-age", "max-object-size", "max-secondary-entries", "process-vary", "total-max-size",
};

static const char *const error_words[] = {"errorfile"};

static const struct refuse_section sections[] = {
    {"global", global_words, ARRAY_LEN(global_words)},
    {"defaults", proxy_words, ARRAY_LEN(proxy_words)},
    {"frontend", proxy_words, ARRAY_LEN(proxy_words)},
    {"backend", proxy_words, ARRAY_LEN(proxy_words)},
    {"listen", proxy_words, ARRAY_LEN(proxy_words)},
    {"peers", peers_words, ARRAY_LEN(peers_words)},
    {"resolvers", resolvers_words, ARRAY_LEN(resolvers_words)},
    {"userlist", userlist_words, ARRAY_LEN(userlist_words)},
    {"cache", cache_words, ARRAY_LEN(cache_words)},
    {"http-errors", error_words, ARRAY_LEN(error_words)},
};

static const struct refuse_check global_checks[] = {
    {"chroot", refuse_check_chroot},
    {"default-path", refuse_check_default_path},
    {"group", refuse_check_identity},
    {"log", refuse_check_log},
    {"server-state-base", refuse_check_state_file},
    {"server-state-file", refuse_check_state_file},
    {"ssl-dh-param-file", refuse_check_file},
    {"stats", refuse_check_stats},
    {"user", refuse_check_identity},
};

static const struct refuse_check other_checks[] = {
    {"bind", refuse_check_bind},
    {"default-bind", refuse_check_bind},
    {"default-server", refuse_check_server},
    {"dispatch", refuse_check_server},
    {"errorfile", refuse_check_errorfile},
    {"filter", refuse_check_filter},
    {"http-after-response", refuse_check_rule},
    {"http-check", refuse_check_health},
    {"http-error", refuse_check_rule},
    {"http-request", refuse_check_rule},
    {"http-response", refuse_check_rule},
    {"log", refuse_check_log},
    {"nameserver", refuse_check_server},
    {"option", refuse_check_option},
    {"peer", refuse_check_server},
    {"server", refuse_check_server},
    {"server-state-file-name", refuse_check_state_name},
    {"server-template", refuse_check_server},
    {"source", refuse_check_server},
    {"tcp-check", refuse_check_health},
    {"tcp-request", refuse_check_rule},
    {"tcp-response", refuse_check_rule},
};

/* Refused because they are not listed above; the reason helps whoever reads the message. */
static const struct {
    const char *keyword;
    const char *why;
} reasons[] = {
    {"ca-base", "moves files out of the generation"},
    {"crt-base", "moves files out of the generation"},
    {"crt-store", "moves files out of the generation"},
    {"daemon", "takes HAProxy from its supervisor"},
    {"email-alert", "sends mail"},
    {"external-check", "runs programs"},
    {"fcgi-app", "names a path of another program"},
    {"gid", "changes whom HAProxy runs as"},
    {"insecure-fork-wanted", "lets HAProxy run programs"},
    {"insecure-setuid-wanted", "lets HAProxy run programs"},
    {"issuers-chain-path", "names files outside the generation"},
    {"key-base", "moves files out of the generation"},
    {"lua-load", "loads code"},
    {"lua-load-per-thread", "loads code"},
    {"lua-prepend-path", "loads code"},
    {"mailers", "sends mail"},
    {"master-worker", "takes HAProxy from its supervisor"},
    {"module-load", "loads code"},
    {"module-path", "loads code"},
    {"pidfile", "writes a file"},
    {"presetenv", "changes the environment"},
    {"program", "runs programs"},
    {"resetenv", "changes the environment"},
    {"ring", "writes a file"},
    {"setcap", "changes what HAProxy may do"},
    {"setenv", "changes the environment"},
    {"ssl-engine", "loads code"},
    {"ssl-provider", "loads code"},
    {"ssl-provider-path", "loads code"},
    {"uid", "changes whom HAProxy runs as"},
    {"unix-bind", "moves sockets"},
    {"unsetenv", "changes the environment"},
    {"use-fcgi-app", "names a path of another program"},
};

const struct refuse_section *
refuse_section_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (strcmp(sections[i].name, name) == 0) {
            return &sections[i];
        }
    }
    return NULL;
}

static int
by_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

bool
refuse_section_allows(const struct refuse_section *s, const char *keyword)
{
    return bsearch(&keyword, s->keywords, s->keyword_count, sizeof keyword, by_text) != NULL;
}

const char *
refuse_reason(const char *keyword)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (strcmp(reasons[i].keyword, keyword) == 0) {
            return reasons[i].why;
        }
    }
    return NULL;
}

static refuse_check_fn
find_in(const struct refuse_check *checks, size_t count, const char *keyword)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].keyword, keyword) == 0) {
            return checks[i].check;
        }
    }
    return NULL;
}

refuse_check_fn
refuse_check_find(const struct refuse_section *s, const char *keyword)
{
    return s->keywords == global_words
               ? find_in(global_checks, ARRAY_LEN(global_checks), keyword)
               : find_in(other_checks, ARRAY_LEN(other_checks), keyword);
}
