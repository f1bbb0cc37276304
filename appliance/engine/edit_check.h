/* SPDX-License-Identifier: Apache-2.0 */
/* What an edit is held to, and pairs of snapshots. Pure; only for this folder. */
#ifndef LOCKSTEP_ENGINE_EDIT_CHECK_H
#define LOCKSTEP_ENGINE_EDIT_CHECK_H

#include "model/change.h"

/* change_apply and the checks of edit_draft. */
MUST_USE err_t edit_check(
    const struct change_set *set, const struct snapshot_pair *before, int64_t now_s,
    struct snapshot_pair *ret, struct problems *p, struct error *e);
/* Errors of validate_all that after has and before has not. */
size_t edit_new_errors(
    const struct snapshot_pair *before, const struct snapshot_pair *after, int64_t now_s,
    struct problems *p);
/* validate_webui_kept, as an error. */
MUST_USE err_t edit_keeps_pages(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p,
    struct error *e);
const char *edit_first_error(const struct problems *p);
void pair_cleanup(struct snapshot_pair *pair); /* gives both references back */
struct snapshot_pair pair_ref(const struct snapshot_pair *pair);

#endif
