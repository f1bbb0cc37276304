/* SPDX-License-Identifier: Apache-2.0 */
/* What a node of an older release would not understand. */
#include <stdio.h>

#include "model/object_build.h"
#include "model/validate.h"

#define POINTER_BYTES 160

struct leveling {
    const struct object *o;
    int level;
    const char *behind;
    struct problems *p;
};

static void
refuse(const struct leveling *l, const struct schema_field *f, const char *pointer)
{
    problems_add(
        l->p, SEVERITY_ERROR, "newer_release",
        &(struct problem){
            .kind = schema_kind(l->o->kind)->name, .name = l->o->name.s, .pointer = pointer},
        "%s has to wait for the newer release on %s, which does not know this field.", f->label,
        l->behind);
}

static void
check_record(const struct leveling *l, const struct schema_field *f, const struct value *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        for (uint32_t k = 0; k < f->field_count; k++) {
            const struct schema_field *sub = &f->fields[k];
            char pointer[POINTER_BYTES];

            if (sub->since > l->level && !object_is_default(sub, &v->u.items[i].u.items[k])) {
                (void)snprintf(
                    pointer, sizeof pointer, "/%s/%u/%s", f->name, (unsigned)i, sub->name);
                refuse(l, sub, pointer);
            }
        }
    }
}

void
validate_level(const struct object *o, int level, const char *behind, struct problems *p)
{
    const struct schema_kind *kind = schema_kind(o->kind);
    const struct leveling l = {o, level, behind, p};

    for (unsigned i = 0; i < kind->field_count; i++) {
        const struct schema_field *f = &kind->fields[i];
        const struct value *v = object_value(o, i);
        char pointer[POINTER_BYTES];

        if (f->since > level && !object_is_default(f, v)) {
            (void)snprintf(pointer, sizeof pointer, "/%s", f->name);
            refuse(&l, f, pointer);
        } else if (f->type == FT_RECORD && f->list) {
            check_record(&l, f, v);
        }
    }
}
