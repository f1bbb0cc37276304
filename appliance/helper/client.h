/* SPDX-License-Identifier: Apache-2.0 */
/* lockstepd's side of protocol.h. Blocking, each call with a deadline. */
#ifndef LOCKSTEP_HELPER_CLIENT_H
#define LOCKSTEP_HELPER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

struct helper {
    const char *socket_path;
    int64_t deadline_ms; /* of one call */
    int64_t wait_ms;     /* before that, for one that is being restarted */
};

struct helper_check {
    int exit_status;
    const char *output; /* in the arena */
    bool only_weights;  /* differ from what the checker accepted: it did not run */
};

struct helper_bind {
    const char *address;
    int port;
    bool vip; /* the node need not have the address */
};

struct helper_bind_failure {
    const char *address;
    int port;
    const char *reason; /* "Address already in use" */
    const char *holder; /* "nginx (pid 812)" or "" */
};

struct helper_load {
    bool loaded;        /* a new worker runs the current generation */
    const char *output; /* what HAProxy said when it did not */
    pid_t worker;
    const char *no_states; /* why it got no state of a server, "": it got what it should */
};

struct helper_rename {
    const char *from, *to;
};

/* What has another name in the files to be loaded than in those that HAProxy runs. In each list
 * at most HELPER_RENAMES_MAX (helper/protocol.h). too_many: the lists are empty, and no state
 * may be handed over, as a server could get that of another. */
struct helper_renames {
    const struct helper_rename *backends, *servers;
    size_t backend_count, server_count;
    bool too_many;
};

#define HELPER_OLD_WORKERS_MAX 64

struct helper_status {
    const char *state; /* "running", "stopped", "failed" */
    pid_t master, worker;
    int64_t reloads, failed_reloads;
    int64_t current, good; /* generations; 0 = none */
    size_t old_worker_count;
};

/* ERR_UNAVAILABLE: no helper; ERR_TIMEOUT; ERR_DENIED: refused, the message says why. */
MUST_USE err_t helper_stage(
    const struct helper *h, int64_t generation, struct arena *a, struct helper_check *ret,
    struct error *e);

struct helper_bind_result {
    struct helper_bind_failure *failures;
    size_t count;
};

/* Any number of binds: the client asks for HELPER_BINDS_MAX at a time. */
MUST_USE err_t helper_bind_test(
    const struct helper *h, const struct helper_bind *binds, size_t count, struct arena *a,
    struct helper_bind_result *ret, struct error *e);
MUST_USE err_t helper_install(const struct helper *h, int64_t generation, struct error *e);
MUST_USE err_t
helper_settle(const struct helper *h, int64_t generation, int64_t keep, struct error *e);
MUST_USE err_t helper_reload(
    const struct helper *h, const struct helper_renames *renames, struct arena *a,
    struct helper_load *ret, struct error *e);
MUST_USE err_t helper_restart(
    const struct helper *h, struct arena *a, struct helper_load *ret, struct error *e);
MUST_USE err_t helper_get_status(
    const struct helper *h, struct arena *a, struct helper_status *ret, struct error *e);

#endif
