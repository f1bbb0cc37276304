/* SPDX-License-Identifier: Apache-2.0 */
/* A long history goes from node to node in pieces, the oldest commits first; each is stored as
 * history alone, as a branch that lies aside, and the last document, with the head, follows
 * from there. Whatever ends it in between leaves a history that is whole, and the next try goes
 * on behind it. */
#ifndef LOCKSTEP_ENGINE_SYNC_PIECE_H
#define LOCKSTEP_ENGINE_SYNC_PIECE_H

#include "engine/sync.h"

#define SYNC_PIECES_MAX 10000 /* in a row */

/* Ends of what whoever lacks commits has stored of them so far: these and their ancestors need
 * not be sent. */
struct sync_ends {
    struct hash items[SYNC_STORED_MAX];
    size_t count;
};

/* Those of this node, from pieces of before. Any thread. */
MUST_USE err_t sync_ends_get(struct engine *en, struct sync_ends *ret, struct error *e);
/* A piece came behind them. ERR_INVALID: it brings nothing that they do not have; ERR_LIMIT:
 * too many branches side by side. */
MUST_USE err_t
sync_ends_follow(struct sync_ends *x, const struct sync_doc *piece, struct error *e);

/* Stores a piece: the head stays. A piece that is pushed belongs to an overwrite, and names
 * this node's head. ERR_CONFLICT with ret->refusal; ERR_INVALID: it is not what it says.
 * Nothing of it is stored then. */
MUST_USE err_t sync_piece_take(
    struct engine *en, const struct sync_doc *piece, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e);

#endif
