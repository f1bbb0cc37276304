/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of servers as a configuration has them. What HAProxy calls a server's initial weight
 * is that of its start: a weight that an apply changed by the admin socket is not in it. */
#ifndef LOCKSTEP_ENGINE_CONFIGURED_H
#define LOCKSTEP_ENGINE_CONFIGURED_H

#include "haproxy/server_states.h"
#include "model/snapshot.h"

/* The member of a pool with that server id, or NULL. */
const struct value *configured_member(const struct object *pool, const char *server_id);
/* Its weight, 0 to 256. */
int64_t configured_weight(const struct value *member);
/* Sets configured_weight in the lines of servers that shared has. */
void configured_weights(const struct snapshot *shared, struct server_table *t);

#endif
