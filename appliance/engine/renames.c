/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/renames.h"

#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "haproxy/admin.h"
#include "helper/protocol.h"

/* ---- what files were made of ---- */

/* An apply that was cut short leaves HAProxy with what the draft still holds. */
static bool
is_drafts(struct apply *a, const char *digest)
{
    struct rendered *files = NULL;
    struct problems unused;
    struct error e;
    bool is;

    problems_init(&unused, a->arena);
    if (a->view->entry_count == 0 ||
        generation_render(a->en, &a->view->draft, &unused, &files, &e) != ERR_OK) {
        return false;
    }
    is = strcmp(files->digest, digest) == 0;
    apply_rendered_done(a->en, files);
    return is;
}

/* A new reference, NULL when it is not known. */
static const struct snapshot *
content_of(struct apply *a, const char *digest)
{
    struct generation g;
    struct snapshot *content = NULL;
    struct error e;

    if (strcmp(digest, a->files->digest) == 0) {
        return snapshot_ref(a->candidate.shared);
    }
    if (reconcile_is_head(a->en, digest)) {
        return snapshot_ref(a->view->now.shared);
    }
    if (is_drafts(a, digest)) {
        return snapshot_ref(a->view->draft.shared);
    }
    if (generation_find(a->en, digest, &g, &e) != ERR_OK ||
        edit_commit_content(a->en, &g.commit, &content, &e) != ERR_OK) {
        return NULL;
    }
    return content;
}

static const struct snapshot *
content_that_runs(struct apply *a)
{
    const struct engine *en = a->en;
    struct haproxy_info info;

    /* A change by the admin socket that stopped half-way renames nothing. */
    if (admin_info(en->admin_socket, en->config->tunables->socket_ms, &info, NULL) != ERR_OK ||
        info.running[0] == '\0') {
        return NULL;
    }
    return content_of(a, info.running);
}

static const struct snapshot *
content_installed(struct apply *a, int64_t number)
{
    struct generation g;
    struct error e;

    if (number == a->number) {
        return snapshot_ref(a->candidate.shared);
    }
    return generation_number(a->en, number, &g, &e) == ERR_OK ? content_of(a, g.digest) : NULL;
}

/* ---- comparing ---- */

struct list {
    struct helper_rename *items;
    size_t count;
};

struct comparison {
    struct arena *arena;
    struct list pools, servers;
    bool too_many;
};

static void
add(struct comparison *c, struct list *l, struct text from, struct text to)
{
    if (l->count == HELPER_RENAMES_MAX) {
        c->too_many = true;
        return;
    }
    if (l->items == NULL) {
        l->items = arena_alloc(c->arena, HELPER_RENAMES_MAX * sizeof *l->items);
    }
    l->items[l->count++] =
        (struct helper_rename){arena_strdup(c->arena, from.s), arena_strdup(c->arena, to.s)};
}

static void
compare(void *ctx, const struct object *before, const struct object *after)
{
    struct comparison *c = ctx;

    if (before == NULL || after == NULL || strcmp(before->name.s, after->name.s) == 0) {
        return;
    }
    if (after->kind == K_POOL) {
        add(c, &c->pools, before->name, after->name);
    } else if (after->kind == K_SERVER) {
        add(c, &c->servers, before->name, after->name);
    }
}

void
renames_find(struct apply *a, int64_t number, struct arena *arena, struct helper_renames *ret)
{
    struct comparison c = {.arena = arena};
    const struct snapshot *from = content_that_runs(a);
    const struct snapshot *to = from != NULL ? content_installed(a, number) : NULL;

    if (to != NULL) {
        snapshot_diff(from, to, compare, &c);
    }
    snapshot_unref(from);
    snapshot_unref(to);
    if (c.too_many) {
        log_warning(
            "too many pools or servers have new names: all servers start without state");
        *ret = (struct helper_renames){.too_many = true};
        return;
    }
    *ret = (struct helper_renames){
        c.pools.items, c.servers.items, c.pools.count, c.servers.count, false};
}
