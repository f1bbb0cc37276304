/* SPDX-License-Identifier: Apache-2.0 */
/* What this node knows of all nodes, for sync/condition.h. */
#ifndef LOCKSTEP_SYNC_FINDINGS_H
#define LOCKSTEP_SYNC_FINDINGS_H

#include "sync/heard.h"

/* Adds to a health answer what a struct said holds. */
void cluster_say(struct cluster *c, const struct view *v, json_t *health);
/* From another node, so checked. */
MUST_USE err_t cluster_hear(struct said *ret, const json_t *health, struct error *e);
/* Notes in *since_ms (0: they do not) since when they differ. */
void cluster_compare_running(
    const struct hash *head, const char *running, int64_t now_ms, int64_t *since_ms);
/* The same of this node, and of who holds the VIP. Once a round. */
void cluster_look_at_self(struct cluster *c);
/* As conditions_json. Under the lock. */
json_t *cluster_conditions(
    struct cluster *c, const struct member_list *list, const struct cluster_vip *vip);

#endif
