/* SPDX-License-Identifier: Apache-2.0 */
/* Catching up with a node that is ahead. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sync/inner.h"

static bool
is_pulled(const struct cluster *c, const struct peer *p, bool held)
{
    struct heal_facts facts = {
        .relation = p->relation,
        .keep_in_step = !held,
        .backing_off = hash_equal(&p->head.id, &c->pull_failed) &&
                       clock_mono_ms(c->clock) < c->pull_after_ms,
    };

    return heal_action(&facts) != HEAL_NOTHING;
}

/* The node with the greatest head that this one is behind, or NULL. */
static const struct member *
find_newest(struct cluster *c, const struct member_list *list, bool held, struct peer *ret)
{
    const struct member *found = NULL;

    lock_take(&c->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct peer *p = cluster_peer(c, list->items[i].id);
        bool pulls = p != NULL && p->answered && is_pulled(c, p, held);

        if (pulls && (found == NULL || p->head.rev > ret->head.rev ||
                      (p->head.rev == ret->head.rev &&
                       memcmp(&p->head.id, &ret->head.id, sizeof p->head.id) > 0))) {
            found = &list->items[i];
            *ret = *p;
        }
    }
    lock_give(&c->lock);
    return found;
}

void
cluster_forget_refusal(struct cluster *c)
{
    bool offered = false;

    lock_take(&c->lock);
    for (size_t i = 0; i < c->peer_count; i++) {
        const struct peer *p = &c->peers[i];
        struct heal_facts facts = {.relation = p->relation, .keep_in_step = true};

        offered = offered || (p->answered && heal_action(&facts) != HEAL_NOTHING &&
                              hash_equal(&p->head.id, &c->pull_failed));
    }
    if (!offered) {
        c->refusing[0] = '\0';
    }
    lock_give(&c->lock);
}

/* What cannot be taken over is tried again ever more rarely, until it is another head. */
static void
note_pull(struct cluster *c, const struct hash *head, bool ok)
{
    bool same = hash_equal(head, &c->pull_failed);

    if (ok) {
        c->pull_pause_ms = 0;
        return;
    }
    c->pull_pause_ms =
        same && c->pull_pause_ms > 0 ? 2 * c->pull_pause_ms : c->tunables->sync_round_ms;
    if (c->pull_pause_ms > c->tunables->sync_again_ms) {
        c->pull_pause_ms = c->tunables->sync_again_ms;
    }
    c->pull_failed = *head;
    c->pull_after_ms = clock_mono_ms(c->clock) + c->pull_pause_ms;
}

/* Whether it is told for the first time: it may be met every few seconds. */
static bool
note_refusal(struct cluster *c, const char *why)
{
    char former[DETAIL_BYTES];
    bool news;

    lock_take(&c->lock);
    memcpy(former, c->refusing, sizeof former);
    (void)snprintf(c->refusing, sizeof c->refusing, "%s", why);
    news = strcmp(c->refusing, former) != 0;
    lock_give(&c->lock);
    return news;
}

bool
cluster_heal(struct cluster *c, const struct member_list *list)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    bool held = !object_bool(snapshot_singleton(v->now.local, K_NODE), F_NODE_KEEP_IN_STEP);
    struct peer newest;
    const struct member *m = find_newest(c, list, held, &newest);
    struct sync_origin origin;
    struct error error;
    int64_t task;
    err_t code;

    if (m == NULL) {
        return false;
    }
    origin = (struct sync_origin){
        .how = SYNC_PULLED,
        .from = m->name,
        .again = hash_equal(&newest.head.id, &c->pull_failed)};
    code = cluster_pull(c, m, &origin, &task, &error);
    note_pull(c, &newest.head.id, code == ERR_OK);
    if (note_refusal(c, code == ERR_OK ? "" : error.msg) && code != ERR_OK) {
        log_warning(
            "revision %lld of %s was not taken over: %s", (long long)newest.head.rev, m->name,
            error.msg);
    }
    return code == ERR_OK && task != 0;
}
