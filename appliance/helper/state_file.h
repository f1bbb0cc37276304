/* SPDX-License-Identifier: Apache-2.0 */
/* <run_dir>/server-state, which HAProxy reads when it starts a worker: without it every server
 * would be up until its first check. */
#ifndef LOCKSTEP_HELPER_STATE_FILE_H
#define LOCKSTEP_HELPER_STATE_FILE_H

#include "helper/context.h"

/* Writes what the running worker says, for a worker of this haproxy.cfg. A failure is logged,
 * and no state is handed over then: no reason not to reload. */
void state_file_write(const struct helper_context *c, const char *config, size_t bytes);
void state_file_clear(const struct helper_context *c);
/* HAProxy, its checker too, warns where there is no file. */
void state_file_require(const struct helper_context *c);

#endif
