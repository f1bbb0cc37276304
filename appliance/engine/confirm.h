/* SPDX-License-Identifier: Apache-2.0 */
/* A revision that goes back by itself unless it is confirmed in time. At most one waits; until
 * it is confirmed or gone back, nothing else is applied. Which one it is follows from the head
 * (store_waiting), so that every node that has it knows. Each waits, and one of them goes back:
 * the node that holds the VIP at that time; where there is no VIP, or no node has it, the one
 * that applied it. A confirmation is a commit of the same content. */
#ifndef LOCKSTEP_ENGINE_CONFIRM_H
#define LOCKSTEP_ENGINE_CONFIRM_H

#include "engine/engine.h"

/* Under engine.lock. */
struct waiting {
    bool is;
    struct commit commit; /* what waits */
    int64_t back_rev;     /* of its parent */
    int64_t due_ms;      /* monotonic: setting the wall clock neither shortens nor extends it */
    bool going;          /* a job that goes back is queued or runs */
    int64_t next_ms;     /* monotonic: no further job before */
    int64_t retry_at_ms; /* the same as Unix time, for people */
    int64_t back_off_ms; /* 0: none has failed */
    bool nobody;         /* that answers goes back, as seen last */
};

/* Ends the wait: the revision stays. Returns when the other nodes that answer have that, too.
 * commit (may be NULL): the one that is meant. ERR_LOCKED; ERR_CONFLICT when none waits,
 * another one does, or its deadline has come; one that could not go back may be confirmed until
 * that is tried again. Worker thread. */
MUST_USE err_t confirm_now(
    struct engine *en, const struct hash *commit, const struct actor *who, struct commit *ret,
    struct error *e);

/* ---- engine thread ---- */

/* What waits from now on, as the database says: at the start; after the head moved, where
 * nothing can be refused any more. */
MUST_USE err_t confirm_load(struct engine *en, struct error *e);
void confirm_follow(struct engine *en);
/* The content to go back to, on top of the head: that of the waiting revision's parent, with
 * what changes at once as it is now, but for what refers to what goes back, and with what was
 * part of an object that comes back (the state of a server). Sets *ret_commit to the revision
 * that waits. ERR_CONFLICT when none does. */
MUST_USE err_t confirm_content(
    struct engine *en, const struct snapshot **ret, struct commit *ret_commit, struct error *e);

/* ---- any thread ---- */

/* ERR_CONFLICT while a revision waits: it says what to do. What changes settings of this node
 * alone is let through, since a node may need that to follow the others, but for the name of
 * the node that applied it: by that it is found when it is to go back. before, after: NULL
 * where it is known to be more. */
MUST_USE err_t confirm_refuse(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    struct error *e);
bool confirm_waits_for(struct engine *en, const struct hash *commit);
void confirm_look(struct engine *en, struct engine_waiting *ret);
/* Starts to go back when that is due and up to this node. Returns for how long to wait then:
 * the clock that decides also counts while the machine sleeps, that of a condition does not, so
 * never longer than a round. */
int64_t confirm_go_back_when_due(struct engine *en);
/* The loop of that, until the engine stops. It has a thread of its own: measuring an HAProxy
 * that hangs takes seconds. */
void confirm_run(void *ctx);
/* A job that goes back has ended. */
void confirm_back_ended(struct engine *en, bool ok);

#endif
