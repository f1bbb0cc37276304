/* SPDX-License-Identifier: Apache-2.0 */
/* The question that a document of engine/sync_doc.h answers:
 *
 *   {"have": [ID, ...], "stored": [ID, ...] or absent, "objects": [["kind", "id", "objhash"],
 * ...]}
 */
#ifndef LOCKSTEP_ENGINE_SYNC_ASKED_H
#define LOCKSTEP_ENGINE_SYNC_ASKED_H

#include "engine/sync_doc.h"

struct sync_asked {
    struct hash have[SYNC_HAVE_MAX], stored[SYNC_STORED_MAX];
    struct lineage_entry *objects;
    struct sync_wanted wanted; /* refers to these */
};

void sync_asked_free(struct sync_asked *a); /* also for CLEANUP() */
/* From outside. *ret: zero before; sync_asked_free, also after a failure. ERR_INVALID. */
MUST_USE err_t sync_asked_read(const json_t *j, struct sync_asked *ret, struct error *e);

#endif
