/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/inner.h"

void
draft_plan_fini(struct draft_plan *plan)
{
    draft_list_free(&plan->put);
    draft_list_free(&plan->drop);
}

int
draft_compare(enum kind a, const char *a_id, enum kind b, const char *b_id)
{
    /* The kinds are in the order of their names. */
    return a != b ? (a < b ? -1 : 1) : strcmp(a_id, b_id);
}

int
draft_row_compare(const struct draft_row *a, const struct draft_row *b)
{
    return draft_compare(a->kind, a->id, b->kind, b->id);
}

static int
compare(const void *a, const void *b)
{
    return draft_row_compare(a, b);
}

static void
sort(struct draft_list *list)
{
    if (list->count > 1) {
        qsort(list->rows, list->count, sizeof *list->rows, compare);
    }
}

static struct draft_row *
find_in(const struct draft_list *list, const struct draft_row *key)
{
    return list->count == 0
               ? NULL
               : bsearch(key, list->rows, list->count, sizeof *list->rows, compare);
}

/* The row of (kind, id), or NULL. */
static const struct draft_row *
find(const struct engine *en, enum kind kind, const char *id)
{
    struct draft_row key = {.kind = kind};

    (void)snprintf(key.id, sizeof key.id, "%s", id);
    return find_in(&en->live.draft, &key);
}

bool
draft_same(const struct object *a, const struct object *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return a == b || hash_equal(&a->objhash, &b->objhash);
}

/* ---- which rows a change needs ---- */

static struct draft_row *
add(struct draft_list *list, size_t *cap)
{
    if (list->count == *cap) {
        *cap = *cap == 0 ? 16 : *cap * 2;
        list->rows = xrealloc(list->rows, *cap * sizeof *list->rows);
    }
    list->rows[list->count] = (struct draft_row){.has_base = false};
    return &list->rows[list->count++];
}

static const struct object *
head_object(const struct engine *en, enum kind kind, const char *id)
{
    struct snapshot_pair now = {en->live.shared, en->live.local};

    return snapshot_by_id(snapshot_of(&now, kind), kind, id);
}

struct making {
    struct engine *en;
    const struct actor *who;
    int64_t now_ms;
    struct draft_plan *plan;
};

static void
plan_object(void *ctx, const struct object *before, const struct object *after)
{
    const struct making *m = ctx;
    const struct object *named = after != NULL ? after : before;
    const struct object *head = head_object(m->en, named->kind, named->id);
    const struct draft_row *present = find(m->en, named->kind, named->id);
    struct draft_row *row;

    if (schema_kind(named->kind)->direct) {
        return; /* it follows what it belongs to */
    }
    if (draft_same(head, after)) {
        if (present != NULL) {
            row = add(&m->plan->drop, &m->plan->drop_cap);
            row->kind = named->kind;
            memcpy(row->id, named->id, sizeof row->id);
        }
        return;
    }
    row = add(&m->plan->put, &m->plan->put_cap);
    row->kind = named->kind;
    memcpy(row->id, named->id, sizeof row->id);
    row->object = after != NULL ? object_ref(after) : NULL;
    (void)snprintf(row->name, sizeof row->name, "%s", named->name.s);
    (void)snprintf(row->author, sizeof row->author, "%s", m->who->name);
    row->at_ms = m->now_ms;
    if (present != NULL) {
        row->has_base = present->has_base;
        row->base = present->base;
    } else if (head != NULL) {
        row->has_base = true;
        row->base = head->objhash;
    }
}

void
draft_plan_make(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    const struct actor *who, struct draft_plan *plan)
{
    struct making m = {en, who, clock_wall_ms(en->config->clock), plan};

    snapshot_diff(before->shared, after->shared, plan_object, &m);
    snapshot_diff(before->local, after->local, plan_object, &m);
    sort(&plan->put);
    sort(&plan->drop);
}

/* ---- writing ---- */

static struct draft_row
copy_row(const struct draft_row *row)
{
    struct draft_row copy = *row;

    copy.object = row->object != NULL ? object_ref(row->object) : NULL;
    return copy;
}

/* live.draft with the plan's rows: all three lists are sorted. */
static void
follow_plan(struct engine *en, const struct draft_plan *plan)
{
    struct draft_list *old = &en->live.draft;
    const struct draft_list *put = &plan->put;
    struct draft_list list = {.rows = NULL};
    size_t next = 0;

    list.rows = xmalloc((old->count + put->count + 1) * sizeof *list.rows);
    for (size_t i = 0; i < old->count; i++) {
        struct draft_row *row = &old->rows[i];

        while (next < put->count && compare(&put->rows[next], row) < 0) {
            list.rows[list.count++] = copy_row(&put->rows[next++]);
        }
        if ((next == put->count || compare(&put->rows[next], row) > 0) &&
            find_in(&plan->drop, row) == NULL) {
            list.rows[list.count++] = *row;
            row->object = NULL; /* moved */
        }
    }
    while (next < put->count) {
        list.rows[list.count++] = copy_row(&put->rows[next++]);
    }
    draft_list_free(old);
    *old = list;
}

err_t
draft_write(struct engine *en, const struct draft_plan *plan, struct error *e)
{
    err_t code;

    if (plan->put.count == 0 && plan->drop.count == 0) {
        return ERR_OK;
    }
    code = store_draft_write(en->store, &plan->put, &plan->drop, e);
    if (code == ERR_OK) {
        follow_plan(en, plan);
        view_publish_draft(en, plan->shows);
    }
    return code;
}

void
draft_settle(struct engine *en)
{
    struct draft_list *draft = &en->live.draft;
    struct draft_list drop = {.count = 0};
    static const struct draft_list none;
    struct error error;
    size_t kept = 0;

    if (draft->count == 0) {
        return;
    }
    drop.rows = xcalloc(draft->count, sizeof *drop.rows);
    for (size_t i = 0; i < draft->count; i++) {
        const struct draft_row *row = &draft->rows[i];
        bool same = draft_same(row->object, head_object(en, row->kind, row->id));
        struct draft_list *to = same ? &drop : draft;

        to->rows[same ? drop.count++ : kept++] = *row;
    }
    draft->count = kept;
    /* If they stay in the database they are dropped at the next start. */
    if (drop.count > 0 && store_draft_write(en->store, &none, &drop, &error) != ERR_OK) {
        log_warning("rows of the draft that change nothing stay: %s", error.msg);
    }
    draft_list_free(&drop);
}
