/* SPDX-License-Identifier: Apache-2.0 */
/* What one engine hands to another, without what carries it. A failure ends the test. */
#ifndef LOCKSTEP_SUPPORT_SYNC_LAB_H
#define LOCKSTEP_SUPPORT_SYNC_LAB_H

#include "engine/sync.h"
#include "tests/support/engine_lab.h"

struct commit sync_lab_head(const struct engine_lab *l);
/* A revision: the title of error pages. */
void sync_lab_title(struct engine_lab *l, int title);
/* By way of the wire's form. */
struct sync_doc sync_lab_doc(const struct engine_lab *from, const struct sync_wanted *wanted);
/* Has it taken, and waits until it runs; of SYNC_STORED nothing is to run. */
void sync_lab_take(struct engine_lab *to, struct sync_doc *d, enum sync_how how);

#endif
