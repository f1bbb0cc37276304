/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a document of engine/sync_doc.h names, in its commits and its index. */
#ifndef LOCKSTEP_ENGINE_SYNC_NAMES_H
#define LOCKSTEP_ENGINE_SYNC_NAMES_H

#include "engine/sync_doc.h"

struct sync_names {
    struct lineage_entry *items; /* free */
    size_t count;
};

/* By content, then place; each once. */
void sync_names_sort(struct sync_names *n);
/* Those of the entries that have an object; the caller made room. */
void sync_names_add(struct sync_names *n, const struct lineage_entry *entries, size_t count);
/* All of the document, sorted. */
void sync_names_make(struct sync_names *n, const struct sync_doc *d);
bool sync_names_have(const struct sync_names *n, const struct lineage_entry *x);

#endif
