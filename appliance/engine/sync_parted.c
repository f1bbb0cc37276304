/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_parted.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/hash_json.h"
#include "engine/inner.h"

struct listing {
    const struct hash *id;
    size_t skip;
    struct sync_page *ret;
};

static err_t
list_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct listing *l = ctx;

    return store_ancestors(en->store, l->id, l->skip, l->ret->items, &l->ret->count, e);
}

err_t
sync_ancestors(
    struct engine *en, const struct hash *id, size_t skip, struct sync_page *ret,
    struct error *e)
{
    struct listing l = {id, skip, ret};

    return engine_run(en, list_on_engine, &l, e);
}

struct finding {
    const struct hash *of;
    const struct sync_page *among;
    struct commit *ret;
};

static err_t
find_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct finding *f = ctx;

    return store_newest_ancestor(en->store, f->of, f->among->items, f->among->count, f->ret, e);
}

err_t
sync_newest_ancestor(
    struct engine *en, const struct hash *of, const struct sync_page *among, struct commit *ret,
    struct error *e)
{
    struct finding f = {of, among, ret};

    return engine_run(en, find_on_engine, &f, e);
}

/* ---- between nodes ---- */

json_t *
sync_parted_ask(const struct hash *head, const struct sync_page *among)
{
    return json_pack(
        "{s:o, s:o}", "head", hash_json(head), "among",
        hashes_json(among->items, among->count));
}

static err_t
read_question(const json_t *j, struct hash *ret_head, struct sync_page *ret, struct error *e)
{
    if (!hash_from_json(json_object_get(j, "head"), ret_head)) {
        return error_set(e, ERR_INVALID, "\"head\" is no id of a commit");
    }
    return hashes_from_json(
        json_object_get(j, "among"), "among", STORE_ANCESTORS, ret->items, &ret->count, e);
}

err_t
sync_parted_answer(struct engine *en, const json_t *question, json_t **ret, struct error *e)
{
    CLEANUP(xfree_cleanup) struct sync_page *among = xcalloc(1, sizeof *among);
    struct commit found = {.rev = 0};
    struct hash head;
    err_t code = read_question(question, &head, among, e);

    if (code == ERR_OK) {
        code = sync_newest_ancestor(en, &head, among, &found, e);
    }
    if (code == ERR_OK) {
        *ret = json_pack("{s:o}", "shared", found.rev > 0 ? hash_json(&found.id) : json_null());
    }
    return code;
}

err_t
sync_parted_read(
    struct engine *en, const json_t *answer, const struct sync_page *among, struct commit *ret,
    struct error *e)
{
    const json_t *shared = json_object_get(answer, "shared");
    struct hash id;

    if (json_is_null(shared)) {
        *ret = (struct commit){.rev = 0};
        return ERR_OK;
    }
    if (hash_from_json(shared, &id)) {
        for (size_t i = 0; i < among->count; i++) {
            if (hash_equal(&id, &among->items[i])) {
                return sync_commit_get(en, &id, ret, e);
            }
        }
    }
    return error_set(e, ERR_INVALID, "\"shared\" is none of the commits that were named");
}
