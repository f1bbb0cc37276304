/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/leads.h"

#include "engine/inner.h"
#include "store/lineage.h"

static struct lead *
find(struct leads *l, const struct hash *from)
{
    for (size_t i = 0; i < LEADS_KEPT; i++) {
        if (hash_equal(&l->items[i].from, from)) {
            return &l->items[i];
        }
    }
    return NULL;
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
    struct lead *known = find(l, from);
    bool is = false;
    err_t code = ERR_OK;

    if (known != NULL && hash_equal(&known->to, head)) {
        *ret = known->is;
        return ERR_OK;
    }
    if (known != NULL) {
        code = is_led_on(en, known, &is, e);
    }
    if (code == ERR_OK && !is) {
        code = store_is_ancestor(en->store, from, head, &is, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (known == NULL) {
        known = &l->items[l->next++ % LEADS_KEPT];
    }
    *known = (struct lead){*from, *head, is};
    *ret = is;
    return ERR_OK;
}
