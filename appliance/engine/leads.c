/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/leads.h"

#include "engine/inner.h"
#include "store/lineage.h"

/* LEADS_KEPT: nothing is known of it. */
static size_t
find(const struct leads *l, const struct hash *from)
{
    size_t i = 0;

    while (i < LEADS_KEPT && !hash_equal(&l->items[i].from, from)) {
        i++;
    }
    return i;
}

/* What led to an earlier head leads to what follows from that one: a short way. */
static err_t
is_led_on(struct engine *en, const struct lead *known, bool *ret, struct error *e)
{
    *ret = false;
    return known->is ? store_is_ancestor(en->store, &known->to, &en->live.head.id, ret, e)
                     : ERR_OK;
}

err_t
leads_to_head(struct engine *en, const struct hash *from, bool *ret, struct error *e)
{
    struct leads *l = &en->leads;
    const struct hash *head = &en->live.head.id;
    size_t at = find(l, from);
    bool is = false;
    err_t code = ERR_OK;

    if (at < LEADS_KEPT && hash_equal(&l->items[at].to, head)) {
        *ret = l->items[at].is;
        return ERR_OK;
    }
    if (at < LEADS_KEPT) {
        code = is_led_on(en, &l->items[at], &is, e);
    } else {
        at = l->next++ % LEADS_KEPT;
    }
    if (code == ERR_OK && !is) {
        code = store_is_ancestor(en->store, from, head, &is, e);
    }
    if (code == ERR_OK) {
        l->items[at] = (struct lead){*from, *head, is};
        *ret = is;
    }
    return code;
}
