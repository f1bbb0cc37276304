/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/proc.h"
#include "haproxy/output.h"
#include "helper/generation.h"
#include "helper/protocol.h"
#include "helper/refuse.h"
#include "helper/staged.h"
#include "helper/verbs.h"
#include "helper/weights.h"

/* A staged generation on its way: the copy is made beside the others and renamed. */
struct stage {
    struct helper_context *c;
    int64_t n;
    char name[GENERATION_NAME_BYTES];
    char temporary[GENERATION_NAME_BYTES];
    struct staged files;
    int fd; /* of the copy */
    struct generation_checker checker;
    bool only_weights; /* differ from what it accepted in silence */
};

static void
stage_cleanup(struct stage *s)
{
    staged_fini(&s->files);
    fd_cleanup(&s->fd);
}

static err_t
copy(struct stage *s, struct error *e)
{
    CLEANUP(fd_cleanup) int from = -1;
    int dir_fd = s->c->generation_fd;
    err_t code = file_open_dir_at(s->c->stage_fd, s->name, &from, e);

    if (code == ERR_NOT_FOUND) {
        return error_set(e, code, "nothing is staged as %s", s->name);
    }
    if (code == ERR_OK) {
        code = staged_list(from, false, &s->files, e);
    }
    if (code == ERR_OK) {
        code = file_remove_tree_at(dir_fd, s->temporary, e);
    }
    if (code == ERR_OK) {
        code = file_mkdir_at(dir_fd, s->temporary, 0750, e);
    }
    if (code == ERR_OK) {
        code = file_open_dir_at(dir_fd, s->temporary, &s->fd, e);
    }
    if (code == ERR_OK) {
        code = staged_copy(&s->files, from, s->c->uid, s->fd, e);
    }
    return code;
}

static err_t
refuse_file(const struct stage *s, const struct refuse *r, const char *name, struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    err_t code;

    buf_init(&text, (size_t)STAGED_MAX_BYTES);
    code = file_read_at(s->fd, name, &text, e);
    if (code != ERR_OK) {
        return code;
    }
    return strcmp(name, STAGED_CONFIG) == 0
               ? refuse_config(r, buf_str(&text), text.len, e)
               : refuse_crt_list(r, name, buf_str(&text), text.len, e);
}

/* On the copy, which nobody else can change. */
static err_t
refuse_all(const struct stage *s, struct error *e)
{
    const struct refuse r = {.files = &s->files, .run_dir = s->c->run_dir};
    err_t code = refuse_file(s, &r, STAGED_CONFIG, e);

    for (size_t i = 0; code == ERR_OK && i < s->files.count; i++) {
        if (strncmp(s->files.names[i], "crt-list/", 9) == 0) {
            code = refuse_file(s, &r, s->files.names[i], e);
        }
    }
    return code;
}

static err_t
compare_with_current(const struct stage *s, bool *ret, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    char name[GENERATION_NAME_BYTES];
    int64_t current = 0;
    err_t code = generation_link(s->c->generation_fd, "current", &current, e);

    if (code != ERR_OK || current == 0) {
        *ret = false;
        return code;
    }
    generation_name(current, name);
    code = generation_require_checked_by(s->c->generation_fd, current, &s->checker, e);
    if (code == ERR_OK) {
        code = file_open_dir_at(s->c->generation_fd, name, &fd, e);
    }
    return code == ERR_OK ? weights_only(&s->files, fd, s->fd, ret, e) : code;
}

/* What cannot be compared is checked. */
static bool
differs_in_weights(const struct stage *s)
{
    struct error unused;
    bool ret = false;

    return compare_with_current(s, &ret, &unused) == ERR_OK && ret;
}

/* *ret: a generation of this number and content exists. */
static err_t
compare(const struct stage *s, bool *ret, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    CLEANUP(staged_fini) struct staged files;
    err_t code = file_open_dir_at(s->c->generation_fd, s->name, &fd, e);

    staged_init(&files);
    if (code == ERR_NOT_FOUND) {
        *ret = false;
        return ERR_OK;
    }
    if (code == ERR_OK) {
        code = staged_list(fd, true, &files, e);
    }
    if (code == ERR_NOT_FOUND) {
        *ret = false;
        return ERR_OK;
    }
    if (code != ERR_OK) {
        return code;
    }
    if (!staged_same_names(&files, &s->files)) {
        *ret = false;
        return ERR_OK;
    }
    return staged_equal(&files, fd, s->fd, ret, e);
}

/* *ret: the link that names it, so that it is in use, or NULL. */
static err_t
find_use(const struct stage *s, const char **ret, struct error *e)
{
    static const char *const links[] = {"current", "good"};

    *ret = NULL;
    for (size_t i = 0; i < ARRAY_LEN(links) && *ret == NULL; i++) {
        int64_t linked = 0;
        err_t code = generation_link(s->c->generation_fd, links[i], &linked, e);

        if (code != ERR_OK) {
            return code;
        }
        *ret = linked == s->n ? links[i] : NULL;
    }
    return ERR_OK;
}

/* A generation in use is never changed; another of this number gives way. */
static err_t
make_room(const struct stage *s, struct error *e)
{
    const char *use;
    err_t code = find_use(s, &use, e);

    if (code == ERR_OK && use != NULL) {
        code = error_set(
            e, ERR_CONFLICT, "generation %s is in use (%s) and has another content", s->name,
            use);
    }
    return code == ERR_OK ? generation_remove(s->c->generation_fd, s->n, e) : code;
}

static err_t
publish(struct stage *s, struct error *e)
{
    int dir_fd = s->c->generation_fd;
    bool same = false;
    err_t code = compare(s, &same, e);

    if (code != ERR_OK || same) {
        return code;
    }
    s->only_weights = differs_in_weights(s);
    if (s->only_weights) {
        code = generation_mark_new(s->fd, &s->checker, e);
    }
    if (code == ERR_OK) {
        code = file_sync_tree(s->fd, e);
    }
    if (code == ERR_OK) {
        code = make_room(s, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (renameat(dir_fd, s->temporary, dir_fd, s->name) != 0 || fsync(dir_fd) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot make generation %s", s->name);
    }
    return ERR_OK;
}

/* One in use passed once, and was not changed since: what makes the checker fail now (memory,
 * a name that cannot be resolved) must not keep a roll-back from installing it. But then it is
 * no evidence for other files. */
static err_t
mark_refused(const struct stage *s, int exit_status, struct error *e)
{
    int dir_fd = s->c->generation_fd;
    const char *use = NULL;
    struct error unused;
    err_t code = find_use(s, &use, e);

    if (code == ERR_OK && use != NULL) {
        exit_status = 0;
        if (generation_require_checked(dir_fd, s->n, &unused) != ERR_OK) {
            return ERR_OK;
        }
    }
    return code == ERR_OK ? generation_mark(dir_fd, s->n, exit_status, NULL, e) : code;
}

static err_t
mark(const struct stage *s, int exit_status, bool silent, struct error *e)
{
    return exit_status == 0
               ? generation_mark(
                     s->c->generation_fd, s->n, exit_status, silent ? &s->checker : NULL, e)
               : mark_refused(s, exit_status, e);
}

/* And keeps what it decided; killed, as when memory is short, it decided nothing. */
static err_t
run_checker(const struct stage *s, struct buf *output, int *ret_status, struct error *e)
{
    struct proc_result result = {0};
    char path[PATH_MAX];
    const char *argv[] = {s->c->haproxy, "-c", "-f", path, NULL};
    int n = snprintf(
        path, sizeof path, "%s/generation/%s/" STAGED_CONFIG, s->c->state_dir, s->name);
    err_t code;

    if (n < 0 || (size_t)n >= sizeof path) {
        return error_set(e, ERR_INVALID, "the path %s is too long", s->c->state_dir);
    }
    code = proc_run(argv, s->c->tunables.check_ms, output, &result, e);
    if (code != ERR_OK) {
        return code;
    }
    if (result.exit_status > 128) {
        return error_set(
            e, ERR_UNAVAILABLE, "the checker (haproxy -c) was ended by signal %d",
            result.exit_status - 128);
    }
    *ret_status = result.exit_status;
    /* "[WARNING]", "[ALERT]". Who passes over the checker must not swallow what it says. */
    return mark(s, result.exit_status, strchr(buf_str(output), '[') == NULL, e);
}

static err_t
check(const struct stage *s, json_t *answer, struct error *e)
{
    CLEANUP(buf_fini) struct buf output = {0};
    int exit_status = 0;
    err_t code = ERR_OK;

    buf_init(&output, HELPER_OUTPUT_MAX_BYTES);
    if (!s->only_weights) {
        code = run_checker(s, &output, &exit_status, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (output.len > 0) {
        output_clean(output.data, output.len);
    }
    if (json_object_set_new(answer, "exit_status", json_integer(exit_status)) != 0 ||
        json_object_set_new(answer, "output", json_string(buf_str(&output))) != 0 ||
        json_object_set_new(answer, "only_weights", json_boolean(s->only_weights)) != 0) {
        return error_set(e, ERR_INTERNAL, "cannot tell the outcome of the check");
    }
    return ERR_OK;
}

err_t
verb_stage(struct helper_context *c, const json_t *request, json_t *answer, struct error *e)
{
    CLEANUP(stage_cleanup) struct stage s = {.c = c, .fd = -1};
    struct error ignored;
    err_t code = json_get_int(request, "generation", 1, GENERATION_MAX, &s.n, e);

    staged_init(&s.files);
    if (code != ERR_OK) {
        return code;
    }
    generation_name(s.n, s.name);
    generation_temporary_name(s.n, s.temporary);
    /* Before it runs: what takes its place meanwhile is not what the mark names. */
    s.checker = generation_checker_of(c->haproxy);
    /* First: those that failed since the last "settle" may be what fills the disk. */
    code = generation_prune(c->generation_fd, s.n, e);
    if (code == ERR_OK) {
        code = copy(&s, e);
    }
    if (code == ERR_OK) {
        code = refuse_all(&s, e);
    }
    if (code == ERR_OK) {
        code = publish(&s, e);
    }
    /* Absent when it was published; what stays now is removed at the next start. */
    if (file_remove_tree_at(c->generation_fd, s.temporary, &ignored) != ERR_OK &&
        code == ERR_OK) {
        return error_set(e, ignored.code, "%s", ignored.msg);
    }
    return code == ERR_OK ? check(&s, answer, e) : code;
}
