/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of configuration: draft, direct commits, history. */
#ifndef LOCKSTEP_ENGINE_EDIT_H
#define LOCKSTEP_ENGINE_EDIT_H

#include "engine/engine.h"
#include "model/change.h"

/* Applies a set to the draft (kinds that are "direct" commit at once; a set may not mix the
 * two: ERR_INVALID). Checks as change_apply against what the draft shows, plus
 * validate_object of what changed; validate_all's errors that the set adds over the
 * draft's present ones are refused too (C102), so that the draft always can be applied.
 * ERR_OK, or change_apply's errors with problems. ERR_IO when it is not durable.
 * A row whose object again equals the head's leaves the draft. */
MUST_USE err_t edit_draft(
    struct engine *en, const struct change_set *set, const struct actor *who,
    struct problems *p, struct error *e);
/* Same checks, changes nothing; *ret_*: what the draft would be (new references). */
MUST_USE err_t edit_try(
    struct engine *en, const struct change_set *set, struct snapshot **ret_shared,
    struct snapshot **ret_local, struct problems *p, struct error *e);

/* Discards one row (ERR_NOT_FOUND; ERR_CONFLICT when another drafted object needs it) or
 * the whole draft. */
MUST_USE err_t edit_discard(
    struct engine *en, enum kind kind, const char *name, const struct actor *who,
    struct problems *p, struct error *e);
MUST_USE err_t edit_discard_all(struct engine *en, const struct actor *who, struct error *e);

/* Puts the content of an older commit into the draft (spec as store_commit_find). Objects of
 * direct kinds (keys) are left as they are: a restore never brings back a revoked key, and a
 * server that comes back begins anew, whatever was decided about it then. A certificate that
 * was renewed since keeps its present chain and key, with a warning "kept", unless
 * old_certificates says otherwise. ERR_CONFLICT when the draft is not empty. */
MUST_USE err_t edit_restore(
    struct engine *en, const char *spec, bool old_certificates, const struct actor *who,
    struct problems *p, struct error *e);

/* The head's objects of direct kinds with content's objects of the others. Pure. */
MUST_USE err_t edit_merge_content(
    const struct snapshot *head, const struct snapshot *content, struct snapshot **ret,
    struct error *e);

/* History, for readers. Results are malloc'ed. The content, which takes long when there are
 * many objects, is read on the caller's thread, beside the commits that are made meanwhile. */
MUST_USE err_t edit_commits(
    struct engine *en, int64_t before_rev, size_t limit, struct commit **ret, size_t *ret_count,
    struct error *e);
MUST_USE err_t
edit_commit_find(struct engine *en, const char *spec, struct commit *ret, struct error *e);
MUST_USE err_t edit_commit_content(
    struct engine *en, const struct hash *id, struct snapshot **ret, struct error *e);

/* store_verify, and compares the files of the current generation with a fresh render of the
 * head: ERR_CORRUPT names the first difference. Changes nothing. */
MUST_USE err_t edit_verify(struct engine *en, int64_t *ret_checked, struct error *e);

#endif
