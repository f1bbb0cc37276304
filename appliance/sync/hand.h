/* SPDX-License-Identifier: Apache-2.0 */
/* Handing a revision to one node, or asking it whether it would take it. */
#ifndef LOCKSTEP_SYNC_HAND_H
#define LOCKSTEP_SYNC_HAND_H

#include "sync/inner.h"

/* The head to one node, which is known to have a commit; commit (may be NULL): another one on
 * top of the head, with the same content. */
struct cluster_handing {
    const struct member *member;
    const struct hash *have;
    const struct commit *commit;
    const struct hash *expected; /* NULL: whatever its head is */
    bool asks;                   /* only whether it would be taken */
    json_t **errors; /* NULL, or gets what a refusal names: a new reference, or NULL */
};

MUST_USE err_t cluster_hand(
    struct cluster *c, const struct cluster_handing *h, char ret_code[CODE_BYTES],
    struct error *e);

#endif
