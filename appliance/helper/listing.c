/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/listing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

err_t
listing_open(struct listing *l, int dir_fd, const char *name, struct error *e)
{
    int fd = -1;
    err_t code = file_open_dir_at(dir_fd, name, &fd, e);

    *l = (struct listing){.dir = NULL};
    if (code != ERR_OK) {
        return code;
    }
    l->dir = fdopendir(fd);
    if (l->dir == NULL) {
        code = error_errno(e, ERR_IO, errno, "cannot list %s", name);
        (void)close(fd);
    }
    return code;
}

void
listing_close(struct listing *l)
{
    if (l->dir != NULL) {
        (void)closedir(l->dir);
        l->dir = NULL;
    }
}

const char *
listing_next(struct listing *l)
{
    const struct dirent *entry;

    do {
        errno = 0;
        /* glibc: two threads must only not share one stream. */
        /* cppcheck-suppress readdirCalled ; NOLINTNEXTLINE(concurrency-mt-unsafe) */
        entry = readdir(l->dir);
    } while (entry != NULL &&
             (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (entry == NULL) {
        l->errno_value = errno;
        return NULL;
    }
    return entry->d_name;
}

err_t
listing_status(const struct listing *l, struct error *e)
{
    return l->errno_value == 0
               ? ERR_OK
               : error_errno(e, ERR_IO, l->errno_value, "cannot read a directory");
}

int
listing_fd(const struct listing *l)
{
    return dirfd(l->dir);
}
