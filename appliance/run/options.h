/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of lockstep-run. */
#ifndef LOCKSTEP_RUN_OPTIONS_H
#define LOCKSTEP_RUN_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/tunables.h"

#define RUN_DAEMON_ARGS_MAX 64

struct run_options {
    const char *state_dir;
    const char *run_dir;
    const char *user;   /* name or number */
    const char *group;  /* name or number; NULL: see run_options_resolve */
    const char *listen; /* NULL: lockstepd's default, as are the next two */
    const char *node_name;
    const char *tunables_path;
    const char *haproxy;
    const char *libexec; /* NULL: found beside lockstep-run */
    const char *daemon_args[RUN_DAEMON_ARGS_MAX];
    size_t daemon_arg_count;
    bool no_daemon;

    /* found out from the above */
    uid_t uid;
    gid_t gid;
    char group_name[64];
    struct tunables tunables;
    char helper_path[PATH_MAX];
    char daemon_path[PATH_MAX];
};

enum run_options_result { RUN_OPTIONS_OK, RUN_OPTIONS_DONE, RUN_OPTIONS_WRONG };

/* Prints help, version or what is wrong. The strings stay argv's. */
enum run_options_result run_options_parse(int argc, char **argv, struct run_options *o);
/* Looks user, group, tunables and programs up. Without a group it is the user's own, and
 * HAProxy's for a number that is no user: it must have a name, which haproxy.cfg gives to
 * the admin socket. ERR_INVALID, ERR_NOT_FOUND. */
MUST_USE err_t run_options_resolve(struct run_options *o, struct error *e);

#endif
