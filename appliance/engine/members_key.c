/* SPDX-License-Identifier: Apache-2.0 */
/* The peer key of this node, and the one that it had before. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "engine/inner.h"
#include "engine/members_inner.h"

#define KEY_RANDOM_BYTES 32

bool
members_is_key(struct engine *en, const char *key)
{
    struct members *m = en->members;
    const char *known[2];
    size_t len = strlen(key);
    bool is = false;

    lock_take(&m->lock);
    known[0] = m->list.items[m->list.self].key;
    known[1] = clock_mono_ms(en->config->clock) < m->former_until_ms ? m->former_key : "";
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        bool same = len > 0 && strlen(known[i]) == len && crypt_equal(known[i], key, len);

        is = is || same;
    }
    lock_give(&m->lock);
    return is;
}

void
members_make_key(char ret[MEMBER_KEY_BYTES])
{
    CLEANUP(buf_wipe_fini) struct buf text;

    buf_init(&text, MEMBER_KEY_BYTES);
    crypt_token(&text, KEY_RANDOM_BYTES);
    (void)snprintf(ret, MEMBER_KEY_BYTES, "%s", buf_str(&text));
}

static void
take_former(struct engine *en, const char *key, int64_t for_ms)
{
    struct members *m = en->members;

    lock_take(&m->lock);
    (void)snprintf(m->former_key, sizeof m->former_key, "%s", key);
    m->former_until_ms = clock_mono_ms(en->config->clock) + for_ms;
    lock_give(&m->lock);
}

err_t
members_load_former(struct engine *en, struct error *e)
{
    struct former_key former;
    err_t code = store_former_key(en->store, &former, e);
    int64_t left_ms = former.until_ms - clock_wall_ms(en->config->clock);

    /* More than its whole time is left: the clock was put back, and how much is, nobody knows.
     */
    if (code == ERR_OK && left_ms > 0 && left_ms <= en->config->tunables->former_key_ms) {
        take_former(en, former.key, left_ms);
    }
    crypt_wipe(former.key, sizeof former.key);
    return code;
}

static err_t
key_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct member_list next = members_get(en);
    struct member *self = &next.items[next.self];
    int64_t for_ms = en->config->tunables->former_key_ms;
    struct former_key former = {.until_ms = clock_wall_ms(en->config->clock) + for_ms};
    err_t code;

    (void)ctx;
    memcpy(former.key, self->key, sizeof former.key);
    members_make_key(self->key);
    member_raise(self, 1);
    code = members_save_with(en, &next, &former, e);
    if (code == ERR_OK) {
        take_former(en, former.key, for_ms);
    }
    crypt_wipe(former.key, sizeof former.key);
    return code;
}

err_t
members_new_key(struct engine *en, struct error *e)
{
    return engine_run(en, key_on_engine, NULL, e);
}
