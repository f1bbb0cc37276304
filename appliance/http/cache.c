/* SPDX-License-Identifier: Apache-2.0 */
#include "http/cache.h"

#include <stdint.h>

#include "base/lock.h"
#include "http/reply.h"

void
cache_init(struct cache *c)
{
    *c = (struct cache){.slots = {NULL}};
    lock_init(&c->lock);
}

void
cache_fini(struct cache *c)
{
    for (size_t i = 0; i < CACHE_SLOTS; i++) {
        reply_shared_unref(c->slots[i]);
    }
    (void)pthread_mutex_destroy(&c->lock);
}

/* Objects are allocated one by one: the digits in the middle of their address differ. */
static size_t
slot_of(const struct object *about)
{
    uintptr_t n = (uintptr_t)about;

    return (n >> 6 ^ n >> 12 ^ n >> 18) % CACHE_SLOTS;
}

bool
cache_answer(struct request *r, const struct object *about)
{
    struct cache *c = &r->http->cache;
    int64_t version = request_view(r)->version;
    struct shared_reply *s;
    bool hit;

    lock_take(&c->lock);
    s = c->slots[slot_of(about)];
    /* Another view may have another object at the same address. */
    hit = s != NULL && s->about == about && s->version == version;
    if (hit) {
        reply_shared(r, s);
    }
    lock_give(&c->lock);
    return hit;
}

void
cache_keep(struct request *r, const struct object *about)
{
    struct cache *c = &r->http->cache;
    struct shared_reply *former;
    struct shared_reply *s;

    if (r->status != 200 || r->bytes > CACHE_MAX_BYTES) {
        return;
    }
    s = reply_share(r);
    s->about = about;
    s->version = request_view(r)->version;
    lock_take(&c->lock);
    former = c->slots[slot_of(about)];
    c->slots[slot_of(about)] = s;
    lock_give(&c->lock);
    reply_shared_unref(former);
}
