/* SPDX-License-Identifier: Apache-2.0 */
/* Which object has which hash in a commit. own = false: worked out from the commit's first
 * parent and its changes, also when it has a full index. */
#ifndef LOCKSTEP_STORE_CONTENT_H
#define LOCKSTEP_STORE_CONTENT_H

#include "store/inner.h"
#include "store/lineage.h"

/* Whether what this starts from is kept: the commit's content, or its first parent's. */
MUST_USE err_t
content_is_kept(const struct store *s, int64_t seq, bool own, bool *ret, struct error *e);
MUST_USE err_t content_fp(
    const struct store *s, int64_t seq, bool own, int schema_version, struct hash *ret,
    struct error *e);

/* The rows kind, id, objhash of a query; *ret is malloc'ed. */
MUST_USE err_t lineage_entries(
    struct query *q, struct lineage_entry **ret, size_t *ret_count, struct error *e);

#endif
