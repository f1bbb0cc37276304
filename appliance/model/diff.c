/* SPDX-License-Identifier: Apache-2.0 */
#include "model/diff.h"

/* What object_to_json says of one field; a secret is only ever told to be set. */
static json_t *
shown(const struct schema_field *f, json_t *object)
{
    json_t *v = json_object_get(object, f->name);
    if (!f->secret) {
        return v != NULL ? json_incref(v) : json_null();
    }
    return json_pack(
        "{s:b, s:b}", "set", json_is_true(json_object_get(v, "set")), "changed", 1);
}

struct sides {
    const struct object *before, *after; /* one of them may be NULL */
    json_t *before_json, *after_json;
};

static json_t *
diff_fields(const struct schema_kind *kind, const struct sides *s)
{
    json_t *fields = json_array();
    for (uint32_t i = 0; i < kind->field_count; i++) {
        const struct schema_field *f = &kind->fields[i];
        if (s->before != NULL && s->after != NULL &&
            value_equal(f, object_value(s->before, i), object_value(s->after, i))) {
            continue;
        }
        json_t *one = json_pack("{s:s, s:s+}", "field", f->name, "pointer", "/", f->name);
        if (s->before != NULL) {
            json_object_set_new(one, "before", shown(f, s->before_json));
        }
        if (s->after != NULL) {
            json_object_set_new(one, "after", shown(f, s->after_json));
        }
        json_array_append_new(fields, one);
    }
    return fields;
}

static json_t *
diff_effect(const struct sides *s)
{
    unsigned effect = object_effect(s->before, s->after);
    json_t *names = json_array();
    if ((effect & EFFECT_HAPROXY_RUNTIME) != 0) {
        json_array_append_new(names, json_string("haproxy:runtime"));
    }
    if ((effect & EFFECT_HAPROXY_RELOAD) != 0) {
        json_array_append_new(names, json_string("haproxy:reload"));
    }
    return names;
}

struct diff {
    struct object_refs before_refs, after_refs;
    json_t *out;
};

static void
diff_one(void *ctx, const struct object *before, const struct object *after)
{
    struct diff *d = ctx;
    const struct object *o = after != NULL ? after : before;
    const struct schema_kind *kind = schema_kind(o->kind);
    struct sides s = {.before = before, .after = after};
    const char *change = "changed";
    if (before == NULL) {
        change = "added";
    } else {
        s.before_json = object_to_json(before, &d->before_refs);
    }
    if (after == NULL) {
        change = "removed";
    } else {
        s.after_json = object_to_json(after, &d->after_refs);
    }
    json_array_append_new(
        d->out, json_pack(
                    "{s:s, s:s, s:s, s:s, s:o, s:o}", "kind", kind->name, "id", o->id, "name",
                    o->name.s, "change", change, "fields", diff_fields(kind, &s), "effect",
                    diff_effect(&s)));
    json_decref(s.before_json);
    json_decref(s.after_json);
}

json_t *
diff_objects(const struct snapshot_pair *before, const struct snapshot_pair *after)
{
    struct diff d = {
        .before_refs = snapshot_refs(before),
        .after_refs = snapshot_refs(after),
        .out = json_array(),
    };
    snapshot_diff(before->shared, after->shared, diff_one, &d);
    snapshot_diff(before->local, after->local, diff_one, &d);
    return d.out;
}
