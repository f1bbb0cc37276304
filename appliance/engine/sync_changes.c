/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- finding them ---- */

static int
compare_places(enum kind a, const char *a_id, enum kind b, const char *b_id)
{
    /* The kinds are in the order of their names. */
    return a != b ? (a < b ? -1 : 1) : strcmp(a_id, b_id);
}

struct said {
    struct lineage_entry entry;
    size_t nth;
};

/* Of one place the last word first. */
static int
compare_said(const void *a, const void *b)
{
    const struct said *x = a;
    const struct said *y = b;
    int order = compare_places(x->entry.kind, x->entry.id, y->entry.kind, y->entry.id);

    return order != 0 ? order : (x->nth > y->nth ? -1 : x->nth < y->nth);
}

static void
last_words(struct said *all, size_t count, struct sync_changes *ret)
{
    if (count > 1) {
        qsort(all, count, sizeof *all, compare_said);
    }
    ret->items = xcalloc(count + 1, sizeof *ret->items);
    ASSERT(ret->items != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct lineage_entry *x = &all[i].entry;
        const struct lineage_entry *former = i > 0 ? &all[i - 1].entry : NULL;

        if (former == NULL || compare_places(former->kind, former->id, x->kind, x->id) != 0) {
            ret->items[ret->count++] = *x;
        }
    }
}

/* The sender may not have known how far this node has come. */
static size_t
first_after(const struct sync_doc *d, const struct hash *own_id)
{
    const struct lineage_commit *own = sync_doc_commit(d, own_id);

    return own != NULL ? (size_t)(own - d->commits.items) + 1 : 0;
}

static err_t
changes_of_commits(
    const struct sync_doc *d, const struct hash *own_id, struct sync_changes *ret,
    struct error *e)
{
    size_t first = first_after(d, own_id);
    const struct hash *from = own_id;
    struct said *all;
    size_t count = 0;

    for (size_t i = first; i < d->commits.count; i++) {
        const struct commit *c = &d->commits.items[i].commit;

        if (c->parent_count == 0 || !hash_equal(&c->parents[0], from)) {
            return error_set(
                e, ERR_INVALID,
                "the commits do not lead on from this node's head, and no index came along");
        }
        from = &c->id;
        count += d->commits.items[i].entry_count;
    }
    if (!hash_equal(from, &d->head)) {
        return error_set(e, ERR_INVALID, "the commits do not lead to \"head\"");
    }
    all = xcalloc(count + 1, sizeof *all);
    count = 0;
    for (size_t i = first; i < d->commits.count; i++) {
        for (size_t k = 0; k < d->commits.items[i].entry_count; k++) {
            all[count] = (struct said){d->commits.items[i].entries[k], count};
            count++;
        }
    }
    last_words(all, count, ret);
    free(all);
    return ERR_OK;
}

static int
compare_entries(const void *a, const void *b)
{
    const struct lineage_entry *x = a;
    const struct lineage_entry *y = b;

    return compare_places(x->kind, x->id, y->kind, y->id);
}

static void
add_removed(struct sync_changes *ret, const struct object *o)
{
    struct lineage_entry *x = &ret->items[ret->count++];

    *x = (struct lineage_entry){.kind = o->kind};
    memcpy(x->id, o->id, sizeof x->id);
}

static err_t
sort_index(const struct sync_doc *d, struct error *e)
{
    if (d->index_count > 1) {
        qsort(d->index, d->index_count, sizeof *d->index, compare_entries);
    }
    for (size_t i = 0; i < d->index_count; i++) {
        const struct lineage_entry *x = &d->index[i];

        if (!x->has_object || (i > 0 && compare_entries(&d->index[i - 1], x) == 0)) {
            return error_set(
                e, ERR_INVALID, "the index names %s %s %s", schema_kind(x->kind)->name, x->id,
                x->has_object ? "twice" : "without its content");
        }
    }
    return ERR_OK;
}

/* Both sides are sorted by place. */
static void
changes_of_index(const struct sync_doc *d, const struct snapshot *own, struct sync_changes *ret)
{
    size_t own_count = snapshot_count(own);
    size_t at = 0;

    ret->items = xcalloc(d->index_count + own_count + 1, sizeof *ret->items);
    for (size_t i = 0; i < d->index_count; i++) {
        const struct lineage_entry *x = &d->index[i];
        const struct object *o = at < own_count ? snapshot_at(own, at) : NULL;

        while (o != NULL && compare_places(o->kind, o->id, x->kind, x->id) < 0) {
            add_removed(ret, o);
            o = ++at < own_count ? snapshot_at(own, at) : NULL;
        }
        if (o != NULL && compare_places(o->kind, o->id, x->kind, x->id) == 0) {
            at++;
            if (hash_equal(&o->objhash, &x->objhash)) {
                continue;
            }
        }
        ret->items[ret->count++] = *x;
    }
    for (; at < own_count; at++) {
        add_removed(ret, snapshot_at(own, at));
    }
}

err_t
sync_changes_of(
    const struct sync_doc *d, const struct hash *own_id, const struct snapshot *own,
    struct sync_changes *ret, struct error *e)
{
    err_t code;

    if (!d->has_index) {
        return changes_of_commits(d, own_id, ret, e);
    }
    code = sort_index(d, e);
    if (code == ERR_OK) {
        changes_of_index(d, own, ret);
    }
    return code;
}

/* ---- their objects ---- */

static int
compare_objects(const void *a, const void *b)
{
    const struct object *const *x = a;
    const struct object *const *y = b;
    int order = memcmp(&(*x)->objhash, &(*y)->objhash, sizeof(*x)->objhash);

    return order != 0 ? order : compare_places((*x)->kind, (*x)->id, (*y)->kind, (*y)->id);
}

struct object_set {
    const struct object **items; /* free */
    size_t count;
};

static void
object_set_make(struct object_set *s, const struct sync_doc *d, const struct sync_kept *kept)
{
    s->items = xcalloc(d->object_count + kept->count + 1, sizeof(const struct object *));
    for (size_t i = 0; i < d->object_count; i++) {
        s->items[s->count++] = d->objects[i];
    }
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->items[i] != NULL) {
            s->items[s->count++] = kept->items[i];
        }
    }
    if (s->count > 1) {
        qsort(s->items, s->count, sizeof(const struct object *), compare_objects);
    }
}

static const struct object *
object_set_find(const struct object_set *s, const struct lineage_entry *x)
{
    struct object key = {.kind = x->kind, .objhash = x->objhash};
    const struct object *wanted = &key;
    const struct object **found;

    memcpy(key.id, x->id, sizeof key.id);
    found =
        bsearch(&wanted, s->items, s->count, sizeof(const struct object *), compare_objects);
    return found != NULL ? *found : NULL;
}

void
sync_changes_absent(
    const struct sync_changes *x, const struct sync_doc *d, struct sync_changes *ret)
{
    static const struct sync_kept none;
    struct object_set set = {.count = 0};

    object_set_make(&set, d, &none);
    ret->items = xcalloc(x->count + 1, sizeof *ret->items);
    for (size_t i = 0; i < x->count; i++) {
        if (x->items[i].has_object && object_set_find(&set, &x->items[i]) == NULL) {
            ret->items[ret->count++] = x->items[i];
        }
    }
    free(set.items);
}

err_t
sync_changes_make(
    const struct sync_changes *x, const struct sync_doc *d, const struct sync_kept *kept,
    const struct snapshot *own, struct snapshot **ret, struct error *e)
{
    struct object_set set = {.count = 0};
    struct snapshot_edit *edit = snapshot_edit_new(own);
    err_t code = ERR_OK;

    object_set_make(&set, d, kept);
    for (size_t i = 0; i < x->count && code == ERR_OK; i++) {
        const struct lineage_entry *change = &x->items[i];
        const struct object *o = change->has_object ? object_set_find(&set, change) : NULL;

        if (o != NULL) {
            snapshot_edit_put(edit, object_ref(o));
        } else if (change->has_object) {
            code = error_set(e, ERR_INVALID, "an object did not come along");
        } else if (schema_kind(change->kind)->singleton) {
            code = error_set(
                e, ERR_INVALID, "no revision is without its %s",
                schema_kind(change->kind)->name);
        } else {
            snapshot_edit_remove(edit, change->kind, change->id);
        }
    }
    free(set.items);
    if (code != ERR_OK) {
        snapshot_edit_free(edit);
        return code;
    }
    code = snapshot_seal(edit, ret, e);
    /* Of one node's content no two have a name. */
    return code == ERR_CONFLICT ? error_set(e, ERR_INVALID, "%s", e->msg) : code;
}
