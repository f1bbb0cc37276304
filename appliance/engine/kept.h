/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were checked for an apply of another node, until that node hands it over. */
#ifndef LOCKSTEP_ENGINE_KEPT_H
#define LOCKSTEP_ENGINE_KEPT_H

#include "base/error.h"
#include "engine/engine.h"
#include "render/haproxy.h"

/* Engine thread only. */
struct kept {
    int64_t reserved; /* number of its generation, given to no other; 0: none */
    char digest[RENDER_DIGEST_HEX + 1];
    int64_t local_rev;
    int64_t until_ms; /* monotonic; 0: it is being checked */
};

/* Stages files for an apply of another node and keeps them for check_kept_ms, so that what
 * comes with the same files need not be checked again. local_rev: of the local container that
 * they were made with. The database is left alone. */
MUST_USE err_t kept_check(
    struct engine *en, const struct rendered *files, int64_t local_rev, struct problems *p,
    struct error *e);
/* The number of those that are kept, for the caller's use; 0: none. */
int64_t kept_take(struct engine *en, const char *digest, int64_t local_rev);
/* Of those that are kept, or are being checked to be; they stay there. */
int64_t kept_number(struct engine *en);
/* Numbers that are given again and again, engine thread: never the one that is reserved. */
MUST_USE err_t kept_next_number(struct engine *en, int64_t *ret, struct error *e);

#endif
