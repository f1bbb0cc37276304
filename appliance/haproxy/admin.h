/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's admin socket (management guide, section 9.3). What it answers is untrusted. */
#ifndef LOCKSTEP_HAPROXY_ADMIN_H
#define LOCKSTEP_HAPROXY_ADMIN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/running.h"

struct haproxy_info {
    char version[32];
    char description[128];
    char running[RUNNING_HEX + 1]; /* digest of the files it runs; "": none, or in change */
    pid_t pid;
    int64_t uptime_s;
    int64_t max_connections, connections;
    int64_t requests; /* CumReq */
};

/* "show info", and the map of base/running.h. ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_INVALID when
 * the answer lacks Pid or Description. */
MUST_USE err_t admin_info(
    const char *socket_path, int64_t deadline_ms, struct haproxy_info *ret, struct error *e);

#endif
