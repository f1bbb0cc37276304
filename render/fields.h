/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of an object without the check of their types that object_int and its like make:
 * a render reads a million of them. */
#ifndef LOCKSTEP_RENDER_FIELDS_H
#define LOCKSTEP_RENDER_FIELDS_H

#include "model/object.h"

/* A number, a bool, or the index of an enum's value. */
static inline int64_t
fields_int(const struct object *o, unsigned field)
{
    return object_field(o, field)->u.i;
}

/* A text, or the id in a reference that is not null. */
static inline struct text
fields_text(const struct object *o, unsigned field)
{
    return object_field(o, field)->u.text;
}

#define FIELDS_BIT(field) (UINT64_C(1) << (field))

/* False when all the fields, a set of FIELDS_BIT, have their defaults; reads none of them. */
static inline bool
fields_set(const struct object *o, uint64_t bits)
{
    return (o->differs & bits) != 0;
}

/* Whether a field has another value than its default: most fields of most objects have it. */
static inline bool
fields_differ(const struct object *o, unsigned field)
{
    return fields_set(o, FIELDS_BIT(field));
}

/* A bool whose default is false. */
static inline bool
fields_on(const struct object *o, unsigned field)
{
    return fields_set(o, FIELDS_BIT(field));
}

/* An enum's value as it is called in the schema and, where this is used, in HAProxy. */
static inline const char *
fields_word(const struct object *o, unsigned field)
{
    return schema_kinds[o->kind].fields[field].values[object_field(o, field)->u.i];
}

#endif
