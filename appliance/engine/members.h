/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the cluster, this one among them. A record is written by its own node only: of
 * two the one with the higher seq is true, a tombstone ends it. Beside each stands the peer key
 * by which that node is called; what comes from others fills gaps only, so that nobody but a
 * node itself replaces its key. A key that the node refuses is a gap, too: else two nodes that
 * both changed theirs while apart would never hear of it. Any thread. */
#ifndef LOCKSTEP_ENGINE_MEMBERS_H
#define LOCKSTEP_ENGINE_MEMBERS_H

#include "engine/engine.h"
#include "model/member.h"
#include "render/haproxy.h"

#define MEMBERS_MAX 64 /* records, tombstones too */

struct member_list {
    struct member *items; /* by id; tombstones too */
    size_t count;
    size_t self; /* position of this node */
};

void member_list_free(struct member_list *l); /* wipes the keys; also for CLEANUP() */
/* No tombstone; also this node. */
bool member_list_has(const struct member_list *l, const char *id);
struct member_list members_get(struct engine *en);
void members_self(struct engine *en, struct member *ret);
/* Of another node that is no tombstone; spec: an id or a name. ERR_NOT_FOUND; ERR_CONFLICT: two
 * nodes have the name. */
MUST_USE err_t
members_find(struct engine *en, const char *spec, struct member *ret, struct error *e);
/* The schema_version to write with: the newest that all members and the head know. *ret_behind:
 * a node that knows no more, without key; "": none is behind this one. Any thread. */
int members_level(struct engine *en, struct member *ret_behind);
/* Whether another machine was seen to be this node, too, and may still be. */
bool members_is_twice(struct engine *en, const struct member *m);
/* How many nodes beside this one are no tombstones. */
size_t members_peers(struct engine *en);
/* Over id, seq and key of each: equal on two nodes when they know the same. */
struct hash members_digest(struct engine *en);

/* Whom HAProxy shares stick tables with, as the renderer takes it. */
struct members_tables {
    char url[MEMBER_URL_BYTES];            /* of this node, unless its settings say so */
    struct render_peer peers[MEMBERS_MAX]; /* by id of the node */
    size_t count;
    size_t rank;        /* of this node among all that are no tombstones, by id */
    struct hash digest; /* of all this, but for the rank */
    struct member_list list;
};

void members_tables_get(struct engine *en, struct members_tables *ret);
/* Where this node with these settings takes the tables of others; "": nowhere. */
void members_tables_address(
    const struct members_tables *t, const struct snapshot *local, char ret[MEMBER_IP_BYTES]);
void members_tables_fini(struct members_tables *t); /* also for CLEANUP() */

/* Where this node's own pages are, unless its settings say so, and its public key. The own
 * record gets a new seq when something of it is another now. */
MUST_USE err_t
members_present(struct engine *en, const char *url, const char *pin, struct error *e);

/* The url that it said last. */
void members_listens(struct engine *en, char ret[MEMBER_URL_BYTES]);

/* Takes what another node knows. A newer record of this node itself, as after a restore of its
 * database, makes the own seq higher; a tombstone says that it was forgotten: then it forgets
 * the others, unless it joins. What is older than a removal that was made meanwhile, of this
 * node or of the one that was asked, is passed over, and so is all that a forgotten node tells
 * unless it joins again: its record is newer than the tombstone then. Who joins another cluster
 * than its own passes over the tombstones that it has of nodes there; where it was forgotten
 * there itself, it takes nothing but that, and asks once more.
 * Two nodes of one name or one address are both taken, and told (sync/condition.h). ERR_LIMIT.
 */
enum members_how {
    MEMBERS_TOLD,
    MEMBERS_ASKED, /* the answer of a node that was asked as a member */
    MEMBERS_JOINING,
};

struct members_offer {
    const struct member *items;
    size_t count;
    const char *from; /* who says so, or NULL: of its own record and key it is believed */
    enum members_how how;
};

struct members_taken {
    bool changed; /* something is new */
    bool late;    /* passed over: who told it has not heard that this node left */
};

MUST_USE err_t members_merge(
    struct engine *en, const struct members_offer *offer, struct members_taken *ret,
    struct error *e);
/* What a node is answered that told or asked for the list. Who was forgotten and did not join
 * again gets no keys; who has not heard that this node left (late) hears of that, only. */
struct member_list members_for(struct engine *en, const char *id, bool late);
/* Whether who calls itself by this id may do what members may; NULL: it says none. ERR_DENIED,
 * *ret_code: forgotten, not_member. The key is the proof, the id is not: all members know the
 * key. */
MUST_USE err_t
members_admit(struct engine *en, const char *id, const char **ret_code, struct error *e);
/* A tombstone for another node; with the own id this node forgets all others. */
MUST_USE err_t members_remove(struct engine *en, const char *id, struct error *e);
/* Another peer key for this node; calls with the former one are answered for ten minutes,
 * also after a restart. */
MUST_USE err_t members_new_key(struct engine *en, struct error *e);
/* Whether the node was seen to refuse calls with this key. */
void members_note_key(struct engine *en, const char *id, const char *key, bool refused);
/* What was done with the cluster, for the audit. */
void members_audit(struct engine *en, const char *who, const char *action, const char *text);
/* Whether it is this node's key, or was a moment ago. Constant time. */
bool members_is_key(struct engine *en, const char *key);

/* ---- engine thread ---- */

struct members;
MUST_USE err_t members_open(struct engine *en, struct error *e);
void members_close(struct engine *en); /* NULL is allowed */
/* The settings of this node are others now. */
void members_refresh(struct engine *en);

#endif
