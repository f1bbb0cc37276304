/* SPDX-License-Identifier: Apache-2.0 */
/* <run_dir>/server-state, which HAProxy reads when it starts a worker (base/running.h). */
#ifndef LOCKSTEP_HAPROXY_STATE_FILE_H
#define LOCKSTEP_HAPROXY_STATE_FILE_H

/* It says nothing of any server; made when there is none. A full disk is no hindrance but for
 * making it. A failure is logged. */
void state_file_clear(int run_fd);

#endif
