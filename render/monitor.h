/* SPDX-License-Identifier: Apache-2.0 */
/* How a check reaches the servers of a pool: what is rendered, and what somebody who tries a
 * check does as well. Pure. */
#ifndef LOCKSTEP_RENDER_MONITOR_H
#define LOCKSTEP_RENDER_MONITOR_H

#include "model/object.h"

/* The port that is checked, 0: the server's own. That of an agent is none. */
int64_t monitor_port(const struct object *monitor);
bool monitor_uses_tls(const struct object *monitor, const struct object *pool);
/* The name that a check with TLS asks for, "": none. */
struct text monitor_sni(const struct object *monitor, const struct object *pool);

#endif
