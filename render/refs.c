/* SPDX-License-Identifier: Apache-2.0 */
#include "render/refs.h"

#include <stdlib.h>

void
refs_init(struct refs *x)
{
    *x = (struct refs){0};
    crypt_random(&x->seed, sizeof x->seed);
}

void
refs_fini(struct refs *x)
{
    for (size_t k = 0; k < KIND_COUNT; k++) {
        free(x->tables[k].slots);
    }
    *x = (struct refs){0};
}

/* Multiplication carries only upwards, so the upper half is what counts. */
static inline size_t
first_slot(const struct refs *x, const struct refs_table *t, uint64_t key)
{
    uint64_t h = (key ^ x->seed) * UINT64_C(0xd6e8feb86659fd93);

    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(h >> 32) & (t->cap - 1);
}

static void
reserve(struct refs_table *t, size_t objects)
{
    t->cap = 64;
    while (t->cap < objects * 2) {
        t->cap *= 2;
    }
    if (t->cap > t->room) {
        free(t->slots);
        t->slots = xmalloc(t->cap * sizeof *t->slots);
        t->room = t->cap;
    }
    memset(t->slots, 0, t->cap * sizeof *t->slots);
}

/* The kinds to which others refer. */
static const enum kind targets[] = {K_SERVER, K_POOL, K_MONITOR, K_LISTENER, K_CERTIFICATE};

static void
add_kind(struct refs *x, const struct snapshot *s, enum kind k)
{
    struct refs_table *t = &x->tables[k];
    size_t count = snapshot_kind_keys(s, k, &t->keys, &t->objects);

    reserve(t, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = first_slot(x, t, t->keys[i]);

        while (t->slots[at] != 0) {
            at = (at + 1) & (t->cap - 1);
        }
        t->slots[at] = (uint32_t)i + 1;
    }
}

void
refs_build(struct refs *x, const struct snapshot *s)
{
    for (size_t k = 0; k < KIND_COUNT; k++) {
        x->count[k] = snapshot_kind(s, (enum kind)k, &x->objects[k]);
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        add_kind(x, s, targets[i]);
    }
}

const struct object *
refs_find(const struct refs *x, enum kind k, struct text id)
{
    const struct refs_table *t = &x->tables[k];
    uint64_t key = snapshot_ref_key(id);
    size_t at = first_slot(x, t, key);

    for (; t->slots[at] != 0; at = (at + 1) & (t->cap - 1)) {
        if (t->keys[t->slots[at] - 1] == key) {
            return t->objects[t->slots[at] - 1];
        }
    }
    return NULL;
}

size_t
refs_place(const struct refs *x, const struct object *o)
{
    const struct object *const *objects = x->objects[o->kind];
    size_t low = 0;
    size_t high = x->count[o->kind];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(objects[middle]->name.s, o->name.s) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ASSERT(objects[low] == o);
    return low;
}
