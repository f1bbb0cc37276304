/* SPDX-License-Identifier: Apache-2.0 */
#include "render/refs.h"

#include <stdlib.h>

#define FETCH_AHEAD 8
#define FETCH_BYTES 384 /* of an object, from its start: name, id, fields, most texts */

void
refs_init(struct refs *x)
{
    *x = (struct refs){0};
    crypt_random(&x->seed, sizeof x->seed);
}

void
refs_fini(struct refs *x)
{
    free(x->slots);
    *x = (struct refs){0};
}

/* Multiplication carries only upwards, so the halves are exchanged in between. */
static inline uint64_t
mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

static inline uint64_t
hash_of(const struct refs *x, enum kind k, const char *id, size_t len)
{
    uint64_t h = x->seed + (uint64_t)k;
    uint64_t word = 0;

    for (; len >= sizeof word; id += sizeof word, len -= sizeof word) {
        memcpy(&word, id, sizeof word);
        h = mix(h, word);
    }
    if (len > 0) {
        word = 0;
        memcpy(&word, id, len);
        h = mix(h, word);
    }
    return h != 0 ? h : 1;
}

static void
reserve(struct refs *x, size_t objects)
{
    size_t cap = 64;

    while (cap < objects * 2) {
        cap *= 2;
    }
    if (cap > x->cap) {
        free(x->slots);
        x->slots = xmalloc(cap * sizeof *x->slots);
        x->cap = cap;
    }
    memset(x->slots, 0, x->cap * sizeof *x->slots);
}

/* The kinds to which others refer. */
static const enum kind targets[] = {K_SERVER, K_POOL, K_MONITOR, K_LISTENER, K_CERTIFICATE};

static void
add_kind(struct refs *x, enum kind k)
{
    for (size_t i = 0; i < x->count[k]; i++) {
        const char *id = x->objects[k][i]->id;
        uint64_t h = hash_of(x, k, id, strlen(id));
        size_t at = (size_t)h & (x->cap - 1);

        if (i + FETCH_AHEAD < x->count[k]) {
            __builtin_prefetch(x->objects[k][i + FETCH_AHEAD]);
        }
        while (x->slots[at].hash != 0) {
            at = (at + 1) & (x->cap - 1);
        }
        x->slots[at] = (struct refs_slot){h, (uint32_t)k, (uint32_t)i};
    }
}

void
refs_build(struct refs *x, const struct snapshot *s)
{
    reserve(x, snapshot_count(s));
    for (size_t k = 0; k < KIND_COUNT; k++) {
        x->count[k] = snapshot_kind(s, (enum kind)k, &x->objects[k]);
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        add_kind(x, targets[i]);
    }
}

const struct object *
refs_find(const struct refs *x, enum kind k, struct text id, size_t *ret_pos)
{
    uint64_t h = hash_of(x, k, id.s, id.len);
    size_t at = (size_t)h & (x->cap - 1);

    for (; x->slots[at].hash != 0; at = (at + 1) & (x->cap - 1)) {
        const struct refs_slot *slot = &x->slots[at];
        const struct object *o;

        if (slot->hash != h || slot->kind != (uint32_t)k) {
            continue;
        }
        o = x->objects[k][slot->pos];
        if (id.len < OBJECT_ID_BYTES && memcmp(o->id, id.s, (size_t)id.len + 1) == 0) {
            if (ret_pos != NULL) {
                *ret_pos = slot->pos;
            }
            return o;
        }
    }
    return NULL;
}

void
refs_fetch_slot(const struct refs *x, enum kind k, struct text id)
{
    __builtin_prefetch(&x->slots[(size_t)hash_of(x, k, id.s, id.len) & (x->cap - 1)]);
}

void
refs_fetch(const struct object *o)
{
    const char *at = (const char *)o;

    for (size_t i = 0; i < FETCH_BYTES; i += 64) {
        __builtin_prefetch(at + i);
    }
}

void
refs_fetch_object(const struct refs *x, enum kind k, struct text id)
{
    uint64_t h = hash_of(x, k, id.s, id.len);
    size_t at = (size_t)h & (x->cap - 1);

    for (; x->slots[at].hash != 0; at = (at + 1) & (x->cap - 1)) {
        if (x->slots[at].hash == h && x->slots[at].kind == (uint32_t)k) {
            refs_fetch(x->objects[k][x->slots[at].pos]);
            return;
        }
    }
}
