/* SPDX-License-Identifier: Apache-2.0 */
/* What a document changes of a container, and the container that it makes of it. Pure. */
#ifndef LOCKSTEP_ENGINE_SYNC_CHANGES_H
#define LOCKSTEP_ENGINE_SYNC_CHANGES_H

#include "engine/sync_doc.h"

/* Each place (kind, id) once, sorted. */
struct sync_changes {
    struct lineage_entry *items; /* free */
    size_t count;
};

/* Against own, the content of the commit own_id. ERR_INVALID: the commits do not lead on from
 * there to the document's head, and it has no index. */
MUST_USE err_t sync_changes_of(
    const struct sync_doc *d, const struct hash *own_id, const struct snapshot *own,
    struct sync_changes *ret, struct error *e);
/* Those whose object did not come with the document. */
void sync_changes_absent(
    const struct sync_changes *x, const struct sync_doc *d, struct sync_changes *ret);

/* Objects beside those of the document, each of one of the changes; NULL where there is none.
 */
struct sync_kept {
    struct object **items;
    size_t count;
};

/* ERR_INVALID when two objects of a kind have one name, or an object of a change is nowhere.
 * *ret: a reference. */
MUST_USE err_t sync_changes_make(
    const struct sync_changes *x, const struct sync_doc *d, const struct sync_kept *kept,
    const struct snapshot *own, struct snapshot **ret, struct error *e);

#endif
