/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/state_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/running.h"

static const char empty[] = SERVER_STATE_EMPTY;

#define EMPTY_BYTES ((off_t)(sizeof empty - 1))

/* Each such file begins as an empty one does. */
static bool
cut(int run_fd)
{
    CLEANUP(fd_cleanup)
    int fd = openat(run_fd, SERVER_STATE_FILE, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= EMPTY_BYTES &&
           ftruncate(fd, EMPTY_BYTES) == 0;
}

static bool
is_empty(int run_fd)
{
    struct stat st;

    return fstatat(run_fd, SERVER_STATE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && st.st_size == EMPTY_BYTES;
}

void
state_file_clear(int run_fd)
{
    struct error e;

    if (!is_empty(run_fd) &&
        file_write_at(run_fd, SERVER_STATE_FILE, empty, sizeof empty - 1, 0600, &e) != ERR_OK &&
        !cut(run_fd)) {
        log_warning("cannot empty the file of server states: %s", e.msg);
    }
}
