/* SPDX-License-Identifier: Apache-2.0 */
/* What changed, for people and for the API. Pure. */
#ifndef LOCKSTEP_MODEL_DIFF_H
#define LOCKSTEP_MODEL_DIFF_H

#include "base/buf.h"
#include "model/snapshot.h"

/* JSON array, one element per object that differs, in the order of snapshot_diff:
 * {"kind", "id", "name", "change": "added"|"changed"|"removed",
 *  "fields": [{"field", "pointer", "before", "after"}], "effect": ["haproxy:reload", ...]}.
 * Secrets appear as {"set": true, "changed": true}. References as names. */
json_t *diff_objects(const struct snapshot_pair *before, const struct snapshot_pair *after);

/* Unified diff (3 lines of context, headers "--- a/NAME", "+++ b/NAME") of two texts; empty
 * when equal. ERR_LIMIT when the texts need more than 10,000 edits: then out gets one line
 * that says how many lines differ. */
MUST_USE err_t
diff_text(const char *name, const char *a, const char *b, struct buf *out, struct error *e);

#endif
