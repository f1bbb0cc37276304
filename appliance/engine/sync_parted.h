/* SPDX-License-Identifier: Apache-2.0 */
/* Where two histories parted: the newest commit that is an ancestor of both heads, or one of
 * them. Each node knows its own history only, so one names its ancestors, the newest first, a
 * page at a time, and the other says which is the newest of its own among them:
 *
 *   {"head": ID of the other's head, "among": [ID, ...]} -> {"shared": ID or null}
 */
#ifndef LOCKSTEP_ENGINE_SYNC_PARTED_H
#define LOCKSTEP_ENGINE_SYNC_PARTED_H

#include "engine/sync.h"

struct sync_page {
    struct hash items[STORE_ANCESTORS];
    size_t count; /* fewer: there are no more */
};

/* As store_ancestors. Any thread, as below. */
MUST_USE err_t sync_ancestors(
    struct engine *en, const struct hash *id, size_t skip, struct sync_page *ret,
    struct error *e);
/* As store_newest_ancestor. */
MUST_USE err_t sync_newest_ancestor(
    struct engine *en, const struct hash *of, const struct sync_page *among, struct commit *ret,
    struct error *e);

/* The question; and what it is answered, from outside. ERR_INVALID, ERR_NOT_FOUND: the head is
 * not stored here. New references. */
json_t *sync_parted_ask(const struct hash *head, const struct sync_page *among);
MUST_USE err_t
sync_parted_answer(struct engine *en, const json_t *question, json_t **ret, struct error *e);
/* *ret: a commit of this node, one of among; rev 0: none of them. ERR_INVALID: the answer. */
MUST_USE err_t sync_parted_read(
    struct engine *en, const json_t *answer, const struct sync_page *among, struct commit *ret,
    struct error *e);

#endif
