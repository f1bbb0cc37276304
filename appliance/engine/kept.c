/* SPDX-License-Identifier: Apache-2.0 */
/* What was checked for an apply of another node is used by its push. Its generation has a
 * number that the database does not know yet: until the push comes, nothing there changes. */
#include <string.h>

#include "engine/generation.h"

err_t
kept_next_number(struct engine *en, int64_t *ret, struct error *e)
{
    err_t code = store_generation_next(en->store, ret, e);

    if (code == ERR_OK && *ret == en->kept.reserved) {
        code = store_generation_next(en->store, ret, e);
    }
    return code;
}

struct keeping {
    const struct rendered *files;
    int64_t local_rev;
    int64_t number;
};

/* What was kept before goes: its place is needed. */
static err_t
reserve_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct keeping *k = ctx;
    int64_t last = 0;
    err_t code = store_generation_last(en->store, &last, e);

    if (code == ERR_OK) {
        k->number = en->kept.reserved > last ? en->kept.reserved : last + 1;
        en->kept = (struct kept){.reserved = k->number};
    }
    return code;
}

static err_t
keep_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct keeping *k = ctx;

    (void)e;
    memcpy(en->kept.digest, k->files->digest, sizeof en->kept.digest);
    en->kept.local_rev = k->local_rev;
    en->kept.until_ms = clock_mono_ms(en->config->clock) + en->config->tunables->check_kept_ms;
    return ERR_OK;
}

static err_t
release_on_engine(struct engine *en, void *ctx, struct error *e)
{
    (void)ctx;
    (void)e;
    en->kept = (struct kept){.reserved = 0};
    return ERR_OK;
}

err_t
kept_check(
    struct engine *en, const struct rendered *files, int64_t local_rev, struct problems *p,
    struct error *e)
{
    struct keeping k = {files, local_rev, 0};
    struct generation_check check = {.reserved = true};
    struct error unused;
    err_t code;

    lock_take(&en->peer_check_lock);
    code = engine_run(en, reserve_on_engine, &k, e);
    if (code == ERR_OK) {
        check.number = k.number;
        code = generation_stage(en, files, &check, p, e);
    }
    if (code == ERR_OK) {
        code = engine_run(en, keep_on_engine, &k, e);
    } else if (engine_run(en, release_on_engine, NULL, &unused) != ERR_OK) {
        ASSERT(engine_stopping(en));
    }
    lock_give(&en->peer_check_lock);
    return code;
}

struct claim {
    const char *digest;
    int64_t local_rev;
    int64_t number;
};

/* From now on the database knows the number. */
static err_t
take_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct claim *c = ctx;
    struct kept kept = en->kept;
    int64_t last = 0;
    err_t code;

    if (clock_mono_ms(en->config->clock) >= kept.until_ms || kept.local_rev != c->local_rev ||
        strcmp(kept.digest, c->digest) != 0) {
        return ERR_OK;
    }
    code = store_generation_last(en->store, &last, e);
    if (code == ERR_OK && last < kept.reserved) {
        code = store_generation_next(en->store, &last, e);
    }
    if (code == ERR_OK) {
        en->kept = (struct kept){.reserved = 0};
        c->number = kept.reserved;
    }
    return code;
}

int64_t
kept_take(struct engine *en, const char *digest, int64_t local_rev)
{
    struct claim c = {digest, local_rev, 0};
    struct error unused;

    return engine_run(en, take_on_engine, &c, &unused) == ERR_OK ? c.number : 0;
}

static err_t
look_on_engine(struct engine *en, void *ctx, struct error *e)
{
    int64_t *ret = ctx;

    (void)e;
    *ret = en->kept.until_ms == 0 || clock_mono_ms(en->config->clock) < en->kept.until_ms
               ? en->kept.reserved
               : 0;
    return ERR_OK;
}

int64_t
kept_number(struct engine *en)
{
    int64_t number = 0;
    struct error unused;

    return engine_run(en, look_on_engine, &number, &unused) == ERR_OK ? number : 0;
}
