/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a cluster in a database. A failure ends the test. */
#ifndef LOCKSTEP_SUPPORT_MEMBER_LAB_H
#define LOCKSTEP_SUPPORT_MEMBER_LAB_H

#include "store/members.h"
#include "tests/support/store_lab.h"

/* The record of node n; its key is "SENTINEL-key-of-" and n. */
struct member member_lab_of(unsigned n, int64_t seq);
/* These are the members, in every field. */
void member_lab_assert(struct store_lab *l, const struct member *wanted, size_t count);

#endif
