/* SPDX-License-Identifier: Apache-2.0 */
/* Commits: in the database, then in what the engine holds. Engine thread only. */
#ifndef LOCKSTEP_ENGINE_COMMIT_H
#define LOCKSTEP_ENGINE_COMMIT_H

#include "engine/inner.h"
#include "engine/sync_doc.h"

struct commit_plan {
    struct snapshot_pair to; /* NULL: that container does not change */
    const char *author, *summary;
    const struct draft_row *drop; /* sorted; these leave the draft with it */
    size_t drop_count;
    int64_t confirm_s; /* 0: it stays without being confirmed */
    bool ends_wait;    /* a commit also where nothing changes: it follows what waited */
};

/* store_commit, then en->live. Publishes the view. */
MUST_USE err_t commit_write(struct engine *en, const struct commit_plan *plan, struct error *e);
/* store_adopt, then en->live. Publishes the view. shared NULL: the head moved meanwhile,
 * which is fine when it is that of d by now. */
MUST_USE err_t commit_adopt(
    struct engine *en, const struct sync_doc *d, const struct snapshot *shared,
    const char *author, struct error *e);
/* Whether commit_adopt would save it, as far as that shows without its references. */
MUST_USE err_t commit_adopt_check(
    struct engine *en, const struct sync_doc *d, const struct snapshot *shared,
    struct error *e);
/* After a commit that changes nothing that HAProxy loads: if it ran that former head with that
 * local revision, it runs the new one. */
void commit_carry_generation(struct engine *en, const struct hash *head, int64_t local_rev);
/* "created pool app, changed service web and 3 more" */
void commit_summary(
    const struct snapshot_pair *before, const struct snapshot_pair *after,
    char out[COMMIT_TEXT_BYTES]);
/* Commits a set of direct kinds. patch (may be NULL) goes into each object that the set
 * creates, by object_with. */
MUST_USE err_t commit_direct(
    struct engine *en, const struct change_set *set, const json_t *patch,
    const struct actor *who, struct problems *p, struct error *e);

#endif
