/* SPDX-License-Identifier: Apache-2.0 */
#include "store/container.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static void
add_delta(void *ctx, const struct object *before, const struct object *after)
{
    struct delta_list *l = ctx;

    if (l->count == l->cap) {
        l->cap = l->cap == 0 ? 16 : l->cap * 2;
        l->items = xrealloc(l->items, l->cap * sizeof *l->items);
    }
    l->items[l->count++] = (struct delta){before, after};
}

void
delta_list_of(const struct snapshot *from, const struct snapshot *to, struct delta_list *ret)
{
    *ret = (struct delta_list){0};
    snapshot_diff(from, to, add_delta, ret);
}

void
delta_list_fini(struct delta_list *l)
{
    free(l->items);
    *l = (struct delta_list){0};
}

struct ref_collect {
    struct ref_list *list;
    enum scope scope;
};

static void
add_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct ref_collect *c = ctx;
    struct ref_list *l = c->list;
    struct ref_row *r;
    size_t n = strlen(id);

    if (schema_kind(kind)->scope != c->scope) {
        return; /* uncovered: no kind refers to one of the other container yet */
    }
    if (l->count == l->cap) {
        l->cap = l->cap == 0 ? 16 : l->cap * 2;
        l->items = xrealloc(l->items, l->cap * sizeof *l->items);
    }
    r = &l->items[l->count++];
    ASSERT(n < sizeof r->id);
    *r = (struct ref_row){.kind = kind, .pointer = xstrdup(pointer)};
    memcpy(r->id, id, n + 1);
}

static int
compare_refs(const void *a, const void *b)
{
    const struct ref_row *x = a;
    const struct ref_row *y = b;

    return strcmp(x->pointer, y->pointer);
}

void
ref_list_of(const struct object *o, struct ref_list *ret)
{
    struct ref_collect c = {ret, schema_kind(o->kind)->scope};

    *ret = (struct ref_list){0};
    object_each_ref(o, add_ref, &c);
    if (ret->count > 1) {
        qsort(ret->items, ret->count, sizeof *ret->items, compare_refs);
    }
}

void
ref_list_fini(struct ref_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->items[i].pointer);
    }
    free(l->items);
    *l = (struct ref_list){0};
}

static bool
refs_equal(const struct ref_list *a, const struct ref_list *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->items[i].kind != b->items[i].kind ||
            strcmp(a->items[i].id, b->items[i].id) != 0 ||
            strcmp(a->items[i].pointer, b->items[i].pointer) != 0) {
            return false;
        }
    }
    return true;
}

static const char *
kind_name(const struct object *o)
{
    return schema_kind(o->kind)->name;
}

/* Runs a statement whose first two parameters are kind and id. */
static err_t
run_on_object(struct store *s, const char *sql, const struct object *o, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, kind_name(o));
    bind_text(&q, 2, o->id);
    return query_run(&q, e);
}

static err_t
upsert(struct store *s, enum scope scope, const struct object *o, struct error *e)
{
    static const char *const sql[] = PER_SCOPE(
        "INSERT INTO ",
        "_object (kind, id, name, objhash) VALUES (?, ?, ?, ?) ON CONFLICT (kind, id) "
        "DO UPDATE SET name = excluded.name, objhash = excluded.objhash");
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql[scope], &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, kind_name(o));
    bind_text(&q, 2, o->id);
    bind_text(&q, 3, o->name.s);
    bind_hash(&q, 4, &o->objhash);
    return query_run(&q, e);
}

static err_t
insert_unique(struct store *s, enum scope scope, const struct object *o, struct error *e)
{
    static const char *const sql[] =
        PER_SCOPE("INSERT INTO ", "_unique (kind, id, field, value) VALUES (?, ?, 'name', ?)");
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql[scope], &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, kind_name(o));
    bind_text(&q, 2, o->id);
    bind_text(&q, 3, o->name.s);
    return query_run(&q, e);
}

static err_t
insert_refs(
    struct store *s, enum scope scope, const struct object *o, const struct ref_list *refs,
    struct error *e)
{
    static const char *const sql[] = PER_SCOPE(
        "INSERT INTO ", "_ref (kind, id, pointer, to_kind, to_id) VALUES (?, ?, ?, ?, ?)");
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql[scope], &q, e);

    for (size_t i = 0; code == ERR_OK && i < refs->count; i++) {
        query_again(&q);
        bind_text(&q, 1, kind_name(o));
        bind_text(&q, 2, o->id);
        bind_text(&q, 3, refs->items[i].pointer);
        bind_text(&q, 4, schema_kind(refs->items[i].kind)->name);
        bind_text(&q, 5, refs->items[i].id);
        code = query_run(&q, e);
    }
    return code;
}

static err_t
write_refs(struct store *s, enum scope scope, const struct delta *d, struct error *e)
{
    static const char *const sql[] =
        PER_SCOPE("DELETE FROM ", "_ref WHERE kind = ? AND id = ?");
    CLEANUP(ref_list_fini) struct ref_list before = {0};
    CLEANUP(ref_list_fini) struct ref_list after = {0};
    err_t code = ERR_OK;

    if (d->before != NULL) {
        ref_list_of(d->before, &before);
    }
    if (d->after != NULL) {
        ref_list_of(d->after, &after);
    }
    if (refs_equal(&before, &after)) {
        return ERR_OK;
    }
    if (before.count > 0) {
        code = run_on_object(s, sql[scope], d->before, e);
    }
    if (code != ERR_OK || d->after == NULL) {
        return code;
    }
    return insert_refs(s, scope, d->after, &after, e);
}

static bool
name_moves(const struct delta *d)
{
    return d->before == NULL || d->after == NULL ||
           strcmp(d->before->name.s, d->after->name.s) != 0;
}

static err_t
write_one(struct store *s, enum scope scope, const struct delta *d, struct error *e)
{
    static const char *const delete_sql[] =
        PER_SCOPE("DELETE FROM ", "_object WHERE kind = ? AND id = ?");
    err_t code;

    if (d->after == NULL) {
        ASSERT(d->before != NULL);
        code = write_refs(s, scope, d, e);
        return code == ERR_OK ? run_on_object(s, delete_sql[scope], d->before, e) : code;
    }
    code = body_put(s, d->after, e);
    if (code == ERR_OK) {
        code = upsert(s, scope, d->after, e);
    }
    if (code == ERR_OK && name_moves(d)) {
        code = insert_unique(s, scope, d->after, e);
    }
    return code == ERR_OK ? write_refs(s, scope, d, e) : code;
}

err_t
container_write(struct store *s, enum scope scope, const struct delta_list *l, struct error *e)
{
    static const char *const free_name_sql[] =
        PER_SCOPE("DELETE FROM ", "_unique WHERE kind = ? AND id = ?");
    err_t code = ERR_OK;

    /* First, so that two objects may swap their names. */
    for (size_t i = 0; code == ERR_OK && i < l->count; i++) {
        const struct delta *d = &l->items[i];

        if (d->before != NULL && name_moves(d)) {
            code = run_on_object(s, free_name_sql[scope], d->before, e);
        }
    }
    for (size_t i = 0; code == ERR_OK && i < l->count; i++) {
        code = write_one(s, scope, &l->items[i], e);
    }
    return code;
}
