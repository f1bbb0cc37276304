/* SPDX-License-Identifier: Apache-2.0 */
/* A revision that HAProxy runs here before another node commits it, to see that it serves. It
 * is never stored: what ends it early, or its time, lets files and HAProxy follow the head. */
#ifndef LOCKSTEP_ENGINE_STANDBY_H
#define LOCKSTEP_ENGINE_STANDBY_H

#include "base/crypt.h"
#include "render/haproxy.h"

struct engine;

/* Under engine.lock. */
struct standby {
    struct hash commit;                 /* of the candidate; no other trial has it */
    char digest[RENDER_DIGEST_HEX + 1]; /* "": there is none */
    int64_t local_rev;                  /* of the local container that it was made with */
    int64_t until_ms;                   /* monotonic; 0: it is over, but HAProxy may run it */
};

#define STANDBY_CANCELLED 16 /* the newest ones; one apply cancels one trial */

/* Under engine.lock. */
struct standby_cancelled {
    struct hash commit;
    int64_t until_ms; /* monotonic: no trial of it begins before */
};

struct standby_cancels {
    struct standby_cancelled items[STANDBY_CANCELLED];
    size_t next; /* the one whose place is needed next */
};

/* t->until_ms is set from the tunable trial_ms. ERR_CONFLICT: it was cancelled. */
MUST_USE err_t standby_begin(struct engine *en, const struct standby *t, struct error *e);
/* ERR_CONFLICT: the trial of that candidate was cancelled. */
MUST_USE err_t standby_check(struct engine *en, const struct hash *commit, struct error *e);
/* Whether HAProxy may run something else than the head. Past its time it is over. */
bool standby_holds(struct engine *en);
/* The same until HAProxy has followed the head again. */
bool standby_runs(struct engine *en);
/* Files are about to be loaded, or to be committed: true when that ends a trial of others. */
bool standby_gives_way(struct engine *en, const char *digest, int64_t local_rev);
/* It is committed. */
void standby_end(struct engine *en);
/* Ends that trial, if it is the one, and HAProxy follows the head at once. For the time of a
 * trial it does not begin any more either: who cancels it may be faster than its request. */
void standby_cancel(struct engine *en, const struct hash *commit);

#endif
