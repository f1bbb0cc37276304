/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a snapshot, for snapshot.c (reading) and snapshot_edit.c (building).
 *
 * Objects in the order (kind, id) are held by chunks of up to CHUNK_OBJECTS, which own one
 * reference to each; snapshots share the chunks that an edit does not touch, so that an edit
 * of one object touches 256 counters and not 45,000. What searches need lies beside it in
 * flat arrays without references: a copy of them is a memcpy. */
#ifndef LOCKSTEP_MODEL_SNAPSHOT_PARTS_H
#define LOCKSTEP_MODEL_SNAPSHOT_PARTS_H

#include "model/snapshot.h"

#define SNAPSHOT_MAGIC 0x536e6170u
#define CHUNK_OBJECTS  256u

struct chunk {
    _Atomic unsigned refs;
    uint32_t count;
    const struct object *objects[];
};

struct fingerprint {
    int schema_version;
    struct hash hash;
};

struct snapshot {
    unsigned magic;
    _Atomic unsigned refs;
    size_t count;
    /* Objects of kind k stand at start[k] .. start[k + 1] - 1, in both orders. */
    size_t start[KIND_COUNT + 1];
    uint64_t *id_keys; /* [count]: packed ids, beside by_id: a search stays in few lines */
    const struct object **by_id;
    const struct object **by_name;
    struct chunk **chunks;
    size_t chunk_count;
    struct fingerprint *_Atomic fp; /* NULL until asked for */
};

/* Position of the first object of kind k whose name is not less, in by_name. */
size_t snapshot_name_bound(const struct snapshot *s, enum kind k, const char *name);

#endif
