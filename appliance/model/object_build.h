/* SPDX-License-Identifier: Apache-2.0 */
/* What the object_*.c files share: from checked values to an object, and JSON patches. */
#ifndef LOCKSTEP_MODEL_OBJECT_BUILD_H
#define LOCKSTEP_MODEL_OBJECT_BUILD_H

#include "base/buf.h"
#include "model/object.h"

/* Largest table of fields of a kind or record (asserted). */
#define OBJECT_MAX_FIELDS 64
#define OBJECT_MAX_BYTES  ((size_t)256 << 20)

/* A new object of values in their normal form; everything is copied. */
struct object *object_build(enum kind kind, const char *id, const struct value *fields);
/* True when v is what a caller gets who does not give the field. */
bool object_is_default(const struct schema_field *f, const struct value *v);
/* Appends the canonical form. */
void object_canonical(enum kind kind, const struct value *fields, struct buf *out);
/* True when id has the form of an identity of that kind. */
bool object_id_valid(enum kind kind, const char *id);
/* RFC 7396 on the level of fields, which is all there is: no value of a field is a JSON
 * object, but for {"set": ...}, and that is taken whole. */
void object_merge(json_t *target, const json_t *patch);
/* For jansson, whose iterators do not know const; v is not changed by them. */
json_t *object_iterable(const json_t *v);

#endif
