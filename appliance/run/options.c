/* SPDX-License-Identifier: Apache-2.0 */
#include "run/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "haproxy/span.h"
#include "version_gen.h"

#define LOOKUP_BYTES  8192
#define HAPROXY_GROUP "haproxy"
/* What a unix socket's path may have, less the longest name in the directory. */
#define RUN_DIR_MAX_BYTES 80

static const char usage[] =
    "usage: lockstep-run [OPTION ...]\n"
    "  --state-dir DIR         data, stage and generation directories (/var/lib/lockstep)\n"
    "  --run-dir DIR           sockets (/run/lockstep)\n"
    "  --user USER             name or number of lockstepd's user (lockstep)\n"
    "  --group GROUP           its group, which may use HAProxy's admin socket (the user's own;\n"
    "                          haproxy when the user is a number without an entry)\n"
    "  --listen ADDRESS:PORT   passed to lockstepd\n"
    "  --node-name NAME        passed to lockstepd\n"
    "  --tunables FILE         time constants, as JSON; passed to all\n"
    "  --haproxy PATH          HAProxy's program (/usr/sbin/haproxy)\n"
    "  --libexec DIR           where lockstepd and lockstep-helper are (beside this program,\n"
    "                          the helper also in ../libexec/lockstep)\n"
    "  --lockstepd-arg ARG     passed to lockstepd; may be given several times\n"
    "  --no-lockstepd          HAProxy and the helper only\n"
    "  --help, --version\n";

enum option_key {
    OPTION_STATE_DIR = 256,
    OPTION_RUN_DIR,
    OPTION_USER,
    OPTION_GROUP,
    OPTION_LISTEN,
    OPTION_NODE_NAME,
    OPTION_TUNABLES,
    OPTION_HAPROXY,
    OPTION_LIBEXEC,
    OPTION_DAEMON_ARG,
    OPTION_NO_DAEMON,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
    {"state-dir", required_argument, NULL, OPTION_STATE_DIR},
    {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
    {"user", required_argument, NULL, OPTION_USER},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"node-name", required_argument, NULL, OPTION_NODE_NAME},
    {"tunables", required_argument, NULL, OPTION_TUNABLES},
    {"haproxy", required_argument, NULL, OPTION_HAPROXY},
    {"libexec", required_argument, NULL, OPTION_LIBEXEC},
    {"lockstepd-arg", required_argument, NULL, OPTION_DAEMON_ARG},
    {"no-lockstepd", no_argument, NULL, OPTION_NO_DAEMON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static enum run_options_result
wrong(const char *reason)
{
    (void)fprintf(stderr, "lockstep-run: %s\n%s", reason, usage);
    return RUN_OPTIONS_WRONG;
}

static enum run_options_result
take(struct run_options *o, int key, const char *value)
{
    switch (key) {
    case OPTION_STATE_DIR: o->state_dir = value; break;
    case OPTION_RUN_DIR: o->run_dir = value; break;
    case OPTION_USER: o->user = value; break;
    case OPTION_GROUP: o->group = value; break;
    case OPTION_LISTEN: o->listen = value; break;
    case OPTION_NODE_NAME: o->node_name = value; break;
    case OPTION_TUNABLES: o->tunables_path = value; break;
    case OPTION_HAPROXY: o->haproxy = value; break;
    case OPTION_LIBEXEC: o->libexec = value; break;
    case OPTION_DAEMON_ARG:
        if (o->daemon_arg_count == RUN_DAEMON_ARGS_MAX) {
            return wrong("too many --lockstepd-arg");
        }
        o->daemon_args[o->daemon_arg_count++] = value;
        break;
    case OPTION_NO_DAEMON: o->no_daemon = true; break;
    case OPTION_HELP: (void)fputs(usage, stdout); return RUN_OPTIONS_DONE;
    case OPTION_VERSION:
        (void)printf("lockstep-run %s\n", LOCKSTEP_VERSION);
        return RUN_OPTIONS_DONE;
    case '?': return wrong("unknown option");
    }
    return RUN_OPTIONS_OK;
}

enum run_options_result
run_options_parse(int argc, char **argv, struct run_options *o)
{
    int key;

    *o = (struct run_options){
        .state_dir = "/var/lib/lockstep",
        .run_dir = "/run/lockstep",
        .user = "lockstep",
        .haproxy = "/usr/sbin/haproxy",
    };
    /* Before there is any thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while ((key = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        enum run_options_result result = take(o, key, optarg);

        if (result != RUN_OPTIONS_OK) {
            return result;
        }
    }
    if (optind != argc) {
        return wrong("an argument that is no option");
    }
    if (o->state_dir[0] != '/' || o->run_dir[0] != '/' || o->haproxy[0] != '/' ||
        (o->libexec != NULL && o->libexec[0] != '/')) {
        return wrong("paths must be absolute");
    }
    return strlen(o->run_dir) > RUN_DIR_MAX_BYTES
               ? wrong("--run-dir is too long for the paths of sockets")
               : RUN_OPTIONS_OK;
}

/* -1 is "no change" to the calls that take ids. */
static bool
is_number(const char *text, unsigned *ret)
{
    int64_t v;

    if (!span_number(span_of(text), UINT32_MAX - 1, &v)) {
        return false;
    }
    *ret = (unsigned)v;
    return true;
}

/* *ret_known: the user has an entry, and *ret_gid is its group. */
static err_t
resolve_user(struct run_options *o, bool *ret_known, gid_t *ret_gid, struct error *e)
{
    char space[LOOKUP_BYTES];
    struct passwd entry;
    struct passwd *found = NULL;
    bool number = is_number(o->user, &o->uid);
    int rc = number ? getpwuid_r(o->uid, &entry, space, sizeof space, &found)
                    : getpwnam_r(o->user, &entry, space, sizeof space, &found);

    if (found == NULL && !number) {
        return rc != 0 ? error_errno(e, ERR_IO, rc, "cannot look the user %s up", o->user)
                       : error_set(e, ERR_NOT_FOUND, "there is no user %s", o->user);
    }
    *ret_known = found != NULL;
    if (found != NULL) {
        o->uid = entry.pw_uid;
        *ret_gid = entry.pw_gid;
    }
    return ERR_OK;
}

static err_t
take_group(struct run_options *o, const struct group *g, struct error *e)
{
    if (strlen(g->gr_name) >= sizeof o->group_name) {
        return error_set(e, ERR_INVALID, "the name of the group %u is too long", g->gr_gid);
    }
    memcpy(o->group_name, g->gr_name, strlen(g->gr_name) + 1);
    o->gid = g->gr_gid;
    return ERR_OK;
}

static err_t
group_by_name(struct run_options *o, const char *name, struct error *e)
{
    char space[LOOKUP_BYTES];
    struct group entry;
    struct group *found = NULL;
    int rc = getgrnam_r(name, &entry, space, sizeof space, &found);

    if (found == NULL) {
        return rc != 0 ? error_errno(e, ERR_IO, rc, "cannot look the group %s up", name)
                       : error_set(e, ERR_NOT_FOUND, "there is no group %s", name);
    }
    return take_group(o, found, e);
}

static err_t
group_by_number(struct run_options *o, gid_t gid, struct error *e)
{
    char space[LOOKUP_BYTES];
    struct group entry;
    struct group *found = NULL;
    int rc = getgrgid_r(gid, &entry, space, sizeof space, &found);

    if (found == NULL) {
        return rc != 0 ? error_errno(e, ERR_IO, rc, "cannot look the group %u up", gid)
                       : error_set(e, ERR_NOT_FOUND, "the group %u has no name", gid);
    }
    return take_group(o, found, e);
}

static err_t
resolve_ids(struct run_options *o, struct error *e)
{
    bool known = false;
    gid_t gid = 0;
    err_t code = resolve_user(o, &known, &gid, e);

    if (code != ERR_OK) {
        return code;
    }
    if (o->group == NULL) {
        return known ? group_by_number(o, gid, e) : group_by_name(o, HAPROXY_GROUP, e);
    }
    return is_number(o->group, &gid) ? group_by_number(o, gid, e)
                                     : group_by_name(o, o->group, e);
}

static err_t
own_directory(char *out, struct error *e)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    char *slash;

    if (n < 0) {
        return error_errno(e, ERR_IO, errno, "cannot tell where this program is");
    }
    out[n] = '\0';
    slash = strrchr(out, '/');
    ASSERT(slash != NULL);
    *slash = '\0';
    return ERR_OK;
}

static bool
is_program(char *path, const char *dir, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);

    return n > 0 && n < PATH_MAX && access(path, X_OK) == 0;
}

static err_t
find_programs(struct run_options *o, struct error *e)
{
    char own[PATH_MAX];
    const char *dir = o->libexec;

    if (dir == NULL) {
        err_t code = own_directory(own, e);

        if (code != ERR_OK) {
            return code;
        }
        dir = own;
    }
    if (!is_program(o->helper_path, dir, "lockstep-helper") &&
        (o->libexec != NULL ||
         !is_program(o->helper_path, dir, "../libexec/lockstep/lockstep-helper"))) {
        return error_set(e, ERR_NOT_FOUND, "there is no lockstep-helper in %s", dir);
    }
    if (!o->no_daemon && !is_program(o->daemon_path, dir, "lockstepd")) {
        return error_set(e, ERR_NOT_FOUND, "there is no lockstepd in %s", dir);
    }
    return access(o->haproxy, X_OK) == 0
               ? ERR_OK
               : error_errno(e, ERR_NOT_FOUND, errno, "cannot run %s", o->haproxy);
}

err_t
run_options_resolve(struct run_options *o, struct error *e)
{
    err_t code = resolve_ids(o, e);

    if (code == ERR_OK) {
        code = find_programs(o, e);
    }
    tunables_default(&o->tunables);
    if (code == ERR_OK && o->tunables_path != NULL) {
        code = tunables_load(&o->tunables, o->tunables_path, e);
    }
    return code;
}
