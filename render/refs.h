/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of one snapshot's objects in hash tables, for renders that follow every reference: a
 * look-up costs one memory access where the snapshot's binary search, over 45,000 objects,
 * costs a dozen. Inside render/. */
#ifndef LOCKSTEP_RENDER_REFS_H
#define LOCKSTEP_RENDER_REFS_H

#include "model/snapshot.h"

struct refs_table {
    uint32_t *slots;  /* place in keys + 1, 0: free */
    size_t cap, room; /* cap: a power of two, 0: nobody refers to this kind; room: allocated */
    const uint64_t *keys;                /* snapshot_id_key */
    const struct object *const *objects; /* beside keys */
};

struct refs {
    struct refs_table tables[KIND_COUNT];
    uint64_t seed;                                   /* random: ids come from other nodes too */
    const struct object *const *objects[KIND_COUNT]; /* by name */
    size_t count[KIND_COUNT];
};

void refs_init(struct refs *x);
void refs_fini(struct refs *x);
/* Forgets what was there and takes up the objects of all kinds of s; keeps the memory. */
void refs_build(struct refs *x, const struct snapshot *s);
/* NULL when there is none. */
const struct object *refs_find(const struct refs *x, enum kind k, struct text id);

/* Place of an object of s among its kind, by name: objects[kind][place]. */
size_t refs_place(const struct refs *x, const struct object *o);

/* Fetches ahead the first bytes of an object, in which stand its fields and most texts: a
 * render waits for memory more than for anything else. */
static inline void
refs_fetch(const struct object *o, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch((const char *)o + i);
    }
}

#endif
