/* SPDX-License-Identifier: Apache-2.0 */
/* What this node tells others of itself, and what it takes from them. Whether something is
 * taken follows from ancestry alone (engine/relation.h); what is taken goes through the apply
 * machine, with this node's own local container, and is committed when HAProxy was seen to
 * serve it. */
#ifndef LOCKSTEP_ENGINE_SYNC_H
#define LOCKSTEP_ENGINE_SYNC_H

#include "engine/relation.h"
#include "engine/sync_doc.h"

/* What another node says of its head. */
struct sync_head {
    struct hash id, fp;
    int64_t rev;
    int schema_version;
};

/* How two heads stand to each other, seen from this node. */
struct sync_view {
    bool have;  /* the other head is stored here */
    bool leads; /* it is an ancestor of this node's head, or that head itself */
};

/* Engine thread (by itself). */
MUST_USE err_t
sync_look(struct engine *en, const struct hash *other, struct sync_view *ret, struct error *e);
/* Commits that are stored here for sync_wanted, the head first, then ever farther back: of two
 * histories that parted, only what came since has to travel. *ret_count: up to SYNC_HAVE_MAX.
 */
MUST_USE err_t sync_have(
    struct engine *en, struct hash ret[SYNC_HAVE_MAX], size_t *ret_count, struct error *e);
/* The facts that a relation follows from. leads: the peer says that this node's head is an
 * ancestor of its own. */
struct relation_facts sync_facts(
    const struct commit *own, const struct sync_head *peer, const struct sync_view *seen,
    bool leads);

enum sync_how {
    SYNC_PUSHED, /* another node's apply */
    SYNC_PULLED, /* healing */
    SYNC_JOINED, /* whatever this node had, unless that is newer; it stays in history */
    SYNC_STORED, /* history alone: nothing is activated */
};

struct sync_origin {
    enum sync_how how;
    const char *from; /* name of the other node */
    bool again;       /* this failed a moment ago: it is told of only when it ends well */
    bool outranks;    /* this node makes an overwrite itself, and goes first */
};

struct sync_result {
    int64_t task;                  /* 0: nothing to do, or done */
    const char *refusal;           /* code of a refusal, as "diverged"; NULL: see the error */
    struct lineage_entry *missing; /* objects to send besides; free */
    size_t missing_count;
};

/* Takes the document over. ERR_OK: ret->task ends when it serves.
 * ERR_CONFLICT with ret->refusal; ERR_NOT_FOUND with ret->missing; ERR_INVALID: what it holds
 * is not what it says. Nothing is changed by a refusal. */
MUST_USE err_t sync_take(
    struct engine *en, struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e);

/* What it would make of this node, for whoever looks at it before. */
struct sync_weighed {
    struct hash own; /* the head that it stands on */
    struct hash fp;
    struct snapshot *shared; /* a reference; NULL where it is the head already */
};

/* As sync_take, but nothing is taken: ret->refusal is "same" where it is the head already. */
MUST_USE err_t sync_weigh(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct sync_weighed *ret_weighed, struct error *e);

/* A commit that is stored here. ERR_NOT_FOUND. */
MUST_USE err_t
sync_commit_get(struct engine *en, const struct hash *id, struct commit *ret, struct error *e);
/* What a commit that is stored here is to this node's head. ERR_NOT_FOUND. */
MUST_USE err_t
sync_relate(struct engine *en, const struct commit *other, enum relation *ret, struct error *e);
/* Makes c, which has the content of own and own among its parents, the head, when own still is
 * it (else ERR_CONFLICT); nothing is left to do when the head is c or follows from it, which
 * this node got back from another one. Nothing that HAProxy loads is another then. */
MUST_USE err_t sync_overwrite(
    struct engine *en, const struct commit *own, const struct commit *c, const char *who,
    struct error *e);

#endif
