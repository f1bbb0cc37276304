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

/* what: that it does not know. */
static void
refuse(const struct leveling *l, const char *label, const char *pointer, const char *what)
{
    problems_add(
        l->p, SEVERITY_ERROR, "newer_release",
        &(struct problem){
            .kind = schema_kind(l->o->kind)->name, .name = l->o->name.s, .pointer = pointer},
        "%s has to wait for the newer release on %s, which does not know this %s.", label,
        l->behind, what);
}

static bool
has_later_word(const struct leveling *l, const struct schema_field *f, const struct value *v)
{
    bool later = false;

    if (f->type != FT_ENUM || f->values_since == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < (f->list ? v->count : 1); i++) {
        int64_t word = f->list ? v->u.items[i].u.i : v->u.i;

        later = later || f->values_since[word] > l->level;
    }
    return later;
}

static void
check_value(
    const struct leveling *l, const struct schema_field *f, const struct value *v,
    const char *pointer)
{
    if (f->since > l->level && !object_is_default(f, v)) {
        refuse(l, f->label, pointer, "field");
    } else if (has_later_word(l, f, v)) {
        refuse(l, f->label, pointer, "value");
    }
}

static void
check_record(const struct leveling *l, const struct schema_field *f, const struct value *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        for (uint32_t k = 0; k < f->field_count; k++) {
            char pointer[POINTER_BYTES];

            (void)snprintf(
                pointer, sizeof pointer, "/%s/%u/%s", f->name, (unsigned)i, f->fields[k].name);
            check_value(l, &f->fields[k], &v->u.items[i].u.items[k], pointer);
        }
    }
}

void
validate_level(const struct object *o, int level, const char *behind, struct problems *p)
{
    const struct schema_kind *kind = schema_kind(o->kind);
    const struct leveling l = {o, level, behind, p};

    if (kind->since > level) {
        refuse(&l, kind->title, "", "kind of object");
        return;
    }
    for (unsigned i = 0; i < kind->field_count; i++) {
        const struct schema_field *f = &kind->fields[i];
        const struct value *v = object_value(o, i);
        char pointer[POINTER_BYTES];

        (void)snprintf(pointer, sizeof pointer, "/%s", f->name);
        check_value(&l, f, v, pointer);
        if (f->since <= level && f->type == FT_RECORD && f->list) {
            check_record(&l, f, v);
        }
    }
}
