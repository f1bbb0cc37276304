/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb of the helper works on. */
#ifndef LOCKSTEP_HELPER_CONTEXT_H
#define LOCKSTEP_HELPER_CONTEXT_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/tunables.h"

struct helper_context {
    const char *state_dir; /* absolute, as is run_dir */
    const char *run_dir;
    const char *haproxy; /* absolute path of the program */
    uid_t uid;           /* lockstepd's: owns what is staged, may call */
    struct tunables tunables;
    int stage_fd;      /* <state_dir>/stage */
    int generation_fd; /* <state_dir>/generation */
    int run_fd;        /* <run_dir> */
    char admin_path[PATH_MAX];
    char master_path[PATH_MAX];
    char service_path[PATH_MAX]; /* lockstep-run's run.sock */
};

/* Opens the directories and removes what an interrupted "stage" left. The strings stay the
 * caller's. ERR_NOT_FOUND, ERR_DENIED when a directory is not root's. */
MUST_USE err_t helper_context_open(struct helper_context *c, struct error *e);
void helper_context_close(struct helper_context *c);

#endif
