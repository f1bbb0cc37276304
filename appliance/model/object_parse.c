/* SPDX-License-Identifier: Apache-2.0 */
#include "model/object_parse.h"

#include <string.h>

#include "base/json.h"

/* What a field has when the caller does not say: a secret or read-only one stays. */
static void
kept_value(struct parse *p, uint32_t i, struct value *ret)
{
    const struct schema_field *f = &p->kind->fields[i];

    if (p->base != NULL && (f->secret || f->read_only)) {
        *ret = *object_value(p->base, i);
    } else {
        parse_default(p, f, ret);
    }
}

static bool
is_set(const struct value *secret)
{
    return secret->u.text.len > 0;
}

/* A secret may come back as it was shown: {"set": true}. Null clears it. */
static bool
secret_field(struct parse *p, uint32_t i, const json_t *given, struct value *ret)
{
    const struct schema_field *f = &p->kind->fields[i];
    const json_t *set = json_object_get(given, "set");

    if (json_is_null(given)) {
        parse_default(p, f, ret);
        return !f->required || parse_refuse(p, "required", "%s cannot be cleared.", f->label);
    }
    if (!json_is_object(given)) {
        return parse_text(p, f, given, ret);
    }
    if (json_object_size(given) != 1 || !json_is_boolean(set)) {
        return parse_refuse(
            p, "type", "%s must be a text, or {\"set\": true} to keep it.", f->label);
    }
    kept_value(p, i, ret);
    if (!is_set(ret) && (json_is_true(set) || f->required)) {
        return parse_refuse(p, "required", "%s is not set yet, so it must be given.", f->label);
    }
    if (is_set(ret) && json_is_false(set)) {
        return parse_refuse(p, "type", "%s is set; write null to clear it.", f->label);
    }
    return true;
}

static bool
one_field(struct parse *p, uint32_t i, const json_t *given, struct value *ret)
{
    const struct schema_field *f = &p->kind->fields[i];
    struct value kept = {.is_null = false};
    bool good;

    p->field = f->name;
    if (given == NULL) {
        kept_value(p, i, ret);
        if (f->required && (p->base == NULL || !f->secret)) {
            return parse_refuse(p, "required", "%s is missing.", f->label);
        }
        return true;
    }
    if (f->secret && p->refs != NULL) {
        good = secret_field(p, i, given, ret);
    } else {
        good = parse_value(p, f, given, ret);
    }
    if (good && f->read_only && p->refs != NULL) {
        kept_value(p, i, &kept);
        if (!value_equal(f, &kept, ret)) {
            return parse_refuse(
                p, "read_only", "%s is set by the product; leave it out.", f->label);
        }
    }
    return good;
}

/* The form of the API shows "id" and "kind"; they may come back as they were. */
static bool
is_own_mark(struct parse *p, const char *id, const char *key, const json_t *value)
{
    const char *own = NULL;
    const char *given = json_string_value(value);

    if (p->refs != NULL && strcmp(key, "id") == 0) {
        own = id;
    } else if (p->refs != NULL && strcmp(key, "kind") == 0) {
        own = p->kind->name;
    }
    if (own == NULL) {
        return false;
    }
    if (given == NULL || strcmp(given, own) != 0) {
        p->field = key;
        (void)parse_refuse(
            p, "read_only", "The %s of an object cannot be chosen; leave it out.", p->field);
    }
    return true;
}

static struct object *
all_fields(struct parse *p, const char *id, const json_t *body)
{
    size_t errors_before = p->problems->errors;
    struct value *fields = arena_alloc(p->arena, p->kind->field_count * sizeof *fields);
    const char *key;
    json_t *value;

    for (uint32_t i = 0; i < p->kind->field_count; i++) {
        (void)one_field(p, i, json_object_get(body, p->kind->fields[i].name), &fields[i]);
    }
    json_object_foreach(object_iterable(body), key, value)
    {
        if (schema_field_index(p->kind->fields, p->kind->field_count, key) < 0 &&
            !is_own_mark(p, id, key, value)) {
            parse_refuse_key(p, key);
        }
    }
    if (p->problems->errors != errors_before) {
        return NULL;
    }
    return object_build((enum kind)(p->kind - schema_kinds), id, fields);
}

struct object *
object_parse(
    enum kind kind, const char *id, const json_t *body, const struct object *base,
    const struct object_refs *refs, struct problems *problems)
{
    CLEANUP(parse_fini) struct parse p;
    const char *name = json_string_value(json_object_get(body, "name"));

    parse_init(&p, kind);
    ASSERT(object_id_valid(kind, id) && refs != NULL);
    ASSERT(base == NULL || base->kind == kind);
    p.base = base;
    p.refs = refs;
    p.problems = problems;
    p.name = name == NULL && base != NULL ? base->name.s : name;
    if (!json_is_object(body)) {
        parse_refuse_at(&p, "", "type", "A JSON object is wanted.");
        return NULL;
    }
    return all_fields(&p, id, body);
}

/* The canonical form, or what a patch made of it. */
static err_t
from_json(
    enum kind kind, const char *id, const json_t *body, struct object **ret, struct error *e)
{
    CLEANUP(parse_fini) struct parse p;
    struct problems problems;
    struct object *o;

    parse_init(&p, kind);
    problems_init(&problems, p.arena);
    p.problems = &problems;
    o = all_fields(&p, id, body);
    if (o == NULL) {
        return error_set(
            e, ERR_INVALID, "%s %s: %s: %s", p.kind->name, id, problems.items[0].pointer,
            problems.items[0].message);
    }
    *ret = o;
    return ERR_OK;
}

err_t
object_from_canonical(
    enum kind kind, const char *id, const char *bytes, size_t len, struct object **ret,
    struct error *e)
{
    const struct schema_kind *k = schema_kind(kind);
    json_auto_t *body = NULL;
    struct object *o = NULL;
    struct error why;

    if (!object_id_valid(kind, id)) {
        return error_set(
            e, ERR_CORRUPT, "\"%.*s\" is no id of a %s", problems_cut(id, 40), id, k->name);
    }
    if (json_parse(bytes, len, &body, &why) != ERR_OK) {
        return error_set(e, ERR_CORRUPT, "%s %s: %s", k->name, id, why.msg);
    }
    if (!json_is_object(body)) {
        return error_set(e, ERR_CORRUPT, "%s %s: no JSON object", k->name, id);
    }
    if (from_json(kind, id, body, &o, &why) != ERR_OK) {
        return error_set(e, ERR_CORRUPT, "%s", why.msg);
    }
    ASSERT(o != NULL);
    if (o->canonical_len != len || memcmp(o->canonical, bytes, len) != 0) {
        object_unref(o);
        return error_set(
            e, ERR_CORRUPT, "%s %s: the bytes are not the canonical form", k->name, id);
    }
    *ret = o;
    return ERR_OK;
}

err_t
object_with(const struct object *o, const json_t *patch, struct object **ret, struct error *e)
{
    json_auto_t *body = NULL;
    err_t code = json_parse(o->canonical, o->canonical_len, &body, e);

    ASSERT(code == ERR_OK && json_is_object(patch));
    object_merge(body, patch);
    return from_json(o->kind, o->id, body, ret, e);
}

struct object *
object_singleton(enum kind kind)
{
    const struct schema_kind *k = schema_kind(kind);
    json_auto_t *empty = json_object();
    struct object *o = NULL;
    err_t code;

    ASSERT(k->singleton);
    code = from_json(kind, k->name, empty, &o, NULL);
    /* The generator checks that a singleton's fields have defaults. */
    ASSERT(code == ERR_OK);
    return o;
}
