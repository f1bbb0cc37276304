/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_piece.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"

#define ENDS_OF_BEFORE (SYNC_STORED_MAX / 2) /* the others are for branches of the pieces */
#define AUTHOR_BYTES   80

/* ---- ends ---- */

static err_t
get_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct sync_ends *x = ctx;
    struct hash *found = NULL;
    err_t code = store_ends(en->store, ENDS_OF_BEFORE, &found, &x->count, e);

    if (code == ERR_OK && x->count > 0) {
        memcpy(x->items, found, x->count * sizeof *found);
    }
    free(found);
    return code;
}

err_t
sync_ends_get(struct engine *en, struct sync_ends *ret, struct error *e)
{
    *ret = (struct sync_ends){.count = 0};
    return engine_run(en, get_on_engine, ret, e);
}

static bool
has_end(const struct sync_ends *x, const struct hash *id)
{
    bool found = false;

    for (size_t i = 0; i < x->count; i++) {
        found = found || hash_equal(&x->items[i], id);
    }
    return found;
}

static void
drop_end(struct sync_ends *x, const struct hash *id)
{
    for (size_t i = 0; i < x->count; i++) {
        if (hash_equal(&x->items[i], id)) {
            x->items[i] = x->items[--x->count];
            return;
        }
    }
}

err_t
sync_ends_follow(struct sync_ends *x, const struct sync_doc *piece, struct error *e)
{
    const struct lineage *l = &piece->commits;
    CLEANUP(xfree_cleanup) bool *is_parent = xcalloc(l->count + 1, sizeof *is_parent);

    if (has_end(x, &l->items[l->count - 1].commit.id)) {
        return error_set(e, ERR_INVALID, "revisions that are here already came once more");
    }
    for (size_t i = 0; i < l->count; i++) {
        const struct commit *c = &l->items[i].commit;

        for (size_t k = 0; k < c->parent_count; k++) {
            const struct lineage_commit *parent = sync_doc_commit(piece, &c->parents[k]);

            if (parent != NULL) {
                is_parent[parent - l->items] = true;
            }
            drop_end(x, &c->parents[k]);
        }
    }
    for (size_t i = 0; i < l->count; i++) {
        if (is_parent[i]) {
            continue;
        }
        if (x->count == SYNC_STORED_MAX) {
            return error_set(
                e, ERR_LIMIT, "more than %d branches lie side by side", SYNC_STORED_MAX);
        }
        x->items[x->count++] = l->items[i].commit.id;
    }
    return ERR_OK;
}

/* ---- taking ---- */

struct piece {
    const struct sync_doc *d;
    const struct sync_origin *origin;
    struct sync_result *ret;
};

static bool
is_newer(const struct sync_doc *d)
{
    bool newer = false;

    for (size_t i = 0; i < d->commits.count; i++) {
        newer = newer || d->commits.items[i].commit.schema_version > SCHEMA_VERSION;
    }
    return newer;
}

/* Whether it follows from this node's head is seen when the last document is there. */
static err_t
decide(struct engine *en, const struct piece *p, struct error *e)
{
    const struct push_facts facts = {
        .relation = is_newer(p->d) ? REL_PEER_NEWER_RELEASE : REL_SELF_BEHIND,
        .overwrites = p->d->has_expected,
        .expected = hash_equal(&p->d->expected, &en->live.head.id),
        .outranks = p->origin->outranks,
    };
    enum push_verdict verdict = push_verdict(&facts);

    if (p->origin->how == SYNC_PUSHED && !p->d->has_expected) {
        return error_set(
            e, ERR_INVALID, "only an overwrite hands a history on in pieces: it is fetched");
    }
    if (verdict == PUSH_ADVANCE) {
        return ERR_OK;
    }
    p->ret->refusal = push_verdict_name(verdict);
    return error_set(
        e, ERR_CONFLICT, "%s: %s does not store a piece of the history",
        snapshot_singleton(en->live.local, K_NODE)->name.s, p->ret->refusal);
}

static err_t
take_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct piece *p = ctx;
    CLEANUP(buf_fini) struct buf author = {.max = AUTHOR_BYTES};
    struct commit unused;
    err_t code = decide(en, p, e);

    if (code != ERR_OK) {
        return code;
    }
    buf_printf(&author, "node %s", p->origin->from);
    return store_adopt(
        en->store,
        &(struct adopt_request){.commits = &p->d->commits, .author = buf_str(&author)}, &unused,
        e);
}

err_t
sync_piece_take(
    struct engine *en, const struct sync_doc *piece, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e)
{
    struct piece p = {piece, origin, ret};

    *ret = (struct sync_result){.task = 0};
    if (!piece->more) {
        return error_set(e, ERR_INVALID, "it is no piece of a history");
    }
    return engine_run(en, take_on_engine, &p, e);
}
