/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: store, engine, API and web pages of a node. Runs without any privilege. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/x509.h"
#include "engine/api_certificate.h"
#include "engine/engine.h"
#include "http/server.h"
#include "model/value.h"
#include "store/store.h"
#include "sync/cluster.h"
#include "version_gen.h"

#define PEM_BYTES     ((size_t)64 << 10)
#define PATH_BYTES    4096
#define ADDRESS_BYTES 64
#define NAME_BYTES    65
#define URL_BYTES     128
#define PORT_DEFAULT  8443
#define RETRY_MS      (HTTP_CLOSED_S * 1000)
/* For a host whose own name is no name of ours. */
#define NODE_DEFAULT "node"

static const char usage[] =
    "usage: lockstepd [OPTION ...]\n"
    "  --state-dir DIR         data, stage and generation directories (/var/lib/lockstep)\n"
    "  --run-dir DIR           sockets (/run/lockstep)\n"
    "  --listen ADDRESS:PORT   web pages and API (0.0.0.0:8443)\n"
    "  --node-name NAME        at the first start (the host's name)\n"
    "  --socket-group GROUP    may use HAProxy's sockets (haproxy)\n"
    "  --tunables FILE         time constants, as JSON\n"
    "  --crash NAME[:N]        for crash tests: dies there; no effect in a product build\n"
    "  --verify                checks the database of a daemon that does not run\n"
    "  --help, --version\n";

struct options {
    const char *state_dir, *run_dir, *socket_group, *tunables_path, *listen;
    char address[ADDRESS_BYTES];
    int port;
    char node_name[NAME_BYTES];
    bool verify, done;
};

enum option_key {
    OPTION_STATE_DIR = 256,
    OPTION_RUN_DIR,
    OPTION_LISTEN,
    OPTION_NODE_NAME,
    OPTION_SOCKET_GROUP,
    OPTION_TUNABLES,
    OPTION_CRASH,
    OPTION_VERIFY,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
    {"state-dir", required_argument, NULL, OPTION_STATE_DIR},
    {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"node-name", required_argument, NULL, OPTION_NODE_NAME},
    {"socket-group", required_argument, NULL, OPTION_SOCKET_GROUP},
    {"tunables", required_argument, NULL, OPTION_TUNABLES},
    {"crash", required_argument, NULL, OPTION_CRASH},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* ---- options ---- */

static bool
is_name(const char *name)
{
    CLEANUP(buf_fini) struct buf normal;
    struct error unused;

    buf_init(&normal, NAME_BYTES);
    return value_check_text(TT_NAME, name, strlen(name), &normal, &unused) == ERR_OK;
}

static bool
take_name(const char *name, struct options *o)
{
    if (strlen(name) >= sizeof o->node_name || !is_name(name)) {
        return false;
    }
    memcpy(o->node_name, name, strlen(name) + 1);
    return true;
}

static bool
parse_port(const char *text, int *ret)
{
    int port = 0;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || port > 65535) {
            return false;
        }
        port = port * 10 + (*p - '0');
    }
    *ret = port;
    return text[0] != '\0' && port <= 65535;
}

/* "192.0.2.1:8443", "[2001:db8::1]:8443" */
static bool
parse_listen(const char *text, struct options *o)
{
    const char *colon = strrchr(text, ':');
    const char *from = text;
    size_t bytes;

    if (colon == NULL || !parse_port(colon + 1, &o->port)) {
        return false;
    }
    bytes = (size_t)(colon - text);
    if (bytes >= 2 && text[0] == '[' && text[bytes - 1] == ']') {
        from++;
        bytes -= 2;
    }
    if (bytes >= sizeof o->address) {
        return false;
    }
    memcpy(o->address, from, bytes);
    o->address[bytes] = '\0';
    return value_is_ip(o->address);
}

static bool
take_option(int key, const char *value, struct options *o)
{
    switch (key) {
    case OPTION_STATE_DIR: o->state_dir = value; return value[0] == '/';
    case OPTION_RUN_DIR: o->run_dir = value; return value[0] == '/';
    case OPTION_LISTEN: return parse_listen(value, o);
    case OPTION_NODE_NAME: return take_name(value, o);
    case OPTION_SOCKET_GROUP: o->socket_group = value; return true;
    case OPTION_TUNABLES: o->tunables_path = value; return true;
    case OPTION_CRASH: crashpoint_arm(value); return true;
    case OPTION_VERIFY: o->verify = true; return true;
    case OPTION_HELP:
        (void)fputs(usage, stdout);
        o->done = true;
        return true;
    case OPTION_VERSION:
        (void)printf("lockstepd %s\n", LOCKSTEP_VERSION);
        o->done = true;
        return true;
    }
    return false;
}

static bool
parse_options(int argc, char **argv, struct options *o)
{
    char host[256] = "";
    int key;

    /* Before there is any thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (!o->done && (key = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (!take_option(key, optarg, o)) {
            return false;
        }
    }
    if (o->node_name[0] == '\0' &&
        (gethostname(host, sizeof host - 1) != 0 || !take_name(host, o))) {
        memcpy(o->node_name, NODE_DEFAULT, sizeof NODE_DEFAULT);
    }
    return o->done || optind == argc;
}

/* ---- verify ---- */

static err_t
verify(const char *data_dir, struct error *e)
{
    struct store *store = NULL;
    int64_t checked = 0;
    err_t code = store_open_read(data_dir, &clock_system, &store, e);

    if (code == ERR_OK) {
        code = store_verify(store, &checked, e);
        store_close(store);
    }
    if (code == ERR_OK) {
        (void)printf("%lld objects and commits checked: no damage\n", (long long)checked);
    }
    return code;
}

/* ---- serving ---- */

static err_t
open_signals(int *ret_fd, struct error *e)
{
    sigset_t set;
    int rc;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGPIPE);
    /* Before any thread starts: they inherit it. */
    rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (rc != 0) {
        return error_errno(e, ERR_INTERNAL, rc, "cannot block signals");
    }
    (void)sigdelset(&set, SIGPIPE);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC);
    return *ret_fd >= 0 ? ERR_OK : error_errno(e, ERR_INTERNAL, errno, "cannot take signals");
}

/* ERR_BUSY: none has come in time; ms < 0 waits for ever. */
static err_t
wait_for_signal(int fd, int ms, struct error *e)
{
    struct signalfd_siginfo info;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ssize_t n;

    if (ms >= 0 && poll(&wait, 1, ms) <= 0) {
        return error_set(e, ERR_BUSY, "no signal");
    }
    do {
        n = read(fd, &info, sizeof info);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof info) {
        return error_errno(e, ERR_INTERNAL, errno, "cannot read signals");
    }
    log_info("signal %u: stopping", info.ssi_signo);
    return ERR_OK;
}

/* Where other nodes find this one, unless its settings say so, and by which key they know it.
 */
static err_t
present(const struct options *o, const struct http_config *config, int port, struct error *e)
{
    bool anywhere = strcmp(o->address, "0.0.0.0") == 0 || strcmp(o->address, "::") == 0;
    bool v6 = strchr(o->address, ':') != NULL;
    char url[URL_BYTES] = "";
    struct x509_info info;
    err_t code = x509_read(config->cert_pem, strlen(config->cert_pem), &info, e);

    if (code != ERR_OK) {
        return code;
    }
    if (!anywhere) {
        (void)snprintf(
            url, sizeof url, v6 ? "https://[%s]:%d" : "https://%s:%d", o->address, port);
    }
    return members_present(config->engine, url, info.pin_b64, e);
}

static err_t
open_server(
    const struct options *o, const char *data_dir, struct http_config *config,
    struct http **ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf cert;
    CLEANUP(buf_wipe_fini) struct buf key;
    struct api_certificate_names names = {o->node_name, o->address};
    err_t code;

    buf_init(&cert, PEM_BYTES);
    buf_init(&key, PEM_BYTES);
    code = config->closed != NULL
               ? api_certificate_read(data_dir, &cert, &key, e)
               : api_certificate_load(data_dir, &names, &clock_system, &cert, &key, e);
    if (code != ERR_OK) {
        return code;
    }
    config->cert_pem = buf_str(&cert);
    config->key_pem = buf_str(&key);
    code = http_open(config, ret, e);
    if (code == ERR_OK && config->engine != NULL) {
        code = present(o, config, http_port(*ret), e);
    }
    if (code == ERR_OK) {
        log_info(
            "version %s, web pages and API on %s port %d", LOCKSTEP_VERSION, o->address,
            http_port(*ret));
    }
    return code;
}

struct service {
    const struct options *o;
    const char *data_dir;
    struct engine_config engine;
    struct http_config http;
    int signals;
};

/* While the engine does not open, each request is answered with the reason, and it is tried
 * again: the disk may come back, the database be put back. *ret NULL: a signal came. */
static err_t
open_engine(struct service *s, struct engine **ret, struct error *e)
{
    struct error told = {.code = ERR_OK};
    struct http_config closed = s->http;
    struct http *http = NULL;
    err_t code;

    *ret = NULL;
    closed.closed = &told;
    do {
        code = engine_open(&s->engine, ret, e);
        if (code == ERR_OK || code == ERR_DENIED) {
            break;
        }
        if (http == NULL || strcmp(told.msg, e->msg) != 0) {
            http_close(http);
            http = NULL;
            told = *e;
            log_error("%s", told.msg);
            code = open_server(s->o, s->data_dir, &closed, &http, e);
        }
        if (http != NULL) {
            code = wait_for_signal(s->signals, RETRY_MS, e);
        }
    } while (http != NULL && code == ERR_BUSY);
    http_close(http);
    return code;
}

static err_t
serve(const struct options *o, const char *data_dir, struct tunables *tunables, struct error *e)
{
    const struct clock clock = clock_ahead(&tunables->clock_ahead_ms);
    struct service s = {
        .o = o,
        .data_dir = data_dir,
        .engine =
            {
                .state_dir = o->state_dir,
                .run_dir = o->run_dir,
                .socket_group = o->socket_group,
                .node_name = o->node_name,
                .api_address = o->address,
                .api_port = o->port,
                .tunables = tunables,
                .clock = &clock,
            },
        .http =
            {
                .address = o->address,
                .port = o->port,
                .tunables = tunables,
                .clock = &clock,
            },
        .signals = -1,
    };
    struct http *http = NULL;
    err_t code = open_signals(&s.signals, e);

    if (code == ERR_OK) {
        code = open_engine(&s, &s.http.engine, e);
    }
    if (code == ERR_OK && s.http.engine != NULL) {
        code = cluster_open(s.http.engine, tunables, &clock, &s.http.cluster, e);
    }
    if (code == ERR_OK && s.http.engine != NULL) {
        code = open_server(o, data_dir, &s.http, &http, e);
        if (code == ERR_OK) {
            code = wait_for_signal(s.signals, -1, e);
        }
    }
    cluster_stop(s.http.cluster); /* requests may wait for another node */
    http_close(http);
    cluster_close(s.http.cluster);
    engine_close(s.http.engine);
    fd_cleanup(&s.signals);
    return code;
}

int
main(int argc, char **argv)
{
    struct options o = {
        .state_dir = "/var/lib/lockstep",
        .run_dir = "/run/lockstep",
        .socket_group = "haproxy",
        .address = "0.0.0.0",
        .port = PORT_DEFAULT,
    };
    char data_dir[PATH_BYTES];
    struct tunables tunables;
    struct error e;
    err_t code = ERR_OK;

    log_open("lockstepd", LOG_LEVEL_INFO);
    if (!parse_options(argc, argv, &o)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (o.done) {
        return 0;
    }
    (void)umask(077);
    (void)snprintf(data_dir, sizeof data_dir, "%s/data", o.state_dir);
    tunables_default(&tunables);
    if (o.tunables_path != NULL) {
        code = tunables_load(&tunables, o.tunables_path, &e);
    }
    if (code == ERR_OK) {
        code = o.verify ? verify(data_dir, &e) : serve(&o, data_dir, &tunables, &e);
    }
    if (code != ERR_OK) {
        log_error("%s", e.msg);
        return 1;
    }
    return 0;
}
