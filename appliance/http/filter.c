/* SPDX-License-Identifier: Apache-2.0 */
#include "http/filter.h"

#include <string.h>

#define NUMBER_DIGITS 16

/* ---- reading ---- */

static bool
read_number(const char *text, int64_t *ret)
{
    bool negative = text[0] == '-';
    const char *digits = text + (negative ? 1 : 0);
    size_t count = strspn(digits, "0123456789");
    int64_t n = 0;

    if (count == 0 || count > NUMBER_DIGITS || digits[count] != '\0') {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        n = n * 10 + (digits[i] - '0');
    }
    *ret = negative ? -n : n;
    return true;
}

static bool
read_word(const struct schema_field *f, const char *text, int64_t *ret)
{
    for (uint32_t i = 0; i < f->value_count; i++) {
        if (strcmp(f->values[i], text) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool
read_field(
    struct request *r, const struct object_refs *refs, const struct schema_field *f,
    const char *text, struct filter_field *ret)
{
    switch (f->type) {
    case FT_BOOL:
        ret->number = strcmp(text, "true") == 0 ? 1 : 0;
        if (ret->number == 0 && strcmp(text, "false") != 0) {
            request_refuse_param(r, f->name, "true or false");
            return false;
        }
        break;
    case FT_INT:
        if (!read_number(text, &ret->number)) {
            request_refuse_param(r, f->name, "a number");
            return false;
        }
        break;
    case FT_ENUM:
        if (!read_word(f, text, &ret->number)) {
            request_refuse_param(r, f->name, "one of the values of this field");
            return false;
        }
        break;
    case FT_REF: ret->text = refs->id_of_name(refs->ctx, f->ref_kind, text); break;
    case FT_TEXT: ret->text = text; break;
    case FT_RECORD: break; /* is no parameter: request.c */
    }
    return true;
}

bool
filter_read(struct request *r, const struct object_refs *refs, struct filter *ret)
{
    const struct schema_kind *k = schema_kind(r->hit.kind);
    size_t count = r->target.param_count;

    *ret = (struct filter){.kind = r->hit.kind, .q = request_param(r, "q")};
    ret->fields = arena_alloc(r->arena, (count + 1) * sizeof *ret->fields);
    for (size_t i = 0; i < count; i++) {
        int index = schema_field_index(k->fields, k->field_count, r->target.params[i].name);
        struct filter_field *field = &ret->fields[ret->field_count];

        if (index < 0) {
            continue;
        }
        *field = (struct filter_field){.index = (uint32_t)index};
        if (!read_field(r, refs, &k->fields[index], r->target.params[i].value, field)) {
            return false;
        }
        ret->field_count++;
    }
    return true;
}

/* ---- comparing ---- */

/* ASCII only: other letters must be given as they are. */
static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
starts_with(const char *s, const char *part)
{
    while (*part != '\0' && lower(*s) == lower(*part)) {
        s++;
        part++;
    }
    return *part == '\0';
}

static bool
contains(const char *s, const char *part)
{
    do {
        if (starts_with(s, part)) {
            return true;
        }
    } while (*s++ != '\0');
    return false;
}

static bool
has_value(
    const struct schema_field *f, const struct value *v, const struct filter_field *wanted)
{
    if (v->is_null) {
        return false;
    }
    if (f->type == FT_REF) {
        return wanted->text != NULL && strcmp(v->u.text.s, wanted->text) == 0;
    }
    if (f->type == FT_TEXT) {
        return v->u.text.len == strlen(wanted->text) && starts_with(v->u.text.s, wanted->text);
    }
    return v->u.i == wanted->number;
}

static bool
field_fits(const struct object *o, const struct filter_field *wanted)
{
    const struct schema_field *f = &schema_kind(o->kind)->fields[wanted->index];
    const struct value *v = object_value(o, wanted->index);

    if (!f->list) {
        return has_value(f, v, wanted);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        if (has_value(f, &v->u.items[i], wanted)) {
            return true;
        }
    }
    return false;
}

static bool
texts_contain(const struct schema_field *f, const struct value *v, const char *q)
{
    if (!f->list) {
        return !v->is_null && contains(v->u.text.s, q);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        if (contains(v->u.items[i].u.text.s, q)) {
            return true;
        }
    }
    return false;
}

static bool
text_fits(const struct object *o, const char *q)
{
    const struct schema_kind *k = schema_kind(o->kind);

    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];

        if (f->type == FT_TEXT && !f->secret && texts_contain(f, object_value(o, i), q)) {
            return true;
        }
    }
    return false;
}

bool
filter_fits(const struct filter *filter, const struct object *o)
{
    for (size_t i = 0; i < filter->field_count; i++) {
        if (!field_fits(o, &filter->fields[i])) {
            return false;
        }
    }
    return filter->q == NULL || text_fits(o, filter->q);
}
