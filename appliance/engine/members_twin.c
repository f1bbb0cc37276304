/* SPDX-License-Identifier: Apache-2.0 */
/* Two machines with the id of one node, as with a copy of a disk: each says that it is that
 * node, and would outbid the other for ever, with new files of HAProxy on all nodes each time.
 */
#include <stdio.h>
#include <string.h>

#include "engine/inner.h"
#include "engine/members_inner.h"

#define OUTBIDS 3 /* times in twin_again_ms */
#define SURE    2 /* times: a database of before was heard of once, and follows then */

bool
members_are_twins(const struct member *a, const struct member *b)
{
    return !a->gone && !b->gone &&
           (strcmp(a->url, b->url) != 0 || strcmp(a->pin, b->pin) != 0 ||
            strcmp(a->name, b->name) != 0);
}

bool
members_outbids_twin(const struct member *self)
{
    return self->twin.count <= OUTBIDS;
}

static void
note(struct engine *en, struct member *held, const struct member *offered)
{
    int64_t now_ms = clock_mono_ms(en->config->clock);
    struct member_twin *t = &held->twin;

    lock_take(&en->members->lock);
    if (t->count == 0 || now_ms - t->from_ms > en->config->tunables->twin_again_ms) {
        t->count = 0;
        t->from_ms = now_ms;
    }
    t->count++;
    if (t->count >= SURE) {
        t->sure_ms = now_ms;
    }
    (void)snprintf(t->url, sizeof t->url, "%s", offered->url);
    lock_give(&en->members->lock);
}

/* Of this node another one knows what it did not say; another node says what it outbid itself.
 */
void
members_note_twins(struct engine *en, const struct members_offer *o)
{
    struct member_list *l = &en->members->list;

    for (size_t i = 0; i < o->count; i++) {
        const struct member *m = &o->items[i];
        size_t at = members_place(l, m->id);
        struct member *held = &l->items[at];
        bool own_word = o->from != NULL && strcmp(o->from, m->id) == 0;

        if (at < l->count && members_are_twins(m, held) &&
            (at == l->self ? m->seq >= held->seq : own_word && m->seq <= held->seq)) {
            note(en, held, m);
        }
    }
}

bool
members_is_twice(struct engine *en, const struct member *m)
{
    int64_t now_ms = clock_mono_ms(en->config->clock);

    return m->twin.sure_ms > 0 &&
           now_ms - m->twin.sure_ms < 2 * en->config->tunables->twin_again_ms;
}
