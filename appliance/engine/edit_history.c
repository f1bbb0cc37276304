/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/date.h"
#include "base/file.h"
#include "base/x509.h"
#include "engine/edit.h"
#include "engine/inner.h"
#include "engine/members_clash.h"
#include "model/belong.h"

#define PATH_BYTES  ((size_t)4096)
#define NAMES_BYTES ((size_t)1 << 20)

struct history_call {
    int64_t before_rev;
    size_t limit;
    const char *spec;
    bool old_certificates;
    const struct actor *who;
    struct problems *p;
    struct commit *ret_commit;
    struct commit **ret_commits;
    size_t *ret_count;
};

/* ---- reading ---- */

static err_t
commits_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct history_call *call = ctx;

    return store_commits(
        en->store, call->before_rev, call->limit, call->ret_commits, call->ret_count, e);
}

err_t
edit_commits(
    struct engine *en, int64_t before_rev, size_t limit, struct commit **ret, size_t *ret_count,
    struct error *e)
{
    struct history_call call = {
        .before_rev = before_rev, .limit = limit, .ret_commits = ret, .ret_count = ret_count};

    return engine_run(en, commits_on_engine, &call, e);
}

static err_t
find_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct history_call *call = ctx;

    return store_commit_find(en->store, call->spec, call->ret_commit, e);
}

err_t
edit_commit_find(struct engine *en, const char *spec, struct commit *ret, struct error *e)
{
    struct history_call call = {.spec = spec, .ret_commit = ret};

    return engine_run(en, find_on_engine, &call, e);
}

err_t
edit_commit_content(
    struct engine *en, const struct hash *id, struct snapshot **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct store *reader = NULL;
    err_t code = store_open_read(en->data_dir, en->config->clock, &reader, e);

    if (code == ERR_OK) {
        store_alike(reader, v->now.shared);
        code = store_commit_content(reader, id, ret, e);
        store_close(reader);
    }
    return code;
}

/* ---- restore ---- */

struct merging {
    struct snapshot_edit *x;
};

static void
take_drafted_kind(void *ctx, const struct object *before, const struct object *after)
{
    const struct merging *m = ctx;
    const struct object *named = after != NULL ? after : before;

    if (schema_kind(named->kind)->direct) {
        return;
    }
    if (after != NULL) {
        snapshot_edit_put(m->x, object_ref(after));
    } else {
        snapshot_edit_remove(m->x, named->kind, named->id);
    }
}

err_t
edit_merge_content(
    const struct snapshot *head, const struct snapshot *content, struct snapshot **ret,
    struct error *e)
{
    struct merging m = {snapshot_edit_new(head)};

    snapshot_diff(head, content, take_drafted_kind, &m);
    return snapshot_seal(m.x, ret, e);
}

/* ---- certificates that were renewed since ---- */

struct keeping {
    const struct snapshot *now;
    long long rev; /* that is restored */
    struct snapshot_edit *x;
    struct problems *told;
};

static bool
names_all_of(const struct object *present, const struct object *old)
{
    CLEANUP(buf_fini) struct buf names = {0};
    CLEANUP(buf_fini) struct buf wanted = {0};
    struct text chain[] = {
        object_text(present, F_CERTIFICATE_CHAIN), object_text(old, F_CERTIFICATE_CHAIN)};

    buf_init(&names, NAMES_BYTES);
    buf_init(&wanted, NAMES_BYTES);
    (void)x509_server_names(chain[0].s, chain[0].len, &names);
    (void)x509_server_names(chain[1].s, chain[1].len, &wanted);
    return x509_names_cover(buf_str(&names), buf_str(&wanted));
}

/* What a person gave goes before a placeholder; else a renewal: what is for the same names, and
 * perhaps more, and valid for longer. */
static bool
is_newer(const struct object *present, const struct object *old, int64_t until_s[2])
{
    const struct object *sides[] = {present, old};
    bool upload[2];

    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        struct text chain = object_text(sides[i], F_CERTIFICATE_CHAIN);
        struct x509_info info;

        if (x509_read(chain.s, chain.len, &info, NULL) != ERR_OK) {
            return false;
        }
        until_s[i] = info.not_after_s;
        upload[i] = object_int(sides[i], F_CERTIFICATE_SOURCE) == V_CERTIFICATE_SOURCE_UPLOAD;
    }
    return upload[0] != upload[1] ? upload[0]
                                  : until_s[0] > until_s[1] && names_all_of(present, old);
}

static void
keep_newer(void *ctx, const struct object *before, const struct object *after)
{
    struct keeping *k = ctx;
    const struct object *present = before;
    struct object *kept = NULL;
    int64_t until_s[2];
    char until[2][DATE_TEXT_BYTES];

    if (after == NULL || after->kind != K_CERTIFICATE) {
        return;
    }
    if (present == NULL) {
        present = snapshot_by_name(k->now, K_CERTIFICATE, after->name.s);
    }
    if (present == NULL || !is_newer(present, after, until_s)) {
        return;
    }
    json_auto_t *patch = json_pack(
        "{s:s, s:s, s:s}", "chain", object_text(present, F_CERTIFICATE_CHAIN).s, "key",
        object_text(present, F_CERTIFICATE_KEY).s, "source",
        schema_kind(K_CERTIFICATE)
            ->fields[F_CERTIFICATE_SOURCE]
            .values[object_int(present, F_CERTIFICATE_SOURCE)]);
    err_t code = object_with(after, patch, &kept, NULL);

    ASSERT(code == ERR_OK);
    snapshot_edit_put(k->x, kept);
    date_format(until_s[0] * 1000, until[0]);
    date_format(until_s[1] * 1000, until[1]);
    problems_add(
        k->told, SEVERITY_WARNING, "kept",
        &(struct problem){.kind = "certificate", .name = after->name.s, .pointer = "/chain"},
        "The present certificate and key are kept (valid until %.10s), not those of revision "
        "%lld (%.10s). To go back to those too, restore with old_certificates.",
        until[0], k->rev, until[1]);
}

/* In place of *content, which goes. */
static err_t
keep_newer_certificates(
    const struct snapshot *now, int64_t rev, struct snapshot **content, struct problems *told,
    struct error *e)
{
    struct keeping k = {.now = now, .rev = rev, .told = told};
    struct snapshot *made = NULL;
    err_t code;

    k.x = snapshot_edit_new(*content);
    snapshot_diff(now, *content, keep_newer, &k);
    code = snapshot_seal(k.x, &made, e);
    if (code == ERR_OK) {
        snapshot_unref(*content);
        *content = made;
    }
    return code;
}

static err_t
restore_on_engine(struct engine *en, void *ctx, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    CLEANUP(snapshot_cleanup) struct snapshot *content = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *merged = NULL;
    CLEANUP(draft_plan_fini) struct draft_plan plan = {.put_cap = 0};
    const struct history_call *call = ctx;
    CLEANUP(pair_cleanup) struct snapshot_pair after = {NULL, snapshot_ref(v->draft.local)};
    struct commit found;
    err_t code;

    if (v->entry_count > 0) {
        return error_set(
            e, ERR_CONFLICT, "the draft has %zu change%s: apply or discard first",
            v->entry_count, PLURAL(v->entry_count));
    }
    code = store_commit_find(en->store, call->spec, &found, e);
    if (code == ERR_OK) {
        code = store_commit_content(en->store, &found.id, &content, e);
    }
    if (code == ERR_OK) {
        code = edit_merge_content(v->now.shared, content, &merged, e);
    }
    if (code == ERR_OK && !call->old_certificates) {
        code = keep_newer_certificates(v->now.shared, found.rev, &merged, call->p, e);
    }
    if (code == ERR_OK) {
        after.shared = TAKE(merged);
        code = belong_settle(&after, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (edit_new_errors(&v->now, &after, clock_wall_ms(en->config->clock) / 1000, call->p) >
        0) {
        return error_set(
            e, ERR_INVALID, "revision %lld is not valid today: %s", (long long)found.rev,
            edit_first_error(call->p));
    }
    code = actor_may(en, call->who, v->draft.shared, after.shared, call->p, e);
    if (code == ERR_OK) {
        code = members_check_own(en, &v->draft, &after, call->p, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    draft_plan_make(en, &v->draft, &after, call->who, &plan);
    code = draft_write(en, &plan, e);
    if (code == ERR_OK) {
        engine_audit(en, call->who->name, "restore", call->spec);
    }
    return code;
}

err_t
edit_restore(
    struct engine *en, const char *spec, bool old_certificates, const struct actor *who,
    struct problems *p, struct error *e)
{
    struct history_call call = {
        .spec = spec, .old_certificates = old_certificates, .who = who, .p = p};

    return engine_run(en, restore_on_engine, &call, e);
}

/* ---- verify ---- */

/* Seconds for a large database: it has a connection of its own, so that commits go on. */
static err_t
verify_database(const struct engine *en, int64_t *ret_checked, struct error *e)
{
    struct store *reader = NULL;
    err_t code = store_open_read(en->data_dir, en->config->clock, &reader, e);

    if (code == ERR_OK) {
        code = store_verify(reader, ret_checked, e);
        store_close(reader);
    }
    return code;
}

/* Files with private keys may be for HAProxy's eyes only: what cannot be read is no
 * difference. */
static err_t
compare_file(int dir_fd, const struct artefact *a, struct error *e)
{
    CLEANUP(buf_fini) struct buf path;
    CLEANUP(buf_fini) struct buf bytes;
    struct error error;
    err_t code;

    buf_init(&path, PATH_BYTES);
    buf_init(&bytes, a->bytes.len + 1);
    buf_printf(&path, "current/%s", a->name);
    code = file_read_at(dir_fd, buf_str(&path), &bytes, &error);
    if (code == ERR_DENIED && a->secret) {
        return ERR_OK;
    }
    if (code != ERR_OK && code != ERR_LIMIT) {
        return error_set(e, ERR_CORRUPT, "the current generation: %s", error.msg);
    }
    if (code == ERR_LIMIT || bytes.len != a->bytes.len ||
        memcmp(buf_str(&bytes), buf_str(&a->bytes), bytes.len) != 0) {
        return error_set(
            e, ERR_CORRUPT,
            "%s of the current generation is not what the stored configuration gives", a->name);
    }
    return ERR_OK;
}

static err_t
compare_files(struct engine *en, const struct rendered *files, struct error *e)
{
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code = file_open_dir_at(AT_FDCWD, en->generation_dir, &dir, e);

    for (size_t i = 0; i < files->count && code == ERR_OK; i++) {
        code = compare_file(dir, &files->items[i], e);
    }
    return code;
}

static bool
is_moving(struct engine *en, const struct view *v)
{
    CLEANUP(view_cleanup) struct view *present = engine_view(en);

    return atomic_load(&en->applies) > 0 || present->version != v->version;
}

err_t
edit_verify(struct engine *en, int64_t *ret_checked, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = NULL;
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems *p = arena_alloc(arena, sizeof *p);
    struct rendered *files = NULL;
    err_t code = verify_database(en, ret_checked, e);

    if (code != ERR_OK) {
        return code;
    }
    v = engine_view(en);
    problems_init(p, arena);
    code = apply_render(en, &v->now, p, &files, e);
    if (code != ERR_OK) {
        return code;
    }
    code = compare_files(en, files, e);
    apply_rendered_done(en, files);
    if (code != ERR_OK && is_moving(en, v)) {
        return error_set(e, ERR_BUSY, "an apply changes the files: verify again after it");
    }
    if (code != ERR_OK && standby_runs(en)) {
        return error_set(
            e, ERR_BUSY, "another node's apply is tried on this one: verify again after it");
    }
    return code;
}
