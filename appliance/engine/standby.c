/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/standby.h"

#include <string.h>

#include "engine/inner.h"

void
standby_begin(struct engine *en, const struct standby *t)
{
    lock_take(&en->lock);
    en->standby = *t;
    en->standby.until_ms = clock_mono_ms(en->config->clock) + en->config->tunables->trial_ms;
    lock_give(&en->lock);
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
    lock_take(&en->lock);
    if (hash_equal(&en->standby.commit, commit)) {
        en->standby.until_ms = 0;
    }
    lock_give(&en->lock);
    engine_wake(en);
}
