/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep-run without its command line: starts HAProxy, the helper and lockstepd, keeps
 * them, ends them. */
#ifndef LOCKSTEP_RUN_SUPERVISOR_H
#define LOCKSTEP_RUN_SUPERVISOR_H

#include "run/options.h"

/* Returns after SIGTERM or SIGINT, when all has ended; ERR_BUSY and others when it cannot
 * begin. */
MUST_USE err_t supervise(const struct run_options *o, struct error *e);

#endif
