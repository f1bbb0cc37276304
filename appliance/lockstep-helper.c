/* SPDX-License-Identifier: Apache-2.0 */
/* The privileged part: runs as root, listens to lockstepd, knows a closed set of verbs. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "haproxy/span.h"
#include "helper/server.h"
#include "version_gen.h"

static const char usage[] =
    "usage: lockstep-helper --uid N --gid N [OPTION ...]\n"
    "  --state-dir DIR    stage and generation directories (/var/lib/lockstep)\n"
    "  --run-dir DIR      sockets (/run/lockstep)\n"
    "  --uid N            user of lockstepd, who may call besides root\n"
    "  --gid N            group that may read the generations and use the socket\n"
    "  --haproxy PATH     HAProxy's program (/usr/sbin/haproxy)\n"
    "  --tunables FILE    time constants, as JSON\n"
    "  --help, --version\n";

struct options {
    struct helper_context context;
    const char *tunables;
    gid_t gid;
};

enum option_key {
    OPTION_STATE_DIR = 256,
    OPTION_RUN_DIR,
    OPTION_UID,
    OPTION_GID,
    OPTION_HAPROXY,
    OPTION_TUNABLES,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
    {"state-dir", required_argument, NULL, OPTION_STATE_DIR},
    {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
    {"uid", required_argument, NULL, OPTION_UID},
    {"gid", required_argument, NULL, OPTION_GID},
    {"haproxy", required_argument, NULL, OPTION_HAPROXY},
    {"tunables", required_argument, NULL, OPTION_TUNABLES},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* -1 is "no change" to the calls that take ids. */
static bool
parse_id(const char *text, unsigned *ret)
{
    int64_t v;

    if (!span_number(span_of(text), UINT32_MAX - 1, &v)) {
        return false;
    }
    *ret = (unsigned)v;
    return true;
}

/* *ret_done: answered, nothing more to do. */
static bool
parse_options(int argc, char **argv, struct options *o, bool *ret_done)
{
    bool have_uid = false;
    bool have_gid = false;
    int key;

    /* Before there is any thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while ((key = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (key) {
        case OPTION_STATE_DIR: o->context.state_dir = optarg; break;
        case OPTION_RUN_DIR: o->context.run_dir = optarg; break;
        case OPTION_HAPROXY: o->context.haproxy = optarg; break;
        case OPTION_TUNABLES: o->tunables = optarg; break;
        case OPTION_UID: have_uid = parse_id(optarg, &o->context.uid); break;
        case OPTION_GID: have_gid = parse_id(optarg, &o->gid); break;
        case OPTION_HELP:
            (void)fputs(usage, stdout);
            *ret_done = true;
            return true;
        case OPTION_VERSION:
            (void)printf("lockstep-helper %s\n", LOCKSTEP_VERSION);
            *ret_done = true;
            return true;
        case '?': return false;
        }
    }
    return optind == argc && have_uid && have_gid && o->context.state_dir[0] == '/' &&
           o->context.run_dir[0] == '/' && o->context.haproxy[0] == '/';
}

static err_t
open_signals(int *ret_fd, struct error *e)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return error_errno(e, ERR_INTERNAL, errno, "cannot block signals");
    }
    (void)sigdelset(&set, SIGPIPE);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? ERR_OK : error_errno(e, ERR_INTERNAL, errno, "cannot take signals");
}

static err_t
run(struct options *o, struct error *e)
{
    CLEANUP(fd_cleanup) int signals = -1;
    struct helper_context *c = &o->context;
    err_t code = ERR_OK;

    if (o->tunables != NULL) {
        code = tunables_load(&c->tunables, o->tunables, e);
    }
    /* What this process makes belongs to the group without a chown. */
    if (code == ERR_OK && getegid() != o->gid && setegid(o->gid) != 0) {
        code = error_errno(e, ERR_DENIED, errno, "cannot become group %u", o->gid);
    }
    if (code == ERR_OK) {
        code = open_signals(&signals, e);
    }
    if (code == ERR_OK) {
        code = helper_context_open(c, e);
    }
    if (code == ERR_OK) {
        code = helper_serve(c, signals, e);
        helper_context_close(c);
    }
    return code;
}

int
main(int argc, char **argv)
{
    struct options o = {
        .context =
            {
                .state_dir = "/var/lib/lockstep",
                .run_dir = "/run/lockstep",
                .haproxy = "/usr/sbin/haproxy",
            },
    };
    struct error e;
    bool done = false;

    log_open("lockstep-helper", LOG_LEVEL_INFO);
    tunables_default(&o.context.tunables);
    if (!parse_options(argc, argv, &o, &done)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (done) {
        return 0;
    }
    if (run(&o, &e) != ERR_OK) {
        log_error("%s", e.msg);
        return 1;
    }
    return 0;
}
