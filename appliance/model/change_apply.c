/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/belong.h"
#include "model/change.h"
#include "model/change_parts.h"
#include "model/object_build.h"

#define POINTER_BYTES 80

/* ---- bodies ---- */

/* Moves the fields that only the product sets out of body. */
static void
split_product(struct target *t, json_t *body)
{
    const struct schema_kind *k = schema_kind(t->kind);

    for (uint32_t i = 0; i < k->field_count; i++) {
        const char *name = k->fields[i].name;
        json_t *value = json_object_get(body, name);

        if (!k->fields[i].read_only || value == NULL) {
            continue;
        }
        if (t->product == NULL) {
            t->product = json_object();
        }
        json_object_set(t->product, name, value);
        (void)json_object_del(body, name);
    }
}

/* A key with null is gone after a merge; for a secret that would mean to keep it. */
static void
merge_body(json_t *body, const json_t *patch, const struct schema_kind *k)
{
    object_merge(body, patch);
    for (uint32_t i = 0; i < k->field_count; i++) {
        const char *name = k->fields[i].name;

        if (k->fields[i].secret && json_is_null(json_object_get(patch, name))) {
            json_object_set_new(body, name, json_null());
        }
    }
}

static void
shape_body(struct apply *a, size_t i, const struct object_refs *refs)
{
    const struct change *op = &a->set->items[i];
    struct target *t = a->owner[i];
    json_auto_t *given = NULL;

    if (t->deleted) {
        return;
    }
    /* Shallow: values are only replaced as a whole. */
    given = json_copy(op->body);
    if (op->by_product) {
        t->by_product = true;
        split_product(t, given);
    }
    if (op->op == CHANGE_MERGE) {
        if (t->body == NULL) {
            t->body = object_to_json(t->base, refs);
        }
        merge_body(t->body, given, schema_kind(t->kind));
    } else {
        json_decref(t->body);
        t->body = TAKE(given);
        t->replaced = op->op == CHANGE_REPLACE;
    }
    if (json_object_get(t->body, "name") == NULL && t->name != NULL) {
        json_object_set_new(t->body, "name", json_string(t->name));
    }
}

/* Adds what the product gives to what the caller gives. */
static void
add_product(struct apply *a, struct target *t)
{
    struct object *with = NULL;
    struct error e;

    if (t->product == NULL || t->object == NULL) {
        return;
    }
    if (object_with(t->object, t->product, &with, &e) != ERR_OK) {
        struct problem where = {.kind = schema_kind(t->kind)->name, .name = t->name};

        problems_add(a->p, SEVERITY_ERROR, "format", &where, "%s", e.msg);
        return;
    }
    object_unref(t->object);
    t->object = with;
}

/* A certificate that a person put in the place of a placeholder is an upload from then on:
 * publishing must not make it anew or remove it. */
static void
note_upload(struct target *t)
{
    struct object *upload = NULL;
    struct error e;

    if (t->kind != K_CERTIFICATE || t->base == NULL || t->object == NULL || t->by_product ||
        object_int(t->object, F_CERTIFICATE_SOURCE) == V_CERTIFICATE_SOURCE_UPLOAD ||
        strcmp(
            object_text(t->base, F_CERTIFICATE_CHAIN).s,
            object_text(t->object, F_CERTIFICATE_CHAIN).s) == 0) {
        return;
    }
    json_auto_t *patch = json_pack("{s:s}", "source", "upload");
    err_t code = object_with(t->object, patch, &upload, &e);

    ASSERT(code == ERR_OK);
    object_unref(t->object);
    t->object = upload;
}

/* Whether the body itself says by another field that this one has no meaning any more. */
static bool
is_meaningless(const struct target *t, const struct schema_field *f)
{
    const struct schema_field *other =
        f->when_field >= 0 ? &schema_kind(t->kind)->fields[f->when_field] : NULL;

    return other != NULL && json_object_get(t->body, other->name) != NULL &&
           (f->when_values >> object_field(t->object, (unsigned)f->when_field)->u.i & 1) == 0;
}

static void PRINTF_LIKE(4, 5) refuse_left_out(
    struct apply *a, const struct target *t, const char *label, const char *fmt, ...)
{
    char pointer[POINTER_BYTES];
    struct problem where = {
        .kind = schema_kind(t->kind)->name, .name = t->name, .pointer = pointer};
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(pointer, sizeof pointer, fmt, ap);
    va_end(ap);
    problems_add(
        a->p, SEVERITY_ERROR, "left_out", &where,
        "%s is set, and leaving it out would undo that: send the value that it shall have.",
        label);
}

/* The item of before with the same first field, which names what the item is about. */
static const struct value *
same_item(const struct value *before, const struct value *item)
{
    for (uint32_t i = 0; i < before->count; i++) {
        const struct value *other = &before->u.items[i];

        if (strcmp(other->u.items[0].u.text.s, item->u.items[0].u.text.s) == 0) {
            return other;
        }
    }
    return NULL;
}

/* A list is replaced as a whole by every kind of change. */
static void
check_items(struct apply *a, const struct target *t, unsigned field)
{
    const struct schema_field *f = &schema_kind(t->kind)->fields[field];
    const struct value *before = object_field(t->base, field);
    const struct value *after = object_field(t->object, field);
    const json_t *given = json_object_get(t->body, f->name);

    for (size_t i = 0; i < json_array_size(given); i++) {
        const struct value *item = &after->u.items[i];
        const struct value *old = same_item(before, item);

        for (uint32_t j = 0; old != NULL && j < f->field_count; j++) {
            const struct schema_field *sub = &f->fields[j];

            if (sub->protective &&
                json_object_get(json_array_get(given, i), sub->name) == NULL &&
                !value_equal(sub, &old->u.items[j], &item->u.items[j])) {
                refuse_left_out(a, t, sub->label, "/%s/%zu/%s", f->name, i, sub->name);
            }
        }
    }
}

/* What only an explicit word may undo is not undone by leaving it out. */
static void
check_protective(struct apply *a, const struct target *t)
{
    const struct schema_kind *k = schema_kind(t->kind);

    for (uint32_t i = 0; t->base != NULL && i < k->field_count; i++) {
        const struct schema_field *f = &k->fields[i];

        if (t->replaced && f->protective && json_object_get(t->body, f->name) == NULL &&
            !is_meaningless(t, f) &&
            !value_equal(f, object_field(t->base, i), object_field(t->object, i))) {
            refuse_left_out(a, t, f->label, "/%s", f->name);
        }
        if (f->type == FT_RECORD && f->fields[0].type == FT_REF) {
            check_items(a, t, i);
        }
    }
}

static void
check_belongs(struct apply *a, const struct target *t, const struct object_refs *refs)
{
    int field = schema_kind(t->kind)->belongs;
    const struct schema_field *f = field >= 0 ? &schema_kind(t->kind)->fields[field] : NULL;
    const char *name;

    if (f == NULL || t->object == NULL) {
        return;
    }
    name = refs->name_of_id(refs->ctx, f->ref_kind, object_text(t->object, (unsigned)field).s);
    if (name != NULL && strcmp(name, t->object->name.s) != 0) {
        struct problem where = {
            .kind = schema_kind(t->kind)->name, .name = t->name, .pointer = "/name"};

        problems_add(
            a->p, SEVERITY_ERROR, "name", &where, "This has the name of its %s: \"%s\".",
            schema_kind(f->ref_kind)->name, name);
    }
}

static void
parse_targets(struct apply *a)
{
    struct object_refs refs = change_refs_after(a);
    size_t errors_before = a->p->errors;
    size_t count_before = a->p->count;

    for (size_t i = 0; i < a->set->count; i++) {
        shape_body(a, i, &refs);
    }
    for (size_t i = 0; i < a->target_count; i++) {
        struct target *t = &a->targets[i];

        if (!t->deleted) {
            t->object = object_parse(t->kind, t->id, t->body, t->base, &refs, a->p);
            if (t->object != NULL) {
                check_protective(a, t);
            }
            add_product(a, t);
            note_upload(t);
            check_belongs(a, t, &refs);
        }
    }
    if (a->p->count > count_before) {
        const struct problem *first = &a->p->items[count_before];

        a->code = error_set(
            a->e, ERR_INVALID, "%s \"%s\" %s: %s", first->kind,
            first->name != NULL ? first->name : "", first->pointer, first->message);
    } else if (a->p->errors != errors_before) {
        a->code = error_set(a->e, ERR_INVALID, "there are too many problems");
    }
}

/* ---- result ---- */

struct user {
    struct apply *a;
    const struct object *object;
};

static void
note_use(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct user *u = ctx;
    const struct target *t = change_target_of_id(u->a, kind, id);
    struct problem where = {
        .kind = schema_kind(u->object->kind)->name,
        .name = u->object->name.s,
        .pointer = pointer};

    if (t != NULL && t->deleted) {
        problems_in_use(u->a->p, &where, schema_kind(kind)->name, t->base->name.s);
        change_fault(u->a, t->op, ERR_CONFLICT, "is in use and cannot be deleted");
    }
}

/* Nothing that is left may refer to what was deleted. */
static void
check_use(struct apply *a, const struct snapshot_pair *after)
{
    uint64_t deleted = 0;

    for (size_t i = 0; i < a->by_id_count; i++) {
        if (a->by_id[i]->deleted) {
            deleted |= (uint64_t)1 << a->by_id[i]->kind;
        }
    }
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct snapshot *s = snapshot_of(after, (enum kind)k);
        const struct object *const *objects;
        size_t count;

        if (s == NULL || (schema_kind((enum kind)k)->refs & deleted) == 0) {
            continue;
        }
        count = snapshot_kind(s, (enum kind)k, &objects);
        for (size_t i = 0; i < count; i++) {
            struct user u = {a, objects[i]};

            object_each_ref(objects[i], note_use, &u);
        }
    }
}

static struct snapshot *
ref_or_null(const struct snapshot *s)
{
    return s != NULL ? snapshot_ref(s) : NULL;
}

static void
pair_drop(struct snapshot_pair *pair)
{
    snapshot_unref(pair->shared);
    snapshot_unref(pair->local);
}

/* A new reference: what from became, or from itself when nothing changed. */
static struct snapshot *
build(struct apply *a, enum scope scope, const struct snapshot *from)
{
    struct snapshot_edit *x = NULL;
    struct snapshot *to = NULL;
    err_t code;

    for (size_t i = 0; i < a->target_count; i++) {
        struct target *t = &a->targets[i];
        bool same = t->base != NULL && t->object != NULL &&
                    hash_equal(&t->base->objhash, &t->object->objhash);

        if (schema_kind(t->kind)->scope != scope || same ||
            (t->object == NULL && t->base == NULL)) {
            continue;
        }
        if (x == NULL) {
            x = snapshot_edit_new(from);
        }
        if (t->object != NULL) {
            snapshot_edit_put(x, TAKE(t->object));
        } else {
            snapshot_edit_remove(x, t->kind, t->id);
        }
    }
    if (x == NULL) {
        return ref_or_null(from);
    }
    code = snapshot_seal(x, &to, NULL);
    /* Names were checked before. */
    ASSERT(code == ERR_OK);
    return to;
}

static void
apply_fini(struct apply *a)
{
    for (size_t i = 0; i < a->target_count; i++) {
        json_decref(a->targets[i].body);
        json_decref(a->targets[i].product);
        object_unref(a->targets[i].object);
    }
    free(a->targets);
    free(a->owner);
    free(a->by_name);
    free(a->by_id);
}

err_t
change_apply(
    const struct change_set *c, const struct snapshot_pair *now, struct snapshot **ret_shared,
    struct snapshot **ret_local, struct problems *p, struct error *e)
{
    CLEANUP(apply_fini) struct apply a = {.set = c, .now = now, .p = p, .e = e};
    CLEANUP(pair_drop) struct snapshot_pair after = {NULL, NULL};

    a.targets = xcalloc(c->count, sizeof *a.targets);
    a.owner = xcalloc(c->count, sizeof *a.owner);
    a.by_name = xcalloc(c->count, sizeof *a.by_name);
    a.by_id = xcalloc(c->count, sizeof *a.by_id);
    change_find_targets(&a);
    if (a.code == ERR_OK) {
        parse_targets(&a);
    }
    if (a.code == ERR_OK) {
        after.shared = build(&a, SCOPE_SHARED, now->shared);
        after.local = build(&a, SCOPE_LOCAL, now->local);
        a.code = belong_settle(&after, e);
        check_use(&a, &after);
    }
    if (a.code == ERR_OK) {
        *ret_shared = ref_or_null(after.shared);
        *ret_local = ref_or_null(after.local);
    }
    return a.code;
}
