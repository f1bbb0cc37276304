/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/apply_job.h"
#include "engine/members.h"
#include "engine/members_clash.h"
#include "engine/operator.h"
#include "engine/sync.h"
#include "haproxy/admin.h"
#include "model/validate.h"

#define ANSWER_BYTES ((size_t)2 << 20)

typedef enum apply_event (*action_fn)(struct apply *a, struct error *e);

void
apply_detail(struct apply *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(a->detail, sizeof a->detail, fmt, ap);
    va_end(ap);
}

static enum apply_event
event_of(err_t code)
{
    return code == ERR_OK ? AE_OK : AE_FAIL;
}

/* ---- plan ---- */

static err_t
check_base(const struct apply *a, struct error *e)
{
    char hex[SHA256_HEX + 1];

    if (!a->has_base || hash_equal(&a->base, &a->view->head.id)) {
        return ERR_OK;
    }
    hash_hex(&a->view->head.id, hex);
    return error_set(
        e, ERR_CONFLICT, "the head is revision %lld, %s", (long long)a->view->head.rev, hex);
}

static err_t
take_draft(struct apply *a, struct error *e)
{
    err_t code = only_check_conflicts(a->view, a->has_only ? &a->only : NULL, e);

    if (code == ERR_OK && a->has_only) {
        return only_candidate(
            a->view, &a->only, clock_wall_ms(a->en->config->clock) / 1000, &a->candidate,
            a->problems, e);
    }
    if (code == ERR_OK) {
        a->candidate = pair_ref(&a->view->draft);
    }
    return code;
}

static err_t
back_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct apply *a = ctx;
    const struct snapshot *shared = NULL;
    err_t code = confirm_content(en, &shared, &a->unconfirmed, e);

    if (code == ERR_OK) {
        a->candidate = (struct snapshot_pair){shared, snapshot_ref(a->view->now.local)};
    }
    return code;
}

static err_t
make_candidate(struct apply *a, struct error *e)
{
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    err_t code;

    switch (a->mode) {
    case APPLY_DRAFT: return take_draft(a, e);
    case APPLY_BACK: return engine_run(a->en, back_on_engine, a, e);
    case APPLY_OPS:
        code = change_apply(&a->ops, &a->view->now, &shared, &local, a->problems, e);
        if (code == ERR_OK) {
            a->candidate = (struct snapshot_pair){shared, local};
        }
        return code;
    case APPLY_TRIAL:
    case APPLY_ADOPT:
        a->candidate =
            (struct snapshot_pair){snapshot_ref(a->adopted), snapshot_ref(a->view->now.local)};
        return ERR_OK;
    case APPLY_FOLLOW: break;
    }
    a->candidate = pair_ref(&a->view->now);
    return ERR_OK;
}

static void
note_difference(void *ctx, const struct object *before, const struct object *after)
{
    size_t *count = ctx;

    (void)before;
    (void)after;
    (*count)++;
}

/* By a push or a pull of the same that went ahead of this one. */
static bool
is_taken_over(const struct apply *a)
{
    struct sync_view seen = {.have = false};
    struct error unused;

    return a->mode == APPLY_ADOPT && !hash_equal(&a->base, &a->view->head.id) &&
           sync_look(a->en, &a->adopt->head, &seen, &unused) == ERR_OK && seen.leads;
}

static enum apply_event
act_plan(struct apply *a, struct error *e)
{
    size_t changes = 0;
    size_t errors;
    err_t code;

    a->view = engine_view(a->en);
    if (is_taken_over(a)) {
        return AE_NOTHING;
    }
    code = check_base(a, e);
    if (code == ERR_OK && a->mode == APPLY_TRIAL) {
        code = standby_check(a->en, &a->trial, e);
    }
    if (code == ERR_OK) {
        code = make_candidate(a, e);
    }
    if (code == ERR_OK && apply_changes_content(a)) {
        code = confirm_refuse(a->en, &a->view->now, &a->candidate, e);
    }
    if (code == ERR_OK && a->confirm_s > 0) {
        code = apply_check_confirm(&a->view->now, &a->candidate, a->problems, e);
    }
    if (code != ERR_OK) {
        return AE_FAIL;
    }
    snapshot_diff(a->view->now.shared, a->candidate.shared, note_difference, &changes);
    snapshot_diff(a->view->now.local, a->candidate.local, note_difference, &changes);
    if (changes == 0 && apply_changes_content(a)) {
        return AE_NOTHING;
    }
    errors = a->problems->errors;
    validate_all(&a->candidate, clock_wall_ms(a->en->config->clock) / 1000, a->problems);
    if (apply_changes_content(a)) {
        validate_webui_kept(&a->view->now, &a->candidate, a->problems);
        /* Another node may have been renamed since this was asked for. */
        code = members_check_own(a->en, &a->view->now, &a->candidate, a->problems, e);
    }
    if (code != ERR_OK || a->problems->errors > errors) {
        return event_of(error_set(e, ERR_INVALID, "%s", edit_first_error(a->problems)));
    }
    if (a->mode != APPLY_FOLLOW) {
        apply_detail(a, "%zu changed", changes);
    }
    return AE_OK;
}

/* ---- render ---- */

/* The digest is that of the files of this number. */
static bool
is_generation(struct apply *a, int64_t number, const char *digest)
{
    struct generation g;
    struct error unused;

    return number != 0 && generation_number(a->en, number, &g, &unused) == ERR_OK &&
           strcmp(g.digest, digest) == 0;
}

/* The way back leads to what HAProxy runs. The same files may stand under several numbers:
 * those that the helper surely keeps come first. While HAProxy does not answer, it leads to
 * what served last. */
static int64_t
find_former(struct apply *a, const struct helper_status *status)
{
    struct generation newest;
    struct error unused;

    if (!a->running_known || is_generation(a, status->good, a->former_digest)) {
        return status->good;
    }
    if (is_generation(a, status->current, a->former_digest)) {
        return status->current;
    }
    return generation_find(a->en, a->former_digest, &newest, &unused) == ERR_OK ? newest.number
                                                                                : status->good;
}

static err_t
look_around(struct apply *a, int64_t *ret_current, struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ANSWER_BYTES);
    struct engine *en = a->en;
    struct helper_status status;
    struct haproxy_info info;
    struct error unused;
    err_t code = helper_get_status(&en->helper, arena, &status, e);

    if (code != ERR_OK) {
        return code;
    }
    if (admin_info(en->admin_socket, en->config->tunables->socket_ms, &info, &unused) ==
        ERR_OK) {
        memcpy(a->former_digest, info.running, sizeof info.running);
        a->running_known = info.running[0] != '\0';
    }
    /* What was tried for another node did not serve here before. */
    a->former = standby_gives_way(en, a->files->digest, a->view->local_rev)
                    ? status.good
                    : find_former(a, &status);
    a->old_workers = status.old_worker_count;
    *ret_current = status.current;
    return ERR_OK;
}

static enum apply_event
begin_trial(const struct apply *a, struct error *e)
{
    struct standby t = {.commit = a->trial, .local_rev = a->view->local_rev};

    memcpy(t.digest, a->files->digest, sizeof t.digest);
    return standby_begin(a->en, &t, e) == ERR_OK ? AE_TRIED : AE_FAIL;
}

static enum apply_event
act_render(struct apply *a, struct error *e)
{
    CLEANUP(members_tables_fini) struct members_tables tables;
    int64_t current = 0;
    err_t code;

    /* Before: what changes meanwhile leads to another reconcile. */
    members_tables_get(a->en, &tables);
    a->tables = tables.digest;
    code = generation_render(a->en, &a->candidate, a->problems, &a->files, e);
    if (code == ERR_OK) {
        code = look_around(a, &current, e);
    }
    if (code != ERR_OK) {
        return AE_FAIL;
    }
    apply_detail(
        a, "%zu file%s, digest %s", a->files->count, PLURAL(a->files->count), a->files->digest);
    if (a->anew || !a->running_known || strcmp(a->former_digest, a->files->digest) != 0 ||
        !is_generation(a, current, a->files->digest)) {
        return AE_OK;
    }
    a->same = true;
    a->number = current;
    a->former = current;
    /* A reconcile promises that it serves. */
    if (a->mode == APPLY_FOLLOW &&
        serving_confirm(a->en, a->files->digest, a->candidate.shared, e) != ERR_OK) {
        return AE_FAIL;
    }
    if (a->mode == APPLY_TRIAL) {
        return begin_trial(a, e);
    }
    return apply_asks_peers(a) ? AE_SAME : AE_NOTHING;
}

/* ---- check, bind ---- */

/* Accepted here for the apply of which this is the push, and still there: those that are not
 * in use leave in time. 0: there is none. */
static int64_t
take_kept(const struct apply *a)
{
    int64_t number = kept_take(a->en, a->files->digest, a->view->local_rev);
    char path[PATH_MAX];

    (void)snprintf(
        path, sizeof path, "%s/%lld/haproxy.cfg", a->en->generation_dir, (long long)number);
    return number != 0 && file_exists_at(AT_FDCWD, path) ? number : 0;
}

static enum apply_event
act_check(struct apply *a, struct error *e)
{
    struct generation_check check = {0};
    struct generation known;
    struct error unused;
    int64_t kept = 0;
    err_t code = ERR_OK;

    /* A reconcile that is repeated must not fill the disk with equal generations. */
    if (a->mode == APPLY_FOLLOW && !a->anew &&
        generation_find(a->en, a->files->digest, &known, &unused) == ERR_OK) {
        check.number = known.number;
    }
    if (a->mode == APPLY_ADOPT || a->mode == APPLY_TRIAL) {
        kept = take_kept(a);
    }
    if (kept != 0) {
        check.number = kept;
    } else {
        code = generation_stage(a->en, a->files, &check, a->problems, e);
    }
    a->number = check.number;
    if (code == ERR_OK) {
        code = apply_save_generation(a, GENERATION_STAGED, e);
    }
    if (kept != 0) {
        apply_detail(a, "generation %lld, checked before", (long long)kept);
    } else if (check.only_weights) {
        apply_detail(
            a, "generation %lld, only weights differ from what the checker accepted",
            (long long)check.number);
    } else {
        apply_detail(
            a, "generation %lld, %zu warning%s", (long long)check.number, check.warnings,
            PLURAL(check.warnings));
    }
    return event_of(code);
}

static enum apply_event
act_bind(struct apply *a, struct error *e)
{
    const struct snapshot_pair *held = a->mode == APPLY_FOLLOW ? NULL : &a->view->now;
    size_t count = 0;
    err_t code = generation_bind_test(a->en, &a->candidate, held, &count, a->problems, e);

    apply_detail(a, "%zu tried", count);
    return code == ERR_OK && !apply_asks_peers(a) ? AE_NOTHING : event_of(code);
}

/* ---- activate, load, verify ---- */

static enum apply_event
act_activate(struct apply *a, struct error *e)
{
    err_t code = apply_save_generation(a, GENERATION_ACTIVE, e);

    if (code == ERR_OK) {
        a->switched = true;
        code = helper_install(&a->en->helper, a->number, e);
    }
    return event_of(code);
}

/* What goes back, or comes from another node, is about its own states, not about those of the
 * head: a server that comes back in maintenance must get no visitors until the commit. */
static bool
brings_states(const struct apply *a)
{
    return a->mode == APPLY_BACK || a->mode == APPLY_ADOPT || a->mode == APPLY_TRIAL;
}

static enum apply_event
act_load(struct apply *a, struct error *e)
{
    err_t code = apply_load(a, e);

    if (code == ERR_OK) {
        operator_put(a->en, a->candidate.shared, brings_states(a) ? a->candidate.shared : NULL);
    }
    return event_of(code);
}

static enum apply_event
act_verify(struct apply *a, struct error *e)
{
    err_t code = serving_confirm(a->en, a->files->digest, a->candidate.shared, e);

    if (code == ERR_OK && a->mode == APPLY_TRIAL) {
        return begin_trial(a, e);
    }
    return event_of(code);
}

/* ---- commit, settle ---- */

static enum apply_event
act_commit(struct apply *a, struct error *e)
{
    err_t code = apply_commit(a, e);

    if (code != ERR_OK) {
        return AE_FAIL;
    }
    standby_end(a->en);
    /* Where nothing was loaded, servers may have become others all the same; what brings states
     * put them without those that were decided meanwhile. */
    if (a->same && a->mode != APPLY_FOLLOW) {
        operator_put_changed(a->en, a->view->now.shared, a->candidate.shared);
    } else if (a->same || brings_states(a)) {
        operator_put(a->en, a->candidate.shared, NULL);
    }
    apply_detail(a, "revision %lld", (long long)a->head.rev);
    return AE_OK;
}

static enum apply_event
act_settle(struct apply *a, struct error *e)
{
    err_t code = helper_settle(&a->en->helper, a->number, kept_number(a->en), e);

    if (code == ERR_OK) {
        code = apply_save_generation(a, GENERATION_GOOD, e);
    }
    return code == ERR_OK && !apply_hands_on(a) ? AE_NOTHING : event_of(code);
}

/* ---- back ---- */

static enum apply_event
act_back(struct apply *a, struct error *e)
{
    struct error unsaved;

    if (!a->switched) {
        apply_detail(a, "nothing was switched");
        return AE_OK;
    }
    if (apply_save_generation(a, GENERATION_FAILED, &unsaved) != ERR_OK) {
        log_warning(
            "cannot mark generation %lld as failed: %s", (long long)a->number, unsaved.msg);
    }
    if (a->former == 0) {
        return event_of(error_set(e, ERR_NOT_FOUND, "there was no revision before"));
    }
    apply_detail(a, "generation %lld", (long long)a->former);
    return event_of(helper_install(&a->en->helper, a->former, e));
}

static enum apply_event
act_back_load(struct apply *a, struct error *e)
{
    err_t code = a->switched ? apply_reload(a, a->former, NULL, e) : ERR_OK;

    if (a->switched && code == ERR_OK) {
        operator_put(a->en, a->view->now.shared, NULL);
    }
    return event_of(code);
}

/* What is so though the former revision, where there is one, was not seen to serve. */
static const char *
what_runs(const struct apply *a)
{
    bool has_former = a->former != 0 && a->former_digest[0] != '\0';
    struct haproxy_info info;
    struct error unused;

    if (admin_info(a->en->admin_socket, a->en->config->tunables->socket_ms, &info, &unused) !=
        ERR_OK) {
        return "HAProxy does not answer on its admin socket";
    }
    if (info.running[0] == '\0') {
        return "HAProxy does not say which revision it runs";
    }
    if (strcmp(info.running, a->files->digest) == 0) {
        return "HAProxy still runs the new revision, which is not saved";
    }
    if (!has_former) {
        return "HAProxy does not run the new revision";
    }
    return strcmp(info.running, a->former_digest) == 0
               ? "HAProxy runs the former revision, which does not serve"
               : "HAProxy runs neither the new revision nor the former";
}

static err_t
confirm_former(struct apply *a, struct error *e)
{
    const struct snapshot *shared = NULL;
    struct generation former;
    struct error unused;

    if (a->former == 0) {
        return error_set(e, ERR_NOT_FOUND, "there was no revision before");
    }
    if (generation_number(a->en, a->former, &former, &unused) == ERR_OK) {
        memcpy(a->former_digest, former.digest, sizeof a->former_digest);
        /* Its listeners are known when it is the head. */
        shared = reconcile_is_head(a->en, a->former_digest) ? a->view->now.shared : NULL;
    } else if (!a->running_known) {
        return error_set(e, ERR_NOT_FOUND, "the revision before is not known");
    }
    return serving_confirm(a->en, a->former_digest, shared, e);
}

static enum apply_event
act_back_verify(struct apply *a, struct error *e)
{
    err_t code = confirm_former(a, e);

    if (code != ERR_OK) {
        a->left = what_runs(a);
    }
    return event_of(code);
}

/* ---- table ---- */

/* Of final states, and of those that have a file of their own. */
#define act_none  NULL
#define act_peers apply_peers
#define act_trial apply_try_standby
#define act_push  apply_push

static const action_fn actions[] = {
#define STATE_ACTION(state, text, action) [AS_##state] = act_##action,
    APPLY_STATES(STATE_ACTION)
#undef STATE_ACTION
};

enum apply_event
apply_act(enum apply_state state, struct apply *a, struct error *e)
{
    ASSERT(!apply_state_final(state));
    a->detail[0] = '\0';
    return actions[state](a, e);
}
