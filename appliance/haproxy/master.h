/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's master CLI (management guide, section 9.4). */
#ifndef LOCKSTEP_HAPROXY_MASTER_H
#define LOCKSTEP_HAPROXY_MASTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define MASTER_OLD_WORKERS_MAX 64

struct master_worker {
    pid_t pid;
    int64_t reloads; /* how many reloads ago it was started */
    int64_t uptime_s;
};

struct master_state {
    pid_t master;
    int64_t reloads; /* of the master */
    int64_t failed_reloads;
    struct master_worker worker; /* pid 0: none */
    struct master_worker old[MASTER_OLD_WORKERS_MAX];
    size_t old_count; /* may exceed what fits */
};

/* "show proc". */
MUST_USE err_t master_show(
    const char *socket_path, int64_t deadline_ms, struct master_state *ret, struct error *e);
/* "reload", then waits until "show proc" shows one reload more and a new worker whose admin
 * socket answers, or one failed reload more: *ret_loaded says which. HAProxy 2.6 answers
 * "reload" at once and empty, and the socket refuses for 0.1-0.2 s. A reload within 1 s of
 * a start or during another can vanish: it is sent once more after a quiet second. */
MUST_USE err_t master_reload(
    const char *socket_path, const char *admin_path, int64_t deadline_ms, bool *ret_loaded,
    struct master_state *ret, struct error *e);

#endif
