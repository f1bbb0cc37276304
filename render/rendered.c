/* SPDX-License-Identifier: Apache-2.0 */
#include "render/rendered.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/crypt.h"

#define NAMES_MAX_BYTES ((size_t)64 << 20)

void
rendered_init(struct rendered *r)
{
    *r = (struct rendered){0};
    r->state = xcalloc(1, sizeof *r->state);
    layout_init(&r->state->layout);
}

static void
drop_bytes(struct artefact *a)
{
    if (a->secret) {
        buf_wipe(&a->bytes);
    }
    buf_fini(&a->bytes);
}

static void
drop_old(struct rendered_state *st)
{
    for (size_t i = 0; i < st->old_count; i++) {
        drop_bytes(&st->old[i]);
    }
    st->old_count = 0;
    arena_free(TAKE(st->old_names));
}

void
rendered_clear(struct rendered *r)
{
    for (size_t i = 0; i < r->count; i++) {
        drop_bytes(&r->items[i]);
    }
    r->count = 0;
    r->line_count = 0;
    r->digest[0] = '\0';
    drop_old(r->state);
    arena_free(TAKE(r->state->names));
}

void
rendered_fini(struct rendered *r)
{
    if (r == NULL || r->state == NULL) {
        return;
    }
    rendered_clear(r);
    layout_fini(&r->state->layout);
    free(r->state->old);
    free(r->state);
    free(r->items);
    free(r->lines);
    *r = (struct rendered){0};
}

static int
by_name(const void *a, const void *b)
{
    const struct artefact *x = a;
    const struct artefact *y = b;

    return strcmp(x->name, y->name);
}

static struct artefact *
find(struct artefact *items, size_t count, const char *name)
{
    struct artefact key = {.name = name};

    return count == 0 ? NULL : bsearch(&key, items, count, sizeof *items, by_name);
}

const struct artefact *
rendered_find(const struct rendered *r, const char *name)
{
    return find(r->items, r->count, name);
}

void
rendered_begin(struct rendered *r)
{
    struct rendered_state *st = r->state;
    struct artefact *items = st->old;
    size_t cap = st->old_cap;

    ASSERT(st->old_count == 0 && st->old_names == NULL);
    st->old = r->items;
    st->old_count = r->count;
    st->old_cap = r->cap;
    st->old_names = st->names;
    r->items = items;
    r->count = 0;
    r->cap = cap;
    st->names = arena_new(NAMES_MAX_BYTES);
    r->line_count = 0;
    r->digest[0] = '\0';
}

struct artefact *
rendered_add(struct rendered *r, const char *folder, const char *name, const char *suffix)
{
    struct rendered_state *st = r->state;
    struct artefact *a;
    struct artefact *old;

    if (r->count == r->cap) {
        r->cap = r->cap == 0 ? 16 : r->cap * 2;
        r->items = xrealloc(r->items, r->cap * sizeof *r->items);
    }
    a = &r->items[r->count++];
    *a = (struct artefact){.name = arena_printf(st->names, "%s%s%s", folder, name, suffix)};
    old = find(st->old, st->old_count, a->name);
    if (old == NULL) {
        buf_init(&a->bytes, RENDER_MAX_BYTES);
        return a;
    }
    if (old->secret) {
        buf_wipe(&old->bytes);
    }
    a->bytes = old->bytes;
    buf_reset(&a->bytes);
    buf_init(&old->bytes, RENDER_MAX_BYTES);
    return a;
}

/* A private key enters as its SHA-256: the digest is shown, and XXH3 hides nothing. */
static uint64_t
digest_of(const struct rendered *r)
{
    struct checksum *sum = checksum_new();

    for (size_t i = 0; i < r->count; i++) {
        const struct artefact *a = &r->items[i];
        uint64_t len = a->bytes.len;

        checksum_add(sum, a->name, strlen(a->name) + 1);
        checksum_add(sum, &len, sizeof len);
        if (a->secret) {
            struct hash h = sha256(buf_str(&a->bytes), a->bytes.len);

            checksum_add(sum, &h, sizeof h);
        } else {
            checksum_add(sum, buf_str(&a->bytes), a->bytes.len);
        }
    }
    return checksum_end(sum);
}

err_t
rendered_seal(struct rendered *r, size_t digest_at, struct error *e)
{
    struct artefact *config;
    struct artefact *running = rendered_add(r, "", RUNNING_MAP, "");
    size_t total = 0;

    buf_puts(&running->bytes, RUNNING_KEY " 0000000000000000\n");
    drop_old(r->state);
    for (size_t i = 0; i < r->count; i++) {
        total += r->items[i].bytes.len;
        if (r->items[i].bytes.failed || total > RENDER_MAX_BYTES) {
            return error_set(
                e, ERR_LIMIT, "HAProxy's files would be larger than %zu bytes",
                RENDER_MAX_BYTES);
        }
    }
    qsort(r->items, r->count, sizeof *r->items, by_name);
    config = find(r->items, r->count, "haproxy.cfg");
    running = find(r->items, r->count, RUNNING_MAP);
    ASSERT(config != NULL && digest_at + RENDER_DIGEST_HEX <= config->bytes.len);
    (void)snprintf(r->digest, sizeof r->digest, "%016" PRIx64, digest_of(r));
    memcpy(config->bytes.data + digest_at, r->digest, RENDER_DIGEST_HEX);
    memcpy(running->bytes.data + sizeof RUNNING_KEY, r->digest, RENDER_DIGEST_HEX);
    return ERR_OK;
}
