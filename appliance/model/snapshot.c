/* SPDX-License-Identifier: Apache-2.0 */
#include "model/snapshot.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot_parts.h"

#define FP_LINES_BYTES 8192
#define FP_FIRST_BYTES 24

static const struct snapshot *
checked(const struct snapshot *s)
{
    ASSERT(s != NULL && s->magic == SNAPSHOT_MAGIC);
    return s;
}

/* Counter and fingerprint are what changes in a snapshot, so that readers can have it const. */
static struct snapshot *mutable(const struct snapshot *s)
{
    uintptr_t address = (uintptr_t)s;

    (void)checked(s);
    return (struct snapshot *)address;
}

struct snapshot *
snapshot_initial(enum scope scope)
{
    struct snapshot_edit *x = snapshot_edit_new(NULL);
    struct snapshot *s = NULL;
    err_t code;

    for (unsigned k = 0; k < KIND_COUNT; k++) {
        if (schema_kinds[k].singleton && schema_kinds[k].scope == scope) {
            snapshot_edit_put(x, object_singleton((enum kind)k));
        }
    }
    code = snapshot_seal(x, &s, NULL);
    ASSERT(code == ERR_OK);
    return s;
}

struct snapshot *
snapshot_ref(const struct snapshot *s)
{
    struct snapshot *m = mutable(s);

    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

static void
chunk_unref(struct chunk *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        object_unref(c->objects[i]);
    }
    free(c);
}

void
snapshot_unref(const struct snapshot *s)
{
    struct snapshot *m;

    if (s == NULL) {
        return;
    }
    m = mutable(s);
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < m->chunk_count; i++) {
        chunk_unref(m->chunks[i]);
    }
    m->magic = 0;
    free(m->chunks);
    free(m->id_keys);
    free(m->by_id);
    free(m->by_name);
    free(atomic_load_explicit(&m->fp, memory_order_relaxed));
    free(m);
}

void
snapshot_cleanup(struct snapshot **s)
{
    snapshot_unref(*s);
}

/* ---- searches ---- */

/* Whether all of eight bytes are lower-case hexadecimal digits. */
static bool
are_hex_digits(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t text;
    uint64_t letters;
    uint64_t x;

    memcpy(&text, at, sizeof text);
    letters = (text >> 6) & ones;
    x = (text & 0x0f * ones) + 9 * letters;
    return (text & 0xf0 * ones) == 0x30 * (ones + letters) && (x & 0xf0 * ones) == 0 &&
           ((x + 6 * ones) & 0x10 * ones) == 0x10 * letters;
}

bool
snapshot_id_key(enum kind kind, const char *id, uint64_t *ret)
{
    const struct schema_kind *k = schema_kind(kind);

    if (k->singleton) {
        *ret = 0;
        return strcmp(id, k->name) == 0;
    }
    if (strnlen(id, SNAPSHOT_ID_DIGITS + 1) != SNAPSHOT_ID_DIGITS || !are_hex_digits(id) ||
        !are_hex_digits(id + SNAPSHOT_ID_DIGITS / 2)) {
        return false;
    }
    *ret = snapshot_ref_key((struct text){id, SNAPSHOT_ID_DIGITS});
    return true;
}

/* Position in by_id, or SIZE_MAX. */
static size_t
id_at(const struct snapshot *s, enum kind k, uint64_t key)
{
    const uint64_t *keys = s->id_keys + s->start[k];
    size_t n = s->start[k + 1] - s->start[k];

    if (n == 0) {
        return SIZE_MAX;
    }
    while (n > 1) {
        size_t half = n / 2;

        /* A conditional move: which half it is cannot be predicted. */
        keys = keys[half] <= key ? keys + half : keys;
        n -= half;
    }
    return *keys == key ? (size_t)(keys - s->id_keys) : SIZE_MAX;
}

size_t
snapshot_name_bound(const struct snapshot *s, enum kind k, const char *name)
{
    size_t low = s->start[k];
    size_t high = s->start[k + 1];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(s->by_name[middle]->name.s, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t
snapshot_position(const struct snapshot *s, enum kind k, const char *id)
{
    uint64_t key;

    ASSERT((unsigned)k < KIND_COUNT);
    return snapshot_id_key(k, id, &key) ? id_at(checked(s), k, key) : SIZE_MAX;
}

const struct object *
snapshot_by_id(const struct snapshot *s, enum kind k, const char *id)
{
    size_t at = snapshot_position(s, k, id);

    return at != SIZE_MAX ? s->by_id[at] : NULL;
}

const struct object *
snapshot_by_name(const struct snapshot *s, enum kind k, const char *name)
{
    size_t at;

    ASSERT((unsigned)k < KIND_COUNT);
    at = snapshot_name_bound(checked(s), k, name);
    if (at == s->start[k + 1] || strcmp(s->by_name[at]->name.s, name) != 0) {
        return NULL;
    }
    return s->by_name[at];
}

const struct object *
snapshot_singleton(const struct snapshot *s, enum kind k)
{
    ASSERT(schema_kind(k)->singleton);
    return snapshot_by_id(s, k, schema_kind(k)->name);
}

size_t
snapshot_kind(const struct snapshot *s, enum kind k, const struct object *const **ret)
{
    ASSERT((unsigned)k < KIND_COUNT);
    *ret = checked(s)->by_name + s->start[k];
    return s->start[k + 1] - s->start[k];
}

size_t
snapshot_kind_keys(
    const struct snapshot *s, enum kind k, const uint64_t **ret_keys,
    const struct object *const **ret_objects)
{
    ASSERT((unsigned)k < KIND_COUNT);
    *ret_keys = checked(s)->id_keys + s->start[k];
    *ret_objects = s->by_id + s->start[k];
    return s->start[k + 1] - s->start[k];
}

size_t
snapshot_count(const struct snapshot *s)
{
    return checked(s)->count;
}

const struct object *
snapshot_at(const struct snapshot *s, size_t i)
{
    ASSERT(i < checked(s)->count);
    return s->by_id[i];
}

/* ---- fingerprint ---- */

/* Lines that wait to be hashed. */
struct lines {
    struct sha256 *hash;
    size_t used;
    char bytes[FP_LINES_BYTES];
};

static void
put(struct lines *l, const char *s, size_t len)
{
    ASSERT(len <= sizeof l->bytes);
    if (len > sizeof l->bytes - l->used) {
        sha256_add(l->hash, l->bytes, l->used);
        l->used = 0;
    }
    memcpy(l->bytes + l->used, s, len);
    l->used += len;
}

static struct hash
compute_fp(const struct snapshot *s, int schema_version)
{
    struct lines l;
    struct buf first;

    l.hash = sha256_new();
    l.used = 0;
    buf_init(&first, FP_FIRST_BYTES);
    buf_i64(&first, schema_version);
    put(&l, buf_str(&first), first.len);
    put(&l, "\n", 1);
    buf_fini(&first);
    for (size_t i = 0; i < s->count; i++) {
        const struct object *o = s->by_id[i];
        const char *kind = schema_kind(o->kind)->name;
        char hex[SHA256_HEX + 1];

        hash_hex(&o->objhash, hex);
        put(&l, kind, strlen(kind));
        put(&l, " ", 1);
        put(&l, o->id, strlen(o->id));
        put(&l, " ", 1);
        put(&l, hex, SHA256_HEX);
        put(&l, "\n", 1);
    }
    sha256_add(l.hash, l.bytes, l.used);
    return sha256_end(&l.hash);
}

struct hash
snapshot_fp(const struct snapshot *s, int schema_version)
{
    struct fingerprint *known = atomic_load_explicit(&checked(s)->fp, memory_order_acquire);
    struct hash hash;

    if (known != NULL && known->schema_version == schema_version) {
        return known->hash;
    }
    hash = compute_fp(s, schema_version);
    if (known == NULL) {
        struct fingerprint *mine = xmalloc(sizeof *mine);

        *mine = (struct fingerprint){schema_version, hash};
        /* Two threads may have computed it: one is kept. */
        if (!atomic_compare_exchange_strong_explicit(
                &mutable(s)->fp, &known, mine, memory_order_acq_rel, memory_order_acquire)) {
            free(mine);
        }
    }
    return hash;
}

/* ---- resolver ---- */

const struct snapshot *
snapshot_of(const struct snapshot_pair *pair, enum kind k)
{
    return schema_kind(k)->scope == SCOPE_SHARED ? pair->shared : pair->local;
}

static const char *
pair_id_of_name(void *ctx, enum kind kind, const char *name)
{
    const struct snapshot *s = snapshot_of(ctx, kind);
    const struct object *o = s != NULL ? snapshot_by_name(s, kind, name) : NULL;

    return o != NULL ? o->id : NULL;
}

static const char *
pair_name_of_id(void *ctx, enum kind kind, const char *id)
{
    const struct snapshot *s = snapshot_of(ctx, kind);
    const struct object *o = s != NULL ? snapshot_by_id(s, kind, id) : NULL;

    return o != NULL ? o->name.s : NULL;
}

struct object_refs
snapshot_refs(const struct snapshot_pair *pair)
{
    uintptr_t address = (uintptr_t)pair;

    /* The two functions only read it. */
    return (struct object_refs){
        .id_of_name = pair_id_of_name,
        .name_of_id = pair_name_of_id,
        .ctx = (void *)address,
    };
}

/* ---- differences ---- */

/* Where a walk over one of the two stands. */
struct side {
    const struct snapshot *s;
    size_t at;
    size_t chunk, chunk_start, chunk_end;
};

static struct side
side_new(const struct snapshot *s)
{
    return (struct side){
        .s = checked(s), .chunk_end = s->chunk_count > 0 ? s->chunks[0]->count : 0};
}

static bool
side_ended(const struct side *x)
{
    return x->at == x->s->count;
}

static void
side_move(struct side *x, size_t count)
{
    x->at += count;
    while (x->at == x->chunk_end && x->chunk + 1 < x->s->chunk_count) {
        x->chunk_start = x->chunk_end;
        x->chunk_end += x->s->chunks[++x->chunk]->count;
    }
}

/* A chunk that both hold is not looked into: true when there was one. */
static bool
skip_chunk(struct side *a, struct side *b)
{
    bool same = !side_ended(a) && !side_ended(b) && a->at == a->chunk_start &&
                b->at == b->chunk_start && a->s->chunks[a->chunk] == b->s->chunks[b->chunk];

    if (same) {
        side_move(a, a->chunk_end - a->chunk_start);
        side_move(b, b->chunk_end - b->chunk_start);
    }
    return same;
}

/* Whose object comes first, by kind and id: < 0 a's, > 0 b's, 0 when it is the same. */
static int
side_compare(const struct side *a, const struct side *b)
{
    uint64_t x, y;

    if (side_ended(a) || side_ended(b)) {
        return side_ended(a) ? 1 : -1;
    }
    if (a->s->by_id[a->at]->kind != b->s->by_id[b->at]->kind) {
        return a->s->by_id[a->at]->kind < b->s->by_id[b->at]->kind ? -1 : 1;
    }
    x = a->s->id_keys[a->at];
    y = b->s->id_keys[b->at];
    return x < y ? -1 : x > y;
}

void
snapshot_diff(
    const struct snapshot *a, const struct snapshot *b, snapshot_diff_fn fn, void *ctx)
{
    struct side before = side_new(a);
    struct side after = side_new(b);

    while (!side_ended(&before) || !side_ended(&after)) {
        const struct object *x, *y;
        int order;

        if (skip_chunk(&before, &after)) {
            continue;
        }
        order = side_compare(&before, &after);
        x = order <= 0 ? a->by_id[before.at] : NULL;
        y = order >= 0 ? b->by_id[after.at] : NULL;
        side_move(&before, x != NULL ? 1 : 0);
        side_move(&after, y != NULL ? 1 : 0);
        if (x == NULL || y == NULL || (x != y && !hash_equal(&x->objhash, &y->objhash))) {
            fn(ctx, x, y);
        }
    }
}
