/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory of one request or job, freed at once.
 *
 * Small allocations abort the process on exhaustion of memory (as does xmalloc): there is
 * nothing useful to do then. Whatever size an outsider chooses is capped first: an arena
 * has a cap in bytes, and arena_try_alloc returns NULL over it. */
#ifndef LOCKSTEP_BASE_ARENA_H
#define LOCKSTEP_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define ARENA_DEFAULT_BYTES ((size_t)8 << 20)

struct arena;

struct arena *arena_new(size_t cap_bytes);
void arena_free(struct arena *a);
void arena_cleanup(struct arena **a); /* for CLEANUP() */

/* Zeroed, aligned for any type. arena_alloc aborts over the cap: only for sizes that the
 * program itself bounds; arena_try_alloc returns NULL over it. */
void *arena_alloc(struct arena *a, size_t bytes);
MUST_USE void *arena_try_alloc(struct arena *a, size_t bytes);
char *arena_strdup(struct arena *a, const char *s);
char *arena_memdup0(struct arena *a, const void *p, size_t bytes); /* adds a NUL */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t arena_used_bytes(const struct arena *a);

void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes);
void *xrealloc(void *p, size_t bytes);
char *xstrdup(const char *s);
void xfree_cleanup(void *pp); /* for CLEANUP(): frees *(void **)pp */

#endif
