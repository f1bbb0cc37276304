/* SPDX-License-Identifier: Apache-2.0 */
/* What another node is about to apply, looked at here before it does. */
#ifndef LOCKSTEP_ENGINE_SYNC_CHECK_H
#define LOCKSTEP_ENGINE_SYNC_CHECK_H

#include "engine/sync.h"
#include "model/problems.h"

struct sync_checked {
    struct sync_result result; /* of a refusal; result.missing: free */
    struct hash fp;
    int64_t local_rev; /* of the local container that it was rendered with */
    bool same;         /* it is the head already */
    int64_t task;      /* of a trial: ends when it serves */
};

/* Rendered with this node's own local container, checked, its new addresses tried; nothing is
 * changed. What was checked is kept for the push (tunable check_kept_ms). Refused as sync_take
 * refuses; ERR_INVALID with problems when this node cannot run it. Worker thread. */
MUST_USE err_t sync_check(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_checked *ret, struct problems *p, struct error *e);
/* The same, but HAProxy runs it when ret->task has ended well, and goes back by itself after
 * trial_ms: the push of the same content is its commit. "cancelled" is a refusal, too. */
MUST_USE err_t sync_trial(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_checked *ret, struct error *e);
/* Of a task of sync_take that failed: *ret_name is its code for programs. ERR_INVALID:
 * "not_serving" where HAProxy had it, else what is wrong with it; ERR_CONFLICT: the head
 * "moved" before it was its turn; others: what this node could not do. */
err_t sync_failure(const json_t *task, const char **ret_name);

#endif
