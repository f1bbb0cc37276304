/* SPDX-License-Identifier: Apache-2.0 */
/* What the other nodes say of an apply before it is made: struct engine_cluster says more. ctx
 * is the struct cluster. */
#ifndef LOCKSTEP_SYNC_FANOUT_H
#define LOCKSTEP_SYNC_FANOUT_H

#include "engine/cluster_hook.h"

json_t *cluster_check(void *ctx, const struct cluster_candidate *q, struct problems *p);
json_t *cluster_trial(void *ctx, const struct cluster_candidate *q, struct problems *p);
void cluster_trial_end(void *ctx, const char *node, const struct hash *candidate);

#endif
