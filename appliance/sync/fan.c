/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/fan.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/lock.h"
#include "engine/members.h"

struct asked {
    struct fan *fan;
    size_t who;
    bool ended, read;
    struct call_answer answer;
};

struct fan {
    struct calls *calls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct asked items[MEMBERS_MAX];
    size_t count;
};

struct fan *
fan_new(struct calls *calls)
{
    struct fan *f = xcalloc(1, sizeof *f);

    f->calls = calls;
    lock_init(&f->lock);
    lock_cond_init(&f->changed);
    return f;
}

void
fan_free(struct fan *f)
{
    if (f == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

static void
on_answer(void *ctx, struct call_answer *a)
{
    struct asked *x = ctx;
    struct fan *f = x->fan;

    lock_take(&f->lock);
    x->answer = *a;
    a->body = (struct buf){.max = 0}; /* read by whoever waits */
    x->ended = true;
    ASSERT(pthread_cond_signal(&f->changed) == 0);
    lock_give(&f->lock);
}

void
fan_ask(struct fan *f, const struct call *call, size_t who)
{
    struct asked *x = &f->items[f->count];

    ASSERT(f->count < MEMBERS_MAX);
    *x = (struct asked){.fan = f, .who = who};
    f->count++;
    calls_start(f->calls, call, on_answer, x);
}

bool
fan_next(struct fan *f, size_t *ret_who, struct call_answer *ret)
{
    struct asked *found = NULL;
    bool waits = true;

    lock_take(&f->lock);
    while (waits) {
        waits = false;
        for (size_t i = 0; i < f->count && found == NULL; i++) {
            struct asked *x = &f->items[i];

            found = x->ended && !x->read ? x : NULL;
            waits = waits || !x->ended;
        }
        waits = waits && found == NULL;
        if (waits) {
            ASSERT(pthread_cond_wait(&f->changed, &f->lock) == 0);
        }
    }
    lock_give(&f->lock);
    if (found == NULL) {
        return false;
    }
    found->read = true;
    *ret_who = found->who;
    *ret = found->answer;
    return true;
}
