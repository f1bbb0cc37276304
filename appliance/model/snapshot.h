/* SPDX-License-Identifier: Apache-2.0 */
/* An immutable set of objects of one container, sorted by kind and name, and by kind and
 * id. Reference counted; an edit copies the arrays and one object. Pure. */
#ifndef LOCKSTEP_MODEL_SNAPSHOT_H
#define LOCKSTEP_MODEL_SNAPSHOT_H

#include <endian.h>
#include <string.h>

#include "model/object.h"

#define SNAPSHOT_ID_DIGITS 16

struct snapshot;

/* Empty container of a scope: its singletons with their defaults. */
struct snapshot *snapshot_initial(enum scope scope);
struct snapshot *snapshot_ref(const struct snapshot *s);
void snapshot_unref(const struct snapshot *s); /* NULL is allowed */
void snapshot_cleanup(struct snapshot **s);

const struct object *snapshot_by_id(const struct snapshot *s, enum kind k, const char *id);
const struct object *snapshot_by_name(const struct snapshot *s, enum kind k, const char *name);
const struct object *snapshot_singleton(const struct snapshot *s, enum kind k);
/* The objects of one kind, sorted by name (byte order): *ret points into the snapshot. */
size_t snapshot_kind(const struct snapshot *s, enum kind k, const struct object *const **ret);
size_t snapshot_count(const struct snapshot *s);
/* The 16 hexadecimal digits as a number, which sorts as they do; 0 for a singleton. False
 * when id has not the form of an id of that kind. */
bool snapshot_id_key(enum kind kind, const char *id, uint64_t *ret);

/* Eight lower-case hexadecimal digits, all at once: the number they write, the first digit
 * leading. Any other eight bytes make any number. */
static inline uint64_t
snapshot_hex_digits(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x;

    memcpy(&x, at, sizeof x);
    x = be64toh(x);
    x = (x & 0x0f * ones) + 9 * ((x >> 6) & ones);
    x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (x | x >> 16) & UINT32_MAX;
}

/* snapshot_id_key of the id in a reference, which object_parse has checked. */
static inline uint64_t
snapshot_ref_key(struct text id)
{
    ASSERT(id.len == SNAPSHOT_ID_DIGITS);
    return snapshot_hex_digits(id.s) << 32 | snapshot_hex_digits(id.s + SNAPSHOT_ID_DIGITS / 2);
}

/* The objects of one kind by their id's number, beside the numbers: both point into the
 * snapshot. */
size_t snapshot_kind_keys(
    const struct snapshot *s, enum kind k, const uint64_t **ret_keys,
    const struct object *const **ret_objects);
/* i-th object in the order of the index: by kind's *name*, which is also the order of enum
 * kind, and then id (byte order). */
const struct object *snapshot_at(const struct snapshot *s, size_t i);
/* The i of an object, or SIZE_MAX. */
size_t snapshot_position(const struct snapshot *s, enum kind k, const char *id);

/* Fingerprint: SHA-256 of the line "<schema_version>\n" and the lines
 * "<kind> <id> <objhash hex>\n" in the order of snapshot_at. Computed on first use, kept. */
struct hash snapshot_fp(const struct snapshot *s, int schema_version);

/* Resolver over up to two snapshots (shared, local); either may be NULL. */
struct snapshot_pair {
    const struct snapshot *shared;
    const struct snapshot *local;
};
struct object_refs snapshot_refs(const struct snapshot_pair *pair);
/* The snapshot of the pair that holds kind k. */
const struct snapshot *snapshot_of(const struct snapshot_pair *pair, enum kind k);

/* Building: start from a snapshot (or NULL = really empty), put and remove, seal. put takes
 * over a reference of o and replaces the object of the same kind and id. Two objects of one
 * kind with one name: snapshot_seal fails with ERR_CONFLICT naming them. */
struct snapshot_edit;
struct snapshot_edit *snapshot_edit_new(const struct snapshot *from);
void snapshot_edit_free(struct snapshot_edit *x);
void snapshot_edit_cleanup(struct snapshot_edit **x);
void snapshot_edit_put(struct snapshot_edit *x, struct object *o);
void snapshot_edit_remove(struct snapshot_edit *x, enum kind k, const char *id);
/* Frees x in either case. */
MUST_USE err_t snapshot_seal(struct snapshot_edit *x, struct snapshot **ret, struct error *e);

/* Differences a -> b in the order of snapshot_at. Either object is NULL when absent. */
typedef void (*snapshot_diff_fn)(
    void *ctx, const struct object *before, const struct object *after);
void snapshot_diff(
    const struct snapshot *a, const struct snapshot *b, snapshot_diff_fn fn, void *ctx);

#endif
