/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/staged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "helper/generation.h"
#include "helper/listing.h"
#include "helper/name.h"

#define COPY_BYTES 8192
#define NAME_BYTES 300 /* a directory of ours, '/', a file name */

static const struct folder {
    const char *name;
    const char *suffix;
} folders[] = {
    {"map", ".map"},  {"crt", ".pem"},  {"crt-list", ".list"}, {"error", ".http"},
    {"acl", ".list"}, {"body", ".txt"}, {"ca", ".pem"},
};

void
staged_init(struct staged *s)
{
    *s = (struct staged){.names = NULL};
}

void
staged_fini(struct staged *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->names[i]);
    }
    free(s->names);
    staged_init(s);
}

void
staged_add(struct staged *s, const char *name)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 64 : s->cap * 2;
        s->names = xrealloc(s->names, s->cap * sizeof *s->names);
    }
    s->names[s->count++] = xstrdup(name);
}

static int
by_name(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

void
staged_sort(struct staged *s)
{
    if (s->count > 0) {
        qsort(s->names, s->count, sizeof *s->names, by_name);
    }
}

bool
staged_has(const struct staged *s, const char *name)
{
    return s->count > 0 &&
           bsearch(&name, s->names, s->count, sizeof *s->names, by_name) != NULL;
}

static bool
is_name(const char *name, const char *suffix)
{
    size_t len = strlen(name);
    size_t end = strlen(suffix);

    return len > end && strcmp(name + len - end, suffix) == 0 && name_is(name);
}

static err_t
list_folder(int dir_fd, const struct folder *f, struct staged *s, struct error *e)
{
    CLEANUP(listing_close) struct listing l;
    err_t code = listing_open(&l, dir_fd, f->name, e);
    const char *entry;
    char name[NAME_BYTES];

    while (code == ERR_OK && (entry = listing_next(&l)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", f->name, entry);
        if (!is_name(entry, f->suffix)) {
            code = error_set(e, ERR_DENIED, "the file name %s is not allowed", name);
        } else if (s->count >= STAGED_MAX_FILES) {
            code = error_set(e, ERR_LIMIT, "more than %d files are staged", STAGED_MAX_FILES);
        } else {
            staged_add(s, name);
        }
    }
    return code == ERR_OK ? listing_status(&l, e) : code;
}

static const struct folder *
folder_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        if (strcmp(folders[i].name, name) == 0) {
            return &folders[i];
        }
    }
    return NULL;
}

err_t
staged_list(int dir_fd, bool marked, struct staged *s, struct error *e)
{
    CLEANUP(listing_close) struct listing l;
    err_t code = listing_open(&l, dir_fd, ".", e);
    const char *name;

    while (code == ERR_OK && (name = listing_next(&l)) != NULL) {
        const struct folder *f = folder_find(name);

        if (marked && generation_is_mark(name)) {
            continue;
        }
        if (f != NULL) {
            code = list_folder(dir_fd, f, s, e);
        } else if (strcmp(name, STAGED_CONFIG) == 0) {
            staged_add(s, name);
        } else {
            code = error_set(e, ERR_DENIED, "the file name %s is not allowed", name);
        }
    }
    staged_sort(s);
    if (code == ERR_OK) {
        code = listing_status(&l, e);
    }
    if (code == ERR_OK && !staged_has(s, STAGED_CONFIG)) {
        code = error_set(e, ERR_NOT_FOUND, "no " STAGED_CONFIG " is staged");
    }
    return code;
}

/* O_NONBLOCK, since opening a FIFO would wait for a writer. */
static int
open_file(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static err_t
check_opened(int fd, const char *name, uid_t owner, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot open the staged file %s", name);
    }
    if (!S_ISREG(st.st_mode)) {
        return error_set(e, ERR_DENIED, "the staged file %s is not a regular file", name);
    }
    if (st.st_nlink != 1) {
        return error_set(e, ERR_DENIED, "the staged file %s has a second name", name);
    }
    if (st.st_uid != owner) {
        return error_set(
            e, ERR_DENIED, "the staged file %s belongs to uid %u", name, st.st_uid);
    }
    return ERR_OK;
}

static err_t
open_checked(int dir_fd, const char *name, uid_t owner, int *ret_fd, struct error *e)
{
    int fd = open_file(dir_fd, name);
    err_t code;

    if (fd < 0) {
        /* ELOOP: a link; ENXIO: a socket. */
        code = errno == ELOOP || errno == ENXIO ? ERR_DENIED : ERR_IO;
        return error_errno(e, code, errno, "cannot open the staged file %s", name);
    }
    code = check_opened(fd, name, owner, e);
    if (code != ERR_OK) {
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return ERR_OK;
}

static err_t
write_all(int fd, const char *p, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, p, bytes);

        if (n < 0 && errno != EINTR) {
            return ERR_IO;
        }
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        }
    }
    return ERR_OK;
}

/* *left_bytes: what all files together may still hold. */
static err_t
copy_bytes(int from, int to, const char *name, int64_t *left_bytes, struct error *e)
{
    char chunk[COPY_BYTES];

    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);

        if (n == 0) {
            return ERR_OK;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_errno(e, ERR_IO, errno, "cannot read the staged file %s", name);
        }
        *left_bytes -= n;
        if (*left_bytes < 0) {
            return error_set(
                e, ERR_LIMIT, "more than %d MiB are staged", (int)(STAGED_MAX_BYTES >> 20));
        }
        if (write_all(to, chunk, (size_t)n) != ERR_OK) {
            return error_errno(e, ERR_IO, errno, "cannot write %s", name);
        }
    }
}

static err_t
copy_file(
    int dir_fd, const char *name, uid_t owner, int to_fd, int64_t *left_bytes, struct error *e)
{
    CLEANUP(fd_cleanup) int from = -1;
    CLEANUP(fd_cleanup) int to = -1;
    err_t code = open_checked(dir_fd, name, owner, &from, e);

    if (code != ERR_OK) {
        return code;
    }
    to = openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0) {
        return error_errno(e, ERR_IO, errno, "cannot create %s", name);
    }
    code = copy_bytes(from, to, name, left_bytes, e);
    /* Not before the bytes: the umask or a reader must not get in between. */
    if (code == ERR_OK && fchmod(to, 0640) != 0) {
        code = error_errno(e, ERR_IO, errno, "cannot set the mode of %s", name);
    }
    return code;
}

err_t
staged_copy(const struct staged *s, int dir_fd, uid_t owner, int to_fd, struct error *e)
{
    int64_t left_bytes = STAGED_MAX_BYTES;
    err_t code = ERR_OK;

    for (size_t i = 0; code == ERR_OK && i < ARRAY_LEN(folders); i++) {
        code = file_mkdir_at(to_fd, folders[i].name, 0750, e);
    }
    for (size_t i = 0; code == ERR_OK && i < s->count; i++) {
        code = copy_file(dir_fd, s->names[i], owner, to_fd, &left_bytes, e);
    }
    return code;
}

/* Fills as much as there is; -1 on an error. */
static ssize_t
read_chunk(int fd, char *p, size_t bytes)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = read(fd, p + got, bytes - got);

        if (n == 0) {
            break;
        }
        if (n > 0) {
            got += (size_t)n;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (ssize_t)got;
}

bool
staged_same_names(const struct staged *a, const struct staged *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++) {
        same = strcmp(a->names[i], b->names[i]) == 0;
    }
    return same;
}

err_t
staged_file_equal(int a_fd, int b_fd, const char *name, bool *ret, struct error *e)
{
    CLEANUP(fd_cleanup) int a = open_file(a_fd, name);
    CLEANUP(fd_cleanup) int b = open_file(b_fd, name);
    char x[COPY_BYTES / 2];
    char y[COPY_BYTES / 2];
    ssize_t n;

    if (a < 0 || b < 0) {
        return error_errno(e, ERR_IO, errno, "cannot open %s", name);
    }
    do {
        ssize_t m = read_chunk(b, y, sizeof y);

        n = read_chunk(a, x, sizeof x);
        if (n < 0 || m < 0) {
            return error_errno(e, ERR_IO, errno, "cannot read %s", name);
        }
        *ret = n == m && memcmp(x, y, (size_t)n) == 0;
    } while (*ret && n > 0);
    return ERR_OK;
}

err_t
staged_equal(const struct staged *s, int a_fd, int b_fd, bool *ret, struct error *e)
{
    bool same = true;
    err_t code = ERR_OK;

    for (size_t i = 0; code == ERR_OK && same && i < s->count; i++) {
        code = staged_file_equal(a_fd, b_fd, s->names[i], &same, e);
    }
    if (code == ERR_OK) {
        *ret = same;
    }
    return code;
}
