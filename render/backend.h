/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a pool's backend; while each is written the writer's object is the pool. Inside
 * render/. */
#ifndef LOCKSTEP_RENDER_BACKEND_H
#define LOCKSTEP_RENDER_BACKEND_H

#include "render/writer.h"

#define BACKEND_PEERS "lockstep.tables" /* the section of those who share stick tables */

/* How the servers are checked, as defaults of the "server" lines. */
void haproxy_monitor_write(struct writer *w, const struct object *monitor);
/* What all connections to the servers have in common, then a line for each; servers: of the
 * members, NULL where there is none such. */
void haproxy_members_write(struct writer *w, const struct object *const *servers);

static inline bool
backend_is_http(const struct object *pool)
{
    return !fields_set(pool, FIELDS_BIT(F_POOL_MODE));
}

#endif
