/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: posix_spawn without a shell, a clean environment, a deadline. */
#ifndef LOCKSTEP_BASE_PROC_H
#define LOCKSTEP_BASE_PROC_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct proc_result {
    int exit_status; /* 0-255; 128 + signal when it was killed */
};

/* Runs argv (argv[0] an absolute path), standard input /dev/null, both outputs appended to
 * out (what exceeds its maximum is read and dropped, out marked failed), environment PATH
 * and LC_ALL=C only, all other descriptors closed, no signal blocked or ignored. Its process
 * group is killed with SIGKILL deadline_ms after the call (ERR_TIMEOUT), and what is left of
 * the group when argv itself has ended. ERR_UNAVAILABLE when it cannot be started. */
MUST_USE err_t proc_run(
    const char *const *argv, int64_t deadline_ms, struct buf *out, struct proc_result *ret,
    struct error *e);
/* Starts argv and returns at once; its outputs go to our standard error. Environment as
 * above; a process group of its own. The caller reaps. */
MUST_USE err_t proc_start(const char *const *argv, pid_t *ret_pid, struct error *e);

#endif
