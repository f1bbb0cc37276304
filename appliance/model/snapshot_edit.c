/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot_parts.h"

#define EDIT_MAGIC 0x45646974u

struct edit {
    enum kind kind;
    uint64_t key;
    size_t given_at;       /* the later one of two for the same object holds */
    struct object *object; /* owned; NULL = remove */
};

struct snapshot_edit {
    unsigned magic;
    struct snapshot *from; /* NULL: nothing */
    struct edit *edits;
    size_t count, cap;
};

struct snapshot_edit *
snapshot_edit_new(const struct snapshot *from)
{
    struct snapshot_edit *x = xcalloc(1, sizeof *x);

    x->magic = EDIT_MAGIC;
    x->from = from != NULL ? snapshot_ref(from) : NULL;
    return x;
}

void
snapshot_edit_free(struct snapshot_edit *x)
{
    if (x == NULL) {
        return;
    }
    ASSERT(x->magic == EDIT_MAGIC);
    for (size_t i = 0; i < x->count; i++) {
        object_unref(x->edits[i].object);
    }
    x->magic = 0;
    snapshot_unref(x->from);
    free(x->edits);
    free(x);
}

void
snapshot_edit_cleanup(struct snapshot_edit **x)
{
    snapshot_edit_free(*x);
}

static void
add(struct snapshot_edit *x, enum kind k, const char *id, struct object *o)
{
    uint64_t key = 0;
    bool valid = snapshot_id_key(k, id, &key);

    ASSERT(x != NULL && x->magic == EDIT_MAGIC && valid);
    if (x->count == x->cap) {
        x->cap = x->cap == 0 ? 16 : 2 * x->cap;
        x->edits = xrealloc(x->edits, x->cap * sizeof *x->edits);
    }
    x->edits[x->count] = (struct edit){k, key, x->count, o};
    x->count++;
}

void
snapshot_edit_put(struct snapshot_edit *x, struct object *o)
{
    ASSERT(o != NULL);
    add(x, o->kind, o->id, o);
}

void
snapshot_edit_remove(struct snapshot_edit *x, enum kind k, const char *id)
{
    add(x, k, id, NULL);
}

static int
compare_edits(const void *a, const void *b)
{
    const struct edit *x = a;
    const struct edit *y = b;

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->given_at < y->given_at ? -1 : x->given_at > y->given_at;
}

/* Sorts by (kind, id) and keeps the last edit of each object. */
static void
settle(struct snapshot_edit *x)
{
    size_t kept = 0;

    if (x->count > 1) {
        qsort(x->edits, x->count, sizeof *x->edits, compare_edits);
    }
    for (size_t i = 0; i < x->count; i++) {
        struct edit *last = kept > 0 ? &x->edits[kept - 1] : NULL;

        if (last != NULL && last->kind == x->edits[i].kind && last->key == x->edits[i].key) {
            object_unref(last->object);
            *last = x->edits[i];
        } else {
            x->edits[kept++] = x->edits[i];
        }
    }
    x->count = kept;
}

/* ---- the order by id, and its chunks ---- */

/* The new snapshot while it grows, and what happened to the order by name. */
struct build {
    const struct snapshot *from;
    struct snapshot *to;
    size_t run_start; /* objects from here to to->count are in no chunk yet */
    size_t added[KIND_COUNT], gone[KIND_COUNT];
    size_t *gone_at; /* positions in from->by_name, ascending in the end */
    size_t gone_count;
    const struct object **fresh;
    size_t fresh_count;
};

static void
put_chunk(struct snapshot *s, struct chunk *c)
{
    s->chunks[s->chunk_count++] = c;
}

/* Puts the objects that are in no chunk yet into chunks of about the same size. */
static void
close_run(struct build *b)
{
    size_t n = b->to->count - b->run_start;
    size_t pieces = (n + CHUNK_OBJECTS - 1) / CHUNK_OBJECTS;

    for (size_t i = 0; i < pieces; i++) {
        size_t first = b->run_start + n * i / pieces;
        size_t count = b->run_start + n * (i + 1) / pieces - first;
        struct chunk *c = xmalloc(sizeof *c + count * sizeof c->objects[0]);

        atomic_init(&c->refs, 1);
        c->count = (uint32_t)count;
        for (size_t j = 0; j < count; j++) {
            c->objects[j] = object_ref(b->to->by_id[first + j]);
        }
        put_chunk(b->to, c);
    }
    b->run_start = b->to->count;
}

static void
put_range(struct build *b, size_t at, size_t count)
{
    struct snapshot *to = b->to;

    memcpy(to->by_id + to->count, b->from->by_id + at, count * sizeof to->by_id[0]);
    memcpy(to->id_keys + to->count, b->from->id_keys + at, count * sizeof to->id_keys[0]);
    to->count += count;
}

static void
put_edit(struct build *b, const struct edit *x)
{
    struct snapshot *to = b->to;

    if (x->object == NULL) {
        return;
    }
    to->by_id[to->count] = x->object;
    to->id_keys[to->count] = x->key;
    to->count++;
    b->added[x->kind]++;
    b->fresh[b->fresh_count++] = x->object;
}

static enum kind
kind_at(const struct snapshot *s, size_t at)
{
    unsigned k = 0;

    while (at >= s->start[k + 1]) {
        k++;
    }
    return (enum kind)k;
}

/* Sign of (kind, key) against the object at position at of the old order. */
static int
compare_at(const struct edit *x, const struct snapshot *s, size_t at)
{
    enum kind k = kind_at(s, at);

    if (x->kind != k) {
        return x->kind < k ? -1 : 1;
    }
    return x->key < s->id_keys[at] ? -1 : x->key > s->id_keys[at];
}

static void
note_gone(struct build *b, const struct object *o)
{
    b->gone_at[b->gone_count++] = snapshot_name_bound(b->from, o->kind, o->name.s);
    b->gone[o->kind]++;
}

/* Merges edits[0..count) into the objects from..to of the old order. */
static void
merge_range(struct build *b, size_t at, size_t end, const struct edit *edits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t same = at;

        while (same < end && compare_at(&edits[i], b->from, same) > 0) {
            same++;
        }
        put_range(b, at, same - at);
        at = same;
        if (at < end && compare_at(&edits[i], b->from, at) == 0) {
            note_gone(b, b->from->by_id[at]);
            at++;
        }
        put_edit(b, &edits[i]);
    }
    put_range(b, at, end - at);
}

/* How many of the edits stand before position at of the old order. */
static size_t
edits_before(const struct snapshot *from, size_t at, const struct edit *edits, size_t count)
{
    size_t n = 0;

    while (n < count && compare_at(&edits[n], from, at) < 0) {
        n++;
    }
    return n;
}

static void
build_by_id(struct build *b, const struct edit *edits, size_t count)
{
    const struct snapshot *from = b->from;
    size_t chunk_count = from != NULL ? from->chunk_count : 0;
    size_t at = 0;

    for (size_t c = 0; c < chunk_count; c++) {
        struct chunk *chunk = from->chunks[c];
        size_t end = at + chunk->count;
        size_t mine = c + 1 < chunk_count ? edits_before(from, end, edits, count) : count;
        /* A remnant joins its neighbours, so that removals do not leave dust behind. */
        bool whole = mine == 0 && chunk->count >= CHUNK_OBJECTS / 4;

        if (whole) {
            close_run(b);
            atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
            put_range(b, at, chunk->count);
            put_chunk(b->to, chunk);
            b->run_start = b->to->count;
        } else {
            merge_range(b, at, end, edits, mine);
        }
        edits = mine > 0 ? edits + mine : edits; /* without any, there is no array */
        count -= mine;
        at = end;
    }
    for (size_t i = 0; i < count; i++) {
        put_edit(b, &edits[i]);
    }
    close_run(b);
}

/* ---- the order by name ---- */

static int
compare_positions(const void *a, const void *b)
{
    const size_t *x = a;
    const size_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int
compare_names(const void *a, const void *b)
{
    const struct object *const *x = a;
    const struct object *const *y = b;

    if ((*x)->kind != (*y)->kind) {
        return (*x)->kind < (*y)->kind ? -1 : 1;
    }
    return strcmp((*x)->name.s, (*y)->name.s);
}

static bool
same_name(const struct object *a, const struct object *b)
{
    return a->kind == b->kind && strcmp(a->name.s, b->name.s) == 0;
}

/* Returns an object whose name stands there twice, or NULL. */
static const struct object *
build_by_name(struct build *b)
{
    const struct snapshot *from = b->from;
    const struct object **out = b->to->by_name;
    size_t old_count = from != NULL ? from->count : 0;
    size_t at = 0;
    size_t g = 0;

    qsort(b->gone_at, b->gone_count, sizeof b->gone_at[0], compare_positions);
    qsort(b->fresh, b->fresh_count, sizeof b->fresh[0], compare_names);
    for (size_t f = 0; f <= b->fresh_count; f++) {
        const struct object *o = f < b->fresh_count ? b->fresh[f] : NULL;
        size_t stop = old_count;

        if (o != NULL && from != NULL) {
            stop = snapshot_name_bound(from, o->kind, o->name.s);
        }
        while (g < b->gone_count && b->gone_at[g] < stop) {
            memcpy(out, from->by_name + at, (b->gone_at[g] - at) * sizeof *out);
            out += b->gone_at[g] - at;
            at = b->gone_at[g++] + 1;
        }
        if (stop > at) {
            memcpy(out, from->by_name + at, (stop - at) * sizeof *out);
            out += stop - at;
            at = stop;
        }
        if (o == NULL) {
            break;
        }
        if (f > 0 && same_name(b->fresh[f - 1], o)) {
            return o;
        }
        if (at < old_count && same_name(from->by_name[at], o) &&
            (g == b->gone_count || b->gone_at[g] != at)) {
            return o;
        }
        *out++ = o;
    }
    return NULL;
}

/* ---- seal ---- */

static struct snapshot *
empty_snapshot(size_t cap, size_t chunk_cap)
{
    struct snapshot *s = xcalloc(1, sizeof *s);

    s->magic = SNAPSHOT_MAGIC;
    atomic_init(&s->refs, 1);
    s->id_keys = xmalloc(cap * sizeof s->id_keys[0]);
    s->by_id = xmalloc(cap * sizeof s->by_id[0]);
    s->by_name = xmalloc(cap * sizeof s->by_name[0]);
    s->chunks = xmalloc(chunk_cap * sizeof s->chunks[0]);
    return s;
}

err_t
snapshot_seal(struct snapshot_edit *x, struct snapshot **ret, struct error *e)
{
    struct build b = {.from = x->from};
    size_t old_count = x->from != NULL ? x->from->count : 0;
    size_t old_chunks = x->from != NULL ? x->from->chunk_count : 0;
    const struct object *twice;
    err_t code = ERR_OK;

    settle(x);
    /* Every chunk is an old one, or holds an old chunk's or an edit's objects. */
    b.to = empty_snapshot(old_count + x->count, 2 * old_chunks + x->count + 1);
    b.gone_at = xmalloc(x->count * sizeof b.gone_at[0]);
    b.fresh = xmalloc(x->count * sizeof b.fresh[0]);
    build_by_id(&b, x->edits, x->count);
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        size_t old = x->from != NULL ? x->from->start[k + 1] - x->from->start[k] : 0;

        b.to->start[k + 1] = b.to->start[k] + old + b.added[k] - b.gone[k];
    }
    twice = build_by_name(&b);
    if (twice != NULL) {
        code = error_set(
            e, ERR_CONFLICT, "there is already a %s named \"%s\"",
            schema_kind(twice->kind)->name, twice->name.s);
        snapshot_unref(b.to);
    } else {
        *ret = b.to;
    }
    free(b.gone_at);
    free(b.fresh);
    snapshot_edit_free(x);
    return code;
}
