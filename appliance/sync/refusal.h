/* SPDX-License-Identifier: Apache-2.0 */
/* What another node says of content that it refuses: its problems, with its name. */
#ifndef LOCKSTEP_SYNC_REFUSAL_H
#define LOCKSTEP_SYNC_REFUSAL_H

#include "engine/members.h"
#include "model/problems.h"

/* Adds those of its answer; one that says why, where it names none. */
void refusal_problems(
    const struct member *m, const json_t *answer, const char *why, struct problems *p);
/* Its errors, without the warnings, as a list, or NULL where it names none. New reference. */
json_t *refusal_errors(const struct member *m, const json_t *answer);

#endif
