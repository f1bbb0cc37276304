/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/mutation.h"

#include <string.h>

static const char *mutation = "";

static bool
mutated(const char *name)
{
    return strcmp(mutation, name) == 0;
}

int
mutation_relation(struct relation_facts f, enum relation (*real)(const struct relation_facts *))
{
    enum relation relation;

    if (mutated("counter_only") && !f.same_head) {
        return f.order < 0 ? REL_SELF_BEHIND : REL_PEER_BEHIND;
    }
    if (mutated("ignore_release")) {
        f.newer_schema = false;
    }
    relation = real(&f);
    return (int)relation;
}

int
mutation_action(const struct heal_facts *f, enum sync_action (*real)(const struct heal_facts *))
{
    bool equal = f->relation == REL_EQUAL_PEER_GREATER || f->relation == REL_EQUAL_SELF_GREATER;
    enum sync_action action = real(f);
    bool may = f->keep_in_step && !f->backing_off;

    if (mutated("pull_when_diverged") && f->relation == REL_DIVERGED && may) {
        return HEAL_PULL;
    }
    if (mutated("merge_when_equal") && equal && may) {
        return HEAL_MERGE;
    }
    if (mutated("adopt_any_equal") && equal && may) {
        return HEAL_ADOPT_EQUAL;
    }
    if (mutated("adopt_no_equal") && equal) {
        return HEAL_NOTHING;
    }
    return (int)action;
}

int
mutation_verdict(struct push_facts f, enum push_verdict (*real)(const struct push_facts *))
{
    enum push_verdict verdict;

    if (mutated("forget_expected_head") && f.overwrites && f.relation != REL_IN_STEP) {
        return PUSH_ADVANCE;
    }
    if (mutated("forget_rank")) {
        f.outranks = false;
    }
    if (mutated("accept_stale") && real(&f) == PUSH_STALE) {
        return PUSH_ADVANCE;
    }
    if (mutated("accept_diverged") && real(&f) == PUSH_DIVERGED) {
        return PUSH_ADVANCE;
    }
    verdict = real(&f);
    return (int)verdict;
}

const char *const mutation_names[MUTATIONS] = {
    "pull_when_diverged", "counter_only",   "forget_expected_head", "merge_when_equal",
    "adopt_any_equal",    "adopt_no_equal", "accept_stale",         "accept_diverged",
    "ignore_release",     "forget_rank",
};

bool
mutation_select(const char *name)
{
    for (size_t i = 0; i < MUTATIONS; i++) {
        if (strcmp(mutation_names[i], name) == 0) {
            mutation = mutation_names[i];
            return true;
        }
    }
    return false;
}
