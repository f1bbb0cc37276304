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

/* HAProxy drops without a word a command that with its payload exceeds its buffer
 * (tune.bufsize, 16,384 bytes). */
#define ADMIN_COMMAND_MAX_BYTES ((size_t)16000)

/* One command, without its last newline, on a connection of its own. The whole answer is
 * appended to out, whose limit is that of the answer. ERR_LIMIT when the command is too long;
 * ERR_UNAVAILABLE, ERR_TIMEOUT; ERR_INVALID when the answer is longer, or does not end in an
 * empty line: then it was cut. Messages hold the first line of the command only. */
MUST_USE err_t admin_ask(
    const char *socket_path, const char *command, int64_t deadline_ms, struct buf *out,
    struct error *e);

/* A command whose success is an empty line. ERR_CONFLICT with the text that came instead. */
MUST_USE err_t
admin_do(const char *socket_path, const char *command, int64_t deadline_ms, struct error *e);
/* ERR_CONFLICT: answer (it is cleaned) is no success of the command. */
err_t admin_refused(const char *command, struct buf *answer, struct error *e);
/* ERR_INVALID when a word of a command may not be this: it would end it or begin another. */
MUST_USE err_t admin_check_name(const char *name, struct error *e);

/* A server in a backend, by their names in the configuration. */
struct admin_server {
    const char *backend, *server;
};

struct admin_target {
    const char *address; /* literal, without brackets */
    int64_t port;
};

/* "set server B/S state ready|drain|maint", "weight N" (0 to 256), "addr A port P"; "set
 * maxconn server B/S N". Errors as above. */
MUST_USE err_t admin_set_state(
    const char *socket_path, const struct admin_server *at, const char *state,
    int64_t deadline_ms, struct error *e);
MUST_USE err_t admin_set_weight(
    const char *socket_path, const struct admin_server *at, int64_t weight, int64_t deadline_ms,
    struct error *e);
MUST_USE err_t admin_set_maxconn(
    const char *socket_path, const struct admin_server *at, int64_t maxconn,
    int64_t deadline_ms, struct error *e);
MUST_USE err_t admin_set_address(
    const char *socket_path, const struct admin_server *at, const struct admin_target *target,
    int64_t deadline_ms, struct error *e);

#endif
