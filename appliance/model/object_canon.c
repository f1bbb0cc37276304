/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: the canonical bytes, and the form of the API. */
#include <string.h>

#include "model/object_build.h"

#define CANONICAL_FIRST_BYTES 480

/* ---- canonical form ---- */

struct order {
    uint16_t index[OBJECT_MAX_FIELDS];
};

/* Fields by name. Tables have a dozen rows: insertion is the fastest. */
static void
order_fields(const struct schema_field *fields, uint32_t count, struct order *ret)
{
    ASSERT(count <= OBJECT_MAX_FIELDS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        while (at > 0 && strcmp(fields[ret->index[at - 1]].name, fields[i].name) > 0) {
            ret->index[at] = ret->index[at - 1];
            at--;
        }
        ret->index[at] = (uint16_t)i;
    }
}

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

static void
put_scalar(struct buf *out, const struct schema_field *f, const struct value *v)
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
    case FT_TEXT:
    case FT_REF: put_string(out, v->u.text.s, v->u.text.len); return;
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
    struct buf *out, const struct schema_field *f, const struct order *order,
    const struct value *item)
{
    bool first = true;

    for (uint32_t i = 0; i < f->field_count; i++) {
        const struct schema_field *sub = &f->fields[order->index[i]];
        const struct value *v = &item->u.items[order->index[i]];

        if (is_left_out(sub, v)) {
            continue;
        }
        put_key(out, first, sub->name);
        put_scalar(out, sub, v);
        first = false;
    }
    buf_puts(out, first ? "{}" : "}");
}

static void
put_list(struct buf *out, const struct schema_field *f, const struct value *v)
{
    struct order order = {{0}};

    if (f->type == FT_RECORD) {
        order_fields(f->fields, f->field_count, &order);
    }
    buf_putc(out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        const struct value *item = &v->u.items[i];

        if (i > 0) {
            buf_putc(out, ',');
        }
        if (f->type == FT_RECORD) {
            put_record(out, f, &order, item);
        } else {
            put_scalar(out, f, item);
        }
    }
    buf_putc(out, ']');
}

void
object_canonical(enum kind kind, const struct value *fields, struct buf *out)
{
    const struct schema_kind *k = schema_kind(kind);
    struct order order;
    bool fits = buf_reserve(out, CANONICAL_FIRST_BYTES);
    bool first = true;

    order_fields(k->fields, k->field_count, &order);
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[order.index[i]];
        const struct value *v = &fields[order.index[i]];

        if (is_left_out(f, v)) {
            continue;
        }
        put_key(out, first, f->name);
        first = false;
        if (f->list) {
            put_list(out, f, v);
        } else {
            put_scalar(out, f, v);
        }
    }
    buf_putc(out, '}');
    /* The limits of the schema bound it. */
    ASSERT(fits && !out->failed);
}

/* ---- form of the API ---- */

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
