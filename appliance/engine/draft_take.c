/* SPDX-License-Identifier: Apache-2.0 */
/* A draft goes from one node to another: first it is stored there, then it leaves here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "engine/draft_rows.h"
#include "engine/inner.h"

#define AUDIT_BYTES 160
#define NAMES_BYTES ((size_t)1024)
#define NAMED_MAX   4 /* of what both drafts change */

struct taking {
    const struct draft_taking *t;
    struct draft_plan plan;
    struct buf both; /* names of what both drafts change */
    size_t both_count;
};

static int
compare(const void *a, const void *b)
{
    return draft_row_compare(a, b);
}

/* The own row of the same object. */
static const struct draft_row *
find_same(const struct engine *en, const struct draft_row *theirs)
{
    const struct draft_list *own = &en->live.draft;

    return own->count == 0 ? NULL
                           : bsearch(theirs, own->rows, own->count, sizeof *own->rows, compare);
}

/* The own row that gives another object the same name. */
static const struct draft_row *
find_namesake(const struct engine *en, const struct draft_row *theirs)
{
    const struct draft_list *own = &en->live.draft;

    for (size_t i = 0; theirs->object != NULL && i < own->count; i++) {
        const struct draft_row *row = &own->rows[i];

        if (row->kind == theirs->kind && row->object != NULL &&
            strcmp(row->id, theirs->id) != 0 &&
            strcmp(row->object->name.s, theirs->object->name.s) == 0) {
            return row;
        }
    }
    return NULL;
}

static void
note_both(struct taking *x, const struct draft_row *row)
{
    const char *between = x->both_count == 0 ? "" : ", ";

    x->both_count++;
    if (x->both_count <= NAMED_MAX) {
        buf_printf(&x->both, "%s%s %s", between, schema_kind(row->kind)->name, row->name);
    } else if (x->both_count == NAMED_MAX + 1) {
        buf_puts(&x->both, " and more");
    }
}

static struct draft_row *
next_row(struct draft_list *list)
{
    return &list->rows[list->count++];
}

static void
take_row(const struct engine *en, struct taking *x, const struct draft_row *theirs)
{
    const struct draft_row *same = find_same(en, theirs);
    const struct draft_row *namesake = same == NULL ? find_namesake(en, theirs) : NULL;
    struct snapshot_pair now = {en->live.shared, en->live.local};
    const struct object *head =
        snapshot_by_id(snapshot_of(&now, theirs->kind), theirs->kind, theirs->id);
    struct draft_row *put;

    if (same != NULL ? draft_same(same->object, theirs->object)
                     : draft_same(head, theirs->object)) {
        return; /* taken before, or applied */
    }
    if (same != NULL || namesake != NULL) {
        note_both(x, theirs);
        if (x->t->overlap != OVERLAP_THEIRS) {
            return;
        }
    }
    if (namesake != NULL) {
        struct draft_row *drop = next_row(&x->plan.drop);

        drop->kind = namesake->kind;
        memcpy(drop->id, namesake->id, sizeof drop->id);
    }
    put = next_row(&x->plan.put);
    *put = *theirs;
    put->object = theirs->object != NULL ? object_ref(theirs->object) : NULL;
}

static err_t
store(struct engine *en, struct taking *x, struct error *e)
{
    char text[AUDIT_BYTES];
    err_t code;

    if (x->plan.drop.count > 1) {
        qsort(x->plan.drop.rows, x->plan.drop.count, sizeof *x->plan.drop.rows, compare);
    }
    crashpoint("draft_take_before");
    code = draft_write(en, &x->plan, e);
    crashpoint("draft_take_after");
    if (code == ERR_OK && x->plan.put.count > 0) {
        (void)snprintf(
            text, sizeof text, "%zu object%s of the draft of %s", x->plan.put.count,
            PLURAL(x->plan.put.count), x->t->from);
        engine_audit(en, x->t->who->name, "draft_take", text);
    }
    return code;
}

static err_t
take_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct taking *x = ctx;
    const struct draft_list *rows = x->t->rows;

    if (x->t->who->locked != NULL) {
        return error_set(e, ERR_LOCKED, "%s", x->t->who->locked);
    }
    x->plan.put.rows = xcalloc(rows->count + 1, sizeof *x->plan.put.rows);
    x->plan.drop.rows = xcalloc(rows->count + 1, sizeof *x->plan.drop.rows);
    for (size_t i = 0; i < rows->count; i++) {
        take_row(en, x, &rows->rows[i]);
    }
    if (x->both_count > 0 && x->t->overlap == OVERLAP_REFUSE) {
        return error_set(
            e, ERR_CONFLICT, "this draft and the one of %s both change %s: say whose is right",
            x->t->from, buf_str(&x->both));
    }
    return store(en, x, e);
}

err_t
draft_take(struct engine *en, const struct draft_taking *t, size_t *ret_stored, struct error *e)
{
    struct taking x = {.t = t};
    err_t code;

    buf_init(&x.both, NAMES_BYTES);
    code = engine_run(en, take_on_engine, &x, e);
    *ret_stored = code == ERR_OK ? x.plan.put.count : 0;
    draft_plan_fini(&x.plan);
    buf_fini(&x.both);
    return code;
}

/* ---- the other side ---- */

struct handing {
    const struct draft_handing *h;
    size_t left;
};

static const struct draft_row *
find_unchanged(const struct engine *en, const struct lineage_entry *taken)
{
    struct draft_row key = {.kind = taken->kind};
    const struct draft_row *row;
    bool same;

    memcpy(key.id, taken->id, sizeof key.id);
    row = find_same(en, &key);
    if (row == NULL) {
        return NULL;
    }
    same = taken->has_object
               ? row->object != NULL && hash_equal(&row->object->objhash, &taken->objhash)
               : row->object == NULL;
    return same ? row : NULL;
}

static err_t
hand_on_engine(struct engine *en, void *ctx, struct error *e)
{
    CLEANUP(draft_plan_fini) struct draft_plan plan = {.put_cap = 0};
    struct handing *x = ctx;
    char text[AUDIT_BYTES];
    err_t code;

    plan.drop.rows = xcalloc(x->h->count + 1, sizeof *plan.drop.rows);
    for (size_t i = 0; i < x->h->count; i++) {
        const struct draft_row *row = find_unchanged(en, &x->h->taken[i]);

        if (row != NULL) {
            struct draft_row *drop = next_row(&plan.drop);

            drop->kind = row->kind;
            memcpy(drop->id, row->id, sizeof drop->id);
        }
    }
    if (plan.drop.count > 1) {
        qsort(plan.drop.rows, plan.drop.count, sizeof *plan.drop.rows, compare);
    }
    crashpoint("draft_hand_before");
    code = draft_write(en, &plan, e);
    crashpoint("draft_hand_after");
    if (code == ERR_OK && plan.drop.count > 0) {
        (void)snprintf(
            text, sizeof text, "%zu object%s taken over by %s", plan.drop.count,
            PLURAL(plan.drop.count), x->h->to);
        engine_audit(en, x->h->to, "draft_hand_over", text);
    }
    for (size_t i = 0; i < en->live.draft.count; i++) {
        x->left += schema_kind(en->live.draft.rows[i].kind)->scope == SCOPE_SHARED ? 1 : 0;
    }
    return code;
}

err_t
draft_hand_over(
    struct engine *en, const struct draft_handing *h, size_t *ret_left, struct error *e)
{
    struct handing x = {.h = h};
    err_t code = engine_run(en, hand_on_engine, &x, e);

    *ret_left = x.left;
    return code;
}
