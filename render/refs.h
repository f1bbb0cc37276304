/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of one snapshot's objects in a hash table, for renders that follow every reference.
 * A look-up costs one or two memory accesses where the snapshot's binary search, over 45,000
 * objects, costs a dozen. */
#ifndef LOCKSTEP_RENDER_REFS_H
#define LOCKSTEP_RENDER_REFS_H

#include "model/snapshot.h"

struct refs_slot {
    uint64_t hash; /* 0: free */
    uint32_t kind;
    uint32_t pos; /* in the order of snapshot_kind */
};

struct refs {
    struct refs_slot *slots;
    size_t cap;    /* a power of two */
    uint64_t seed; /* random: ids come from other nodes too */
    const struct object *const *objects[KIND_COUNT];
    size_t count[KIND_COUNT];
};

void refs_init(struct refs *x);
void refs_fini(struct refs *x);
/* Forgets what was there and takes up the objects of all kinds of s; keeps the memory. */
void refs_build(struct refs *x, const struct snapshot *s);
/* NULL when there is none. ret_pos (may be NULL): its place among its kind, by name. */
const struct object *
refs_find(const struct refs *x, enum kind k, struct text id, size_t *ret_pos);

/* Two steps that fetch ahead what refs_find and its caller will touch: the slot first, some
 * time later the object. A render waits for memory more than for anything else. */
void refs_fetch_slot(const struct refs *x, enum kind k, struct text id);
void refs_fetch_object(const struct refs *x, enum kind k, struct text id);
void refs_fetch(const struct object *o);

#endif
