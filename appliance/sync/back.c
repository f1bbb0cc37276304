/* SPDX-License-Identifier: Apache-2.0 */
/* Which node goes back to what was before a revision that nobody confirmed. */
#include <string.h>

#include "sync/inner.h"

/* What the other nodes said in the last round. */
struct others {
    size_t count, answered;
    bool ahead; /* this node is about to take over what one of them has */
    bool holds; /* one has the VIP */
    bool fails; /* the one that has it is in step: it goes back, or cannot */
    /* Of those that would go back for this node, too, which one that diverged does not: one has
     * the VIP, one is where it was applied. */
    bool holder_acts, applied_acts;
};

/* Under the lock. */
static struct others
look_at_others(struct cluster *c, const struct member_list *list, const char *node)
{
    struct others ret = {.count = 0};

    for (size_t i = 0; i < list->count; i++) {
        const struct member *m = &list->items[i];
        const struct peer *p = cluster_peer(c, m->id);

        if (i == list->self || m->gone) {
            continue;
        }
        ret.count++;
        if (p == NULL || !p->answered) {
            continue;
        }
        ret.answered++;
        ret.ahead = ret.ahead || p->relation == REL_SELF_BEHIND ||
                    p->relation == REL_EQUAL_PEER_GREATER;
        ret.holds = ret.holds || p->holds;
        ret.fails = ret.fails || (p->holds && p->relation == REL_IN_STEP);
        if (p->relation != REL_DIVERGED) {
            ret.holder_acts = ret.holder_acts || p->holds;
            ret.applied_acts = ret.applied_acts || strcmp(m->name, node) == 0;
        }
    }
    return ret;
}

enum back_by
cluster_goes_back(void *ctx, const char *node, int64_t late_ms)
{
    struct cluster *c = ctx;
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    bool applied = strcmp(list.items[list.self].name, node) == 0;
    int64_t now_ms = clock_mono_ms(&clock_system);
    struct cluster_vip vip;
    struct others others;
    bool looked, unheld;

    cluster_look_at_vip(c, &vip);
    lock_take(&c->lock);
    others = look_at_others(c, &list, node);
    looked = c->looked;
    /* One that does not answer may have the VIP. */
    unheld =
        vip.text[0] == '\0' ||
        (c->unheld_since_ms > 0 && now_ms - c->unheld_since_ms > c->tunables->sync_round_ms &&
         others.answered == others.count && !vip.held && !others.holds);
    lock_give(&c->lock);
    if (others.count == 0) {
        return BACK_SELF;
    }
    if (!looked || others.ahead) {
        return BACK_OTHER;
    }
    if (unheld ? applied : vip.held) {
        return BACK_SELF;
    }
    /* It has not the former content, as after a join, or does not get HAProxy to run it. */
    if (applied && others.fails && late_ms > c->tunables->back_instead_ms) {
        return BACK_SELF;
    }
    return (unheld ? others.applied_acts : others.holder_acts) ? BACK_OTHER : BACK_NOBODY;
}
