/* SPDX-License-Identifier: Apache-2.0 */
/* Steps between a candidate and a generation that HAProxy runs; only for this folder. */
#ifndef LOCKSTEP_ENGINE_GENERATION_H
#define LOCKSTEP_ENGINE_GENERATION_H

#include "engine/inner.h"
#include "model/validate.h"

/* Without validate_all. */
MUST_USE err_t generation_render(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e);

struct generation_check {
    int64_t number; /* in: 0 = a new one; out: the one that was used */
    bool reserved;  /* number is the one, whatever comes */
    size_t warnings;
    bool only_weights; /* the checker did not run: it accepted the rest before */
};

/* Writes the files for the helper, which copies them and has the copy checked. What the checker
 * said becomes problems. ERR_INVALID when it refused. */
MUST_USE err_t generation_stage(
    struct engine *en, const struct rendered *files, struct generation_check *check,
    struct problems *p, struct error *e);
/* Tries the binds of candidate that running (may be NULL) has not. ERR_INVALID and a problem
 * for each that cannot be bound. *ret_count: how many were tried. */
MUST_USE err_t generation_bind_test(
    struct engine *en, const struct snapshot_pair *candidate,
    const struct snapshot_pair *running, size_t *ret_count, struct problems *p,
    struct error *e);

/* The same of these; their order is another one afterwards. *count: in, how many; out, how many
 * were tried. */
MUST_USE err_t generation_try_binds(
    struct engine *en, struct bind *wanted, size_t *count, const struct snapshot_pair *running,
    struct problems *p, struct error *e);

/* A row of the table of generations; any thread. */
MUST_USE err_t generation_put(struct engine *en, const struct generation *g, struct error *e);
/* The newest of a digest; the one of a number. ERR_NOT_FOUND. */
MUST_USE err_t
generation_find(struct engine *en, const char *digest, struct generation *ret, struct error *e);
MUST_USE err_t
generation_number(struct engine *en, int64_t number, struct generation *ret, struct error *e);

/* ---- serving.c ---- */

/* ERR_OK once HAProxy reports digest, answers on every http listener of shared (may be NULL)
 * and on its probe socket; else after verify_ms what was missing last. */
MUST_USE err_t serving_confirm(
    struct engine *en, const char *digest, const struct snapshot *shared, struct error *e);
/* Where to connect for an address that is bound. */
const char *serving_target(const char *address);
/* Whether this machine has the address, a literal. */
bool serving_is_here(const char *address);
/* One request to the probe socket. */
MUST_USE err_t serving_probe(struct engine *en, struct error *e);

#endif
