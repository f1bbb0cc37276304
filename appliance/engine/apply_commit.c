/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/commit.h"
#include "model/belong.h"
#include "version_gen.h"

static struct generation
generation_of(const struct apply *a, enum generation_state state)
{
    struct generation g = {.number = a->number, .state = state};

    memcpy(g.digest, a->files->digest, sizeof g.digest);
    (void)snprintf(g.release, sizeof g.release, "%s", LOCKSTEP_VERSION);
    if (a->head.rev > 0) {
        g.commit = a->head.id;
        g.local_rev = a->local_rev;
    } else if (a->mode == APPLY_FOLLOW) {
        g.commit = a->view->head.id;
        g.local_rev = a->view->local_rev;
    }
    /* Else it is no commit yet: the hash of zeros. */
    return g;
}

err_t
apply_save_generation(struct apply *a, enum generation_state state, struct error *e)
{
    struct generation g = generation_of(a, state);

    return generation_put(a->en, &g, e);
}

/* ---- merging with what was committed meanwhile ---- */

struct merging {
    const struct snapshot *live;
    struct snapshot_edit *x;
    bool moved; /* an object that Apply is about was committed by somebody else */
};

static void
look_for_move(void *ctx, const struct object *before, const struct object *after)
{
    struct merging *m = ctx;
    const struct object *named = after != NULL ? after : before;

    if (!schema_kind(named->kind)->direct) {
        m->moved = true;
    }
}

static void
take_change(void *ctx, const struct object *before, const struct object *after)
{
    const struct merging *m = ctx;
    const struct object *named = after != NULL ? after : before;

    if (schema_kind(named->kind)->belongs >= 0) {
        return; /* as live has it, settled again */
    }
    if (schema_kind(named->kind)->direct &&
        !draft_same(before, snapshot_by_id(m->live, named->kind, named->id))) {
        return; /* changed during the apply */
    }
    if (after != NULL) {
        snapshot_edit_put(m->x, object_ref(after));
    } else {
        snapshot_edit_remove(m->x, named->kind, named->id);
    }
}

/* *ret: live with the changes from base to candidate; NULL when there are none. Keys and
 * administrators that were changed during the apply stay as they are now. */
static err_t
merge(
    const struct snapshot *live, const struct snapshot *base, const struct snapshot *candidate,
    const struct snapshot **ret, struct error *e)
{
    struct merging m = {.live = live};
    struct snapshot *made = NULL;
    err_t code;

    snapshot_diff(base, live, look_for_move, &m);
    if (m.moved) {
        return error_set(e, ERR_CONFLICT, "the head moved during the apply");
    }
    if (base == candidate) {
        return ERR_OK;
    }
    m.x = snapshot_edit_new(live);
    snapshot_diff(base, candidate, take_change, &m);
    code = snapshot_seal(m.x, &made, e);
    if (code == ERR_OK) {
        *ret = made;
    }
    return code;
}

/* ---- rows of the draft ---- */

/* What was applied of the object, or NULL: nothing. */
static const struct draft_entry *
applied_of(const struct apply *a, const struct draft_row *row)
{
    bool applied =
        a->mode == APPLY_DRAFT && (!a->has_only || only_has(&a->only, row->kind, row->id));

    return applied ? view_entry(a->view, row->kind, row->id) : NULL;
}

/* Applied rows leave the draft; those that were edited on since stand on what was applied. */
static void
sort_rows(const struct apply *a, struct draft_list *leave, struct draft_list *rebase)
{
    const struct draft_list *draft = &a->en->live.draft;

    leave->rows = xcalloc(draft->count + 1, sizeof *leave->rows);
    rebase->rows = xcalloc(draft->count + 1, sizeof *rebase->rows);
    for (size_t i = 0; i < draft->count; i++) {
        struct draft_row row = draft->rows[i];
        const struct draft_entry *applied = applied_of(a, &row);
        const struct object *after = applied != NULL ? applied->after : NULL;

        if (applied == NULL) {
            continue;
        }
        row.object = row.object != NULL ? object_ref(row.object) : NULL;
        if (draft_same(row.object, after)) {
            leave->rows[leave->count++] = row;
            continue;
        }
        row.has_base = after != NULL;
        row.base = after != NULL ? after->objhash : (struct hash){{0}};
        rebase->rows[rebase->count++] = row;
    }
}

/* A crash between the commit and this leaves the row as a conflict, not lost. */
static void
rebase_rows(struct engine *en, const struct draft_list *rows)
{
    struct draft_plan plan = {.put = *rows};
    struct error error;

    if (draft_write(en, &plan, &error) != ERR_OK) {
        log_warning("edits made during the apply could not be rebased: %s", error.msg);
    }
}

/* ---- commit ---- */

static err_t
write_commit(struct apply *a, const struct snapshot_pair *to, struct error *e)
{
    CLEANUP(draft_list_free) struct draft_list leave = {.count = 0};
    CLEANUP(draft_list_free) struct draft_list rebase = {.count = 0};
    char summary[COMMIT_TEXT_BYTES];
    err_t code;

    if (a->note != NULL) {
        (void)snprintf(summary, sizeof summary, "%s", a->note);
    } else {
        commit_summary(&a->view->now, &a->candidate, summary);
    }
    sort_rows(a, &leave, &rebase);
    code = commit_write(
        a->en,
        &(struct commit_plan){
            .to = *to,
            .author = a->author,
            .summary = summary,
            .confirm_s = a->confirm_s,
            .ends_wait = a->mode == APPLY_BACK,
            .drop = leave.rows,
            .drop_count = leave.count},
        e);
    if (code == ERR_OK) {
        rebase_rows(a->en, &rebase);
    }
    return code;
}

/* What was committed at once during the apply may refer to what the apply deletes. */
static err_t
check_refs(const struct snapshot_pair *to, struct error *e)
{
    for (size_t i = 0; i < snapshot_count(to->shared); i++) {
        const struct object *o = snapshot_at(to->shared, i);

        if (schema_kind(o->kind)->direct && view_dangles(o, to)) {
            return error_set(
                e, ERR_CONFLICT,
                "the %s \"%s\" was changed meanwhile and is for something that this apply "
                "deletes: take that out of it first",
                schema_kind(o->kind)->name, o->name.s);
        }
    }
    return ERR_OK;
}

/* What belongs to others follows them, also what was committed during the apply, and comes
 * back with them. */
static err_t
merge_all(struct apply *a, struct snapshot_pair *to, struct error *e)
{
    const struct snapshot_pair *now = &a->view->now;
    const struct store_state *live = &a->en->live;
    err_t code = merge(live->shared, now->shared, a->candidate.shared, &to->shared, e);

    if (code == ERR_OK) {
        code = merge(live->local, now->local, a->candidate.local, &to->local, e);
    }
    if (code == ERR_OK) {
        code = belong_settle(to, e);
    }
    if (code == ERR_OK && to->shared != NULL) {
        code = check_refs(to, e);
    }
    return code == ERR_OK && to->shared != NULL
               ? belong_return(live->shared, a->candidate.shared, &to->shared, e)
               : code;
}

static err_t
commit_on_engine(struct engine *en, void *ctx, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair to = {NULL, NULL};
    struct apply *a = ctx;
    struct error unsaved;
    err_t code = ERR_OK;

    if (a->mode == APPLY_BACK && !confirm_waits_for(en, &a->unconfirmed.id)) {
        return error_set(e, ERR_CONFLICT, "it does not wait for its confirmation any more");
    }
    if (a->mode == APPLY_ADOPT) {
        code = commit_adopt(
            en, a->adopt, hash_equal(&a->base, &en->live.head.id) ? a->adopted : NULL,
            a->author, e);
    } else if (a->mode != APPLY_FOLLOW) {
        code = merge_all(a, &to, e);
        if (code == ERR_OK) {
            code = write_commit(a, &to, e);
        }
    }
    if (code != ERR_OK) {
        return code;
    }
    a->head = en->live.head;
    a->local_rev = en->live.local_rev;
    /* Committed is committed: the row follows with the next step, or with a reconcile. */
    if (apply_save_generation(a, GENERATION_ACTIVE, &unsaved) != ERR_OK) {
        log_warning(
            "cannot note the commit of generation %lld: %s", (long long)a->number, unsaved.msg);
    }
    return ERR_OK;
}

err_t
apply_commit(struct apply *a, struct error *e)
{
    return engine_run(a->en, commit_on_engine, a, e);
}
