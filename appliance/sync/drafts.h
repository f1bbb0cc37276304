/* SPDX-License-Identifier: Apache-2.0 */
/* The drafts of all nodes: seen from each of them, and taken over from one by another. */
#ifndef LOCKSTEP_SYNC_DRAFTS_H
#define LOCKSTEP_SYNC_DRAFTS_H

#include "engine/draft_rows.h"
#include "sync/cluster.h"

/* An answer to GET /peer/v1/draft: {"count", "local", "changes"}; content: and "rows". */
MUST_USE err_t drafts_own(struct cluster *c, bool content, json_t **ret, struct error *e);
/* {"nodes": [{"node", "self", "count", "local", "changes", "detail"}]}, by name; what a node
 * did not tell is null, with the reason in detail. Waits for other nodes. */
json_t *drafts_json(struct cluster *c);

struct drafts_taking {
    const char *node; /* id or name */
    enum draft_overlap overlap;
    const struct actor *who;
};

/* The draft of that node becomes part of this node's, and then leaves that node; waits for it.
 * *ret: {"node", "taken", "stored", "left", "detail"}; left null: it is stored here, but that
 * node did not say that its draft is empty: it can be repeated. ERR_NOT_FOUND, ERR_UNAVAILABLE,
 * and those of draft_take: nothing has changed. */
MUST_USE err_t
drafts_take(struct cluster *c, const struct drafts_taking *t, json_t **ret, struct error *e);

#endif
