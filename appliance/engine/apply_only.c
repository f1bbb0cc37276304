/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/apply_only.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"

#define POINTER_BYTES 48

void
only_rows_free(struct only_rows *rows)
{
    free(rows->rows);
    *rows = (struct only_rows){NULL, 0};
}

static int
compare_rows(const void *a, const void *b)
{
    const struct only_row *x = a;
    const struct only_row *y = b;

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    return strcmp(x->id, y->id);
}

bool
only_has(const struct only_rows *rows, enum kind kind, const char *id)
{
    struct only_row key = {.kind = kind};

    (void)snprintf(key.id, sizeof key.id, "%s", id);
    return rows->count > 0 &&
           bsearch(&key, rows->rows, rows->count, sizeof *rows->rows, compare_rows) != NULL;
}

/* ---- what is meant ---- */

/* By its name in the draft, or if none has it by the one at head. */
static const struct draft_entry *
find_object(const struct view *v, const struct apply_object *wanted)
{
    const struct draft_entry *former = NULL;

    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];

        if (entry->kind != wanted->kind) {
            continue;
        }
        if (strcmp(entry->name, wanted->name) == 0) {
            return entry;
        }
        if (entry->before != NULL && strcmp(entry->before->name.s, wanted->name) == 0) {
            former = entry;
        }
    }
    return former;
}

static void
refuse(struct problems *p, const char *list, size_t i, const char *message)
{
    char pointer[POINTER_BYTES];

    (void)snprintf(pointer, sizeof pointer, "/only/%s/%zu", list, i);
    problems_add(
        p, SEVERITY_ERROR, "not_drafted", &(struct problem){.pointer = pointer}, "%s", message);
}

static void
mark_objects(
    const struct view *v, const struct apply_only *only, bool *chosen, struct problems *p)
{
    for (size_t i = 0; i < only->object_count; i++) {
        const struct draft_entry *entry = find_object(v, &only->objects[i]);

        if (entry != NULL) {
            chosen[entry - v->entries] = true;
        } else {
            refuse(p, "objects", i, "The draft does not change this object.");
        }
    }
}

static void
mark_authors(
    const struct view *v, const struct apply_only *only, bool *chosen, struct problems *p)
{
    for (size_t i = 0; i < only->author_count; i++) {
        bool found = false;

        for (size_t k = 0; k < v->entry_count; k++) {
            if (strcmp(v->entries[k].author, only->authors[i]) == 0) {
                chosen[k] = true;
                found = true;
            }
        }
        if (!found) {
            refuse(p, "authors", i, "The draft has no change of this author.");
        }
    }
}

err_t
only_find(
    const struct view *v, const struct apply_only *only, struct only_rows *ret,
    struct problems *p, struct error *e)
{
    bool *chosen = xcalloc(v->entry_count + 1, sizeof *chosen);
    size_t errors = p->errors;

    mark_objects(v, only, chosen, p);
    mark_authors(v, only, chosen, p);
    *ret = (struct only_rows){xcalloc(v->entry_count + 1, sizeof *ret->rows), 0};
    for (size_t i = 0; i < v->entry_count; i++) {
        if (chosen[i]) {
            struct only_row *row = &ret->rows[ret->count++];

            row->kind = v->entries[i].kind;
            (void)snprintf(row->id, sizeof row->id, "%s", v->entries[i].id);
        }
    }
    free(chosen);
    if (p->errors > errors) {
        only_rows_free(ret);
        return error_set(e, ERR_INVALID, "the draft does not hold all that was chosen");
    }
    if (ret->count > 1) {
        qsort(ret->rows, ret->count, sizeof *ret->rows, compare_rows);
    }
    return ERR_OK;
}

/* ---- the candidate ---- */

static err_t
build(
    const struct view *v, const struct only_rows *rows, enum scope scope,
    const struct snapshot *from, struct snapshot **ret, struct error *e)
{
    struct snapshot_edit *x = NULL;

    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];

        if (schema_kind(entry->kind)->scope != scope ||
            !only_has(rows, entry->kind, entry->id)) {
            continue;
        }
        x = x != NULL ? x : snapshot_edit_new(from);
        if (entry->after != NULL) {
            snapshot_edit_put(x, object_ref(entry->after));
        } else {
            snapshot_edit_remove(x, entry->kind, entry->id);
        }
    }
    if (x == NULL) {
        *ret = snapshot_ref(from);
        return ERR_OK;
    }
    return snapshot_seal(x, ret, e);
}

struct needing {
    const struct view *v;
    const struct snapshot_pair *candidate;
    const struct object *object;
    struct problems *p;
};

static const struct object *
by_id(const struct snapshot_pair *pair, enum kind kind, const char *id)
{
    return snapshot_by_id(snapshot_of(pair, kind), kind, id);
}

/* Of a chosen change: what it refers to may be there with the rest of the draft only. */
static void
need_target(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct needing *n = ctx;
    const char *own_kind = schema_kind(n->object->kind)->name;
    const struct object *target = by_id(&n->v->draft, kind, id);

    if (target != NULL && by_id(n->candidate, kind, id) == NULL) {
        problems_add(
            n->p, SEVERITY_ERROR, "needs_draft",
            &(struct problem){.kind = own_kind, .name = n->object->name.s, .pointer = pointer},
            "The %s \"%s\" needs the %s \"%s\", which is in the draft only: choose it too.",
            own_kind, n->object->name.s, schema_kind(kind)->name, target->name.s);
    }
}

/* Of an object as the head has it: what it refers to may be among what was chosen to go. */
static void
need_release(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    const struct needing *n = ctx;
    const char *own_kind = schema_kind(n->object->kind)->name;
    const struct object *target = by_id(&n->v->now, kind, id);

    if (target != NULL && by_id(n->candidate, kind, id) == NULL) {
        problems_add(
            n->p, SEVERITY_ERROR, "needs_draft",
            &(struct problem){.kind = own_kind, .name = n->object->name.s, .pointer = pointer},
            "The %s \"%s\" uses the %s \"%s\" until its own change is applied: choose it too.",
            own_kind, n->object->name.s, schema_kind(kind)->name, target->name.s);
    }
}

static void
find_needs(
    const struct view *v, const struct only_rows *rows, const struct snapshot_pair *candidate,
    struct problems *p)
{
    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];
        bool chosen = only_has(rows, entry->kind, entry->id);
        struct needing n = {v, candidate, chosen ? entry->after : entry->before, p};

        if (n.object != NULL) {
            object_each_ref(n.object, chosen ? need_target : need_release, &n);
        }
    }
}

/* A name that an object at head gives up with a change that was not chosen. */
static void
find_names(const struct view *v, const struct only_rows *rows, struct problems *p)
{
    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];
        const struct object *holder;

        if (entry->before == NULL || only_has(rows, entry->kind, entry->id)) {
            continue;
        }
        holder = snapshot_by_name(
            snapshot_of(&v->draft, entry->kind), entry->kind, entry->before->name.s);
        if (holder != NULL && only_has(rows, holder->kind, holder->id)) {
            const char *kind = schema_kind(entry->kind)->name;

            problems_add(
                p, SEVERITY_ERROR, "needs_draft",
                &(struct problem){.kind = kind, .name = holder->name.s, .pointer = "/name"},
                "Another %s has the name \"%s\" until its own change is applied: choose it "
                "too.",
                kind, holder->name.s);
        }
    }
}

static err_t
invalid(const struct problems *p, struct error *e)
{
    return error_set(
        e, ERR_INVALID, "what was chosen is not valid alone: %s", edit_first_error(p));
}

err_t
only_candidate(
    const struct view *v, const struct only_rows *rows, int64_t now_s,
    struct snapshot_pair *ret, struct problems *p, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair made = {NULL, NULL};
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    size_t errors = p->errors;
    err_t code;

    find_names(v, rows, p);
    if (p->errors > errors) {
        return invalid(p, e);
    }
    code = build(v, rows, SCOPE_SHARED, v->now.shared, &shared, e);
    made.shared = shared;
    if (code == ERR_OK) {
        code = build(v, rows, SCOPE_LOCAL, v->now.local, &local, e);
        made.local = local;
    }
    if (code != ERR_OK) {
        return code;
    }
    find_needs(v, rows, &made, p);
    if (p->errors == errors) {
        (void)edit_new_errors(&v->now, &made, now_s, p);
    }
    if (p->errors > errors) {
        return invalid(p, e);
    }
    *ret = made;
    made = (struct snapshot_pair){NULL, NULL};
    return ERR_OK;
}
