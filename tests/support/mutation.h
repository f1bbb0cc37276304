/* SPDX-License-Identifier: Apache-2.0 */
/* The three decisions of engine/relation.h, spoilt: what proves that nodes stay in step must
 * see each of these. */
#ifndef LOCKSTEP_SUPPORT_MUTATION_H
#define LOCKSTEP_SUPPORT_MUTATION_H

#include <stddef.h>

#include "engine/relation.h"

/* Of no node: what merge_when_equal makes of HEAL_ADOPT_EQUAL. */
#define HEAL_MERGE HEAL_COUNT

#define MUTATIONS 10
extern const char *const mutation_names[MUTATIONS];

/* From now on. False: no such name. Without one, each decision is the real one. */
bool mutation_select(const char *name);

/* real: the decision as the product makes it. */
int mutation_relation(
    struct relation_facts f, enum relation (*real)(const struct relation_facts *));
int mutation_action(
    const struct heal_facts *f, enum sync_action (*real)(const struct heal_facts *));
int mutation_verdict(struct push_facts f, enum push_verdict (*real)(const struct push_facts *));

#endif
