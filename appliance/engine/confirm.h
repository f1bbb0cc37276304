/* SPDX-License-Identifier: Apache-2.0 */
/* A revision that goes back by itself unless it is confirmed in time. At most one waits; until
 * it is confirmed or gone back, nothing else is applied. The database keeps which one it is, so
 * a restart changes nothing. */
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
};

/* Ends the wait: the revision stays. commit (may be NULL): the one that is meant. ERR_CONFLICT
 * when none waits, another one does, or its deadline has come; one that could not go back may
 * be confirmed until that is tried again. Any thread. */
MUST_USE err_t confirm_now(
    struct engine *en, const struct hash *commit, const struct actor *who, struct commit *ret,
    struct error *e);

/* ---- engine thread ---- */

/* What the database says, at the start. */
MUST_USE err_t confirm_load(struct engine *en, struct error *e);
/* c was committed on top of back_rev. */
void confirm_begin(struct engine *en, const struct commit *c, int64_t back_rev);
void confirm_end(struct engine *en);
/* The content to go back to, on top of the head: that of the waiting revision's parent, with
 * what changes at once as it is now, but for what refers to what goes back, and with what was
 * part of an object that comes back (the state of a server). Sets *ret_commit to the revision
 * that waits. ERR_CONFLICT when none does. */
MUST_USE err_t confirm_content(
    struct engine *en, const struct snapshot **ret, struct commit *ret_commit, struct error *e);

/* ---- any thread ---- */

/* ERR_CONFLICT while a revision waits: it says what to do. */
MUST_USE err_t confirm_refuse(struct engine *en, struct error *e);
bool confirm_waits_for(struct engine *en, const struct hash *commit);
void confirm_look(struct engine *en, struct engine_waiting *ret);
/* The loop that starts to go back at the deadline, until the engine stops. It has a thread of
 * its own: measuring an HAProxy that hangs takes seconds. */
void confirm_run(void *ctx);
/* A job that goes back has ended. */
void confirm_back_ended(struct engine *en, bool ok);

#endif
