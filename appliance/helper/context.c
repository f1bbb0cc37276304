/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/running.h"
#include "haproxy/state_file.h"
#include "helper/generation.h"

static err_t
open_dir(const char *path, uid_t owner, int *ret_fd, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    struct stat st;
    err_t code = file_open_dir_at(AT_FDCWD, path, &fd, e);

    if (code != ERR_OK) {
        return code;
    }
    if (fstat(fd, &st) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot read the owner of %s", path);
    }
    if (st.st_uid != owner) {
        return error_set(
            e, ERR_DENIED, "%s belongs to uid %u and not to %u", path, st.st_uid, owner);
    }
    *ret_fd = fd;
    fd = -1;
    return ERR_OK;
}

static err_t
open_below(const char *dir, const char *name, uid_t owner, int *ret_fd, struct error *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);

    if (n < 0 || (size_t)n >= sizeof path) {
        return error_set(e, ERR_INVALID, "the path %s is too long", dir);
    }
    return open_dir(path, owner, ret_fd, e);
}

static err_t
set_path(char *out, const char *dir, const char *name, struct error *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    return n > 0 && n < PATH_MAX ? ERR_OK
                                 : error_set(e, ERR_INVALID, "the path %s is too long", dir);
}

err_t
helper_context_open(struct helper_context *c, struct error *e)
{
    err_t code;

    c->stage_fd = c->generation_fd = c->run_fd = -1;
    code = open_below(c->state_dir, "stage", c->uid, &c->stage_fd, e);
    if (code == ERR_OK) {
        code = open_below(c->state_dir, "generation", 0, &c->generation_fd, e);
    }
    if (code == ERR_OK) {
        code = open_dir(c->run_dir, 0, &c->run_fd, e);
    }
    if (code == ERR_OK) {
        code = set_path(c->admin_path, c->run_dir, "haproxy.sock", e);
    }
    if (code == ERR_OK) {
        code = set_path(c->master_path, c->run_dir, "master.sock", e);
    }
    if (code == ERR_OK) {
        code = set_path(c->service_path, c->run_dir, "run.sock", e);
    }
    if (code == ERR_OK) {
        code = generation_clear_temporary(c->generation_fd, e);
    }
    if (code != ERR_OK) {
        helper_context_close(c);
    } else if (!file_exists_at(c->run_fd, SERVER_STATE_FILE)) {
        /* HAProxy, its checker too, warns where there is no file. What is in one may be for a
         * reload that goes on. */
        state_file_clear(c->run_fd);
    }
    return code;
}

void
helper_context_close(struct helper_context *c)
{
    fd_cleanup(&c->stage_fd);
    fd_cleanup(&c->generation_fd);
    fd_cleanup(&c->run_fd);
}
