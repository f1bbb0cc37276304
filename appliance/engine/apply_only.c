/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/apply_only.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"
#include "model/belong.h"

#define POINTER_BYTES 48
#define NAME_SHOWN    128 /* bytes of a name from outside */

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

    return draft_compare(x->kind, x->id, y->kind, y->id);
}

bool
only_has(const struct only_rows *rows, enum kind kind, const char *id)
{
    struct only_row key = {.kind = kind};

    (void)snprintf(key.id, sizeof key.id, "%s", id);
    return rows->count > 0 &&
           bsearch(&key, rows->rows, rows->count, sizeof *rows->rows, compare_rows) != NULL;
}

err_t
only_check_conflicts(const struct view *v, const struct only_rows *rows, struct error *e)
{
    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];

        if (entry->conflict && (rows == NULL || only_has(rows, entry->kind, entry->id))) {
            return error_set(
                e, ERR_CONFLICT,
                "%s %s was changed otherwise since it was drafted: discard its change",
                schema_kind(entry->kind)->name, entry->name);
        }
    }
    return ERR_OK;
}

/* ---- what is meant ---- */

/* Says of an object that the draft does not change whether it is there at all. */
static void
refuse_object(
    const struct view *v, const struct apply_object *wanted, size_t i, struct problems *p)
{
    const char *kind = schema_kind(wanted->kind)->name;
    char pointer[POINTER_BYTES];
    struct problem where = {.kind = kind, .name = wanted->name, .pointer = pointer};
    bool there = snapshot_by_name(
                     snapshot_of(&v->now, wanted->kind), wanted->kind, wanted->name) != NULL;

    (void)snprintf(pointer, sizeof pointer, "/only/objects/%zu", i);
    if (schema_kind(wanted->kind)->singleton) {
        problems_add(
            p, SEVERITY_ERROR, "not_drafted", &where,
            "The draft does not change %s: leave it out.", kind);
        return;
    }
    problems_add(
        p, SEVERITY_ERROR, "not_drafted", &where,
        there ? "The draft does not change the %s \"%.*s\": leave it out."
              : "There is no %s \"%.*s\", neither in the draft nor applied.",
        kind, problems_cut(wanted->name, NAME_SHOWN), wanted->name);
}

static void
refuse_author(const char *author, size_t i, struct problems *p)
{
    char pointer[POINTER_BYTES];

    (void)snprintf(pointer, sizeof pointer, "/only/authors/%zu", i);
    problems_add(
        p, SEVERITY_ERROR, "not_drafted", &(struct problem){.pointer = pointer},
        "The draft has no change of \"%.*s\".", problems_cut(author, NAME_SHOWN), author);
}

static void
mark_objects(
    const struct view *v, const struct apply_only *only, bool *chosen, struct problems *p)
{
    for (size_t i = 0; i < only->object_count; i++) {
        const struct draft_entry *entry =
            view_entry_named(v, only->objects[i].kind, only->objects[i].name);

        if (entry != NULL) {
            chosen[entry - v->entries] = true;
        } else {
            refuse_object(v, &only->objects[i], i, p);
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
            refuse_author(only->authors[i], i, p);
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

/* What the chosen changes need of the others, and what those need in turn. */
struct needs {
    const struct view *v;
    bool *in;                       /* of each entry of v: chosen, or found to be needed */
    const struct draft_entry *user; /* whose references are looked at */
    struct problems *p;
    bool grew;
};

static bool
is_in(const struct needs *n, const struct draft_entry *entry)
{
    return n->in[entry - n->v->entries];
}

/* Each entry is named once, by the first that needs it. */
static void
take(struct needs *n, const struct draft_entry *entry)
{
    n->in[entry - n->v->entries] = true;
    n->grew = true;
}

/* A change that has to be chosen, too: where says for what, as why goes on. */
static void
add_need(
    struct needs *n, const struct draft_entry *entry, const struct problem *where,
    const char *why)
{
    take(n, entry);
    problems_add(
        n->p, SEVERITY_ERROR, "needs_draft", where, "The %s \"%s\" %s: choose it too.",
        where->kind, where->name, why);
}

/* Of a change that is in: what it refers to may be there with the rest of the draft only. */
static void
need_target(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct needs *n = ctx;
    const struct object *user = n->user->after;
    const struct draft_entry *target = view_entry(n->v, kind, id);

    if (target == NULL || target->before != NULL || target->after == NULL || is_in(n, target)) {
        return;
    }
    add_need(
        n, target,
        &(struct problem){
            .kind = schema_kind(user->kind)->name, .name = user->name.s, .pointer = pointer},
        arena_printf(
            n->p->arena, "needs the %s \"%s\", which is in the draft only",
            schema_kind(kind)->name, target->name));
}

/* Of an object as the head has it: what it refers to may go with a change that is in. */
static void
need_release(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct needs *n = ctx;
    const struct object *user = n->user->before;
    const struct draft_entry *target = view_entry(n->v, kind, id);

    if (target == NULL || target->before == NULL || target->after != NULL ||
        !is_in(n, target) || is_in(n, n->user)) {
        return;
    }
    add_need(
        n, n->user,
        &(struct problem){
            .kind = schema_kind(user->kind)->name, .name = user->name.s, .pointer = pointer},
        arena_printf(
            n->p->arena, "uses the %s \"%s\" until its own change is applied",
            schema_kind(kind)->name, target->name));
}

/* A name that an object at head gives up with a change that is not in. */
static void
need_name(struct needs *n, const struct draft_entry *entry)
{
    const char *kind = schema_kind(entry->kind)->name;
    const struct object *holder = snapshot_by_name(
        snapshot_of(&n->v->draft, entry->kind), entry->kind, entry->before->name.s);
    const struct draft_entry *taker =
        holder != NULL ? view_entry(n->v, holder->kind, holder->id) : NULL;

    if (taker == NULL || !is_in(n, taker)) {
        return;
    }
    add_need(
        n, entry, &(struct problem){.kind = kind, .name = entry->name, .pointer = "/name"},
        arena_printf(
            n->p->arena, "has the name \"%s\" until its own change is applied",
            holder->name.s));
}

static void
look_at(struct needs *n, const struct draft_entry *entry)
{
    n->user = entry;
    if (is_in(n, entry)) {
        if (entry->after != NULL) {
            object_each_ref(entry->after, need_target, n);
        }
        return;
    }
    if (entry->before != NULL) {
        need_name(n, entry);
        object_each_ref(entry->before, need_release, n);
    }
}

static void
find_needs(const struct view *v, const struct only_rows *rows, struct problems *p)
{
    struct needs n = {.v = v, .p = p, .grew = true};

    n.in = xcalloc(v->entry_count + 1, sizeof *n.in);
    for (size_t i = 0; i < v->entry_count; i++) {
        n.in[i] = only_has(rows, v->entries[i].kind, v->entries[i].id);
    }
    while (n.grew) {
        n.grew = false;
        for (size_t i = 0; i < v->entry_count; i++) {
            look_at(&n, &v->entries[i]);
        }
    }
    free(n.in);
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

    find_needs(v, rows, p);
    if (p->errors > errors) {
        return invalid(p, e);
    }
    code = build(v, rows, SCOPE_SHARED, v->now.shared, &shared, e);
    made.shared = shared;
    if (code == ERR_OK) {
        code = build(v, rows, SCOPE_LOCAL, v->now.local, &local, e);
        made.local = local;
    }
    if (code == ERR_OK) {
        code = belong_settle(&made, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (edit_new_errors(&v->now, &made, now_s, p) > 0) {
        return invalid(p, e);
    }
    *ret = made;
    made = (struct snapshot_pair){NULL, NULL};
    return ERR_OK;
}
