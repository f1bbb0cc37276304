/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a directory. */
#ifndef LOCKSTEP_HELPER_LISTING_H
#define LOCKSTEP_HELPER_LISTING_H

#include <dirent.h>

#include "base/error.h"

struct listing {
    DIR *dir;
    int errno_value; /* why reading ended early, 0: it did not */
};

/* Opens the directory itself, never a link to one. The listing is closed by listing_close,
 * also for CLEANUP(); one that is all zero may be closed, too. ERR_NOT_FOUND, ERR_DENIED,
 * ERR_IO. */
MUST_USE err_t listing_open(struct listing *l, int dir_fd, const char *name, struct error *e);
void listing_close(struct listing *l);
/* The next name but "." and "..", NULL at the end; valid until the next call. */
const char *listing_next(struct listing *l);
/* After the end: ERR_IO when names may be missing. */
MUST_USE err_t listing_status(const struct listing *l, struct error *e);
/* Of the directory; the listing's. */
int listing_fd(const struct listing *l);

#endif
