/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/edit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "engine/commit.h"
#include "engine/members_clash.h"
#include "engine/operator.h"
#include "model/validate.h"

#define AUDIT_BYTES 128 /* a kind and a name */

struct edit_call {
    const struct change_set *set;
    const char *name; /* of the row to discard */
    enum kind kind;
    const struct actor *who;
    struct problems *p;
};

static int64_t
now_s(const struct engine *en)
{
    return clock_wall_ms(en->config->clock) / 1000;
}

/* Turns what the draft shows into after. A row that was left out may fit in now. */
static err_t
write_draft(
    struct engine *en, const struct view *v, const struct snapshot_pair *after,
    const struct actor *who, struct problems *p, struct error *e)
{
    CLEANUP(draft_plan_fini) struct draft_plan plan = {.put_cap = 0};
    err_t code = actor_may(en, who, v->draft.shared, after->shared, p, e);

    if (code == ERR_OK) {
        code = members_check_own(en, &v->draft, after, p, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    draft_plan_make(en, &v->draft, after, who, &plan);
    plan.shows = v->whole_draft ? after : NULL;
    return draft_write(en, &plan, e);
}

/* ---- changes ---- */

/* ERR_INVALID when a set mixes kinds that commit at once with kinds that are drafted. */
static err_t
find_direct(const struct change_set *set, bool *ret_direct, struct problems *p, struct error *e)
{
    size_t direct = 0;

    for (size_t i = 0; i < set->count; i++) {
        direct += schema_kind(set->items[i].kind)->direct ? 1 : 0;
    }
    if (direct > 0 && direct < set->count) {
        problems_add(
            p, SEVERITY_ERROR, "not_allowed", NULL,
            "Keys, administrators and server states change at once, the rest with Apply: send "
            "two requests.");
        return error_set(e, ERR_INVALID, "a change at once cannot be mixed with drafted ones");
    }
    *ret_direct = direct > 0;
    return ERR_OK;
}

static err_t
edit_on_engine(struct engine *en, void *ctx, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct edit_call *call = ctx;
    bool direct = false;
    err_t code = find_direct(call->set, &direct, call->p, e);

    if (code != ERR_OK) {
        return code;
    }
    if (direct) {
        code = commit_direct(en, call->set, NULL, call->who, call->p, e);
        if (code == ERR_OK) {
            operator_note(en, call->set);
        }
        return code;
    }
    code = edit_check(call->set, &v->draft, now_s(en), &after, call->p, e);
    return code != ERR_OK ? code : write_draft(en, v, &after, call->who, call->p, e);
}

err_t
edit_draft(
    struct engine *en, const struct change_set *set, const struct actor *who,
    struct problems *p, struct error *e)
{
    struct edit_call call = {.set = set, .who = who, .p = p};

    return engine_run(en, edit_on_engine, &call, e);
}

err_t
edit_try(
    struct engine *en, const struct change_set *set, struct snapshot **ret_shared,
    struct snapshot **ret_local, struct problems *p, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    bool direct = false;
    err_t code = find_direct(set, &direct, p, e);

    if (code == ERR_OK) {
        code = edit_check(set, &v->draft, now_s(en), &after, p, e);
    }
    if (code == ERR_OK && !direct) {
        code = members_check_own(en, &v->draft, &after, p, e);
    }
    if (code == ERR_OK) {
        *ret_shared = snapshot_ref(after.shared);
        *ret_local = snapshot_ref(after.local);
    }
    return code;
}

/* ---- discarding ---- */

/* What the draft would be without the row. */
static err_t
without_entry(
    const struct view *v, const struct draft_entry *entry, struct snapshot_pair *ret,
    struct error *e)
{
    const struct snapshot *from = snapshot_of(&v->draft, entry->kind);
    struct snapshot_edit *x = snapshot_edit_new(from);
    struct snapshot *made = NULL;
    err_t code;

    if (entry->before != NULL) {
        snapshot_edit_put(x, object_ref(entry->before));
    } else {
        snapshot_edit_remove(x, entry->kind, entry->id);
    }
    code = snapshot_seal(x, &made, e);
    if (code != ERR_OK) {
        return code;
    }
    if (schema_kind(entry->kind)->scope == SCOPE_SHARED) {
        *ret = (struct snapshot_pair){made, snapshot_ref(v->draft.local)};
    } else {
        *ret = (struct snapshot_pair){snapshot_ref(v->draft.shared), made};
    }
    return ERR_OK;
}

static err_t
drop_entry(
    struct engine *en, const struct draft_entry *entry, const struct actor *who,
    struct error *e)
{
    struct draft_row row = {.kind = entry->kind};
    struct draft_plan plan = {.drop = {&row, 1}};
    char text[AUDIT_BYTES];
    err_t code;

    memcpy(row.id, entry->id, strlen(entry->id) + 1);
    code = draft_write(en, &plan, e);
    if (code == ERR_OK) {
        (void)snprintf(text, sizeof text, "%s %s", schema_kind(entry->kind)->name, entry->name);
        engine_audit(en, who->name, "draft_discard", text);
    }
    return code;
}

static err_t
discard_on_engine(struct engine *en, void *ctx, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, NULL};
    const struct edit_call *call = ctx;
    const struct draft_entry *entry = view_entry_named(v, call->kind, call->name);
    err_t code;

    if (entry == NULL) {
        return error_set(
            e, ERR_NOT_FOUND, "the draft does not change %s %s", schema_kind(call->kind)->name,
            call->name);
    }
    code = without_entry(v, entry, &after, e);
    if (code != ERR_OK) {
        return code;
    }
    if (entry->before == NULL) {
        (void)validate_in_use(&v->draft, entry->kind, entry->id, call->p);
    }
    if (call->p->errors == 0) {
        (void)edit_new_errors(&v->draft, &after, now_s(en), call->p);
    }
    if (call->p->errors > 0) {
        return error_set(
            e, ERR_CONFLICT, "the draft needs the change of %s %s: %s",
            schema_kind(call->kind)->name, call->name, edit_first_error(call->p));
    }
    return drop_entry(en, entry, call->who, e);
}

err_t
edit_discard(
    struct engine *en, enum kind kind, const char *name, const struct actor *who,
    struct problems *p, struct error *e)
{
    struct edit_call call = {.kind = kind, .name = name, .who = who, .p = p};

    return engine_run(en, discard_on_engine, &call, e);
}

static err_t
discard_all_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct edit_call *call = ctx;
    err_t code;

    if (en->live.draft.count == 0) {
        return ERR_OK;
    }
    code = store_draft_clear(en->store, e);
    if (code != ERR_OK) {
        return code;
    }
    draft_list_free(&en->live.draft);
    en->live.draft = (struct draft_list){.rows = NULL};
    view_publish(en);
    engine_audit(en, call->who->name, "draft_discard", "the whole draft");
    return ERR_OK;
}

err_t
edit_discard_all(struct engine *en, const struct actor *who, struct error *e)
{
    struct edit_call call = {.who = who};

    return engine_run(en, discard_all_on_engine, &call, e);
}
