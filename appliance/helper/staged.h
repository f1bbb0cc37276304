/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a staged generation: haproxy.cfg, acl/NAME.list, body/NAME.txt, ca/NAME.pem,
 * crt/NAME.pem, crt-list/NAME.list, error/NAME.http, map/NAME.map, and nothing else. HAProxy
 * takes haproxy.cfg and the lists of certificates for configuration, so they are read
 * (refuse.h); the others are data. */
#ifndef LOCKSTEP_HELPER_STAGED_H
#define LOCKSTEP_HELPER_STAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define STAGED_MAX_FILES 200000
#define STAGED_MAX_BYTES ((int64_t)256 << 20)
#define STAGED_CONFIG    "haproxy.cfg"

struct staged {
    char **names; /* relative to the directory, sorted */
    size_t count, cap;
};

void staged_init(struct staged *s);
void staged_fini(struct staged *s);                  /* also for CLEANUP() */
void staged_add(struct staged *s, const char *name); /* out of order: staged_sort after it */
void staged_sort(struct staged *s);
bool staged_has(const struct staged *s, const char *name);

/* Lists dir_fd. ERR_DENIED naming an entry that is not allowed, ERR_LIMIT, ERR_NOT_FOUND
 * without a haproxy.cfg. marked: the directory is a generation of ours, whose marker file is
 * passed over. */
MUST_USE err_t staged_list(int dir_fd, bool marked, struct staged *s, struct error *e);
/* Copies all files to to_fd (empty; directories 0750, files 0640). Each must be a regular
 * file of owner with one link. ERR_DENIED, ERR_LIMIT, ERR_IO. */
MUST_USE err_t
staged_copy(const struct staged *s, int dir_fd, uid_t owner, int to_fd, struct error *e);
bool staged_same_names(const struct staged *a, const struct staged *b);
/* Whether two directories hold the same bytes under that name. */
MUST_USE err_t
staged_file_equal(int a_fd, int b_fd, const char *name, bool *ret, struct error *e);
/* The same, under all names of s. */
MUST_USE err_t
staged_equal(const struct staged *s, int a_fd, int b_fd, bool *ret, struct error *e);

#endif
