/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: the canonical bytes, and the form of the API. */
#include <string.h>

#include "model/object_build.h"

#define CANONICAL_FIRST_BYTES 480

/* ---- bytes: of the canonical form (refs is NULL) and of that of the API ---- */

/* Texts have passed value_check_text: of the control characters only LF and TAB occur. */
static void
put_string(struct buf *out, const char *s, size_t len)
{
    size_t start = 0;

    buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        const char *escape = NULL;

        switch (s[i]) {
        case '"': escape = "\\\""; break;
        case '\\': escape = "\\\\"; break;
        case '\n': escape = "\\n"; break;
        case '\t': escape = "\\t"; break;
        default: ASSERT((unsigned char)s[i] >= 0x20); continue;
        }
        buf_put(out, s + start, i - start);
        buf_put(out, escape, 2);
        start = i + 1;
    }
    buf_put(out, s + start, len - start);
    buf_putc(out, '"');
}

static void
put_key(struct buf *out, bool first, const char *name)
{
    buf_puts(out, first ? "{\"" : ",\"");
    buf_puts(out, name);
    buf_put(out, "\":", 2);
}

/* What is gone (a replicated delete under a local object) shows its id. */
static void
put_ref(
    struct buf *out, const struct schema_field *f, const struct value *v,
    const struct object_refs *refs)
{
    const char *name =
        refs != NULL ? refs->name_of_id(refs->ctx, f->ref_kind, v->u.text.s) : NULL;

    name = name != NULL ? name : v->u.text.s;
    put_string(out, name, strlen(name));
}

static void
put_scalar(
    struct buf *out, const struct schema_field *f, const struct value *v,
    const struct object_refs *refs)
{
    if (v->is_null) {
        buf_puts(out, "null");
        return;
    }
    switch (f->type) {
    case FT_BOOL: buf_puts(out, v->u.i != 0 ? "true" : "false"); return;
    case FT_INT: buf_i64(out, v->u.i); return;
    case FT_ENUM: {
        const char *word = f->values[v->u.i];

        put_string(out, word, strlen(word));
        return;
    }
    case FT_TEXT: put_string(out, v->u.text.s, v->u.text.len); return;
    case FT_REF: put_ref(out, f, v, refs); return;
    case FT_RECORD: break;
    }
    ASSERT(f->type != FT_RECORD); /* records stand in lists */
}

bool
object_is_default(const struct schema_field *f, const struct value *v)
{
    if (f->required) {
        return false;
    }
    if (f->list) {
        return v->count == 0 && strcmp(f->default_text, "[]") == 0;
    }
    if (v->is_null || f->default_text != NULL) {
        return v->is_null ? f->default_text == NULL : strcmp(v->u.text.s, f->default_text) == 0;
    }
    return f->type != FT_TEXT && f->type != FT_REF && v->u.i == f->default_int;
}

/* A field that a later schema added stands in the bytes only when it says something: so that
 * the hash of an object of before is the same for every release. */
static bool
is_left_out(const struct schema_field *f, const struct value *v)
{
    return f->since > 1 && object_is_default(f, v);
}

static void
put_record(
    struct buf *out, const struct schema_field *f, const struct value *item,
    const struct object_refs *refs)
{
    bool first = true;

    for (uint32_t i = 0; i < f->field_count; i++) {
        const struct schema_field *sub = &f->fields[f->sorted[i]];
        const struct value *v = &item->u.items[f->sorted[i]];

        if (refs == NULL && is_left_out(sub, v)) {
            continue;
        }
        put_key(out, first, sub->name);
        put_scalar(out, sub, v, refs);
        first = false;
    }
    buf_puts(out, first ? "{}" : "}");
}

static void
put_list(
    struct buf *out, const struct schema_field *f, const struct value *v,
    const struct object_refs *refs)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        const struct value *item = &v->u.items[i];

        if (i > 0) {
            buf_putc(out, ',');
        }
        if (f->type == FT_RECORD) {
            put_record(out, f, item, refs);
        } else {
            put_scalar(out, f, item, refs);
        }
    }
    buf_putc(out, ']');
}

static void
put_field(
    struct buf *out, const struct schema_field *f, const struct value *v,
    const struct object_refs *refs)
{
    if (f->list) {
        put_list(out, f, v, refs);
    } else {
        put_scalar(out, f, v, refs);
    }
}

void
object_canonical(enum kind kind, const struct value *fields, struct buf *out)
{
    const struct schema_kind *k = schema_kind(kind);
    bool fits = buf_reserve(out, CANONICAL_FIRST_BYTES);
    bool first = true;

    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[k->sorted[i]];
        const struct value *v = &fields[k->sorted[i]];

        if (is_left_out(f, v)) {
            continue;
        }
        put_key(out, first, f->name);
        first = false;
        put_field(out, f, v, NULL);
    }
    buf_putc(out, '}');
    /* The limits of the schema bound it. */
    ASSERT(fits && !out->failed);
}

/* The two members that are no fields, as far as they stand before next (NULL: the rest). */
static void
put_own(struct buf *out, const struct object *o, const char *next, size_t *done)
{
    const char *const members[][2] = {{"id", o->id}, {"kind", schema_kind(o->kind)->name}};

    while (*done < ARRAY_LEN(members) &&
           (next == NULL || strcmp(members[*done][0], next) < 0)) {
        put_key(out, false, members[*done][0]);
        put_string(out, members[*done][1], strlen(members[*done][1]));
        (*done)++;
    }
}

void
object_put_json(const struct object *o, const struct object_refs *refs, struct buf *out)
{
    const struct schema_kind *k = schema_kind(o->kind);
    size_t at = out->len;
    size_t own = 0;

    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[k->sorted[i]];
        const struct value *v = object_value(o, k->sorted[i]);

        put_own(out, o, f->name, &own);
        put_key(out, false, f->name);
        if (f->secret) {
            buf_puts(out, v->u.text.len > 0 ? "{\"set\":true}" : "{\"set\":false}");
        } else {
            put_field(out, f, v, refs);
        }
    }
    put_own(out, o, NULL, &own);
    buf_putc(out, '}');
    if (!out->failed) {
        out->data[at] = '{'; /* a comma stands there */
    }
}

/* ---- JSON values ---- */

static json_t *
scalar_to_json(
    const struct schema_field *f, const struct value *v, const struct object_refs *refs)
{
    const char *name;

    if (v->is_null) {
        return json_null();
    }
    switch (f->type) {
    case FT_BOOL: return json_boolean(v->u.i != 0);
    case FT_INT: return json_integer(v->u.i);
    case FT_ENUM: return json_string(f->values[v->u.i]);
    case FT_TEXT: return json_stringn(v->u.text.s, v->u.text.len);
    case FT_REF:
        /* What is gone (a replicated delete under a local object) shows its id. */
        name = refs->name_of_id(refs->ctx, f->ref_kind, v->u.text.s);
        return json_string(name != NULL ? name : v->u.text.s);
    case FT_RECORD: break;
    }
    ASSERT(f->type != FT_RECORD); /* records stand in lists */
    return NULL;
}

static json_t *
record_to_json(
    const struct schema_field *f, const struct value *v, const struct object_refs *refs)
{
    json_t *record = json_object();

    for (uint32_t j = 0; j < f->field_count; j++) {
        const struct schema_field *sub = &f->fields[j];

        json_object_set_new(record, sub->name, scalar_to_json(sub, &v->u.items[j], refs));
    }
    return record;
}

static json_t *
field_to_json(
    const struct schema_field *f, const struct value *v, const struct object_refs *refs)
{
    json_t *list;

    if (f->secret) {
        list = json_object();
        json_object_set_new(list, "set", json_boolean(v->u.text.len > 0));
        return list;
    }
    if (!f->list) {
        return scalar_to_json(f, v, refs);
    }
    list = json_array();
    for (uint32_t i = 0; i < v->count; i++) {
        const struct value *item = &v->u.items[i];

        json_array_append_new(
            list, f->type == FT_RECORD ? record_to_json(f, item, refs)
                                       : scalar_to_json(f, item, refs));
    }
    return list;
}

json_t *
object_to_json(const struct object *o, const struct object_refs *refs)
{
    const struct schema_kind *k = schema_kind(o->kind);
    json_t *j = json_object();

    json_object_set_new(j, "id", json_string(o->id));
    json_object_set_new(j, "kind", json_string(k->name));
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];

        json_object_set_new(j, f->name, field_to_json(f, object_value(o, i), refs));
    }
    return j;
}

/* ---- patches ---- */

json_t *
object_iterable(const json_t *v)
{
    union {
        const json_t *in;
        json_t *out;
    } u = {.in = v};

    return u.out;
}

void
object_merge(json_t *target, const json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach(object_iterable(patch), key, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(target, key);
        } else {
            json_object_set(target, key, value);
        }
    }
}
