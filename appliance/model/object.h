/* SPDX-License-Identifier: Apache-2.0 */
/* One object: immutable, reference counted, its fields parsed once. Pure.
 *
 * Identity is (kind, id); id is 16 lower-case hex digits made by the node where the object
 * was created (a singleton's is its kind's name). Names are unique within a kind and may
 * change; references between objects hold ids, so a rename touches one object. At the API
 * references are names: object_parse translates them by a resolver and object_to_json back.
 *
 * canonical form: JSON of all fields of the schema (defaults written out, but those of fields
 * that came after schema version 1 left out), sorted keys, no insignificant space; references
 * as ids; unordered lists sorted; secrets in clear. objhash = SHA-256 of those bytes. */
#ifndef LOCKSTEP_MODEL_OBJECT_H
#define LOCKSTEP_MODEL_OBJECT_H

#include <jansson.h>

#include "base/crypt.h"
#include "model/problems.h"
#include "model/value.h"

#define OBJECT_ID_BYTES 24 /* with the final NUL; longest is a singleton's kind name */

struct object {
    unsigned magic;
    _Atomic unsigned refs;
    enum kind kind;
    uint32_t words; /* object_word of each reference and of each text in a list, together */
    char id[OBJECT_ID_BYTES];
    struct text name;
    struct hash objhash;
    const char *canonical; /* bytes that objhash covers */
    uint32_t canonical_len;
    uint64_t differs;           /* bit i: field i has another value than its default */
    const struct value *values; /* of the fields that differ, one behind the other: most fields
                                   of most objects have their defaults */
};

/* Translates references. by_name: *ret_id of the object of that kind and name, or NULL.
 * by_id: its name, or NULL. */
struct object_refs {
    const char *(*id_of_name)(void *ctx, enum kind kind, const char *name);
    const char *(*name_of_id)(void *ctx, enum kind kind, const char *id);
    void *ctx;
};

/* From what a caller sent: checks form, types, ranges, unknown fields (all problems are
 * added, with pointers), fills defaults, normalises, translates references from names by
 * refs (an unknown name is a problem "no_such_object"). base (may be NULL): the present
 * object, whose secrets are kept where the caller gave none and whose read-only fields are
 * kept. What object_to_json shows may come back: "id" and "kind" when they are the object's
 * own, a secret as {"set": true} (kept) or {"set": false} (still none), read-only fields with
 * their value. Null clears a secret that is not required. A field whose "when" does not
 * hold is checked and kept like any other. id has the form of an id (asserted). NULL when
 * problems got an error. */
struct object *object_parse(
    enum kind kind, const char *id, const json_t *body, const struct object *base,
    const struct object_refs *refs, struct problems *problems);
/* From canonical bytes (database, peers): the same checks of form, references are ids and
 * are not resolved. The bytes must be the canonical form exactly, else ERR_CORRUPT. */
MUST_USE err_t object_from_canonical(
    enum kind kind, const char *id, const char *bytes, size_t len, struct object **ret,
    struct error *e);
/* For the API: references as names, secrets replaced by {"set": true|false}, plus "id" and
 * "kind". New reference to a json_t. */
json_t *object_to_json(const struct object *o, const struct object_refs *refs);
/* Appends the bytes that json_canonical makes of it, in a third of the time. */
void object_put_json(const struct object *o, const struct object_refs *refs, struct buf *out);
/* A copy with fields set by the product itself (read-only and secret ones): patch is a JSON
 * object in canonical terms (references as ids), merged per RFC 7396. */
MUST_USE err_t
object_with(const struct object *o, const json_t *patch, struct object **ret, struct error *e);
/* Default object of a singleton. */
struct object *object_singleton(enum kind kind);

struct object *object_ref(const struct object *o);
void object_unref(const struct object *o); /* NULL is allowed */
void object_new_id(char ret[OBJECT_ID_BYTES]);

/* How many bits are set, by adding neighbours: the instruction set that every machine has knows
 * no POPCNT, so that the compiler's builtin would be a call of its library. */
static inline unsigned
object_bits(uint64_t bits)
{
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(bits * UINT64_C(0x0101010101010101) >> 56);
}

/* A field's value, without a check of field. */
static inline const struct value *
object_field(const struct object *o, unsigned field)
{
    uint64_t bit = UINT64_C(1) << field;

    if ((o->differs & bit) == 0) {
        return &schema_kinds[o->kind].defaults[field];
    }
    return &o->values[object_bits(o->differs & (bit - 1))];
}

/* Readers; the field must be of that type (asserted) and not null. */
int64_t object_int(const struct object *o, unsigned field); /* FT_INT, FT_ENUM index */
bool object_bool(const struct object *o, unsigned field);
struct text object_text(const struct object *o, unsigned field); /* FT_TEXT, FT_REF (id) */
const struct value *object_value(const struct object *o, unsigned field);

/* Calls fn for every reference the object holds (also inside records). */
typedef void (*object_ref_fn)(void *ctx, enum kind kind, const char *id, const char *pointer);
void object_each_ref(const struct object *o, object_ref_fn fn, void *ctx);

/* The bits in "words" of every object that refers to that id or has that text in a list: who
 * has them not, does not, and need not be looked at further. Few others have them. */
uint32_t object_word(struct text text);

/* Union of EFFECT_* of the fields in which a and b differ; either may be NULL (all fields).
 * For kinds whose object is created or deleted this is the union over all its fields. */
unsigned object_effect(const struct object *a, const struct object *b);

#endif
