/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crypt.h"

#define TREE_MAX_DEPTH  8
#define TEMP_NAME_BYTES 24

/* The directory that holds the last part of a path, and that part. */
struct place {
    int fd;
    const char *name;
};

static err_t
code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR: return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP: return ERR_DENIED;
    case EEXIST: return ERR_CONFLICT;
    case ENAMETOOLONG: return ERR_INVALID;
    default: return ERR_IO;
    }
}

static err_t
fail(struct error *e, const char *doing, const char *path)
{
    int errno_value = errno;

    return error_errno(e, code_of_errno(errno_value), errno_value, "cannot %s %s", doing, path);
}

void
fd_cleanup(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void
place_cleanup(struct place *p)
{
    fd_cleanup(&p->fd);
}

static err_t
place_open(int dir_fd, const char *path, struct place *ret, struct error *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    CLEANUP(xfree_cleanup) char *dir = NULL;

    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return error_set(e, ERR_INVALID, "\"%s\" does not end in a file name", path);
    }
    if (slash == NULL) {
        dir = xstrdup(".");
    } else if (slash == path) {
        dir = xstrdup("/");
    } else {
        dir = xstrdup(path);
        dir[slash - path] = '\0';
    }
    ret->fd = openat(dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->fd < 0) {
        return fail(e, "open the directory of", path);
    }
    ret->name = name;
    return ERR_OK;
}

/* Not derived from the final name, which may already be as long as a name can be. */
static void
temp_name(char *out)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char random[8];

    crypt_random(random, sizeof random);
    memcpy(out, FILE_TEMPORARY, strlen(FILE_TEMPORARY));
    out += strlen(FILE_TEMPORARY);
    for (size_t i = 0; i < sizeof random; i++) {
        *out++ = hex[random[i] >> 4];
        *out++ = hex[random[i] & 15u];
    }
    *out = '\0';
}

static err_t
read_all(int fd, const char *path, struct buf *out, struct error *e)
{
    for (;;) {
        size_t room = out->cap > 0 ? out->cap - 1 - out->len : 0;
        char extra = 0;
        /* A full buffer only grows when another byte does come: what was reserved for the
         * size of the file suffices, and a secret is not copied about. */
        ssize_t n = room > 0 ? read(fd, out->data + out->len, room) : read(fd, &extra, 1);

        if (n == 0) {
            return ERR_OK;
        }
        if (n < 0) {
            if (errno != EINTR) {
                return fail(e, "read", path);
            }
        } else if (room > 0) {
            out->len += (size_t)n;
            out->data[out->len] = '\0';
        } else if (out->len < out->max) {
            buf_putc(out, extra);
        } else {
            return error_set(e, ERR_LIMIT, "%s is longer than %zu bytes", path, out->max);
        }
    }
}

err_t
file_read_at(int dir_fd, const char *path, struct buf *out, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    size_t before = out->len;
    struct stat st;
    err_t code = buf_status(out, e);

    if (code != ERR_OK) {
        return code;
    }
    /* O_NONBLOCK, since opening a FIFO would wait for a writer. */
    fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return fail(e, "open", path);
    }
    if (fstat(fd, &st) != 0) {
        return fail(e, "read", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return error_set(e, ERR_DENIED, "%s is not a regular file", path);
    }
    if (st.st_size > 0 && (uintmax_t)st.st_size > out->max - out->len) {
        return error_set(e, ERR_LIMIT, "%s is longer than %zu bytes", path, out->max);
    }
    /* At once, so that a file with secrets leaves no copies in outgrown memory. */
    ASSERT(st.st_size <= 0 || buf_reserve(out, (size_t)st.st_size));
    code = read_all(fd, path, out, e);
    if (code != ERR_OK) {
        out->len = before;
        if (out->data != NULL) {
            out->data[before] = '\0';
        }
    }
    return code;
}

static err_t
write_all(int fd, const char *path, const void *p, size_t bytes, struct error *e)
{
    const char *at = p;

    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);

        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return fail(e, "write", path);
        }
    }
    return ERR_OK;
}

/* Creates name in dir with exactly mode, whatever the umask. path: for messages. */
static err_t
create_in(
    int dir, const char *name, const char *path, mode_t mode, int *ret_fd, struct error *e)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        return fail(e, "create", path);
    }
    if (fchmod(fd, mode) != 0) {
        err_t code = fail(e, "set the mode of", path);

        (void)close(fd);
        (void)unlinkat(dir, name, 0);
        return code;
    }
    *ret_fd = fd;
    return ERR_OK;
}

static err_t
fill_new(int fd, const char *path, const void *p, size_t bytes, struct error *e)
{
    err_t code = write_all(fd, path, p, bytes, e);

    if (code == ERR_OK && fsync(fd) != 0) {
        code = fail(e, "sync", path);
    }
    return code;
}

/* Gives the temporary file or link its final name; code: how making it went. */
static err_t
put_in_place(
    const struct place *pl, const char *temp, const char *path, err_t code, struct error *e)
{
    if (code == ERR_OK && renameat(pl->fd, temp, pl->fd, pl->name) != 0) {
        code = fail(e, "replace", path);
    }
    if (code != ERR_OK) {
        (void)unlinkat(pl->fd, temp, 0);
        return code;
    }
    if (fsync(pl->fd) != 0) {
        return fail(e, "sync the directory of", path);
    }
    return ERR_OK;
}

err_t
file_write_at(
    int dir_fd, const char *path, const void *p, size_t bytes, mode_t mode, struct error *e)
{
    CLEANUP(place_cleanup) struct place pl = {.fd = -1};
    CLEANUP(fd_cleanup) int fd = -1;
    char temp[TEMP_NAME_BYTES];
    err_t code = place_open(dir_fd, path, &pl, e);

    if (code != ERR_OK) {
        return code;
    }
    temp_name(temp);
    code = create_in(pl.fd, temp, path, mode, &fd, e);
    if (code != ERR_OK) {
        return code;
    }
    code = fill_new(fd, path, p, bytes, e);
    return put_in_place(&pl, temp, path, code, e);
}

err_t
file_create_at(
    int dir_fd, const char *path, const void *p, size_t bytes, mode_t mode, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    err_t code = create_in(dir_fd, path, path, mode, &fd, e);

    if (code != ERR_OK) {
        return code;
    }
    code = write_all(fd, path, p, bytes, e);
    if (code != ERR_OK) {
        (void)unlinkat(dir_fd, path, 0);
    }
    return code;
}

err_t
file_sync_tree(int dir_fd, struct error *e)
{
    if (syncfs(dir_fd) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot sync the file system");
    }
    return ERR_OK;
}

err_t
file_mkdir_at(int dir_fd, const char *path, mode_t mode, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    struct stat st;

    if (mkdirat(dir_fd, path, 0700) != 0) {
        int errno_value = errno;

        if (errno_value == EEXIST && fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode)) {
            return ERR_OK;
        }
        errno = errno_value;
        return fail(e, "make the directory", path);
    }
    fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) != 0) {
        return fail(e, "set the mode of", path);
    }
    return ERR_OK;
}

err_t
file_open_dir_at(int dir_fd, const char *path, int *ret_fd, struct error *e)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) {
        return fail(e, "open the directory", path);
    }
    *ret_fd = fd;
    return ERR_OK;
}

/* Directories from the top of the tree to the one being emptied. */
struct walk {
    DIR *dirs[TREE_MAX_DEPTH];
    const char *names[TREE_MAX_DEPTH]; /* in the parent's dirent, kept while it is open */
    int depth;
};

static void
walk_cleanup(struct walk *w)
{
    while (w->depth > 0) {
        w->depth--;
        (void)closedir(w->dirs[w->depth]);
    }
}

static err_t
walk_push(struct walk *w, int dir_fd, const char *name, const char *path, struct error *e)
{
    int fd;

    if (w->depth == TREE_MAX_DEPTH) {
        return error_set(
            e, ERR_LIMIT, "cannot remove %s: deeper than %d directories", path, TREE_MAX_DEPTH);
    }
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return fail(e, "remove", path);
    }
    w->dirs[w->depth] = fdopendir(fd);
    if (w->dirs[w->depth] == NULL) {
        err_t code = fail(e, "remove", path);

        (void)close(fd);
        return code;
    }
    w->names[w->depth] = name;
    w->depth++;
    return ERR_OK;
}

static err_t
walk_pop(struct walk *w, int dir_fd, const char *path, struct error *e)
{
    int parent;

    w->depth--;
    (void)closedir(w->dirs[w->depth]);
    parent = w->depth > 0 ? dirfd(w->dirs[w->depth - 1]) : dir_fd;
    if (unlinkat(parent, w->names[w->depth], AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return fail(e, "remove", path);
    }
    return ERR_OK;
}

/* Removes a file, or opens the directory of that name for emptying. */
static err_t
remove_one(struct walk *w, int dir_fd, const char *name, const char *path, struct error *e)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) {
        return ERR_OK;
    }
    if (errno != EISDIR) {
        return fail(e, "remove", path);
    }
    return walk_push(w, dir_fd, name, path, e);
}

/* Until only the first keep directories of w are left, and the last of them is empty. */
static err_t
walk_empty(struct walk *w, int dir_fd, int keep, const char *path, struct error *e)
{
    err_t code = ERR_OK;

    while (code == ERR_OK && w->depth > 0) {
        DIR *top = w->dirs[w->depth - 1];
        const struct dirent *d;

        errno = 0;
        /* glibc: two threads must only not share one stream.
         * NOLINTNEXTLINE(concurrency-mt-unsafe) */
        d = readdir(top);
        if (d == NULL && errno != 0) {
            code = fail(e, "remove", path);
        } else if (d == NULL && w->depth == keep) {
            return ERR_OK;
        } else if (d == NULL) {
            code = walk_pop(w, dir_fd, path, e);
        } else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
            code = remove_one(w, dirfd(top), d->d_name, path, e);
        }
    }
    return code;
}

err_t
file_remove_tree_at(int dir_fd, const char *path, struct error *e)
{
    CLEANUP(walk_cleanup) struct walk w = {.depth = 0};
    err_t code = remove_one(&w, dir_fd, path, path, e);

    return code == ERR_OK ? walk_empty(&w, dir_fd, 0, path, e) : code;
}

err_t
file_empty_dir_at(int dir_fd, const char *path, struct error *e)
{
    CLEANUP(walk_cleanup) struct walk w = {.depth = 0};
    err_t code = walk_push(&w, dir_fd, path, path, e);

    return code == ERR_OK ? walk_empty(&w, dir_fd, 1, path, e) : code;
}

err_t
file_symlink_at(int dir_fd, const char *target, const char *link, struct error *e)
{
    CLEANUP(place_cleanup) struct place pl = {.fd = -1};
    char temp[TEMP_NAME_BYTES];
    err_t code = place_open(dir_fd, link, &pl, e);

    if (code != ERR_OK) {
        return code;
    }
    temp_name(temp);
    if (symlinkat(target, pl.fd, temp) != 0) {
        return fail(e, "create", link);
    }
    return put_in_place(&pl, temp, link, ERR_OK, e);
}

bool
file_exists_at(int dir_fd, const char *path)
{
    struct stat st;

    return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}
