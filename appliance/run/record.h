/* SPDX-License-Identifier: Apache-2.0 */
/* <run_dir>/run.json: the processes of this lockstep-run, for the next one, should this one
 * be killed. */
#ifndef LOCKSTEP_RUN_RECORD_H
#define LOCKSTEP_RUN_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define RECORD_NAME "run.json"

struct record_process {
    pid_t pid; /* 0: none */
    int64_t ticks;
};

struct record {
    struct record_process haproxy;
    struct record_process helper;
    struct record_process daemon;
    bool on_good; /* of HAProxy, as in service.h */
    int64_t generation;
};

MUST_USE err_t record_write(int run_fd, const struct record *r, struct error *e);
/* Empty when there is none, or one from before the machine started. ERR_SYNTAX when it is
 * damaged. */
MUST_USE err_t record_read(int run_fd, struct record *ret, struct error *e);

#endif
