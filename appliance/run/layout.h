/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that everything else expects. */
#ifndef LOCKSTEP_RUN_LAYOUT_H
#define LOCKSTEP_RUN_LAYOUT_H

#include "run/options.h"

struct layout {
    int run_fd;
    int generation_fd;
    int lock_fd; /* held while this lockstep-run lives */
};

/* Makes what is missing of
 *   <state_dir>             root          0755
 *   <state_dir>/data        user          0700
 *   <state_dir>/stage       user          0700
 *   <state_dir>/generation  root:group    0750
 *   <run_dir>               root          0755
 * and takes the lock on <run_dir>. Existing modes are tightened where needed, never
 * loosened. ERR_DENIED: one is a link or somebody else's, or others may write to it;
 * ERR_BUSY: another lockstep-run has the lock. */
MUST_USE err_t layout_open(struct layout *l, const struct run_options *o, struct error *e);
void layout_close(struct layout *l);
/* Removes sockets and files that processes of a former life left in <run_dir>. */
void layout_remove(const struct layout *l, const char *const *names);

#endif
