/* SPDX-License-Identifier: Apache-2.0 */
/* A fast 64-bit checksum (XXH3) that tells different files apart; no defence against somebody
 * who wants two files to have one. For megabytes where SHA-256 would cost as much as making
 * them. */
#ifndef LOCKSTEP_BASE_CHECKSUM_H
#define LOCKSTEP_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct checksum; /* running */

struct checksum *checksum_new(void);
void checksum_add(struct checksum *c, const void *p, size_t bytes);
uint64_t checksum_end(struct checksum *c); /* frees it; the same on every machine */

#endif
