/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/throttle.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crypt.h"
#include "base/lock.h"

#define PREFIX_BYTES 80

struct entry {
    struct hash key;
    int64_t used_ms;    /* monotonic; 0: free */
    int64_t blocked_ms; /* no further try before */
    unsigned failures;
};

struct throttle {
    pthread_mutex_t lock;
    const struct clock *clock;
    struct entry entries[THROTTLE_ENTRIES];
    size_t count;
};

struct throttle *
throttle_new(const struct clock *clock)
{
    struct throttle *t = xcalloc(1, sizeof *t);

    lock_init(&t->lock);
    t->clock = clock;
    return t;
}

void
throttle_free(struct throttle *t)
{
    if (t == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* IPv4 as it is, also when it comes mapped into IPv6; of IPv6 the first 64 bits. */
static void
put_prefix(const char *client, char out[PREFIX_BYTES])
{
    struct in6_addr a6;
    struct in_addr a4;

    if (inet_pton(AF_INET6, client, &a6) == 1) {
        if (IN6_IS_ADDR_V4MAPPED(&a6)) {
            memcpy(&a4, a6.s6_addr + 12, sizeof a4);
            (void)inet_ntop(AF_INET, &a4, out, PREFIX_BYTES);
            return;
        }
        memset(a6.s6_addr + 8, 0, 8);
        (void)inet_ntop(AF_INET6, &a6, out, PREFIX_BYTES);
        return;
    }
    (void)snprintf(out, PREFIX_BYTES, "%s", client);
}

/* A hash: names of accounts are an outsider's text of any length. */
static struct hash
key_of(const char *account, const char *client)
{
    struct sha256 *h = sha256_new();
    char prefix[PREFIX_BYTES];

    put_prefix(client, prefix);
    sha256_add(h, prefix, strlen(prefix) + 1);
    sha256_add(h, account, strlen(account));
    return sha256_end(&h);
}

static struct entry *
find(struct throttle *t, const struct hash *key)
{
    for (size_t i = 0; i < t->count; i++) {
        if (hash_equal(&t->entries[i].key, key)) {
            return &t->entries[i];
        }
    }
    return NULL;
}

/* True when a should go before b. */
static bool
goes_first(const struct entry *a, const struct entry *b, int64_t now_ms)
{
    bool a_blocked = a->blocked_ms > now_ms;
    bool b_blocked = b->blocked_ms > now_ms;

    return a_blocked != b_blocked ? b_blocked : a->used_ms < b->used_ms;
}

static struct entry *
add(struct throttle *t, const struct hash *key, int64_t now_ms)
{
    struct entry *slot;

    if (t->count < THROTTLE_ENTRIES) {
        slot = &t->entries[t->count++];
    } else {
        slot = &t->entries[0];
        for (size_t i = 1; i < t->count; i++) {
            if (goes_first(&t->entries[i], slot, now_ms)) {
                slot = &t->entries[i];
            }
        }
    }
    *slot = (struct entry){.key = *key};
    return slot;
}

static int64_t
wait_s(unsigned failures)
{
    int64_t s = 1;

    for (unsigned i = THROTTLE_FREE; i < failures && s < THROTTLE_MAX_S; i++) {
        s *= 2;
    }
    return s < THROTTLE_MAX_S ? s : THROTTLE_MAX_S;
}

bool
throttle_try(struct throttle *t, const char *account, const char *client, int64_t *ret_retry_s)
{
    struct hash key = key_of(account, client);
    int64_t now_ms = clock_mono_ms(t->clock);
    struct entry *entry;
    bool allowed;

    lock_take(&t->lock);
    entry = find(t, &key);
    if (entry == NULL) {
        entry = add(t, &key, now_ms);
    } else if (now_ms - entry->used_ms > (int64_t)THROTTLE_FORGET_S * 1000) {
        entry->failures = 0;
    }
    allowed = entry->blocked_ms <= now_ms;
    if (allowed) {
        entry->failures++;
        entry->used_ms = now_ms;
        if (entry->failures >= THROTTLE_FREE) {
            entry->blocked_ms = now_ms + wait_s(entry->failures) * 1000;
        }
    } else {
        *ret_retry_s = (entry->blocked_ms - now_ms + 999) / 1000;
    }
    lock_give(&t->lock);
    return allowed;
}

void
throttle_clear(struct throttle *t, const char *account, const char *client)
{
    struct hash key = key_of(account, client);
    struct entry *entry;

    lock_take(&t->lock);
    entry = find(t, &key);
    if (entry != NULL) {
        *entry = t->entries[--t->count];
    }
    lock_give(&t->lock);
}

size_t
throttle_count(struct throttle *t)
{
    size_t count;

    lock_take(&t->lock);
    count = t->count;
    lock_give(&t->lock);
    return count;
}
