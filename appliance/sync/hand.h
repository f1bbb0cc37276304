/* SPDX-License-Identifier: Apache-2.0 */
/* A revision from node to node; only for this folder. */
#ifndef LOCKSTEP_SYNC_HAND_H
#define LOCKSTEP_SYNC_HAND_H

#include "sync/inner.h"

/* True when a newer revision was taken over. */
bool cluster_heal(struct cluster *c, const struct member_list *list);
/* A refusal is told for as long as somebody offers what was refused. Once a round. */
void cluster_forget_refusal(struct cluster *c);
/* Fetches what the node has beyond this one's head, and takes it over; waits until it serves.
 */
MUST_USE err_t cluster_pull(
    struct cluster *c, const struct member *m, const struct sync_origin *origin,
    int64_t *ret_task, struct error *e);
/* Fetches what the node has beyond this one's head into this node's history, and no further. */
MUST_USE err_t cluster_pull_head(
    struct cluster *c, const struct member *m, struct hash *ret_head, struct error *e);

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
/* A head for which no node reloads, as of what an operator did to a server: to all nodes at the
 * same time. One that hangs holds this up for sync_read_ms. */
void cluster_push_at_once(struct cluster *c);
/* {"node", "state", "code", "detail"}: what became of something on a node. */
json_t *
cluster_row(const struct member *m, const char *state, const char *code, const char *detail);
/* The node said that it stores and runs it, as this node does: nobody has to wait for the next
 * round to see that. */
void cluster_note_taken(struct cluster *c, const struct member *m, const struct commit *head);
/* Waits for a task; its failure as an error. in_round: on the thread of the rounds, which goes
 * on asking the other nodes meanwhile. */
MUST_USE err_t
cluster_wait_task(struct cluster *c, int64_t task, bool in_round, struct error *e);

#endif
