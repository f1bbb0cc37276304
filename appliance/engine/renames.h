/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and servers that have another name in the files to be loaded than in those that HAProxy
 * runs, so that a reload knows them again; only for this folder. */
#ifndef LOCKSTEP_ENGINE_RENAMES_H
#define LOCKSTEP_ENGINE_RENAMES_H

#include "engine/apply_job.h"

/* number: the generation that is installed. Asks HAProxy which files it runs, and compares by
 * ids what they were made of. Texts are the arena's. None where that is not known. Too many are
 * logged. */
void
renames_find(struct apply *a, int64_t number, struct arena *arena, struct helper_renames *ret);

#endif
