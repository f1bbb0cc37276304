/* SPDX-License-Identifier: Apache-2.0 */
/* relation_table [--mutate NAME | --list]
 * Prints the sync decision of the product (engine/relation.h) as Promela, for tests/model. A
 * mutation spoils what is printed, to show that the model sees it; --list names them all. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "engine/relation.h"

/* Of no node: what --mutate merge_when_equal makes of HEAL_ADOPT_EQUAL. */
#define HEAL_MERGE HEAL_COUNT

static const char *mutation = "";

static bool
mutated(const char *name)
{
    return strcmp(mutation, name) == 0;
}

/* ---- the three decisions, and what a mutation makes of them ---- */

static int
relation(struct relation_facts f)
{
    if (mutated("counter_only") && !f.same_head) {
        return f.order < 0 ? REL_SELF_BEHIND : REL_PEER_BEHIND;
    }
    if (mutated("ignore_release")) {
        f.newer_schema = false;
    }
    return relation_of(&f);
}

static int
action(const struct heal_facts *f)
{
    bool equal = f->relation == REL_EQUAL_PEER_GREATER || f->relation == REL_EQUAL_SELF_GREATER;
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
    return heal_action(f);
}

static int
verdict(struct push_facts f)
{
    if (mutated("forget_expected_head") && f.overwrites && f.relation != REL_IN_STEP) {
        return PUSH_ADVANCE;
    }
    if (mutated("forget_rank")) {
        f.outranks = false;
    }
    if (mutated("accept_stale") && push_verdict(&f) == PUSH_STALE) {
        return PUSH_ADVANCE;
    }
    if (mutated("accept_diverged") && push_verdict(&f) == PUSH_DIVERGED) {
        return PUSH_ADVANCE;
    }
    return push_verdict(&f);
}

static const char *const mutations[] = {
    "pull_when_diverged", "counter_only",   "forget_expected_head", "merge_when_equal",
    "adopt_any_equal",    "adopt_no_equal", "accept_stale",         "accept_diverged",
    "ignore_release",     "forget_rank",
};

/* ---- printing ---- */

#define PRINT_RELATION(relation, name, text)                                                   \
    (void)printf("#define REL_%s %d\n", #relation, REL_##relation);
#define PRINT_ACTION(action) (void)printf("#define HEAL_%s %d\n", #action, HEAL_##action);
#define PRINT_VERDICT(verdict, name)                                                           \
    (void)printf("#define PUSH_%s %d\n", #verdict, PUSH_##verdict);

static void
print_names(void)
{
    RELATIONS(PRINT_RELATION)
    SYNC_ACTIONS(PRINT_ACTION)
    (void)printf("#define HEAL_MERGE %d\n", HEAL_MERGE);
    PUSH_VERDICTS(PRINT_VERDICT)
}

static void
print_row(const char *name, const int *row, int count)
{
    (void)printf("hidden byte %s[%d] = {", name, count);
    for (int i = 0; i < count; i++) {
        (void)printf("%s%d", i > 0 ? ", " : " ", row[i]);
    }
    (void)printf(" };\n");
}

#define RELATION_BITS 32
#define ORDERS        3

static void
print_relations(void)
{
    int row[RELATION_BITS * ORDERS];

    for (int i = 0; i < RELATION_BITS * ORDERS; i++) {
        row[i] = relation((struct relation_facts){
            .same_head = (i & 1) != 0,
            .peer_is_ancestor = (i & 2) != 0,
            .self_is_ancestor = (i & 4) != 0,
            .same_fp = (i & 8) != 0,
            .newer_schema = (i & 16) != 0,
            .order = i / RELATION_BITS - 1,
        });
    }
    (void)printf(
        "#define RELATION(same, peer_anc, self_anc, same_fp, newer, order) relation_table[(same) "
        "+ 2*(peer_anc) + 4*(self_anc) + 8*(same_fp) + 16*(newer) + 32*((order) + 1)]\n");
    print_row("relation_table", row, (int)ARRAY_LEN(row));
}

static void
print_actions(void)
{
    int row[REL_COUNT * 4];

    for (int i = 0; i < (int)ARRAY_LEN(row); i++) {
        row[i] = action(&(struct heal_facts){
            .relation = (enum relation)(i / 4),
            .keep_in_step = (i & 1) != 0,
            .backing_off = (i & 2) != 0,
        });
    }
    (void)printf("#define HEAL(relation, keep, backing_off) heal_table[4*(relation) + (keep) + "
                 "2*(backing_off)]\n");
    print_row("heal_table", row, (int)ARRAY_LEN(row));
}

static void
print_verdicts(void)
{
    int row[REL_COUNT * 8];

    for (int i = 0; i < (int)ARRAY_LEN(row); i++) {
        row[i] = verdict((struct push_facts){
            .relation = (enum relation)(i / 8),
            .overwrites = (i & 1) != 0,
            .expected = (i & 2) != 0,
            .outranks = (i & 4) != 0,
        });
    }
    (void)printf(
        "#define VERDICT(relation, overwrites, expected, outranks) verdict_table[8*(relation) + "
        "(overwrites) + 2*(expected) + 4*(outranks)]\n");
    print_row("verdict_table", row, (int)ARRAY_LEN(row));
}

static bool
known(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(mutations); i++) {
        if (strcmp(mutations[i], name) == 0) {
            return true;
        }
    }
    return false;
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < ARRAY_LEN(mutations); i++) {
            (void)puts(mutations[i]);
        }
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--mutate") == 0 && known(argv[2])) {
        mutation = argv[2];
    } else if (argc != 1) {
        (void)fputs("usage: relation_table [--mutate NAME | --list]\n", stderr);
        return 2;
    }
    (void)printf(
        "/* Printed by relation_table from engine/relation.h%s%s */\n",
        mutation[0] != '\0' ? ", spoilt: " : "", mutation);
    print_names();
    print_relations();
    print_actions();
    print_verdicts();
    return 0;
}
