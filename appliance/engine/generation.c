/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/generation.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/members.h"
#include "model/validate.h"
#include "render/diag.h"

#define NAME_BYTES   32
#define ANSWER_BYTES ((size_t)8 << 20) /* what the helper says, and texts made of it */

/* ---- rendering ---- */

static struct rendered *
rendered_get(struct engine *en)
{
    struct rendered *r = NULL;

    lock_take(&en->lock);
    if (en->spare_count > 0) {
        r = en->spare[--en->spare_count];
    }
    lock_give(&en->lock);
    if (r == NULL) {
        r = xcalloc(1, sizeof *r);
        rendered_init(r);
    }
    return r;
}

void
apply_rendered_done(struct engine *en, struct rendered *r)
{
    bool kept;

    if (r == NULL) {
        return;
    }
    lock_take(&en->lock);
    kept = en->spare_count < ENGINE_SPARE;
    if (kept) {
        en->spare[en->spare_count++] = r;
    }
    lock_give(&en->lock);
    if (!kept) {
        rendered_fini(r);
        free(r);
    }
}

/* Where HAProxy reaches what listens on an address. */
static const char *
api_address(const char *listening)
{
    if (listening == NULL || strcmp(listening, "0.0.0.0") == 0) {
        return "127.0.0.1";
    }
    return strcmp(listening, "::") == 0 ? "::1" : listening;
}

err_t
generation_render(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e)
{
    CLEANUP(members_tables_fini) struct members_tables tables;
    struct render_input in = {
        .objects = *candidate,
        .run_dir = en->config->run_dir,
        .socket_group = en->config->socket_group,
        .placeholder_pem = en->placeholder_pem,
        .api_address = api_address(en->config->api_address),
        .api_port = en->api_pem != NULL ? en->config->api_port : 0,
        .api_pem = en->api_pem,
    };
    struct rendered *files = rendered_get(en);
    err_t code;

    members_tables_get(en, &tables);
    in.url = tables.url;
    in.peers = tables.peers;
    in.peer_count = tables.count;
    code = render_haproxy(&in, files, p, e);
    if (code != ERR_OK) {
        apply_rendered_done(en, files);
        return code;
    }
    *ret = files;
    return ERR_OK;
}

err_t
apply_render(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e)
{
    size_t errors = p->errors;

    validate_all(candidate, clock_wall_ms(en->config->clock) / 1000, p);
    if (p->errors > errors) {
        return error_set(e, ERR_INVALID, "%s", edit_first_error(p));
    }
    return generation_render(en, candidate, p, ret, e);
}

/* ---- staging ---- */

static err_t
make_folder_of(int dir_fd, const char *name, struct error *e)
{
    size_t bytes = strcspn(name, "/");
    char folder[NAME_BYTES];

    if (name[bytes] == '\0') {
        return ERR_OK;
    }
    ASSERT(bytes < sizeof folder);
    memcpy(folder, name, bytes);
    folder[bytes] = '\0';
    return file_mkdir_at(dir_fd, folder, 0700, e);
}

static err_t
write_files(int dir_fd, const struct rendered *files, struct error *e)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct artefact *a = &files->items[i];
        err_t code = make_folder_of(dir_fd, a->name, e);

        if (code == ERR_OK) {
            code = file_create_at(dir_fd, a->name, buf_str(&a->bytes), a->bytes.len, 0600, e);
        }
        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

static void
remove_stage(int top_fd, const char *name)
{
    struct error error;

    if (file_remove_tree_at(top_fd, name, &error) != ERR_OK) {
        log_warning("cannot remove what was staged: %s", error.msg);
    }
}

/* What the checker said becomes problems; a refusal without any gets one of its own. */
static err_t
judge(
    const struct helper_check *said, const struct rendered *files,
    struct generation_check *check, struct problems *p, struct error *e)
{
    size_t count = p->count + p->dropped;
    size_t errors = p->errors;

    check->only_weights = said->only_weights;
    diag_haproxy(said->output, files, p);
    check->warnings = p->count + p->dropped - count - (p->errors - errors);
    if (said->exit_status == 0) {
        return ERR_OK;
    }
    if (p->errors == errors) {
        problems_add(
            p, SEVERITY_ERROR, "haproxy", NULL, "HAProxy refuses the files: %s",
            said->output[0] != '\0' ? said->output : "no reason given");
    }
    return error_set(e, ERR_INVALID, "%s", edit_first_error(p));
}

struct next_call {
    int64_t number;
};

static err_t
next_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct next_call *call = ctx;

    return kept_next_number(en, &call->number, e);
}

/* Writes, lets the helper copy and check, and removes what was written: the copy counts. */
static err_t
stage_as(
    struct engine *en, const struct rendered *files, int64_t number, struct arena *arena,
    struct helper_check *ret, struct error *e)
{
    CLEANUP(fd_cleanup) int top = -1;
    CLEANUP(fd_cleanup) int dir = -1;
    char name[NAME_BYTES];
    err_t code = file_open_dir_at(AT_FDCWD, en->stage_dir, &top, e);

    if (code != ERR_OK) {
        return code;
    }
    (void)snprintf(name, sizeof name, "%" PRId64, number);
    code = file_remove_tree_at(top, name, e);
    if (code == ERR_OK) {
        code = file_mkdir_at(top, name, 0700, e);
    }
    if (code == ERR_OK) {
        code = file_open_dir_at(top, name, &dir, e);
    }
    if (code == ERR_OK) {
        code = write_files(dir, files, e);
    }
    if (code == ERR_OK) {
        code = helper_stage(&en->helper, number, arena, ret, e);
    }
    remove_stage(top, name);
    return code;
}

err_t
generation_stage(
    struct engine *en, const struct rendered *files, struct generation_check *check,
    struct problems *p, struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ANSWER_BYTES);
    struct next_call next = {check->number};
    struct helper_check said;
    struct error refused;
    err_t code = ERR_CONFLICT;

    ASSERT(files != NULL);
    if (next.number != 0) {
        /* It may be gone, or not be what it was. */
        code = stage_as(en, files, next.number, arena, &said, &refused);
    }
    if (code != ERR_OK && check->reserved) {
        return error_set(e, code, "%s", refused.msg);
    }
    if (code != ERR_OK) {
        code = engine_run(en, next_on_engine, &next, e);
        if (code == ERR_OK) {
            code = stage_as(en, files, next.number, arena, &said, e);
        }
    }
    if (code != ERR_OK) {
        return code;
    }
    check->number = next.number;
    return judge(&said, files, check, p, e);
}

/* ---- addresses ---- */

static bool
has_bind(const struct bind *binds, size_t count, const struct bind *b)
{
    for (size_t i = 0; i < count; i++) {
        /* The worker's sockets are handed on, but a node that starts needs the address. */
        if (binds[i].port == b->port && binds[i].vip == b->vip &&
            strcmp(binds[i].address, b->address) == 0) {
            return true;
        }
    }
    return false;
}

static const struct object *
object_of(const struct bind *binds, size_t count, const struct helper_bind_failure *f)
{
    for (size_t i = 0; i < count; i++) {
        if (binds[i].port == f->port && strcmp(binds[i].address, f->address) == 0) {
            return binds[i].object;
        }
    }
    return NULL;
}

static void
add_failure(const struct helper_bind_failure *f, const struct object *o, struct problems *p)
{
    struct problem where = {.pointer = ""};

    if (o != NULL) {
        where = (struct problem){
            .kind = schema_kind(o->kind)->name,
            .name = o->name.s,
            .pointer = o->kind == K_NODE ? "/peers_port" : "/port"};
    }
    problems_add(
        p, SEVERITY_ERROR, "bind", &where, "%s port %d cannot be used: %s%s%s.", f->address,
        f->port, f->reason, f->holder[0] != '\0' ? ", held by " : "", f->holder);
}

static err_t
test_binds(
    struct engine *en, const struct bind *binds, size_t count, struct problems *p,
    struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ANSWER_BYTES);
    struct helper_bind *asked = xcalloc(count, sizeof *asked);
    struct helper_bind_result result = {NULL, 0};
    err_t code;

    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct helper_bind){binds[i].address, binds[i].port, binds[i].vip};
    }
    code = helper_bind_test(&en->helper, asked, count, arena, &result, e);
    free(asked);
    if (code != ERR_OK || result.count == 0) {
        return code;
    }
    for (size_t i = 0; i < result.count; i++) {
        const struct helper_bind_failure *f = &result.failures[i];

        add_failure(f, object_of(binds, count, f), p);
    }
    return error_set(e, ERR_INVALID, "%s", edit_first_error(p));
}

err_t
generation_try_binds(
    struct engine *en, struct bind *wanted, size_t *count, const struct snapshot_pair *running,
    struct problems *p, struct error *e)
{
    CLEANUP(members_tables_fini) struct members_tables tables;
    char address[MEMBER_IP_BYTES];
    struct bind *held = NULL;
    size_t held_count = 0;
    size_t all = *count;

    members_tables_get(en, &tables);
    if (running != NULL) {
        members_tables_address(&tables, running->local, address);
        held_count = validate_binds(running, address, &held);
    }
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (!has_bind(held, held_count, &wanted[i])) {
            wanted[(*count)++] = wanted[i];
        }
    }
    free(held);
    return *count > 0 ? test_binds(en, wanted, *count, p, e) : ERR_OK;
}

err_t
generation_bind_test(
    struct engine *en, const struct snapshot_pair *candidate,
    const struct snapshot_pair *running, size_t *ret_count, struct problems *p, struct error *e)
{
    CLEANUP(members_tables_fini) struct members_tables tables;
    struct bind *wanted = NULL;
    char address[MEMBER_IP_BYTES];
    err_t code;

    members_tables_get(en, &tables);
    members_tables_address(&tables, candidate->local, address);
    *ret_count = validate_binds(candidate, address, &wanted);
    code = generation_try_binds(en, wanted, ret_count, running, p, e);
    free(wanted);
    return code;
}

/* ---- check only ---- */

/* Under the same number each time: many checks do not fill the disk. */
static err_t
stage_check(
    struct engine *en, const struct rendered *files, struct problems *p, struct error *e)
{
    struct generation_check check = {.number = 0};
    err_t code;

    lock_take(&en->check_lock);
    check.number = en->check_number;
    code = generation_stage(en, files, &check, p, e);
    en->check_number = check.number;
    lock_give(&en->check_lock);
    return code;
}

err_t
apply_check(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    size_t count;
    err_t code;

    *ret = NULL;
    code = edit_keeps_pages(&v->now, candidate, p, e);
    if (code == ERR_OK) {
        code = apply_render(en, candidate, p, ret, e);
    }
    if (code == ERR_OK) {
        code = stage_check(en, *ret, p, e);
    }
    if (code == ERR_OK) {
        code = generation_bind_test(en, candidate, &v->now, &count, p, e);
    }
    return code;
}

/* ---- table of generations ---- */

static err_t
put_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct generation *g = ctx;
    err_t code = store_generation_put(en->store, g, e);

    if (code == ERR_OK) {
        atomic_fetch_add(&en->generation_changes, 1);
    }
    return code;
}

err_t
generation_put(struct engine *en, const struct generation *g, struct error *e)
{
    struct generation copy = *g;

    return engine_run(en, put_on_engine, &copy, e);
}

struct find_call {
    const char *digest;
    int64_t number;
    struct generation *ret;
};

static err_t
find_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct find_call *call = ctx;

    return store_generation_find(en->store, call->digest, call->number, call->ret, e);
}

err_t
generation_find(struct engine *en, const char *digest, struct generation *ret, struct error *e)
{
    struct find_call call = {.digest = digest, .ret = ret};

    return engine_run(en, find_on_engine, &call, e);
}

err_t
generation_number(struct engine *en, int64_t number, struct generation *ret, struct error *e)
{
    struct find_call call = {.number = number, .ret = ret};

    return engine_run(en, find_on_engine, &call, e);
}
