/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the servers, for the worker that a reload starts: without it every server
 * would be up until its first check. */
#ifndef LOCKSTEP_HELPER_STATE_KEEP_H
#define LOCKSTEP_HELPER_STATE_KEEP_H

#include "helper/context.h"
#include "helper/renames.h"

/* Writes what the running worker says into haproxy/state_file.h's file, for a worker of this
 * haproxy.cfg, or nothing when renames say so. A failure is logged, and no state is handed over
 * then: something to tell, but no reason not to reload. */
MUST_USE err_t state_keep(
    const struct helper_context *c, struct span config, const struct renames *renames,
    struct error *e);

#endif
