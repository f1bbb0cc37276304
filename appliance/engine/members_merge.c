/* SPDX-License-Identifier: Apache-2.0 */
/* What another node knows of the members, taken over. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/inner.h"
#include "engine/members_inner.h"

struct merging {
    const struct members_offer *offer;
    bool changed, late;
    bool forgotten; /* by the others */
    bool enters;    /* the cluster of who says so, which is another one than its own */
};

/* Somebody knows a newer record of this node than it has itself: its database is an old one, or
 * it was forgotten. */
static void
take_self(struct member *self, const struct member *offered, struct merging *g)
{
    bool twins = members_are_twins(offered, self);
    bool newer =
        offered->seq > self->seq || (offered->seq == self->seq && (offered->gone || twins));

    if (!newer || (twins && !members_outbids_twin(self))) {
        return;
    }
    g->changed = true;
    g->forgotten = g->forgotten || (offered->gone && g->offer->how != MEMBERS_JOINING);
    /* Who was forgotten does not outbid the tombstone. */
    self->seq = offered->seq;
    member_raise(self, g->forgotten ? 0 : 1);
}

/* What this node forgot does not count where that is in the cluster which it enters. */
static bool
replaces(const struct merging *g, const struct member *offered, const struct member *held)
{
    return member_replaces(offered, held) || (g->enters && held->gone && !offered->gone);
}

static bool
is_gap(const struct member *m)
{
    return m->key[0] == '\0' || m->key_refused;
}

static bool
is_older(const struct member *a, const struct member *b)
{
    return a->gone_at_ms != b->gone_at_ms ? a->gone_at_ms < b->gone_at_ms
                                          : strcmp(a->id, b->id) < 0;
}

/* Who was forgotten longest ago gives its place to another one, so that nodes which know the
 * same keep the same. *ret_at: the place, or l->count where what is offered is older itself. */
static err_t
find_room(const struct member_list *l, const struct member *m, size_t *ret_at, struct error *e)
{
    const struct member *oldest = NULL;

    for (size_t i = 0; i < l->count; i++) {
        const struct member *held = &l->items[i];

        if (held->gone && (oldest == NULL || is_older(held, oldest))) {
            oldest = held;
        }
    }
    if (oldest == NULL && !m->gone) {
        return error_set(e, ERR_LIMIT, "a cluster has at most %d nodes", MEMBERS_MAX);
    }
    *ret_at = oldest == NULL || (m->gone && is_older(m, oldest)) ? l->count
                                                                 : (size_t)(oldest - l->items);
    return ERR_OK;
}

static err_t
add(struct member_list *l, const struct member *m, struct merging *g, struct error *e)
{
    size_t at = l->count;
    err_t code = l->count == MEMBERS_MAX ? find_room(l, m, &at, e) : ERR_OK;

    if (code != ERR_OK || at == MEMBERS_MAX) {
        return code;
    }
    l->count += at == l->count ? 1 : 0;
    l->items[at] = *m;
    if (m->gone) {
        crypt_wipe(l->items[at].key, sizeof l->items[at].key);
    }
    g->changed = true;
    return ERR_OK;
}

static void
replace(struct member *held, const struct member *m, bool own_word)
{
    const struct member former = *held;

    *held = *m;
    if (m->key[0] == '\0' || (!is_gap(&former) && !own_word)) {
        memcpy(held->key, former.key, sizeof held->key);
        held->key_refused = former.key_refused;
    }
    held->twin = former.twin;
    if (held->gone) {
        crypt_wipe(held->key, sizeof held->key);
    }
}

static err_t
take_one(struct member_list *l, const struct member *m, struct merging *g, struct error *e)
{
    size_t at = members_place(l, m->id);
    bool own_word = g->offer->from != NULL && strcmp(g->offer->from, m->id) == 0;
    struct member *held = &l->items[at];

    if (at == l->self) {
        take_self(held, m, g);
        return ERR_OK;
    }
    /* Two nodes that took one name or address while apart are both taken: to refuse a record
     * would keep its key and its next name from arriving, too. */
    if (at == l->count) {
        return add(l, m, g, e);
    }
    if (!replaces(g, m, held)) {
        /* A node of an older release handed the record on without its last fields. */
        if (m->seq == held->seq && !held->gone && held->tables_address[0] == '\0' &&
            m->tables_address[0] != '\0') {
            memcpy(held->tables_address, m->tables_address, sizeof held->tables_address);
            held->tables_port = m->tables_port;
            g->changed = true;
        }
        /* A key fills a gap, or comes from the node itself. */
        if (m->key[0] != '\0' && !held->gone && strcmp(held->key, m->key) != 0 &&
            (is_gap(held) || own_word)) {
            memcpy(held->key, m->key, sizeof held->key);
            held->key_refused = false;
            g->changed = true;
        }
        return ERR_OK;
    }
    replace(held, m, own_word);
    g->changed = true;
    return ERR_OK;
}

bool
member_list_has(const struct member_list *l, const char *id)
{
    size_t at = members_place(l, id);

    return at < l->count && !l->items[at].gone;
}

static bool
is_alone(const struct member_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (i != l->self && !l->items[i].gone) {
            return false;
        }
    }
    return true;
}

/* A node that has left raised its seq: who knows an older record of it has not heard of that.
 * Else a list that was on its way would bring back who left. */
static bool
is_late(const struct member_list *l, const struct members_offer *o)
{
    const struct member *self = &l->items[l->self];
    bool late = o->how == MEMBERS_ASKED && !member_list_has(l, o->from);

    for (size_t i = 0; i < o->count && o->how == MEMBERS_TOLD && is_alone(l); i++) {
        const struct member *m = &o->items[i];

        late = late || (strcmp(m->id, self->id) == 0 && m->seq < self->seq && !m->gone);
    }
    return late;
}

/* Told by a node that was forgotten, and has not joined again. */
static bool
is_barred(const struct member_list *l, const struct members_offer *o)
{
    size_t at =
        o->from != NULL && o->how == MEMBERS_TOLD ? members_place(l, o->from) : l->count;
    bool barred = at < l->count && l->items[at].gone;

    for (size_t i = 0; barred && i < o->count; i++) {
        const struct member *m = &o->items[i];

        barred = strcmp(m->id, o->from) != 0 || !member_replaces(m, &l->items[at]);
    }
    return barred;
}

/* It says that this node was forgotten: what to outbid, and no keys yet. Members without keys,
 * who do not know this node, would be left where the join ends here. */
static bool
is_only_of_self(const struct member *self, const struct members_offer *o)
{
    bool gone = false;

    for (size_t i = 0; i < o->count && o->how == MEMBERS_JOINING; i++) {
        const struct member *m = &o->items[i];

        gone = gone || (strcmp(m->id, self->id) == 0 && m->gone && m->seq >= self->seq);
    }
    return gone;
}

static err_t
merge_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct merging *g = ctx;
    struct member_list next;
    bool passed_over, only_self;
    err_t code = ERR_OK;

    members_note_twins(en, g->offer);
    next = members_get(en);
    passed_over = is_late(&next, g->offer);
    g->late = passed_over && g->offer->how == MEMBERS_TOLD;
    g->enters = g->offer->how == MEMBERS_JOINING && !member_list_has(&next, g->offer->from);
    passed_over = passed_over || is_barred(&next, g->offer);
    next.items = xrealloc(next.items, (next.count + g->offer->count + 1) * sizeof *next.items);
    only_self = is_only_of_self(&next.items[next.self], g->offer);
    for (size_t i = 0; !passed_over && i < g->offer->count && code == ERR_OK; i++) {
        const struct member *m = &g->offer->items[i];

        if (!only_self || strcmp(m->id, next.items[next.self].id) == 0) {
            code = take_one(&next, m, g, e);
        }
    }
    if (code != ERR_OK || !g->changed) {
        member_list_free(&next);
        return code;
    }
    members_sort(&next);
    if (g->forgotten) {
        log_warning("the other nodes have forgotten this one: it is alone now");
        members_keep_self(&next);
    }
    return members_save(en, &next, e);
}

err_t
members_merge(
    struct engine *en, const struct members_offer *offer, struct members_taken *ret,
    struct error *e)
{
    struct merging g = {.offer = offer};
    err_t code = engine_run(en, merge_on_engine, &g, e);

    *ret = (struct members_taken){code == ERR_OK && g.changed, code == ERR_OK && g.late};
    return code;
}
