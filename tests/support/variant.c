/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/variant.h"

#include "base/json.h"
#include "model/validate.h"

#define TEXTS_MAX_BYTES ((size_t)8 << 20)

struct object *
variant_of(
    const struct snapshot_pair *pair, const struct object *o, const char *field, json_t *value)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    struct object_refs refs = snapshot_refs(pair);
    const struct schema_kind *k = schema_kind(o->kind);
    json_auto_t *body = object_to_json(o, &refs);
    struct problems p;

    problems_init(&p, arena);
    (void)json_object_del(body, "id");
    (void)json_object_del(body, "kind");
    for (uint32_t i = 0; i < k->field_count; i++) {
        if (k->fields[i].secret || k->fields[i].read_only) {
            (void)json_object_del(body, k->fields[i].name);
        }
    }
    (void)json_object_set(body, field, value);
    return object_parse(o->kind, o->id, body, o, &refs, &p);
}

/* The value of a field that holds text, or of the first text in its first record; NULL: none.
 */
static json_t *
poison(
    const struct value *now, const struct schema_field *f, const json_t *body, const char *text)
{
    json_t *value = NULL;

    if (f->type == FT_TEXT && f->text_type != TT_HOST && f->text_type != TT_PEM_CA &&
        !f->secret && !f->read_only) {
        value = f->list ? json_pack("[s]", text) : json_string(text);
    }
    if (f->type != FT_RECORD || now->count == 0) {
        return value;
    }
    value = json_deep_copy(json_object_get(body, f->name));
    for (uint32_t i = 0; i < f->field_count; i++) {
        if (f->fields[i].type == FT_TEXT) {
            json_object_set_new(json_array_get(value, 0), f->fields[i].name, json_string(text));
        }
    }
    return value;
}

/* Whether a text makes the difference between a line or file and none. */
static bool
switches(const struct object *o, uint32_t field, const char *text)
{
    const struct schema_field *f = &schema_kind(o->kind)->fields[field];

    return (f->text_type == TT_BODY || f->text_type == TT_ENDPOINT) && !f->list &&
           (object_text(o, field).len == 0) != (*text == '\0');
}

/* A condition takes any text for a regular expression, HAProxy does not. */
static bool
has_regex(const struct object *o)
{
    return o->kind == K_CONDITION &&
           object_int(o, F_CONDITION_MATCH) == V_CONDITION_MATCH_REGEX;
}

/* s with the objects that cannot be used as they are now put back to what they were. */
static struct snapshot *
put_back(const struct snapshot_pair *before, struct snapshot *s, int64_t now_s)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(TEXTS_MAX_BYTES);
    struct snapshot_pair pair = {s, before->local};
    struct snapshot_edit *x = snapshot_edit_new(s);
    struct snapshot *after = NULL;
    err_t code;
    struct problems p;

    problems_init(&p, arena);
    validate_all(&pair, now_s, &p);
    for (size_t i = 0; i < p.count; i++) {
        enum kind k = K_NODE;
        bool known;

        if (p.items[i].severity == SEVERITY_ERROR) {
            known = schema_kind_by_name(p.items[i].kind, &k);
            ASSERT(known);
            snapshot_edit_put(
                x, object_ref(snapshot_by_name(before->shared, k, p.items[i].name)));
        }
    }
    code = snapshot_seal(x, &after, NULL);
    ASSERT(code == ERR_OK);
    snapshot_unref(s);
    return after;
}

struct snapshot *
variant_poisoned(
    const struct snapshot_pair *pair, const char *text, int64_t now_s, size_t *count)
{
    struct object_refs refs = snapshot_refs(pair);
    struct snapshot_edit *x = snapshot_edit_new(pair->shared);
    struct snapshot *after = NULL;
    err_t code;

    for (size_t i = 0; i < snapshot_count(pair->shared); i++) {
        struct object *o = object_ref(snapshot_at(pair->shared, i));
        const struct schema_kind *k = schema_kind(o->kind);

        /* Field 0 is the name: two objects cannot have one. A host has to resolve. */
        for (uint32_t f = 1; f < k->field_count; f++) {
            json_auto_t *body = object_to_json(o, &refs);
            json_auto_t *value = poison(object_field(o, f), &k->fields[f], body, text);
            struct object *next = NULL;

            if (value == NULL || has_regex(o) ||
                (k->fields[f].type == FT_TEXT && switches(o, f, text))) {
                continue;
            }
            next = variant_of(pair, o, k->fields[f].name, value);
            if (next != NULL) {
                object_unref(o);
                o = next;
                (*count)++;
            }
        }
        snapshot_edit_put(x, o);
    }
    code = snapshot_seal(x, &after, NULL);
    ASSERT(code == ERR_OK);
    return put_back(pair, after, now_s);
}
