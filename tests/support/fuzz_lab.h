/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share. What must hold is an ASSERT, which ends the run as a crash. */
#ifndef LOCKSTEP_SUPPORT_FUZZ_LAB_H
#define LOCKSTEP_SUPPORT_FUZZ_LAB_H

#include <stdint.h>

#include "tests/support/pair.h"

/* The input as JSON of any form; NULL when it is none. */
json_t *fuzz_json(const uint8_t *data, size_t size);
/* A small configuration, the same each time: servers a and b, pool p with both, monitor m,
 * listener l, service s. It is built once; the arena is new. pair_fini ends it. */
void fuzz_pair_init(struct pair *x);
/* Every reference resolves, and every object's bytes are its canonical form. */
void fuzz_check_pair(const struct snapshot_pair *pair);
/* Bounds, texts and counts of a list of problems. */
void fuzz_check_problems(const struct problems *p);

#endif
