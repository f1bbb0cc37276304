/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"
#include "engine/sync_names.h"

struct making {
    const struct sync_wanted *wanted;
    struct sync_doc *d;
    struct hash *have; /* what the receiver has, and what it stored besides */
};

/* From one of those that the receiver has, each commit the first parent of the next. */
static bool
leads_on(const struct sync_doc *d, const struct sync_wanted *w)
{
    const struct hash *from = NULL;

    for (size_t i = 0; i < d->commits.count; i++) {
        const struct commit *c = &d->commits.items[i].commit;
        bool first = false;

        for (size_t k = 0; i == 0 && k < w->have_count && c->parent_count > 0; k++) {
            first = first || hash_equal(&c->parents[0], &w->have[k]);
        }
        if (c->parent_count == 0 || !(i == 0 ? first : hash_equal(&c->parents[0], from))) {
            return false;
        }
        from = &c->id;
    }
    return d->commits.count > 0;
}

/* What is asked for besides may be of a head of before: that stays here. */
static void
collect(const struct sync_doc *d, const struct sync_wanted *w, struct sync_names *ret)
{
    size_t from =
        d->commits.count > SYNC_OBJECTS_KEPT ? d->commits.count - SYNC_OBJECTS_KEPT : 0;
    struct sync_names named;

    sync_names_make(&named, d);
    *ret =
        (struct sync_names){xcalloc(named.count + w->object_count + 1, sizeof *ret->items), 0};
    for (size_t i = from; i < d->commits.count; i++) {
        sync_names_add(ret, d->commits.items[i].entries, d->commits.items[i].entry_count);
    }
    for (size_t i = 0; i < w->object_count; i++) {
        if (sync_names_have(&named, &w->objects[i])) {
            ret->items[ret->count++] = w->objects[i];
        }
    }
    free(named.items);
}

static err_t
add_objects(struct engine *en, const struct sync_wanted *w, struct sync_doc *d, struct error *e)
{
    struct sync_names list;
    err_t code;

    collect(d, w, &list);
    sync_names_sort(&list);
    code = store_objects(en->store, list.items, list.count, &d->objects, e);
    for (size_t i = 0; code == ERR_OK && i < list.count; i++) {
        if (d->objects[i] != NULL) {
            d->objects[d->object_count++] = d->objects[i];
        }
    }
    free(list.items);
    return code;
}

/* The head and its ancestors, and the other parents of the commit on top, which may be heads of
 * nodes of which the receiver knows nothing; as far as they are not there. */
static err_t
add_lineage(struct engine *en, struct making *m, struct error *e)
{
    const struct sync_wanted *w = m->wanted;
    const struct commit *on_top = w->on_top;
    struct lineage_request q = {
        .heads = on_top != NULL ? on_top->parents : &m->d->head,
        .head_count = on_top != NULL ? on_top->parent_count : 1,
        .have = m->have,
        .have_count = w->have_count + w->stored_count,
        .piece = (size_t)en->config->tunables->sync_piece_commits,
        .piece_entries = SYNC_PIECE_ENTRIES,
    };

    if (on_top != NULL && !hash_equal(&on_top->parents[0], &m->d->head)) {
        return error_set(e, ERR_CONFLICT, "the head of this node moved meanwhile");
    }
    return store_lineage(en->store, &q, &m->d->commits, &m->d->more, e);
}

static void
add_on_top(struct sync_doc *d, const struct commit *c)
{
    struct lineage *l = &d->commits;

    l->items = xrealloc(l->items, (l->count + 1) * sizeof *l->items);
    l->items[l->count++] = (struct lineage_commit){.commit = *c};
    d->head = c->id;
}

static err_t
make_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct making *m = ctx;
    struct sync_doc *d = m->d;
    const struct commit *on_top = m->wanted->on_top;
    err_t code;

    d->head = en->live.head.id;
    code = add_lineage(en, m, e);
    if (code == ERR_OK && d->more) {
        d->head = on_top != NULL ? on_top->id : d->head;
        return ERR_OK;
    }
    if (code == ERR_OK && (on_top != NULL || m->wanted->index || !leads_on(d, m->wanted))) {
        code = store_index(en->store, &d->head, &d->index, &d->index_count, e);
        d->has_index = code == ERR_OK;
    }
    if (code == ERR_OK && on_top != NULL) {
        add_on_top(d, on_top);
    }
    return code == ERR_OK ? add_objects(en, m->wanted, d, e) : code;
}

err_t
sync_doc_make(
    struct engine *en, const struct sync_wanted *wanted, struct sync_doc *ret, struct error *e)
{
    struct sync_doc d = {.has_index = false};
    struct making m = {.wanted = wanted, .d = &d};
    err_t code;

    m.have = xcalloc(wanted->have_count + wanted->stored_count + 1, sizeof *m.have);
    if (wanted->have_count > 0) {
        memcpy(m.have, wanted->have, wanted->have_count * sizeof *m.have);
    }
    if (wanted->stored_count > 0) {
        memcpy(
            &m.have[wanted->have_count], wanted->stored, wanted->stored_count * sizeof *m.have);
    }
    code = engine_run(en, make_on_engine, &m, e);
    free(m.have);
    if (code != ERR_OK) {
        sync_doc_free(&d);
        return code;
    }
    *ret = d;
    return ERR_OK;
}
