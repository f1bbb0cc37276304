/* SPDX-License-Identifier: Apache-2.0 */
/* LOAD: by the admin socket where the running worker can be changed into the new one, else by
 * a reload. The files are switched already: whatever fails, a reload makes all right. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/date.h"
#include "base/log.h"
#include "engine/renames.h"
#include "haproxy/admin.h"
#include "haproxy/runtime.h"
#include "render/diag.h"
#include "render/runtime_plan.h"

#define ANSWER_BYTES ((size_t)2 << 20)
#define TEXT_BYTES   ((size_t)1 << 10)
/* From so many old workers on, people are told of them. */
#define OLD_WORKERS_NOTABLE 8

/* ---- by a reload ---- */

/* First: a long detail is cut. */
static void
tell_no_states(struct apply *a, const char *why)
{
    char text[sizeof a->detail];

    memcpy(text, a->detail, sizeof text);
    apply_detail(
        a, "all servers start without their state: %.120s%s%s", why,
        text[0] != '\0' ? "; " : "", text);
}

err_t
apply_reload(struct apply *a, int64_t number, struct problems *p, struct error *e)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ANSWER_BYTES);
    struct helper_renames renames;
    struct helper_load load;
    size_t errors = p != NULL ? p->errors : 0;
    err_t code;

    renames_find(a, number, arena, &renames);
    code = helper_reload(&a->en->helper, &renames, arena, &load, e);
    if (code == ERR_OK && load.loaded && (renames.too_many || load.no_states[0] != '\0')) {
        tell_no_states(a, renames.too_many ? "too many new names" : load.no_states);
    }
    if (code != ERR_OK || load.loaded) {
        return code;
    }
    if (p != NULL) {
        diag_haproxy(load.output, a->files, p);
    }
    if (p != NULL && p->errors > errors) {
        return error_set(e, ERR_UNAVAILABLE, "%s", edit_first_error(p));
    }
    return error_set(
        e, ERR_UNAVAILABLE, "%s",
        load.output[0] != '\0' ? load.output : "HAProxy gave no reason");
}

/* ---- by the admin socket ---- */

static err_t
change_server(const struct runtime *r, const struct runtime_change *c, struct error *e)
{
    const struct admin_server at = {c->backend, c->server};
    const struct admin_target target = {c->address, c->number};
    int64_t left_ms = 0;
    err_t code = runtime_left(r, &left_ms, e);

    if (code != ERR_OK) {
        return code;
    }
    if (c->what == RUNTIME_WEIGHT) {
        return admin_set_weight(r->socket_path, &at, c->number, left_ms, e);
    }
    return c->what == RUNTIME_MAXCONN
               ? admin_set_maxconn(r->socket_path, &at, c->number, left_ms, e)
               : admin_set_address(r->socket_path, &at, &target, left_ms, e);
}

static err_t
change(const struct runtime *r, const struct runtime_change *c, struct error *e)
{
    const struct artefact *file = c->file;

    switch (c->what) {
    case RUNTIME_WEIGHT:
    case RUNTIME_MAXCONN:
    case RUNTIME_ADDRESS: return change_server(r, c, e);
    case RUNTIME_MAP:
        return runtime_map(r, file->name, buf_str(&file->bytes), file->bytes.len, e);
    case RUNTIME_CERTIFICATE: break;
    }
    return runtime_certificate(r, file->name, buf_str(&file->bytes), file->bytes.len, e);
}

static err_t
change_all(struct apply *a, const struct runtime_plan *plan, struct error *e)
{
    const struct tunables *t = a->en->config->tunables;
    const struct runtime r = {
        .socket_path = a->en->admin_socket,
        .socket_ms = t->socket_ms,
        .end_ms = clock_mono_ms(&clock_system) + t->reload_ms,
    };
    err_t code = runtime_begin(&r, a->former_digest, e);

    for (size_t i = 0; code == ERR_OK && i < plan->count; i++) {
        crashpoint("apply_runtime_change");
        code = change(&r, &plan->items[i], e);
    }
    if (code == ERR_OK) {
        crashpoint("apply_runtime_end");
        code = runtime_end(&r, a->files->digest, e);
    }
    return code;
}

/* The files of what runs, when that is the head; else NULL and why not. */
static struct rendered *
running_files(struct apply *a, char why[ERROR_MSG_BYTES])
{
    struct rendered *files = NULL;
    struct problems unused;
    struct error e;

    problems_init(&unused, a->arena);
    if (a->mode == APPLY_FOLLOW) {
        (void)snprintf(why, ERROR_MSG_BYTES, "HAProxy is brought to the present revision");
    } else if (a->view->head.rev == 0) {
        (void)snprintf(why, ERROR_MSG_BYTES, "this is the first revision");
    } else if (!a->running_known) {
        (void)snprintf(why, ERROR_MSG_BYTES, "HAProxy did not say what it runs");
    } else if (generation_render(a->en, &a->view->now, &unused, &files, &e) != ERR_OK) {
        (void)snprintf(why, ERROR_MSG_BYTES, "no files of the revision before, %.180s", e.msg);
    } else if (strcmp(files->digest, a->former_digest) != 0) {
        (void)snprintf(why, ERROR_MSG_BYTES, "HAProxy does not run the revision before");
        apply_rendered_done(a->en, TAKE(files));
    }
    return files;
}

/* True when it is done; else why it is not, for people. *ret_head: what runs is the head. */
static bool
load_by_socket(struct apply *a, char why[ERROR_MSG_BYTES], bool *ret_head)
{
    struct rendered *running = running_files(a, why);
    CLEANUP(runtime_plan_fini) struct runtime_plan plan = {.count = 0};
    struct error e;

    *ret_head = running != NULL;
    if (running == NULL) {
        return false;
    }
    runtime_plan_make(running, a->files, &plan);
    apply_rendered_done(a->en, running);
    if (plan.reload[0] != '\0') {
        (void)snprintf(why, ERROR_MSG_BYTES, "%s", plan.reload);
        return false;
    }
    if (change_all(a, &plan, &e) != ERR_OK) {
        log_warning("a change by the admin socket failed: %s", e.msg);
        (void)snprintf(why, ERROR_MSG_BYTES, "the admin socket failed, %.200s", e.msg);
        return false;
    }
    apply_detail(a, "%zu change%s by the admin socket", plan.count, plan.count == 1 ? "" : "s");
    return true;
}

/* What the old worker has to bring to an end, and until when it may: that stands in the
 * files with which it was started. */
static void
put_sessions(struct apply *a, bool of_head, struct buf *out)
{
    const struct object *settings = snapshot_singleton(a->view->now.shared, K_HAPROXY);
    struct haproxy_info info;
    struct error unused;

    if (admin_info(a->en->admin_socket, a->en->config->tunables->socket_ms, &info, &unused) !=
            ERR_OK ||
        info.connections <= 0) {
        return;
    }
    buf_printf(
        out, "; %lld open connection%s on", (long long)info.connections,
        info.connections == 1 ? " goes" : "s go");
    if (of_head) {
        buf_puts(out, " for at most ");
        date_put_length(out, object_int(settings, F_HAPROXY_HARD_STOP_AFTER_S));
    }
}

static void
tell_reload(struct apply *a, const char *why, bool of_head)
{
    CLEANUP(buf_fini) struct buf text;

    buf_init(&text, TEXT_BYTES);
    buf_printf(&text, "reload: %.140s", why);
    put_sessions(a, of_head, &text);
    if (a->old_workers >= OLD_WORKERS_NOTABLE) {
        buf_printf(&text, "; %zu old workers still have sessions", a->old_workers);
    }
    apply_detail(a, "%s", buf_str(&text));
}

err_t
apply_load(struct apply *a, struct error *e)
{
    char why[ERROR_MSG_BYTES] = "";
    bool of_head = false;

    if (load_by_socket(a, why, &of_head)) {
        return ERR_OK;
    }
    tell_reload(a, why, of_head);
    return apply_reload(a, a->number, a->problems, e);
}
