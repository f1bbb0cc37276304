/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a commit. All in the caller's transaction. */
#ifndef LOCKSTEP_STORE_ROWS_H
#define LOCKSTEP_STORE_ROWS_H

#include "store/inner.h"

struct commit_row {
    const struct commit *commit;
    const int64_t *parent_seq; /* of each parent */
    bool has_full, kept;
};

/* The commit and its parents. */
MUST_USE err_t
rows_put_commit(struct store *s, const struct commit_row *r, int64_t *ret_seq, struct error *e);
/* What it changed. The query is to be closed by the caller. ERR_CONFLICT: the object was named
 * before. */
MUST_USE err_t rows_open_entries(struct store *s, struct query *ret, struct error *e);
MUST_USE err_t rows_put_entry(
    struct query *q, int64_t seq, const struct body_key *key, bool has_object, struct error *e);
/* Everything it holds. */
MUST_USE err_t
rows_put_full(struct store *s, int64_t seq, const struct snapshot *shared, struct error *e);
MUST_USE err_t rows_set_head(struct store *s, int64_t seq, struct error *e);

#endif
