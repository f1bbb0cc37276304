/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a cluster kept in step: one thread asks each of them how it is every
 * sync_round_ms, hands on what one of them does not know of the others, and takes over a newer
 * revision. Nothing is queued: what failed is seen again in the next round. */
#ifndef LOCKSTEP_SYNC_CLUSTER_H
#define LOCKSTEP_SYNC_CLUSTER_H

#include "engine/members.h"
#include "engine/sync.h"
#include "peer/calls.h"
#include "sync/right.h"

struct cluster;

/* The engine must outlive it. */
MUST_USE err_t cluster_open(
    struct engine *en, const struct tunables *t, const struct clock *clock,
    struct cluster **ret, struct error *e);
/* Whoever waits for another node gets ERR_UNAVAILABLE, at once. NULL is allowed, as below. */
void cluster_stop(struct cluster *c);
void cluster_close(struct cluster *c);
/* The next round begins at once. */
void cluster_wake(struct cluster *c);

/* {"self", "nodes": [...], "conditions": [...]}: of each node what it said last, and how its
 * revision stands to the one of this node; what is not as it should be (sync/condition.h). New
 * reference. Any thread. */
json_t *cluster_json(struct cluster *c);

/* Whether what all nodes share may be edited here. message: for whoever may not, with the node
 * and the address where they may. Any thread. */
#define CLUSTER_MESSAGE_BYTES 400
enum right cluster_right(struct cluster *c, bool unlocked, char message[CLUSTER_MESSAGE_BYTES]);

/* The primary VIP group. */
struct cluster_vip {
    char text[200]; /* its addresses, perhaps cut; "": there is no group */
    bool held;      /* this node has them */
};

void cluster_look_at_vip(struct cluster *c, struct cluster_vip *ret);
bool cluster_holds(struct cluster *c); /* as held, without the text */

/* ---- membership: worker threads, they wait for other nodes ---- */

struct cluster_join {
    const char *url, *key, *pin; /* of any node of the cluster */
    bool plan;                   /* says only what would be */
};

/* {"node", "checks": [{"name", "ok", "state", "detail", "next"}], "replaces", "nodes":
 * [{"name", "url", "knows"}], "task"}. ERR_CONFLICT when a check fails; *ret then says which.
 * Can be repeated after an interruption. */
MUST_USE err_t cluster_join(
    struct cluster *c, const struct cluster_join *j, const char *who, json_t **ret,
    struct error *e);
/* Tells the others and forgets them. What is stored stays. */
MUST_USE err_t cluster_leave(struct cluster *c, const char *who, struct error *e);
/* Of a node that is gone for good; spec: id or name. */
MUST_USE err_t
cluster_forget(struct cluster *c, const char *spec, const char *who, struct error *e);

/* An administrator of this node becomes one of another. */
struct cluster_admin {
    const char *node, *admin, *who; /* node: id or name */
    bool overwrite;                 /* also where there is one of that name */
};

/* {"node", "admin", "state": "created" | "replaced" | "same"}. ERR_NOT_FOUND: no such node, or
 * administrator; ERR_CONFLICT: there is one of that name, or that node's release cannot do
 * this; ERR_UNAVAILABLE. Both nodes write it into their audit. */
MUST_USE err_t cluster_copy_admin(
    struct cluster *c, const struct cluster_admin *q, json_t **ret, struct error *e);

/* ---- handing a revision on ---- */

/* To every node that is behind, one after another, the one named first (may be NULL) before
 * the rest; each that failed is named. New reference to
 * [{"node", "state": "ok" | "failed" | "skipped", "code", "detail"}]. task: whose step tells
 * how far it is, or 0. Worker or apply thread. */
json_t *cluster_push(struct cluster *c, int64_t task, const char *first);

struct cluster_overwrite {
    const char *const *nodes; /* ids or names; none: every node that diverged */
    size_t node_count;
    const char *who;
    bool plan; /* says only what would be discarded */
};

/* This node's content on every node that diverged, as a new commit on top of all their heads; a
 * node that is ahead only when it is named. All are asked before the first is changed. *ret,
 * also of a failure: {"rev", "commit", "nodes": [{"node", "discarded", "discarded_name",
 * "state": "ok" | "failed" | "skipped", "code", "detail"}]}, and of a failure "code".
 * ERR_NOT_FOUND: a name that none has; ERR_CONFLICT: a named one does not differ or answer, one
 * refuses ("moved", "overwrite_in_progress"), or this node was changed meanwhile: then those
 * that took it are named, and nothing has changed here; ERR_INVALID: one cannot run it;
 * ERR_UNAVAILABLE, ERR_TIMEOUT: none took it, and this is what the first one did. */
MUST_USE err_t cluster_overwrite(
    struct cluster *c, const struct cluster_overwrite *q, json_t **ret, struct error *e);

/* The head of another node, whose content is in this node's history then. */
struct cluster_other {
    char name[65];
    struct commit head;
};

/* spec: id or name. Waits for the node. ERR_NOT_FOUND; ERR_UNAVAILABLE says why it was not
 * fetched; ERR_CONFLICT: a newer release made it. */
MUST_USE err_t cluster_fetch_head(
    struct cluster *c, const char *spec, struct cluster_other *ret, struct error *e);
/* The node with this id overwrites this one, or asks whether it could: whether an overwrite
 * from this node goes first. Of two that still ask, that of the lower id does, and one that
 * asks does not go on when another one came. Who hands over already has asked all. */
bool cluster_outranks(struct cluster *c, const char *id, bool asks);

/* ---- what peers ask for: HTTP handlers ---- */

/* An answer to GET /peer/v1/health; head: that of the caller, or NULL. */
MUST_USE err_t
cluster_health(struct cluster *c, const struct hash *head, json_t **ret, struct error *e);
/* A node asked and said its head: when that is news, the next round begins at once. */
void cluster_notice(struct cluster *c, const char *id, const struct hash *head);
/* A record with its "key"; of a whole list, tombstones too. */
json_t *cluster_member_json(const struct member *m);
json_t *cluster_members_json(const struct member_list *list);
/* Takes such a list. from (may be NULL): id of whoever hands it over. */
MUST_USE err_t cluster_members_take(
    struct engine *en, const json_t *list, const char *from, enum members_how how,
    struct members_taken *ret, struct error *e);

#endif
