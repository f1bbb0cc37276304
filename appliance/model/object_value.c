/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/pem.h"
#include "model/object_parse.h"

#define POINTER_BYTES 256
#define MESSAGE_BYTES 512
/* PEM with CR LF and blank lines shrinks to its normal form, though not by as much. */
#define RAW_PER_NORMAL 4

void
parse_init(struct parse *p, enum kind kind)
{
    memset(p, 0, sizeof *p);
    p->kind = schema_kind(kind);
    p->arena = arena_new(OBJECT_MAX_BYTES);
    p->item = -1;
    buf_init(&p->text, OBJECT_MAX_BYTES);
}

void
parse_fini(struct parse *p)
{
    for (size_t i = 0; i < p->secret_count; i++) {
        crypt_wipe(p->secrets[i].bytes, p->secrets[i].len);
    }
    buf_wipe(&p->text);
    buf_fini(&p->text);
    arena_free(p->arena);
}

/* ---- problems ---- */

void
parse_refuse_at(struct parse *p, const char *pointer, const char *code, const char *message)
{
    struct problem where = {.kind = p->kind->name, .name = p->name, .pointer = pointer};

    problems_add(p->problems, SEVERITY_ERROR, code, &where, "%s", message);
}

bool
parse_refuse(struct parse *p, const char *code, const char *fmt, ...)
{
    char pointer[POINTER_BYTES];
    char message[MESSAGE_BYTES];
    va_list ap;

    if (p->item < 0) {
        (void)snprintf(pointer, sizeof pointer, "/%s", p->field);
    } else {
        (void)snprintf(
            pointer, sizeof pointer, "/%s/%" PRId64 "%s%s", p->field, p->item,
            p->sub != NULL ? "/" : "", p->sub != NULL ? p->sub : "");
    }
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    parse_refuse_at(p, pointer, code, message);
    return false;
}

/* JSON pointer of a key from outside, RFC 6901's escapes included; cut when it is long. */
static void
put_foreign_key(char *pointer, size_t size, const char *key)
{
    size_t at = strlen(pointer);

    for (; *key != '\0' && at + 3 < size; key++) {
        if (*key == '~' || *key == '/') {
            pointer[at++] = '~';
            pointer[at++] = *key == '~' ? '0' : '1';
        } else {
            pointer[at++] = *key;
        }
    }
    pointer[at] = '\0';
}

void
parse_refuse_key(struct parse *p, const char *key)
{
    char pointer[POINTER_BYTES] = "/";
    char message[MESSAGE_BYTES];

    if (p->item >= 0) {
        (void)snprintf(pointer, sizeof pointer, "/%s/%" PRId64 "/", p->field, p->item);
    }
    put_foreign_key(pointer, sizeof pointer, key);
    (void)snprintf(
        message, sizeof message, "There is no field \"%.*s\" in %s%s.", problems_cut(key, 64),
        key, p->item >= 0 ? "an item of the field " : "the kind ",
        p->item >= 0 ? p->field : p->kind->name);
    parse_refuse_at(p, pointer, "unknown_field", message);
}

/* ---- one value ---- */

static bool
length_fits(struct parse *p, const struct schema_field *f, size_t len)
{
    if (f->min > 0 && len == 0) {
        return parse_refuse(p, "range", "%s must not be empty.", f->label);
    }
    if (len < (size_t)f->min) {
        return parse_refuse(
            p, "range", "%s has at least %" PRId64 " bytes, not %zu.", f->label, f->min, len);
    }
    if (len > (size_t)f->max) {
        return parse_refuse(
            p, "range", "%s has at most %" PRId64 " bytes, not %zu.", f->label, f->max, len);
    }
    return true;
}

static void
keep_text(struct parse *p, const struct schema_field *f, struct value *ret)
{
    size_t len = p->text.len;
    char *copy = arena_memdup0(p->arena, buf_str(&p->text), len);

    ret->u.text = (struct text){copy, (uint32_t)len};
    if (f->secret) {
        ASSERT(p->secret_count < PARSE_SECRETS);
        p->secrets[p->secret_count++] = (struct parse_secret){copy, len};
        buf_wipe(&p->text);
    }
}

bool
parse_text(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    const char *s = json_string_value(given);
    size_t len = json_string_length(given);
    struct error e;
    bool room;

    if (s == NULL) {
        return parse_refuse(p, "type", "%s must be a text.", f->label);
    }
    if (((len == 0 && f->min > 0) || len / RAW_PER_NORMAL > (size_t)f->max) &&
        !length_fits(p, f, len)) {
        return false;
    }
    buf_reset(&p->text);
    /* Room at once: growing would leave copies of a secret behind. */
    room = buf_reserve(&p->text, pem_normal_max(len));
    ASSERT(room);
    if (value_check_text(f->text_type, s, len, &p->text, &e) != ERR_OK) {
        return parse_refuse(p, "format", "%s: %s.", f->label, e.msg);
    }
    if (!length_fits(p, f, p->text.len)) {
        return false;
    }
    keep_text(p, f, ret);
    return true;
}

static bool
parse_int(struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    if (!json_is_integer(given)) {
        return parse_refuse(p, "type", "%s must be an integer.", f->label);
    }
    ret->u.i = json_integer_value(given);
    if (ret->u.i < f->min || ret->u.i > f->max) {
        return parse_refuse(
            p, "range", "%s must be from %" PRId64 " to %" PRId64 "%s%s, not %" PRId64 ".",
            f->label, f->min, f->max, f->unit != NULL ? " " : "",
            f->unit != NULL ? f->unit : "", ret->u.i);
    }
    return true;
}

static bool
parse_enum(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    const char *s = json_string_value(given);
    char list[MESSAGE_BYTES / 2];
    size_t at = 0;

    for (uint32_t i = 0; s != NULL && i < f->value_count; i++) {
        if (strcmp(f->values[i], s) == 0) {
            ret->u.i = i;
            return true;
        }
    }
    list[0] = '\0';
    for (uint32_t i = 0; i < f->value_count && at < sizeof list; i++) {
        int n =
            snprintf(list + at, sizeof list - at, "%s\"%s\"", i > 0 ? ", " : "", f->values[i]);

        ASSERT(n > 0);
        at += (size_t)n;
    }
    if (s == NULL) {
        return parse_refuse(p, "type", "%s must be one of the texts %s.", f->label, list);
    }
    return parse_refuse(
        p, "enum", "%s must be one of %s, not \"%.*s\".", f->label, list, problems_cut(s, 64),
        s);
}

static bool
parse_ref(struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    const struct schema_kind *kind = schema_kind(f->ref_kind);
    const char *s = json_string_value(given);
    const char *id = s;

    if (s == NULL) {
        return parse_refuse(p, "type", "%s must be the name of a %s.", f->label, kind->name);
    }
    if (p->refs != NULL) {
        id = p->refs->id_of_name(p->refs->ctx, f->ref_kind, s);
    } else if (!object_id_valid(f->ref_kind, s)) {
        return parse_refuse(p, "format", "%s: this is no id of a %s.", f->label, kind->name);
    }
    if (id == NULL) {
        return parse_refuse(
            p, "no_such_object", "%s: there is no %s \"%.*s\".", f->label, kind->name,
            problems_cut(s, 64), s);
    }
    ret->u.text = (struct text){id, (uint32_t)strlen(id)};
    return true;
}

static bool
parse_scalar(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    if (json_is_null(given)) {
        ret->is_null = true;
        return f->nullable || parse_refuse(p, "type", "%s must not be null.", f->label);
    }
    switch (f->type) {
    case FT_BOOL:
        ret->u.i = json_is_true(given);
        return json_is_boolean(given) ||
               parse_refuse(p, "type", "%s must be true or false.", f->label);
    case FT_INT: return parse_int(p, f, given, ret);
    case FT_ENUM: return parse_enum(p, f, given, ret);
    case FT_TEXT: return parse_text(p, f, given, ret);
    case FT_REF: return parse_ref(p, f, given, ret);
    case FT_RECORD: break;
    }
    ASSERT(f->type != FT_RECORD); /* records stand in lists */
    return false;
}

static void
default_scalar(const struct schema_field *f, struct value *ret)
{
    switch (f->type) {
    case FT_BOOL:
    case FT_INT:
    case FT_ENUM: ret->u.i = f->default_int; return;
    case FT_TEXT:
    case FT_REF:
        ret->is_null = f->default_text == NULL;
        if (!ret->is_null) {
            ret->u.text = (struct text){f->default_text, (uint32_t)strlen(f->default_text)};
        }
        return;
    case FT_RECORD: break;
    }
    ASSERT(f->type != FT_RECORD); /* records stand in lists */
}

/* ---- records and lists ---- */

static bool
parse_record(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    struct value *fields;
    const char *key;
    json_t *value;
    bool good = true;

    if (!json_is_object(given)) {
        return parse_refuse(p, "type", "%s: an item must be a JSON object.", f->label);
    }
    json_object_foreach(object_iterable(given), key, value)
    {
        if (schema_field_index(f->fields, f->field_count, key) < 0) {
            parse_refuse_key(p, key);
            good = false;
        }
    }
    fields = arena_alloc(p->arena, f->field_count * sizeof *fields);
    for (uint32_t j = 0; j < f->field_count; j++) {
        const struct schema_field *sub = &f->fields[j];
        const json_t *sub_given = json_object_get(given, sub->name);

        p->sub = sub->name;
        if (sub_given != NULL) {
            good = parse_scalar(p, sub, sub_given, &fields[j]) && good;
        } else if (sub->required) {
            good = parse_refuse(p, "required", "%s is missing.", sub->label);
        } else {
            default_scalar(sub, &fields[j]);
        }
        p->sub = NULL;
    }
    ret->count = f->field_count;
    ret->u.items = fields;
    return good;
}

struct sorted_item {
    struct value value;
    uint32_t given_at;
};

static int
compare_numbers(const void *a, const void *b)
{
    const struct sorted_item *x = a;
    const struct sorted_item *y = b;

    if (x->value.u.i != y->value.u.i) {
        return x->value.u.i < y->value.u.i ? -1 : 1;
    }
    return x->given_at < y->given_at ? -1 : x->given_at > y->given_at;
}

static int
compare_texts(const void *a, const void *b)
{
    const struct sorted_item *x = a;
    const struct sorted_item *y = b;
    int order = strcmp(x->value.u.text.s, y->value.u.text.s);

    if (order != 0) {
        return order;
    }
    return x->given_at < y->given_at ? -1 : x->given_at > y->given_at;
}

/* Sorts a list whose order means nothing, and refuses what stands in it twice. */
static bool
sort_items(struct parse *p, const struct schema_field *f, struct value *items, uint32_t count)
{
    struct sorted_item *sorted = arena_alloc(p->arena, count * sizeof *sorted);
    bool text = f->type == FT_TEXT || f->type == FT_REF;
    bool good = true;

    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = (struct sorted_item){items[i], i};
    }
    qsort(sorted, count, sizeof *sorted, text ? compare_texts : compare_numbers);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = sorted[i].value;
        if (i > 0 &&
            value_equal(&(struct schema_field){.type = f->type}, &items[i - 1], &items[i])) {
            p->item = sorted[i].given_at;
            good = parse_refuse(p, "duplicate", "%s: this stands in the list twice.", f->label);
        }
    }
    p->item = -1;
    return good;
}

static bool
parse_list(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    size_t count = json_array_size(given);
    struct value *items;
    bool good = true;

    if (!json_is_array(given)) {
        return parse_refuse(p, "type", "%s must be a list.", f->label);
    }
    if (count < f->min_items || count > f->max_items) {
        return parse_refuse(
            p, "items", "%s has %" PRIu32 " to %" PRIu32 " items, not %zu.", f->label,
            f->min_items, f->max_items, count);
    }
    items = arena_alloc(p->arena, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(given, i);

        p->item = (int64_t)i;
        good = (f->type == FT_RECORD ? parse_record(p, f, item, &items[i])
                                     : parse_scalar(p, f, item, &items[i])) &&
               good;
    }
    p->item = -1;
    ret->count = (uint32_t)count;
    ret->u.items = items;
    if (good && !f->ordered && f->type != FT_RECORD && count > 1) {
        good = sort_items(p, f, items, ret->count);
    }
    return good;
}

void
parse_default(struct parse *p, const struct schema_field *f, struct value *ret)
{
    json_auto_t *list = NULL;
    bool good;

    if (!f->list) {
        default_scalar(f, ret);
        return;
    }
    if (f->default_text == NULL || strcmp(f->default_text, "[]") == 0) {
        ret->u.items = NULL;
        return;
    }
    good = json_parse(f->default_text, strlen(f->default_text), &list, NULL) == ERR_OK &&
           parse_list(p, f, list, ret);
    /* The generator of the tables checks defaults. */
    ASSERT(good);
}

bool
parse_value(
    struct parse *p, const struct schema_field *f, const json_t *given, struct value *ret)
{
    return f->list ? parse_list(p, f, given, ret) : parse_scalar(p, f, given, ret);
}
