/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/apply_job.h"

/* With the local container of this moment. */
static err_t
try_content(
    struct engine *en, const struct sync_weighed *w, bool overwrites, struct sync_checked *ret,
    struct problems *p, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct snapshot_pair candidate = {w->shared, v->now.local};
    struct rendered *files = NULL;
    size_t count;
    err_t code;

    if (!hash_equal(&v->head.id, &w->own)) {
        ret->result.refusal = push_verdict_name(PUSH_MOVED);
        return error_set(e, ERR_CONFLICT, "the head of this node moved meanwhile");
    }
    /* As a push, which an overwrite is: nobody could leave this node out of it. */
    code = overwrites ? ERR_OK : edit_keeps_pages(&v->now, &candidate, p, e);
    if (code == ERR_OK) {
        code = apply_render(en, &candidate, p, &files, e);
    }
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
        code = try_content(en, &w, d->has_expected, ret, p, e);
    }
    snapshot_unref(w.shared);
    return code;
}

static err_t
start_trial(
    struct engine *en, struct sync_weighed *w, const struct hash *candidate, const char *from,
    int64_t *ret_task, struct error *e)
{
    struct apply *a = xcalloc(1, sizeof *a);
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, COMMIT_TEXT_BYTES);
    buf_printf(&text, "node %s", from);
    a->en = en;
    a->mode = APPLY_TRIAL;
    a->author = xstrdup(buf_str(&text));
    a->has_base = true;
    a->base = w->own;
    a->trial = *candidate;
    a->adopted = TAKE(w->shared);
    change_set_init(&a->ops);
    a->task = task_begin(en->tasks, "trial", "Try a revision", a->author);
    *ret_task = a->task;
    return apply_post(a, e);
}

err_t
sync_trial(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_checked *ret, struct error *e)
{
    struct sync_weighed w = {.shared = NULL};
    err_t code;

    *ret = (struct sync_checked){.same = false};
    code = sync_weigh(en, d, origin, &ret->result, &w, e);
    if (code == ERR_OK && w.shared == NULL) {
        ret->same = true;
    } else if (code == ERR_OK && (code = standby_check(en, &d->head, e)) != ERR_OK) {
        ret->result.refusal = "cancelled";
    } else if (code == ERR_OK) {
        code = start_trial(en, &w, &d->head, origin->from, &ret->task, e);
    }
    snapshot_unref(w.shared);
    return code;
}

/* ---- what came of it ---- */

/* The first step that failed, or "". */
static const char *
failed_step(const json_t *task)
{
    const json_t *step;
    size_t i;

    json_array_foreach(json_object_get(task, "steps"), i, step)
    {
        if (strcmp(json_string_value(json_object_get(step, "state")), "failed") == 0) {
            return json_string_value(json_object_get(step, "name"));
        }
    }
    return "";
}

static bool
is_step(const char *name, enum apply_state state)
{
    return strcmp(name, apply_state_name(state)) == 0;
}

err_t
sync_failure(const json_t *task, const char **ret_name)
{
    const char *step = failed_step(task);
    err_t code = task_code(task);

    if (is_step(step, AS_LOAD) || is_step(step, AS_VERIFY)) {
        *ret_name = "not_serving";
        return ERR_INVALID;
    }
    if (code == ERR_CONFLICT && (is_step(step, AS_PLAN) || is_step(step, AS_COMMIT))) {
        *ret_name = push_verdict_name(PUSH_MOVED);
        return code;
    }
    /* In between, the helper is not as this node thinks: it is tried again. */
    code = code == ERR_CONFLICT ? ERR_UNAVAILABLE : code;
    *ret_name = error_name(code);
    return code;
}
