/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/commit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "engine/generation.h"
#include "engine/members.h"
#include "store/sessions.h"

#define SUMMARY_ROOM 160 /* bytes of the summary that name objects; then "and 3 more" */

/* ---- summary ---- */

struct summary {
    struct buf text;
    size_t left_out;
};

static void
sum_up(void *ctx, const struct object *before, const struct object *after)
{
    struct summary *s = ctx;
    const struct object *named = after != NULL ? after : before;
    const char *verb = before == NULL ? "created" : "changed";

    ASSERT(named != NULL);
    if (after == NULL) {
        verb = "deleted";
    }
    if (s->left_out > 0 || s->text.len + named->name.len + 32 > SUMMARY_ROOM) {
        s->left_out++;
        return;
    }
    buf_printf(
        &s->text, "%s%s %s %s", s->text.len > 0 ? ", " : "", verb,
        schema_kind(named->kind)->name, named->name.s);
}

void
commit_summary(
    const struct snapshot_pair *before, const struct snapshot_pair *after,
    char out[COMMIT_TEXT_BYTES])
{
    struct summary s = {.left_out = 0};

    buf_init(&s.text, COMMIT_TEXT_BYTES - 1);
    snapshot_diff(before->shared, after->shared, sum_up, &s);
    snapshot_diff(before->local, after->local, sum_up, &s);
    if (s.left_out > 0) {
        buf_printf(&s.text, " and %zu more", s.left_out);
    }
    (void)snprintf(out, COMMIT_TEXT_BYTES, "%s", buf_str(&s.text));
    buf_fini(&s.text);
}

/* ---- writing ---- */

static int
compare_rows(const void *a, const void *b)
{
    return draft_row_compare(a, b);
}

static void
drop_rows(struct engine *en, const struct commit_plan *plan)
{
    struct draft_list *draft = &en->live.draft;
    size_t kept = 0;

    if (plan->drop_count == 0) {
        return;
    }
    for (size_t i = 0; i < draft->count; i++) {
        if (bsearch(
                &draft->rows[i], plan->drop, plan->drop_count, sizeof *plan->drop,
                compare_rows) != NULL) {
            object_unref(draft->rows[i].object);
        } else {
            draft->rows[kept++] = draft->rows[i];
        }
    }
    draft->count = kept;
}

static void
take_over(struct snapshot **live, const struct snapshot *to)
{
    if (to != NULL) {
        snapshot_unref(*live);
        *live = snapshot_ref(to);
    }
}

err_t
commit_write(struct engine *en, const struct commit_plan *plan, struct error *e)
{
    struct store_state *live = &en->live;
    struct commit_request q = {
        .shared_to = plan->to.shared,
        .local_to = plan->to.local,
        .node = snapshot_singleton(live->local, K_NODE)->name.s,
        .author = plan->author,
        .summary = plan->summary,
        .at_ms = clock_wall_ms(en->config->clock),
        .ends_wait = plan->ends_wait,
        .drop_draft = plan->drop,
        .drop_draft_count = plan->drop_count,
    };
    struct member unused;
    struct commit head;
    int64_t local_rev = 0;
    err_t code;

    q.schema_version = members_level(en, &unused);
    q.confirm_until_ms = plan->confirm_s > 0 ? q.at_ms + plan->confirm_s * 1000 : 0;
    code = store_commit(en->store, &q, &head, &local_rev, e);
    if (code != ERR_OK) {
        return code;
    }
    live->head = head;
    live->local_rev = local_rev;
    take_over(&live->shared, plan->to.shared);
    take_over(&live->local, plan->to.local);
    drop_rows(en, plan);
    if (plan->to.local != NULL) {
        members_refresh(en);
    }
    draft_settle(en);
    view_publish(en);
    confirm_follow(en);
    return ERR_OK;
}

static struct adopt_request
adopt_request_of(const struct sync_doc *d, const struct snapshot *shared, const char *author)
{
    return (struct adopt_request){
        .commits = &d->commits,
        .bodies = d->objects,
        .body_count = d->object_count,
        .move_head = true,
        .head = d->head,
        .shared_to = shared,
        .author = author,
    };
}

err_t
commit_adopt_check(
    struct engine *en, const struct sync_doc *d, const struct snapshot *shared, struct error *e)
{
    struct adopt_request q = adopt_request_of(d, shared, "");
    struct commit unused;

    q.only_check = true;
    return store_adopt(en->store, &q, &unused, e);
}

err_t
commit_adopt(
    struct engine *en, const struct sync_doc *d, const struct snapshot *shared,
    const char *author, struct error *e)
{
    struct store_state *live = &en->live;
    struct adopt_request q = adopt_request_of(d, shared, author);
    struct commit head;
    err_t code;

    if (shared == NULL && hash_equal(&d->head, &live->head.id)) {
        return ERR_OK; /* it came on another way meanwhile */
    }
    if (shared == NULL) {
        return error_set(e, ERR_CONFLICT, "the head moved during the apply");
    }
    code = store_adopt(en->store, &q, &head, e);
    if (code != ERR_OK) {
        return code;
    }
    live->head = head;
    take_over(&live->shared, shared);
    draft_settle(en);
    view_publish(en);
    confirm_follow(en);
    return ERR_OK;
}

/* ---- direct kinds ---- */

struct patching {
    const json_t *patch;
    struct snapshot_edit *x;
    err_t code;
    struct error *e;
};

static void
patch_object(void *ctx, const struct object *before, const struct object *after)
{
    struct patching *t = ctx;
    struct object *made = NULL;

    if (before != NULL || after == NULL || t->code != ERR_OK) {
        return;
    }
    t->code = object_with(after, t->patch, &made, t->e);
    if (t->code == ERR_OK) {
        snapshot_edit_put(t->x, made);
    }
}

static err_t
patch_created(
    const struct snapshot *before, const struct snapshot **after, const json_t *patch,
    struct error *e)
{
    struct patching t = {.patch = patch, .x = snapshot_edit_new(*after), .e = e};
    struct snapshot *made = NULL;

    snapshot_diff(before, *after, patch_object, &t);
    if (t.code != ERR_OK) {
        snapshot_edit_free(t.x);
        return t.code;
    }
    t.code = snapshot_seal(t.x, &made, e);
    if (t.code == ERR_OK) {
        snapshot_unref(*after);
        *after = made;
    }
    return t.code;
}

struct ending {
    struct engine *en;
    err_t code;
    struct error *e;
};

/* Sessions of an administrator end when the name or the password is another now. They end
 * before the commit: if that fails, people sign in again; the other way round a crash between
 * the two would leave a stolen session alive. */
static void
end_sessions(void *ctx, const struct object *before, const struct object *after)
{
    struct ending *t = ctx;

    if (before == NULL || before->kind != K_ADMIN || t->code != ERR_OK) {
        return;
    }
    if (after != NULL && strcmp(before->name.s, after->name.s) == 0 &&
        strcmp(
            object_text(before, F_ADMIN_PASSWORD).s, object_text(after, F_ADMIN_PASSWORD).s) ==
            0) {
        return;
    }
    sessions_remove_admin(t->en->sessions, before->name.s);
    t->code = store_session_remove_admin(t->en->store, before->name.s, t->e);
}

static size_t
admin_count(const struct snapshot *local)
{
    const struct object *const *items;

    return snapshot_kind(local, K_ADMIN, &items);
}

/* NULL where nothing differs. */
static void
forget_equal(struct snapshot_pair *to, const struct snapshot_pair *now)
{
    struct hash a = snapshot_fp(to->shared, SCHEMA_VERSION);
    struct hash b = snapshot_fp(now->shared, SCHEMA_VERSION);

    if (hash_equal(&a, &b)) {
        snapshot_unref(TAKE(to->shared));
    }
    a = snapshot_fp(to->local, SCHEMA_VERSION);
    b = snapshot_fp(now->local, SCHEMA_VERSION);
    if (hash_equal(&a, &b)) {
        snapshot_unref(TAKE(to->local));
    }
}

void
commit_carry_generation(struct engine *en, const struct hash *head, int64_t local_rev)
{
    char digest[RENDER_DIGEST_HEX + 1];
    struct generation g;
    struct error error;

    lock_take(&en->lock);
    memcpy(digest, en->follow.digest, sizeof digest);
    lock_give(&en->lock);
    if (store_generation_find(en->store, digest, 0, &g, &error) != ERR_OK ||
        !hash_equal(&g.commit, head) || g.local_rev != local_rev) {
        return;
    }
    g.commit = en->live.head.id;
    g.local_rev = en->live.local_rev;
    if (generation_put(en, &g, &error) != ERR_OK) {
        log_warning(
            "cannot note the commit of generation %lld: %s", (long long)g.number, error.msg);
    }
    engine_wake(en);
}

err_t
commit_direct(
    struct engine *en, const struct change_set *set, const json_t *patch,
    const struct actor *who, struct problems *p, struct error *e)
{
    CLEANUP(pair_cleanup) struct snapshot_pair to = {NULL, NULL};
    struct snapshot_pair now = {en->live.shared, en->live.local};
    struct ending ending = {.en = en, .e = e};
    struct hash head = en->live.head.id;
    int64_t local_rev = en->live.local_rev;
    char summary[COMMIT_TEXT_BYTES];
    err_t code = edit_check(set, &now, clock_wall_ms(en->config->clock) / 1000, &to, p, e);

    if (code == ERR_OK && patch != NULL) {
        code = patch_created(now.shared, &to.shared, patch, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (admin_count(now.local) > 0 && admin_count(to.local) == 0) {
        return error_set(e, ERR_CONFLICT, "the last administrator cannot be deleted");
    }
    code = actor_may(en, who, now.shared, to.shared, p, e);
    if (code != ERR_OK) {
        return code;
    }
    commit_summary(&now, &to, summary);
    snapshot_diff(now.local, to.local, end_sessions, &ending);
    if (ending.code != ERR_OK) {
        return ending.code;
    }
    forget_equal(&to, &now);
    if (to.shared == NULL && to.local == NULL) {
        return ERR_OK;
    }
    code = commit_write(
        en, &(struct commit_plan){.to = to, .author = who->name, .summary = summary}, e);
    if (code == ERR_OK) {
        const struct engine_cluster *cluster = engine_cluster_take(en);

        commit_carry_generation(en, &head, local_rev);
        if (cluster != NULL) {
            cluster->changed(cluster->ctx);
            engine_cluster_give(en);
        }
    }
    return code;
}
