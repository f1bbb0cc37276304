/* SPDX-License-Identifier: Apache-2.0 */
/* Catching up with a node that is ahead. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sync/hand.h"

static struct failed_pull *
find_failed(struct cluster *c, const struct hash *head)
{
    for (size_t i = 0; i < FAILED_PULLS; i++) {
        if (c->failed[i].pause_ms > 0 && hash_equal(&c->failed[i].head, head)) {
            return &c->failed[i];
        }
    }
    return NULL;
}

static bool
is_pulled(struct cluster *c, const struct peer *p, bool held)
{
    const struct failed_pull *failed = find_failed(c, &p->head.id);
    struct heal_facts facts = {
        .relation = p->relation,
        .keep_in_step = !held,
        .backing_off = failed != NULL && clock_mono_ms(c->clock) < failed->after_ms,
    };

    return heal_action(&facts) != HEAL_NOTHING;
}

/* The node with the greatest head that this one is behind, or NULL. While this node overwrites
 * others, who took its commit already is ahead of it until all of them have it. */
static const struct member *
find_newest(struct cluster *c, const struct member_list *list, bool held, struct peer *ret)
{
    const struct member *found = NULL;

    lock_take(&c->lock);
    held = held || c->overwriting != OVERWRITING_NOT;
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
                              find_failed(c, &p->head.id) != NULL);
    }
    if (!offered) {
        c->refusing[0] = '\0';
    }
    lock_give(&c->lock);
}

/* What cannot be taken over is tried again ever more rarely. */
static void
note_pull(struct cluster *c, const struct hash *head, bool ok)
{
    struct failed_pull *failed = find_failed(c, head);

    if (ok) {
        memset(c->failed, 0, sizeof c->failed);
        return;
    }
    if (failed == NULL) {
        failed = &c->failed[c->failed_next++ % FAILED_PULLS];
        *failed = (struct failed_pull){.head = *head};
    }
    failed->pause_ms = failed->pause_ms > 0 ? 2 * failed->pause_ms : c->tunables->sync_round_ms;
    if (failed->pause_ms > c->tunables->sync_again_ms) {
        failed->pause_ms = c->tunables->sync_again_ms;
    }
    failed->after_ms = clock_mono_ms(c->clock) + failed->pause_ms;
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
    bool refused;
    err_t code;

    if (m == NULL) {
        return false;
    }
    origin = (struct sync_origin){
        .how = SYNC_PULLED, .from = m->name, .again = find_failed(c, &newest.head.id) != NULL};
    code = cluster_pull(c, m, &origin, &task, &error);
    note_pull(c, &newest.head.id, code == ERR_OK);
    /* One that does not answer keeps this node behind, but this node refuses nothing then. */
    refused = code != ERR_OK && code != ERR_UNAVAILABLE && code != ERR_TIMEOUT;
    if (note_refusal(c, refused ? error.msg : "") && refused) {
        log_warning(
            "revision %lld of %s was not taken over: %s", (long long)newest.head.rev, m->name,
            error.msg);
    }
    return code == ERR_OK && task != 0;
}
