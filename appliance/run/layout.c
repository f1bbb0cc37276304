/* SPDX-License-Identifier: Apache-2.0 */
#include "run/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define LOCK_NAME "run.lock"

struct place {
    const char *name;
    uid_t uid;
    gid_t gid;
    mode_t mode;
};

static err_t
check_top(int fd, const char *path, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot read the mode of %s", path);
    }
    if (st.st_uid != 0) {
        return error_set(e, ERR_DENIED, "%s belongs to uid %u, not to root", path, st.st_uid);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return error_set(e, ERR_DENIED, "others than root may write to %s", path);
    }
    return ERR_OK;
}

static err_t
open_top(const char *path, int *ret_fd, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    err_t code = file_mkdir_at(AT_FDCWD, path, 0755, e);

    if (code == ERR_OK) {
        code = file_open_dir_at(AT_FDCWD, path, &fd, e);
    }
    if (code == ERR_OK) {
        code = check_top(fd, path, e);
    }
    if (code == ERR_OK) {
        *ret_fd = fd;
        fd = -1;
    }
    return code;
}

/* A directory that this call made is root's and without any right for others. */
static err_t
adjust(int fd, const struct place *p, bool made, struct error *e)
{
    struct stat st;

    if (made && (fchown(fd, p->uid, p->gid) != 0 || fchmod(fd, p->mode) != 0)) {
        return error_errno(e, ERR_IO, errno, "cannot give the directory %s away", p->name);
    }
    if (fstat(fd, &st) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot read the mode of %s", p->name);
    }
    if (st.st_uid != p->uid) {
        return error_set(
            e, ERR_DENIED, "the directory %s belongs to uid %u, not to %u", p->name, st.st_uid,
            p->uid);
    }
    if ((st.st_mode & 07777 & ~p->mode) != 0) {
        log_warning("the directory %s had mode %04o", p->name, st.st_mode & 07777u);
        if (fchmod(fd, st.st_mode & p->mode) != 0) {
            return error_errno(e, ERR_IO, errno, "cannot set the mode of %s", p->name);
        }
    }
    return ERR_OK;
}

static err_t
open_place(int state_fd, const struct place *p, int *ret_fd, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    bool made = mkdirat(state_fd, p->name, 0700) == 0;
    err_t code;

    if (!made && errno != EEXIST) {
        return error_errno(e, ERR_IO, errno, "cannot make the directory %s", p->name);
    }
    code = file_open_dir_at(state_fd, p->name, &fd, e);
    if (code == ERR_OK) {
        code = adjust(fd, p, made, e);
    }
    if (code == ERR_OK && ret_fd != NULL) {
        *ret_fd = fd;
        fd = -1;
    }
    return code;
}

static err_t
take_lock(struct layout *l, const struct run_options *o, struct error *e)
{
    l->lock_fd = openat(l->run_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (l->lock_fd < 0) {
        return error_errno(e, ERR_IO, errno, "cannot open the lock in %s", o->run_dir);
    }
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return ERR_OK;
    }
    return errno == EWOULDBLOCK
               ? error_set(e, ERR_BUSY, "another lockstep-run serves %s", o->run_dir)
               : error_errno(e, ERR_IO, errno, "cannot lock %s", o->run_dir);
}

err_t
layout_open(struct layout *l, const struct run_options *o, struct error *e)
{
    const struct place data = {"data", o->uid, o->gid, 0700};
    const struct place stage = {"stage", o->uid, o->gid, 0700};
    const struct place generation = {"generation", 0, o->gid, 0750};
    CLEANUP(fd_cleanup) int state_fd = -1;
    err_t code;

    *l = (struct layout){.run_fd = -1, .generation_fd = -1, .lock_fd = -1};
    code = open_top(o->state_dir, &state_fd, e);
    if (code == ERR_OK) {
        code = open_top(o->run_dir, &l->run_fd, e);
    }
    if (code == ERR_OK) {
        code = take_lock(l, o, e);
    }
    if (code == ERR_OK) {
        code = open_place(state_fd, &data, NULL, e);
    }
    if (code == ERR_OK) {
        code = open_place(state_fd, &stage, NULL, e);
    }
    if (code == ERR_OK) {
        code = open_place(state_fd, &generation, &l->generation_fd, e);
    }
    if (code != ERR_OK) {
        layout_close(l);
    }
    return code;
}

void
layout_close(struct layout *l)
{
    fd_cleanup(&l->run_fd);
    fd_cleanup(&l->generation_fd);
    fd_cleanup(&l->lock_fd);
}

void
layout_remove(const struct layout *l, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (unlinkat(l->run_fd, *names, 0) != 0 && errno != ENOENT) {
            log_warning("cannot remove %s", *names);
        }
    }
}
