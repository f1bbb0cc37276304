/* SPDX-License-Identifier: Apache-2.0 */
#include "model/object.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/object_build.h"

#define OBJECT_MAGIC    0x4f626a65u
#define ID_RANDOM_BYTES 8
#define ID_HEX          16

static const struct object *
checked(const struct object *o)
{
    ASSERT(o != NULL && o->magic == OBJECT_MAGIC);
    return o;
}

/* The counter is the one part of an object that changes, so that readers can have it const. */
static struct object *
counted(const struct object *o)
{
    uintptr_t address = (uintptr_t)o;

    (void)checked(o);
    return (struct object *)address;
}

struct object *
object_ref(const struct object *o)
{
    struct object *c = counted(o);

    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void
object_unref(const struct object *o)
{
    struct object *c;

    if (o == NULL) {
        return;
    }
    c = counted(o);
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    c->magic = 0;
    if (schema_kind(c->kind)->has_secret) {
        /* The canonical bytes are the last ones of the block. */
        crypt_wipe(c, (size_t)(c->canonical + c->canonical_len - (const char *)c));
    }
    free(c);
}

void
object_new_id(char ret[OBJECT_ID_BYTES])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char random[ID_RANDOM_BYTES];

    crypt_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        ret[2 * i] = hex[random[i] >> 4];
        ret[2 * i + 1] = hex[random[i] & 15u];
    }
    ret[ID_HEX] = '\0';
}

bool
object_id_valid(enum kind kind, const char *id)
{
    const struct schema_kind *k = schema_kind(kind);

    if (k->singleton) {
        return strcmp(id, k->name) == 0;
    }
    return strspn(id, "0123456789abcdef") == ID_HEX && id[ID_HEX] == '\0';
}

/* ---- building ---- */

/* What the one block of an object holds behind struct object: values, then bytes. */
struct block {
    struct value *values;
    char *bytes;
};

struct sizes {
    size_t values;
    size_t bytes;
    uint32_t words;
};

static bool
is_text(const struct schema_field *f)
{
    return f->type == FT_TEXT || f->type == FT_REF;
}

uint32_t
object_word(struct text text)
{
    uint32_t hash = value_hash(0, text.s, text.len);

    return UINT32_C(1) << hash % 32 | UINT32_C(1) << hash / 32 % 32 |
           UINT32_C(1) << hash / 1024 % 32;
}

static void
measure_scalar(const struct schema_field *f, const struct value *v, struct sizes *s)
{
    if (is_text(f) && !v->is_null) {
        s->bytes += (size_t)v->u.text.len + 1;
        s->words |= f->list || f->type == FT_REF ? object_word(v->u.text) : 0;
    }
}

static void
measure(const struct schema_field *f, const struct value *v, struct sizes *s)
{
    if (!f->list) {
        measure_scalar(f, v, s);
        return;
    }
    s->values += v->count;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct value *item = &v->u.items[i];

        if (f->type != FT_RECORD) {
            measure_scalar(f, item, s);
            continue;
        }
        s->values += f->field_count;
        for (uint32_t j = 0; j < f->field_count; j++) {
            measure_scalar(&f->fields[j], &item->u.items[j], s);
        }
    }
}

static const char *
put_bytes(struct block *b, const char *s, size_t len)
{
    char *at = b->bytes;

    memcpy(at, s, len);
    at[len] = '\0';
    b->bytes += len + 1;
    return at;
}

static struct value
copy_scalar(struct block *b, const struct schema_field *f, const struct value *v)
{
    struct value copy = *v;

    if (is_text(f) && !v->is_null) {
        copy.u.text.s = put_bytes(b, v->u.text.s, v->u.text.len);
    }
    return copy;
}

static struct value *
take_values(struct block *b, size_t count)
{
    struct value *at = b->values;

    b->values += count;
    return at;
}

static struct value
copy_value(struct block *b, const struct schema_field *f, const struct value *v)
{
    struct value copy = *v;
    struct value *items;

    if (!f->list) {
        return copy_scalar(b, f, v);
    }
    items = take_values(b, v->count);
    for (uint32_t i = 0; i < v->count; i++) {
        const struct value *item = &v->u.items[i];
        struct value *fields;

        if (f->type != FT_RECORD) {
            items[i] = copy_scalar(b, f, item);
            continue;
        }
        fields = take_values(b, f->field_count);
        for (uint32_t j = 0; j < f->field_count; j++) {
            fields[j] = copy_scalar(b, &f->fields[j], &item->u.items[j]);
        }
        items[i] = (struct value){.count = f->field_count, .u.items = fields};
    }
    copy.u.items = items;
    return copy;
}

struct object *
object_build(enum kind kind, const char *id, const struct value *fields)
{
    CLEANUP(buf_wipe_fini) struct buf canonical = {0};
    const struct schema_kind *k = schema_kind(kind);
    struct sizes sizes = {0};
    uint64_t differs = 0;
    struct object *o;
    struct block block;
    struct value *copies;

    ASSERT(object_id_valid(kind, id) && k->field_count <= OBJECT_MAX_FIELDS);
    buf_init(&canonical, OBJECT_MAX_BYTES);
    object_canonical(kind, fields, &canonical);
    for (uint32_t i = 0; i < k->field_count; i++) {
        if (!object_is_default(&k->fields[i], &fields[i])) {
            differs |= UINT64_C(1) << i;
            sizes.values++;
            measure(&k->fields[i], &fields[i], &sizes);
        }
    }
    o = xmalloc(
        sizeof *o + sizes.values * sizeof(struct value) + sizes.bytes + canonical.len + 1);
    memset(o, 0, sizeof *o);
    block.values = (struct value *)(o + 1);
    block.bytes = (char *)(block.values + sizes.values);
    copies = take_values(&block, object_bits(differs));
    o->differs = differs;
    o->values = copies;
    for (uint32_t i = 0; i < k->field_count; i++) {
        if ((differs >> i & 1) != 0) {
            *copies++ = copy_value(&block, &k->fields[i], &fields[i]);
        }
    }
    o->magic = OBJECT_MAGIC;
    atomic_init(&o->refs, 1);
    o->kind = kind;
    o->words = sizes.words;
    memcpy(o->id, id, strlen(id) + 1);
    o->name = object_field(o, 0)->u.text;
    o->canonical = put_bytes(&block, canonical.data, canonical.len);
    o->canonical_len = (uint32_t)canonical.len;
    o->objhash = sha256(o->canonical, o->canonical_len);
    return o;
}

/* ---- readers ---- */

const struct value *
object_value(const struct object *o, unsigned field)
{
    ASSERT(field < schema_kind(checked(o)->kind)->field_count);
    return object_field(o, field);
}

static const struct value *
read_scalar(const struct object *o, unsigned field, unsigned types)
{
    const struct value *v = object_value(o, field);
    const struct schema_field *f = &schema_kind(o->kind)->fields[field];

    ASSERT(!f->list && !v->is_null && (types & 1u << f->type) != 0);
    return v;
}

int64_t
object_int(const struct object *o, unsigned field)
{
    return read_scalar(o, field, 1u << FT_INT | 1u << FT_ENUM)->u.i;
}

bool
object_bool(const struct object *o, unsigned field)
{
    return read_scalar(o, field, 1u << FT_BOOL)->u.i != 0;
}

struct text
object_text(const struct object *o, unsigned field)
{
    return read_scalar(o, field, 1u << FT_TEXT | 1u << FT_REF)->u.text;
}

/* ---- references and effects ---- */

/* Longest is "/<field>/<index>/<field>". */
#define POINTER_BYTES 192

struct walk {
    object_ref_fn fn;
    void *ctx;
    char pointer[POINTER_BYTES];
};

static size_t
put_step(char *pointer, size_t at, const char *step)
{
    size_t len = strlen(step);

    ASSERT(at + len + 2 <= POINTER_BYTES);
    pointer[at] = '/';
    memcpy(pointer + at + 1, step, len + 1);
    return at + len + 1;
}

static size_t
put_index(char *pointer, size_t at, uint32_t index)
{
    char digits[11];
    size_t i = sizeof digits - 1;

    digits[i] = '\0';
    do {
        digits[--i] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    return put_step(pointer, at, digits + i);
}

static void
tell(struct walk *w, const struct schema_field *f, const struct value *v)
{
    if (!v->is_null) {
        w->fn(w->ctx, f->ref_kind, v->u.text.s, w->pointer);
    }
}

static void
tell_record(struct walk *w, size_t at, const struct schema_field *f, const struct value *v)
{
    for (uint32_t j = 0; j < f->field_count; j++) {
        if (f->fields[j].type == FT_REF) {
            (void)put_step(w->pointer, at, f->fields[j].name);
            tell(w, &f->fields[j], &v->u.items[j]);
        }
    }
}

static void
tell_list(struct walk *w, size_t at, const struct schema_field *f, const struct value *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        size_t item_at = put_index(w->pointer, at, i);

        if (f->type == FT_REF) {
            tell(w, f, &v->u.items[i]);
        } else {
            tell_record(w, item_at, f, &v->u.items[i]);
        }
    }
}

void
object_each_ref(const struct object *o, object_ref_fn fn, void *ctx)
{
    const struct schema_kind *k = schema_kind(checked(o)->kind);
    struct walk w;

    w.fn = fn;
    w.ctx = ctx;
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];
        size_t at;

        if (f->refs == 0) {
            continue;
        }
        at = put_step(w.pointer, 0, f->name);
        if (f->list) {
            tell_list(&w, at, f, object_field(o, i));
        } else {
            tell(&w, f, object_field(o, i));
        }
    }
}

unsigned
object_effect(const struct object *a, const struct object *b)
{
    const struct object *some = a != NULL ? a : b;
    const struct schema_kind *k = schema_kind(checked(some)->kind);
    unsigned effect = EFFECT_NONE;

    ASSERT(a == NULL || b == NULL || a->kind == b->kind);
    for (uint32_t i = 0; i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];

        if (a == NULL || b == NULL || !value_equal(f, object_field(a, i), object_field(b, i))) {
            effect |= f->effect;
        }
    }
    return effect;
}
