/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by id, and what their references lead to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/validate_checks.h"

#define POINTER_BYTES 192
#define REF_FIELDS    16 /* of a kind, at most */

size_t
checks_slots(size_t count)
{
    size_t slots = 16;
    while (slots < count + count / 2) {
        slots *= 2;
    }
    return slots;
}

static size_t
id_slot(const struct checks *c, const struct id_slot *key)
{
    uint64_t h = (key->id[0] ^ key->kind) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 32) ^ key->id[1]) * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(h >> 20) & c->slot_mask;
}

/* False for an id of another form. */
static bool
id_key(enum kind kind, const char *id, struct id_slot *ret)
{
    if (strnlen(id, sizeof(ret->id) + 1) != sizeof(ret->id)) {
        return false;
    }
    ret->kind = (uint32_t)kind + 1;
    memcpy(ret->id, id, sizeof(ret->id));
    return true;
}

static uint32_t
find(const struct checks *c, enum kind kind, const char *id)
{
    struct id_slot key;
    if (!id_key(kind, id, &key)) {
        return CHECKS_NONE;
    }
    for (size_t at = id_slot(c, &key); c->slots[at].kind != 0; at = (at + 1) & c->slot_mask) {
        const struct id_slot *slot = &c->slots[at];
        if (slot->id[0] == key.id[0] && slot->id[1] == key.id[1] && slot->kind == key.kind) {
            return slot->pos;
        }
    }
    return CHECKS_NONE;
}

struct problem
checks_at(const struct object *o, const char *pointer)
{
    return (struct problem){
        .kind = schema_kind(o->kind)->name, .name = o->name.s, .pointer = pointer};
}

static void
index_kind(struct checks *c, enum kind kind)
{
    for (size_t i = 0; i < c->kinds[kind].count; i++) {
        struct id_slot key = {.pos = (uint32_t)i};
        if (!id_key(kind, c->kinds[kind].items[i]->id, &key)) {
            continue;
        }
        size_t at = id_slot(c, &key);
        while (c->slots[at].kind != 0) {
            at = (at + 1) & c->slot_mask;
        }
        c->slots[at] = key;
    }
}

static void
index_objects(struct checks *c)
{
    uint64_t kinds = 0; /* to which references lead */
    size_t total = 0;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        kinds |= schema_kind((enum kind)k)->refs;
    }
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        total += (kinds >> k & 1u) != 0 ? c->kinds[k].count : 0;
    }
    c->slot_mask = checks_slots(total) - 1;
    c->slots = xcalloc(c->slot_mask + 1, sizeof(c->slots[0]));
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        if ((kinds >> k & 1u) != 0) {
            index_kind(c, (enum kind)k);
        }
    }
}

/* Where a walk over the references stands. */
struct walk {
    struct checks *c;
    const struct object *o;
    const struct schema_field *field;
    const struct schema_field *sub; /* in a record, or NULL */
    uint32_t item;
    size_t count, cap; /* of targets */
};

static void
report_dangling(const struct walk *w, enum kind kind)
{
    char pointer[POINTER_BYTES];
    const char *sub = w->sub != NULL ? w->sub->name : "";
    const char *slash = w->sub != NULL ? "/" : "";
    (void)snprintf(pointer, sizeof(pointer), "/%s", w->field->name);
    if (w->field->list) {
        (void)snprintf(
            pointer, sizeof(pointer), "/%s/%u%s%s", w->field->name, w->item, slash, sub);
    }
    const struct problem where = checks_at(w->o, pointer);
    problems_add(
        w->c->p, SEVERITY_ERROR, "no_such_object", &where,
        "This names a %s that does not exist: choose another one.", schema_kind(kind)->name);
}

static void
add_target(struct walk *w, enum kind kind, const struct value *v)
{
    uint32_t pos = CHECKS_NONE;
    if (!v->is_null) {
        pos = find(w->c, kind, v->u.text.s);
        if (pos == CHECKS_NONE) {
            report_dangling(w, kind);
        }
    }
    if (w->count == w->cap) {
        w->cap *= 2;
        w->c->targets = xrealloc(w->c->targets, w->cap * sizeof(w->c->targets[0]));
    }
    w->c->targets[w->count++] = pos;
}

static void
add_record(struct walk *w, const struct value *record)
{
    for (uint32_t i = 0; i < w->field->field_count; i++) {
        w->sub = &w->field->fields[i];
        if (w->sub->type == FT_REF) {
            add_target(w, w->sub->ref_kind, &record->u.items[i]);
        }
    }
    w->sub = NULL;
}

static void
add_field(struct walk *w, const struct value *v)
{
    if (!w->field->list) {
        add_target(w, w->field->ref_kind, v);
        return;
    }
    for (w->item = 0; w->item < v->count; w->item++) {
        if (w->field->type == FT_RECORD) {
            add_record(w, &v->u.items[w->item]);
        } else {
            add_target(w, w->field->ref_kind, &v->u.items[w->item]);
        }
    }
}

/* References in one value, or in each of a list. */
static uint32_t
refs_each(const struct schema_field *f)
{
    uint32_t each = f->type == FT_REF;
    for (uint32_t i = 0; i < f->field_count; i++) {
        each += f->fields[i].type == FT_REF;
    }
    return each;
}

static void
walk_kind(struct walk *w, enum kind kind)
{
    const struct schema_kind *k = schema_kind(kind);
    const struct kind_list *list = &w->c->kinds[kind];
    uint32_t fields[REF_FIELDS]; /* with references */
    uint32_t field_count = 0;
    for (uint32_t f = 0; f < k->field_count; f++) {
        if (refs_each(&k->fields[f]) > 0) {
            ASSERT(field_count < REF_FIELDS);
            fields[field_count++] = f;
        }
    }
    if (field_count == 0) {
        return;
    }
    w->c->first[kind] = xcalloc(list->count + 1, sizeof(uint32_t));
    for (size_t i = 0; i < list->count; i++) {
        w->o = list->items[i];
        w->c->first[kind][i] = (uint32_t)w->count;
        for (uint32_t f = 0; f < field_count; f++) {
            w->field = &k->fields[fields[f]];
            add_field(w, object_value(w->o, fields[f]));
        }
    }
}

const uint32_t *
checks_targets(const struct checks *c, enum kind kind, size_t pos, uint32_t field)
{
    const struct schema_kind *k = schema_kind(kind);
    const struct object *o = c->kinds[kind].items[pos];
    uint32_t at = c->first[kind][pos];
    for (uint32_t f = 0; f < field; f++) {
        uint32_t each = refs_each(&k->fields[f]);
        if (each > 0) {
            at += k->fields[f].list ? each * object_value(o, f)->count : each;
        }
    }
    return c->targets + at;
}

void
checks_init(struct checks *c)
{
    index_objects(c);
    struct walk w = {.c = c, .cap = 1024};
    c->targets = xmalloc(w.cap * sizeof(c->targets[0]));
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        walk_kind(&w, (enum kind)k);
    }
    free(c->slots);
    c->slots = NULL;
}

static bool
is_kept(const struct checks *c, const struct object *o)
{
    return c->other != NULL && snapshot_by_id(c->other->shared, o->kind, o->id) == o;
}

bool
checks_blame_with(const struct checks *c, const struct object *own, const struct object *with)
{
    return is_kept(c, own) && !is_kept(c, with);
}

void
checks_fini(struct checks *c)
{
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        free(c->first[k]);
    }
    free(c->targets);
}
