/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/standby.h"

#include <string.h>

#include "engine/inner.h"

/* Under the lock. */
static struct standby_cancelled *
find_cancelled(struct engine *en, const struct hash *commit)
{
    for (size_t i = 0; i < STANDBY_CANCELLED; i++) {
        struct standby_cancelled *c = &en->cancels.items[i];

        if (clock_mono_ms(en->config->clock) < c->until_ms && hash_equal(&c->commit, commit)) {
            return c;
        }
    }
    return NULL;
}

static err_t
refuse_cancelled(struct error *e)
{
    return error_set(e, ERR_CONFLICT, "the trial was cancelled by the node that asked for it");
}

err_t
standby_check(struct engine *en, const struct hash *commit, struct error *e)
{
    bool cancelled;

    lock_take(&en->lock);
    cancelled = find_cancelled(en, commit) != NULL;
    lock_give(&en->lock);
    return cancelled ? refuse_cancelled(e) : ERR_OK;
}

err_t
standby_begin(struct engine *en, const struct standby *t, struct error *e)
{
    bool cancelled;

    lock_take(&en->lock);
    cancelled = find_cancelled(en, &t->commit) != NULL;
    if (!cancelled) {
        en->standby = *t;
        en->standby.until_ms =
            clock_mono_ms(en->config->clock) + en->config->tunables->trial_ms;
    }
    lock_give(&en->lock);
    return cancelled ? refuse_cancelled(e) : ERR_OK;
}

bool
standby_holds(struct engine *en)
{
    bool holds;

    lock_take(&en->lock);
    holds = en->standby.digest[0] != '\0' &&
            clock_mono_ms(en->config->clock) < en->standby.until_ms;
    lock_give(&en->lock);
    return holds;
}

bool
standby_runs(struct engine *en)
{
    bool runs;

    lock_take(&en->lock);
    runs = en->standby.digest[0] != '\0';
    lock_give(&en->lock);
    return runs;
}

bool
standby_gives_way(struct engine *en, const char *digest, int64_t local_rev)
{
    struct standby *t = &en->standby;
    bool gives_way;

    lock_take(&en->lock);
    gives_way =
        t->digest[0] != '\0' && (t->local_rev != local_rev || strcmp(t->digest, digest) != 0);
    if (gives_way) {
        t->until_ms = 0;
    }
    lock_give(&en->lock);
    return gives_way;
}

void
standby_end(struct engine *en)
{
    lock_take(&en->lock);
    en->standby.digest[0] = '\0';
    lock_give(&en->lock);
}

void
standby_cancel(struct engine *en, const struct hash *commit)
{
    struct standby_cancelled *c;

    lock_take(&en->lock);
    if (hash_equal(&en->standby.commit, commit)) {
        en->standby.until_ms = 0;
    }
    c = find_cancelled(en, commit);
    if (c == NULL) {
        c = &en->cancels.items[en->cancels.next++ % STANDBY_CANCELLED];
    }
    *c = (struct standby_cancelled){
        *commit, clock_mono_ms(en->config->clock) + en->config->tunables->trial_ms};
    lock_give(&en->lock);
    engine_wake(en);
}
