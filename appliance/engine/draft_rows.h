/* SPDX-License-Identifier: Apache-2.0 */
/* The draft of a node as the other nodes see it and take it over. Of kinds that all nodes
 * share only: what is of one node alone stays there. */
#ifndef LOCKSTEP_ENGINE_DRAFT_ROWS_H
#define LOCKSTEP_ENGINE_DRAFT_ROWS_H

#include "engine/engine.h"
#include "store/lineage.h"

/* [{"kind", "id", "name", "change", "author", "at", "conflict"}], sorted by kind and name; of
 * what all nodes share only, or of everything. */
json_t *draft_changes_json(const struct view *v, bool shared_only);

/* Copies of the rows; draft_list_free. */
MUST_USE err_t draft_rows_get(struct engine *en, struct draft_list *ret, struct error *e);
/* [{"kind", "id", "name", "author", "at_ms", "base": objhash or null, "object": {...} or
 * null}]. object: canonical, secrets in clear; null: deleted. */
json_t *draft_rows_json(const struct draft_list *rows);
/* From another node, so checked; sorted. *ret: draft_list_free, also after a failure. */
MUST_USE err_t draft_rows_read(const json_t *j, struct draft_list *ret, struct error *e);

/* What becomes of an object that both drafts change, each otherwise. */
enum draft_overlap { OVERLAP_REFUSE, OVERLAP_THEIRS, OVERLAP_OURS };

struct draft_taking {
    const struct draft_list *rows;
    enum draft_overlap overlap;
    const char *from; /* name of the node */
    const struct actor *who;
};

/* The rows become part of this node's draft, with their authors and bases, in one transaction;
 * what is so already is left alone. ERR_LOCKED; ERR_CONFLICT names what both drafts change. */
MUST_USE err_t draft_take(
    struct engine *en, const struct draft_taking *t, size_t *ret_stored, struct error *e);

/* The other side of it: the node of that name has stored these; what is still as it was when it
 * was read leaves this draft. *ret_left: rows that are left. */
struct draft_handing {
    const struct lineage_entry *taken;
    size_t count;
    const char *to;
};

MUST_USE err_t draft_hand_over(
    struct engine *en, const struct draft_handing *h, size_t *ret_left, struct error *e);

#endif
