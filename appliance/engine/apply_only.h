/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the draft, chosen for an apply. Works on views; only for this folder. */
#ifndef LOCKSTEP_ENGINE_APPLY_ONLY_H
#define LOCKSTEP_ENGINE_APPLY_ONLY_H

#include "engine/apply.h"

struct only_row {
    enum kind kind;
    char id[OBJECT_ID_BYTES];
};

/* Rows of a draft, sorted. */
struct only_rows {
    struct only_row *rows;
    size_t count;
};

void only_rows_free(struct only_rows *rows);
/* The rows that are meant. ERR_INVALID, with problems whose pointers lead below /only, when
 * the draft has none of an object or of an author. */
MUST_USE err_t only_find(
    const struct view *v, const struct apply_only *only, struct only_rows *ret,
    struct problems *p, struct error *e);
bool only_has(const struct only_rows *rows, enum kind kind, const char *id);
/* ERR_CONFLICT names the first of them whose object was changed otherwise since; NULL: of the
 * whole draft. */
MUST_USE err_t
only_check_conflicts(const struct view *v, const struct only_rows *rows, struct error *e);
/* The head with those rows. ERR_INVALID when they are not valid without the rest of the draft;
 * all they need of it is named, with what that needs in turn (problems "needs_draft"). */
MUST_USE err_t only_candidate(
    const struct view *v, const struct only_rows *rows, int64_t now_s,
    struct snapshot_pair *ret, struct problems *p, struct error *e);

#endif
