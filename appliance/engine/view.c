/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/inner.h"
#include "model/belong.h"

#define VIEW_MAGIC 0x56696577u

static void
pair_set(struct snapshot_pair *pair, enum scope scope, const struct snapshot *s)
{
    if (scope == SCOPE_SHARED) {
        pair->shared = s;
    } else {
        pair->local = s;
    }
}

static const struct snapshot *
pair_get(const struct snapshot_pair *pair, enum scope scope)
{
    return scope == SCOPE_SHARED ? pair->shared : pair->local;
}

/* ---- references ---- */

struct view *
engine_view(struct engine *en)
{
    struct view *v;

    ASSERT(en->magic == ENGINE_MAGIC);
    lock_take(&en->lock);
    v = en->view;
    atomic_fetch_add(&v->refs, 1);
    lock_give(&en->lock);
    return v;
}

void
view_unref(struct view *v)
{
    if (v == NULL) {
        return;
    }
    ASSERT(v->magic == VIEW_MAGIC);
    if (atomic_fetch_sub(&v->refs, 1) != 1) {
        return;
    }
    v->magic = 0;
    for (size_t i = 0; i < v->entry_count; i++) {
        object_unref(v->entries[i].before);
        object_unref(v->entries[i].after);
    }
    free(v->entries);
    pair_cleanup(&v->now);
    pair_cleanup(&v->draft);
    free(v);
}

void
view_cleanup(struct view **v)
{
    view_unref(*v);
}

static int
compare_entry(const void *key, const void *item)
{
    const struct draft_entry *wanted = key;
    const struct draft_entry *entry = item;

    return draft_compare(wanted->kind, wanted->id, entry->kind, entry->id);
}

const struct draft_entry *
view_entry(const struct view *v, enum kind kind, const char *id)
{
    const struct draft_entry key = {.kind = kind, .id = id};

    return bsearch(&key, v->entries, v->entry_count, sizeof *v->entries, compare_entry);
}

const struct draft_entry *
view_entry_named(const struct view *v, enum kind kind, const char *name)
{
    const struct draft_entry *former = NULL;

    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = &v->entries[i];

        if (entry->kind != kind) {
            continue;
        }
        if (strcmp(entry->name, name) == 0) {
            return entry;
        }
        if (entry->before != NULL && strcmp(entry->before->name.s, name) == 0) {
            former = entry;
        }
    }
    return former;
}

static int
compare_names(const void *a, const void *b)
{
    const struct draft_entry *const *x = a;
    const struct draft_entry *const *y = b;
    int order;

    if ((*x)->kind != (*y)->kind) {
        return (*x)->kind < (*y)->kind ? -1 : 1; /* they are in the order of their names */
    }
    order = strcmp((*x)->name, (*y)->name);
    return order != 0 ? order : strcmp((*x)->id, (*y)->id);
}

const struct draft_entry **
view_entries_by_name(const struct view *v)
{
    const struct draft_entry **list = xcalloc(v->entry_count + 1, sizeof(*list));

    for (size_t i = 0; i < v->entry_count; i++) {
        list[i] = &v->entries[i];
    }
    qsort(list, v->entry_count, sizeof(*list), compare_names);
    return list;
}

/* ---- the draft on top of the head ---- */

/* A row that is left out of the draft's snapshot: an object of its name came meanwhile. */
struct overlay {
    const struct store_state *live;
    struct snapshot_pair now;
    bool *left_out; /* by row */
};

static const struct draft_row *
row_in_use(const struct overlay *o, enum kind kind, const char *id)
{
    for (size_t i = 0; i < o->live->draft.count; i++) {
        const struct draft_row *row = &o->live->draft.rows[i];

        if (row->kind == kind && strcmp(row->id, id) == 0) {
            return o->left_out[i] ? NULL : row;
        }
    }
    return NULL;
}

/* Leaves out rows whose name another object of the head has and keeps; all of them when
 * there is none such. */
static void
leave_out_clashes(struct overlay *o)
{
    bool found = false;

    for (size_t i = 0; i < o->live->draft.count; i++) {
        const struct draft_row *row = &o->live->draft.rows[i];
        const struct object *other = NULL;

        if (row->object != NULL && !o->left_out[i]) {
            other = snapshot_by_name(
                snapshot_of(&o->now, row->kind), row->kind, row->object->name.s);
        }
        if (other != NULL && strcmp(other->id, row->id) != 0 &&
            row_in_use(o, row->kind, other->id) == NULL) {
            o->left_out[i] = true;
            found = true;
        }
    }
    for (size_t i = 0; i < o->live->draft.count && !found; i++) {
        o->left_out[i] = true;
    }
}

static err_t
overlay_scope(
    const struct overlay *o, enum scope scope, const struct snapshot **ret, struct error *e)
{
    const struct snapshot *base = pair_get(&o->now, scope);
    struct snapshot_edit *x = NULL;
    struct snapshot *made = NULL;
    err_t code;

    for (size_t i = 0; i < o->live->draft.count; i++) {
        const struct draft_row *row = &o->live->draft.rows[i];

        if (schema_kind(row->kind)->scope != scope || o->left_out[i]) {
            continue;
        }
        x = x != NULL ? x : snapshot_edit_new(base);
        if (row->object != NULL) {
            snapshot_edit_put(x, object_ref(row->object));
        } else {
            snapshot_edit_remove(x, row->kind, row->id);
        }
    }
    if (x == NULL) {
        *ret = snapshot_ref(base);
        return ERR_OK;
    }
    code = snapshot_seal(x, &made, e);
    if (code == ERR_OK) {
        *ret = made;
    }
    return code;
}

static void
overlay_make(struct overlay *o, struct snapshot_pair *ret)
{
    static const enum scope scopes[] = {SCOPE_SHARED, SCOPE_LOCAL};

    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        const struct snapshot *made = NULL;
        struct error error;

        while (overlay_scope(o, scopes[i], &made, &error) != ERR_OK) {
            ASSERT(error.code == ERR_CONFLICT);
            leave_out_clashes(o);
        }
        pair_set(ret, scopes[i], made);
    }
}

/* When it cannot be done, Apply says why. */
static void
settle_draft(struct snapshot_pair *draft)
{
    struct error error;

    if (belong_settle(draft, &error) != ERR_OK) {
        log_warning("the draft: %s", error.msg);
    }
}

/* ---- entries ---- */

struct dangling {
    const struct snapshot_pair *pair;
    bool found;
};

static void
look_for(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    struct dangling *d = ctx;

    (void)pointer;
    if (snapshot_by_id(snapshot_of(d->pair, kind), kind, id) == NULL) {
        d->found = true;
    }
}

bool
view_dangles(const struct object *o, const struct snapshot_pair *pair)
{
    struct dangling d = {.pair = pair};

    if (o != NULL) {
        object_each_ref(o, look_for, &d);
    }
    return d.found;
}

static bool
base_moved(const struct draft_row *row, const struct object *before)
{
    if (row->has_base != (before != NULL)) {
        return true;
    }
    return before != NULL && !hash_equal(&row->base, &before->objhash);
}

/* The texts of authors stand behind the entries, in the same allocation. */
static void
make_entries(struct view *v, const struct overlay *o)
{
    const struct draft_list *draft = &o->live->draft;
    size_t bytes = draft->count * sizeof *v->entries;
    char *text;

    for (size_t i = 0; i < draft->count; i++) {
        bytes += strlen(draft->rows[i].author) + 1;
    }
    v->entries = xcalloc(1, bytes + 1);
    text = (char *)(v->entries + draft->count);
    for (size_t i = 0; i < draft->count; i++) {
        const struct draft_row *row = &draft->rows[i];
        const struct object *before =
            snapshot_by_id(snapshot_of(&v->now, row->kind), row->kind, row->id);
        const struct object *named = row->object != NULL ? row->object : before;
        size_t author_bytes = strlen(row->author) + 1;

        if (named == NULL) {
            continue; /* gone on both sides */
        }
        memcpy(text, row->author, author_bytes);
        v->entries[v->entry_count++] = (struct draft_entry){
            .kind = row->kind,
            .id = named->id,
            .name = named->name.s,
            .before = before != NULL ? object_ref(before) : NULL,
            .after = row->object != NULL ? object_ref(row->object) : NULL,
            .author = text,
            .at_ms = row->at_ms,
            .conflict = o->left_out[i] || base_moved(row, before) ||
                        view_dangles(row->object, &v->draft),
        };
        text += author_bytes;
    }
}

/* ---- publishing ---- */

static json_t *
draft_event(const struct view *v)
{
    char base[SHA256_HEX + 1];
    json_int_t conflicts = 0;

    for (size_t i = 0; i < v->entry_count; i++) {
        conflicts += v->entries[i].conflict ? 1 : 0;
    }
    hash_hex(&v->head.id, base);
    return json_pack(
        "{s:s, s:I, s:I, s:I}", "base", base, "base_rev", (json_int_t)v->head.rev, "count",
        (json_int_t)v->entry_count, "conflicts", conflicts);
}

static json_t *
head_event(const struct view *v)
{
    char id[SHA256_HEX + 1];

    hash_hex(&v->head.id, id);
    return json_pack(
        "{s:I, s:s, s:I}", "rev", (json_int_t)v->head.rev, "commit", id, "local_rev",
        (json_int_t)v->local_rev);
}

static void
tell(struct engine *en, const struct view *former, const struct view *v)
{
    bool moved = !hash_equal(&former->head.id, &v->head.id);

    if (moved || former->local_rev != v->local_rev) {
        events_publish(en->events, "head", head_event(v));
    }
    if (moved || former->entry_count > 0 || v->entry_count > 0) {
        events_publish(en->events, "draft", draft_event(v));
    }
}

static bool
is_whole(const struct overlay *o)
{
    for (size_t i = 0; i < o->live->draft.count; i++) {
        if (o->left_out[i]) {
            return false;
        }
    }
    return true;
}

void
view_publish(struct engine *en)
{
    view_publish_draft(en, NULL);
}

void
view_publish_draft(struct engine *en, const struct snapshot_pair *draft)
{
    const struct store_state *live = &en->live;
    struct view *v = xcalloc(1, sizeof *v);
    struct overlay o = {.live = live, .now = {live->shared, live->local}};
    struct view *former;

    ASSERT(engine_on_own_thread(en));
    o.left_out = xcalloc(live->draft.count + 1, sizeof *o.left_out);
    v->magic = VIEW_MAGIC;
    atomic_init(&v->refs, 1);
    v->head = live->head;
    v->local_rev = live->local_rev;
    v->now = pair_ref(&o.now);
    if (draft != NULL) {
        v->draft = pair_ref(draft);
    } else {
        overlay_make(&o, &v->draft);
        settle_draft(&v->draft);
    }
    v->whole_draft = is_whole(&o);
    make_entries(v, &o);
    free(o.left_out);

    /* Only this thread changes en->view. */
    former = en->view;
    v->version = former != NULL ? former->version + 1 : 1;
    atomic_fetch_add(&v->refs, 1);
    lock_take(&en->lock);
    en->view = v;
    lock_give(&en->lock);
    if (former != NULL) {
        tell(en, former, v);
    }
    view_unref(former);
    view_unref(v);
}
