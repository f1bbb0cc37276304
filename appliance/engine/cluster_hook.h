/* SPDX-License-Identifier: Apache-2.0 */
/* The way from the engine up to what keeps nodes in step (appliance/sync), which it must not
 * know. */
#ifndef LOCKSTEP_ENGINE_CLUSTER_HOOK_H
#define LOCKSTEP_ENGINE_CLUSTER_HOOK_H

#include "engine/engine.h"

/* What keeps nodes in step, as the engine calls it. */
struct engine_cluster {
    void *ctx;
    /* Hands the head to the other nodes and waits for them; on the apply thread. A new
     * reference to [{"node", "state": "ok" | "failed" | "skipped", "code", "detail"}]. */
    json_t *(*push)(void *ctx);
    void (*changed)(void *ctx); /* the head moved without an apply; must not block */
};

/* ops must outlive the engine, or be taken back with NULL, which waits until none is called. */
void engine_set_cluster(struct engine *en, const struct engine_cluster *ops);

#endif
