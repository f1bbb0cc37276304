/* SPDX-License-Identifier: Apache-2.0 */
/* The way from the engine up to what keeps nodes in step (appliance/sync), which it must not
 * know. */
#ifndef LOCKSTEP_ENGINE_CLUSTER_HOOK_H
#define LOCKSTEP_ENGINE_CLUSTER_HOOK_H

#include "engine/sync_doc.h"
#include "model/member.h"

struct node_id {
    char text[MEMBER_ID_BYTES];
};

/* What an apply would make the head, for the other nodes to look at. */
struct cluster_candidate {
    const struct sync_doc *doc;
    const struct node_id *skip; /* nodes that are not asked */
    size_t skip_count;
    const json_t *checked; /* of a trial: what check returned */
    int64_t task;          /* whose present step tells how far it is */
};

/* Which node goes back to what was before a revision that nobody confirmed in time. */
enum back_by {
    BACK_SELF,
    BACK_OTHER,  /* or it is not known yet, or this node is about to take a revision over */
    BACK_NOBODY, /* that answers */
};

/* What keeps nodes in step, as the engine calls it. */
struct engine_cluster {
    void *ctx;
    /* Hands the head to the other nodes, first (may be NULL) before the rest, and waits for
     * them; on the apply thread. A new
     * reference to [{"node", "state": "ok" | "failed" | "skipped", "code", "detail"}]. */
    json_t *(*push)(void *ctx, int64_t task, const char *first);
    /* Hands a head for which nobody reloads to all of them at the same time, and waits for
     * them, sync_read_ms at the most for what they have to do with it; any thread. */
    void (*hand_on)(void *ctx);
    /* Has every node that answers and is in step check the candidate, all at once, and waits
     * for them; on the apply thread. The same list, "failed" when it
     * refused, with its problems; "skipped" when it was not asked or did not answer, which
     * hinders nothing. */
    json_t *(*check)(void *ctx, const struct cluster_candidate *q, struct problems *p);
    /* Has one node that accepted the candidate, and has not the VIP, run it: one of the same
     * rows, or NULL where there is none. It goes back by itself unless a push follows. */
    json_t *(*trial)(void *ctx, const struct cluster_candidate *q, struct problems *p);
    /* No push will follow. Does its best. */
    void (*trial_end)(void *ctx, const char *node, const struct hash *candidate);
    void (*changed)(void *ctx); /* the head moved without an apply; must not block */
    /* node: name of the one that applied it; late_ms: since the deadline. */
    enum back_by (*goes_back)(void *ctx, const char *node, int64_t late_ms);
};

/* ops must outlive the engine, or be taken back with NULL, which waits until none is called. */
void engine_set_cluster(struct engine *en, const struct engine_cluster *ops);

#endif
