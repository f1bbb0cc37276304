/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_check.h"

#include "engine/generation.h"

/* With the local container of this moment. */
static err_t
try_content(
    struct engine *en, const struct sync_weighed *w, struct sync_checked *ret,
    struct problems *p, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct snapshot_pair candidate = {w->shared, v->now.local};
    struct rendered *files = NULL;
    size_t count;
    err_t code;

    if (!hash_equal(&v->head.id, &w->own)) {
        return error_set(e, ERR_CONFLICT, "the head of this node moved meanwhile");
    }
    code = apply_render(en, &candidate, p, &files, e);
    if (code == ERR_OK) {
        code = kept_check(en, files, v->local_rev, p, e);
    }
    if (code == ERR_OK) {
        code = generation_bind_test(en, &candidate, &v->now, &count, p, e);
    }
    apply_rendered_done(en, files);
    if (code == ERR_OK) {
        ret->fp = w->fp;
        ret->local_rev = v->local_rev;
    }
    return code;
}

err_t
sync_check(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_checked *ret, struct problems *p, struct error *e)
{
    struct sync_weighed w = {.shared = NULL};
    err_t code;

    *ret = (struct sync_checked){.same = false};
    code = sync_weigh(en, d, origin, &ret->result, &w, e);
    if (code == ERR_OK && w.shared == NULL) {
        ret->fp = w.fp;
        ret->same = true;
    } else if (code == ERR_OK) {
        code = try_content(en, &w, ret, p, e);
    }
    snapshot_unref(w.shared);
    return code;
}
