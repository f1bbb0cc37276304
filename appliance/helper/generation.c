/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/generation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "haproxy/span.h"
#include "helper/listing.h"

#define MARKER_BYTES   160
#define LIST_MAX_COUNT 100000

void
generation_name(int64_t n, char out[GENERATION_NAME_BYTES])
{
    (void)snprintf(out, GENERATION_NAME_BYTES, "%" PRId64, n);
}

void
generation_temporary_name(int64_t n, char out[GENERATION_NAME_BYTES])
{
    (void)snprintf(out, GENERATION_NAME_BYTES, ".%" PRId64 ".tmp", n);
}

static bool
is_generation(const char *name, int64_t *ret)
{
    /* A leading zero would be a second name of the same number. */
    return name[0] != '0' && span_number(span_of(name), GENERATION_MAX, ret);
}

static bool
is_temporary(const char *name)
{
    size_t len = strlen(name);

    return strncmp(name, FILE_TEMPORARY, strlen(FILE_TEMPORARY)) == 0 ||
           (len > 5 && name[0] == '.' && strcmp(name + len - 4, ".tmp") == 0);
}

err_t
generation_link(int generation_fd, const char *link, int64_t *ret, struct error *e)
{
    char target[GENERATION_NAME_BYTES];
    ssize_t n = readlinkat(generation_fd, link, target, sizeof target - 1);

    if (n < 0 && errno == ENOENT) {
        *ret = 0;
        return ERR_OK;
    }
    if (n < 0) {
        return error_errno(e, ERR_CORRUPT, errno, "cannot read the link \"%s\"", link);
    }
    target[n] = '\0';
    if (!is_generation(target, ret)) {
        return error_set(e, ERR_CORRUPT, "the link \"%s\" names no generation", link);
    }
    return ERR_OK;
}

err_t
generation_set_link(int generation_fd, const char *link, int64_t n, struct error *e)
{
    char name[GENERATION_NAME_BYTES];

    generation_name(n, name);
    return file_symlink_at(generation_fd, name, link, e);
}

static err_t
open_generation(int generation_fd, int64_t n, int *ret_fd, struct error *e)
{
    char name[GENERATION_NAME_BYTES];
    err_t code;

    generation_name(n, name);
    code = file_open_dir_at(generation_fd, name, ret_fd, e);
    return code == ERR_NOT_FOUND ? error_set(e, code, "there is no generation %s", name) : code;
}

struct generation_checker
generation_checker_of(const char *path)
{
    struct generation_checker c = {.text = ""};
    struct stat st;

    if (stat(path, &st) == 0) {
        (void)snprintf(
            c.text, sizeof c.text, "%ju %ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)st.st_dev,
            (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
            st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    }
    return c;
}

static size_t
mark_text(int exit_status, const struct generation_checker *by, char out[MARKER_BYTES])
{
    return (size_t)snprintf(
        out, MARKER_BYTES, "%d\n%s%s", exit_status, by != NULL ? by->text : "",
        by != NULL ? "\n" : "");
}

err_t
generation_mark(
    int generation_fd, int64_t n, int exit_status, const struct generation_checker *by,
    struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    char text[MARKER_BYTES];
    size_t bytes = mark_text(exit_status, by, text);
    err_t code = open_generation(generation_fd, n, &fd, e);

    return code == ERR_OK ? file_write_at(fd, GENERATION_MARKER, text, bytes, 0640, e) : code;
}

err_t
generation_mark_new(int dir_fd, const struct generation_checker *by, struct error *e)
{
    char text[MARKER_BYTES];
    size_t bytes = mark_text(0, by, text);

    return file_create_at(dir_fd, GENERATION_MARKER, text, bytes, 0640, e);
}

/* What the mark says: by, the program of the check, without its newline; "": it does not say.
 */
static err_t
read_mark(int generation_fd, int64_t n, struct generation_checker *ret, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    CLEANUP(buf_fini) struct buf text;
    struct span rest;
    struct span line = {"", 0};
    err_t code;

    buf_init(&text, MARKER_BYTES);
    code = open_generation(generation_fd, n, &fd, e);
    if (code != ERR_OK) {
        return code;
    }
    code = file_read_at(fd, GENERATION_MARKER, &text, e);
    if (code == ERR_NOT_FOUND) {
        return error_set(e, ERR_CONFLICT, "generation %" PRId64 " was not checked", n);
    }
    if (code != ERR_OK) {
        return code;
    }
    rest = (struct span){buf_str(&text), text.len};
    if (!span_line(&rest, &line) || !span_is(line, "0")) {
        return error_set(e, ERR_CONFLICT, "HAProxy refused generation %" PRId64, n);
    }
    span_copy(span_line(&rest, &line) ? line : span_of(""), ret->text, sizeof ret->text);
    return ERR_OK;
}

err_t
generation_require_checked(int generation_fd, int64_t n, struct error *e)
{
    struct generation_checker unused;

    return read_mark(generation_fd, n, &unused, e);
}

err_t
generation_require_checked_by(
    int generation_fd, int64_t n, const struct generation_checker *by, struct error *e)
{
    struct generation_checker marked;
    err_t code = read_mark(generation_fd, n, &marked, e);

    if (code == ERR_OK && (by->text[0] == '\0' || strcmp(marked.text, by->text) != 0)) {
        code = error_set(e, ERR_CONFLICT, "generation %" PRId64 " was checked otherwise", n);
    }
    return code;
}

err_t
generation_mark_served(int generation_fd, int64_t n, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    err_t code = open_generation(generation_fd, n, &fd, e);

    return code == ERR_OK ? file_write_at(fd, GENERATION_SERVED, "", 0, 0640, e) : code;
}

static bool
has_served(int generation_fd, int64_t n)
{
    char path[GENERATION_NAME_BYTES + sizeof GENERATION_SERVED];

    (void)snprintf(path, sizeof path, "%" PRId64 "/" GENERATION_SERVED, n);
    return file_exists_at(generation_fd, path);
}

bool
generation_is_mark(const char *name)
{
    return strcmp(name, GENERATION_MARKER) == 0 || strcmp(name, GENERATION_SERVED) == 0;
}

struct list {
    int64_t *items;
    size_t count;
};

static void
list_cleanup(struct list *l)
{
    free(l->items);
}

static int
newest_first(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x < *y) - (*x > *y);
}

static err_t
list_generations(int generation_fd, struct list *l, struct error *e)
{
    CLEANUP(listing_close) struct listing names;
    err_t code = listing_open(&names, generation_fd, ".", e);
    const char *name;
    size_t cap = 64;

    if (code != ERR_OK) {
        return code;
    }
    l->items = xmalloc(cap * sizeof *l->items);
    while ((name = listing_next(&names)) != NULL && l->count < LIST_MAX_COUNT) {
        int64_t n;

        if (!is_generation(name, &n)) {
            continue;
        }
        if (l->count == cap) {
            cap *= 2;
            l->items = xrealloc(l->items, cap * sizeof *l->items);
        }
        l->items[l->count++] = n;
    }
    qsort(l->items, l->count, sizeof *l->items, newest_first);
    return listing_status(&names, e);
}

static err_t
unmark(int generation_fd, const char *name, struct error *e)
{
    char marker[GENERATION_NAME_BYTES + sizeof GENERATION_MARKER];

    (void)snprintf(marker, sizeof marker, "%s/" GENERATION_MARKER, name);
    return unlinkat(generation_fd, marker, 0) == 0 || errno == ENOENT
               ? ERR_OK
               : error_errno(e, ERR_IO, errno, "cannot remove %s", marker);
}

err_t
generation_remove(int generation_fd, int64_t n, struct error *e)
{
    char name[GENERATION_NAME_BYTES];
    err_t code;

    generation_name(n, name);
    code = unmark(generation_fd, name, e);
    return code == ERR_OK ? file_remove_tree_at(generation_fd, name, e) : code;
}

/* Those in use, and all that there are. */
struct survey {
    struct list all;
    int64_t current, good;
};

static err_t
survey(int generation_fd, struct survey *s, struct error *e)
{
    err_t code = generation_link(generation_fd, "current", &s->current, e);

    if (code == ERR_OK) {
        code = generation_link(generation_fd, "good", &s->good, e);
    }
    return code == ERR_OK ? list_generations(generation_fd, &s->all, e) : code;
}

static void
survey_cleanup(struct survey *s)
{
    list_cleanup(&s->all);
}

static bool
is_in_use(const struct survey *s, int64_t n)
{
    return n == s->current || n == s->good;
}

err_t
generation_prune(int generation_fd, int64_t keep, struct error *e)
{
    CLEANUP(survey_cleanup) struct survey s = {.current = 0};
    size_t kept[2] = {0};
    err_t code = survey(generation_fd, &s, e);

    for (size_t i = 0; code == ERR_OK && i < s.all.count; i++) {
        int64_t n = s.all.items[i];
        size_t *of_its_sort = &kept[has_served(generation_fd, n) ? 1 : 0];

        if (is_in_use(&s, n) || n == keep) {
            continue;
        }
        if (*of_its_sort < GENERATION_KEPT) {
            (*of_its_sort)++;
            continue;
        }
        code = generation_remove(generation_fd, n, e);
    }
    return code;
}

/* Killed in between, it is done again with the next. */
static err_t
wipe(int generation_fd, int64_t n, struct error *e)
{
    static const char *const secret[] = {"crt", "ca"};
    char name[GENERATION_NAME_BYTES];
    char path[GENERATION_NAME_BYTES + sizeof "/crt"];
    err_t code = ERR_OK;

    generation_name(n, name);
    for (size_t i = 0; code == ERR_OK && i < ARRAY_LEN(secret); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", name, secret[i]);
        if (file_exists_at(generation_fd, path)) {
            code = unmark(generation_fd, name, e);
            code = code == ERR_OK ? file_remove_tree_at(generation_fd, path, e) : code;
        }
    }
    return code;
}

err_t
generation_wipe_former(int generation_fd, int64_t keep, struct error *e)
{
    CLEANUP(survey_cleanup) struct survey s = {.current = 0};
    err_t code = survey(generation_fd, &s, e);

    for (size_t i = 0; code == ERR_OK && i < s.all.count; i++) {
        if (!is_in_use(&s, s.all.items[i]) && s.all.items[i] != keep) {
            code = wipe(generation_fd, s.all.items[i], e);
        }
    }
    return code;
}

static err_t
clear_dir(int generation_fd, const char *dir, struct error *e)
{
    CLEANUP(listing_close) struct listing names;
    err_t code = listing_open(&names, generation_fd, dir, e);
    const char *name;

    while (code == ERR_OK && (name = listing_next(&names)) != NULL) {
        if (is_temporary(name)) {
            code = file_remove_tree_at(listing_fd(&names), name, e);
        }
    }
    return code == ERR_OK ? listing_status(&names, e) : code;
}

err_t
generation_clear_temporary(int generation_fd, struct error *e)
{
    CLEANUP(list_cleanup) struct list l = {.items = NULL};
    err_t code = clear_dir(generation_fd, ".", e);

    if (code == ERR_OK) {
        code = list_generations(generation_fd, &l, e);
    }
    for (size_t i = 0; code == ERR_OK && i < l.count; i++) {
        char name[GENERATION_NAME_BYTES];

        generation_name(l.items[i], name);
        code = clear_dir(generation_fd, name, e);
    }
    return code;
}
