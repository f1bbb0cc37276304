/* SPDX-License-Identifier: Apache-2.0 */
/* The directory <state_dir>/generation: numbered directories and the links "current" and
 * "good". Root's; lockstepd's group may read it. */
#ifndef LOCKSTEP_HELPER_GENERATION_H
#define LOCKSTEP_HELPER_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define GENERATION_MAX        ((int64_t)9007199254740991) /* 2^53 - 1 */
#define GENERATION_NAME_BYTES 32
#define GENERATION_KEPT       5          /* of a sort, besides those in use */
#define GENERATION_MARKER     ".checked" /* file in N: the outcome of the check */
#define GENERATION_SERVED     ".served"  /* empty file in N: it was "good" once */

/* Tells a program from another that took its place. */
struct generation_checker {
    char text[128]; /* "": none could be looked at */
};

/* Names of N and of the directory that becomes N. */
void generation_name(int64_t n, char out[GENERATION_NAME_BYTES]);
void generation_temporary_name(int64_t n, char out[GENERATION_NAME_BYTES]);

/* The generation that "current" or "good" names, 0 when there is no such link.
 * ERR_CORRUPT when it names something else. */
MUST_USE err_t
generation_link(int generation_fd, const char *link, int64_t *ret, struct error *e);
MUST_USE err_t
generation_set_link(int generation_fd, const char *link, int64_t n, struct error *e);

/* Of the program that is at path now. */
struct generation_checker generation_checker_of(const char *path);
/* Remembers in N the exit status of the check, and by which program; by: NULL when that had
 * something to say besides, or refused N since. */
MUST_USE err_t generation_mark(
    int generation_fd, int64_t n, int exit_status, const struct generation_checker *by,
    struct error *e);
/* Marks one that has no number yet, in its directory, as accepted. Durable as the rest of it.
 */
MUST_USE err_t
generation_mark_new(int dir_fd, const struct generation_checker *by, struct error *e);
/* ERR_OK when N was checked with exit status 0; ERR_NOT_FOUND, ERR_CONFLICT. */
MUST_USE err_t generation_require_checked(int generation_fd, int64_t n, struct error *e);
/* The same, and in silence, by that very program; else ERR_CONFLICT. */
MUST_USE err_t generation_require_checked_by(
    int generation_fd, int64_t n, const struct generation_checker *by, struct error *e);

/* Remembers that N served. */
MUST_USE err_t generation_mark_served(int generation_fd, int64_t n, struct error *e);
/* Whether a file in a generation is none of HAProxy's. */
bool generation_is_mark(const char *name);

/* Removes one. Interrupted, what is left of it counts as not checked. Absent = success. */
MUST_USE err_t generation_remove(int generation_fd, int64_t n, struct error *e);
/* Removes all generations but current, good, keep (0: none), the newest GENERATION_KEPT others
 * that served, and as many that did not: however many are refused, they push out none that
 * served. */
MUST_USE err_t generation_prune(int generation_fd, int64_t keep, struct error *e);
/* Removes certificates and keys from all generations but current, good and keep (0: none).
 * Those that had some stay to be read, and count as not checked. */
MUST_USE err_t generation_wipe_former(int generation_fd, int64_t keep, struct error *e);
/* Removes what an interrupted verb left, also in the generations. */
MUST_USE err_t generation_clear_temporary(int generation_fd, struct error *e);

#endif
