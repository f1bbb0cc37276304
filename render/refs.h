/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of one snapshot's objects in hash tables, for renders that follow every reference: a
 * look-up costs one memory access where the snapshot's binary search, over 45,000 objects,
 * costs a dozen. Inside render/. */
#ifndef LOCKSTEP_RENDER_REFS_H
#define LOCKSTEP_RENDER_REFS_H

#include "model/snapshot.h"

struct refs_slot {
    uint64_t key;                /* snapshot_id_key */
    const struct object *object; /* NULL: free */
};

struct refs_table {
    struct refs_slot *slots;
    size_t cap; /* a power of two, 0: nobody refers to this kind */
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

/* The same in two steps, for who has many: some time after the first, which fetches the slot
 * ahead, the second need not wait for it. */
struct refs_wanted {
    enum kind kind;
    bool valid;
    uint64_t key;
};

struct refs_wanted refs_want(const struct refs *x, enum kind k, struct text id);
const struct object *refs_get(const struct refs *x, const struct refs_wanted *wanted);
/* Place of an object of s among its kind, by name: objects[kind][place]. */
size_t refs_place(const struct refs *x, const struct object *o);

/* Fetches ahead what a caller will read of an object: a render waits for memory more than
 * for anything else. */
static inline void
refs_fetch_span(const struct object *o, size_t from, size_t bytes)
{
    const char *at = (const char *)o + from;

    for (size_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch(at + i);
    }
}

/* Of an object with few fields: name, id, fields, most texts. */
static inline void
refs_fetch(const struct object *o)
{
    refs_fetch_span(o, 0, 640);
}

/* Of one with many, of which few are set: its start, and behind the fields its lists, its name
 * and its first texts. */
static inline void
refs_fetch_ends(const struct object *o, enum kind kind)
{
    refs_fetch_span(o, 0, 192);
    refs_fetch_span(o, sizeof *o + schema_kinds[kind].field_count * sizeof(struct value), 320);
}

#endif
