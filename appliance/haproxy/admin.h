/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's admin socket (management guide, section 9.3). What it answers is untrusted. */
#ifndef LOCKSTEP_HAPROXY_ADMIN_H
#define LOCKSTEP_HAPROXY_ADMIN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
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

/* One command, without its newline, on a connection of its own. The whole answer is appended
 * to out, whose limit is that of the answer. ERR_UNAVAILABLE, ERR_TIMEOUT; ERR_INVALID when
 * the answer is longer, or does not end in an empty line: then it was cut. */
MUST_USE err_t admin_ask(
    const char *socket_path, const char *command, int64_t deadline_ms, struct buf *out,
    struct error *e);

/* A server in a backend, by their names in the configuration. */
struct admin_server {
    const char *backend, *server;
};

/* "set server B/S state ready|drain|maint", "set server B/S weight N" (0 to 256). Success is an
 * empty line; ERR_CONFLICT with the text that HAProxy gave instead. ERR_INVALID as above, and
 * when a name cannot stand in a command. */
MUST_USE err_t admin_set_state(
    const char *socket_path, const struct admin_server *at, const char *state,
    int64_t deadline_ms, struct error *e);
MUST_USE err_t admin_set_weight(
    const char *socket_path, const struct admin_server *at, int64_t weight, int64_t deadline_ms,
    struct error *e);

#endif
