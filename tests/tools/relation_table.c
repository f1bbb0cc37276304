/* SPDX-License-Identifier: Apache-2.0 */
/* relation_table [--mutate NAME | --list]
 * Prints the sync decision of the product (engine/relation.h) as Promela, for tests/model. A
 * mutation spoils what is printed, to show that the model sees it; --list names them all. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "engine/relation.h"
#include "tests/support/mutation.h"

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
        row[i] = mutation_relation(
            (struct relation_facts){
                .same_head = (i & 1) != 0,
                .peer_is_ancestor = (i & 2) != 0,
                .self_is_ancestor = (i & 4) != 0,
                .same_fp = (i & 8) != 0,
                .newer_schema = (i & 16) != 0,
                .order = i / RELATION_BITS - 1,
            },
            relation_of);
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
        row[i] = mutation_action(
            &(struct heal_facts){
                .relation = (enum relation)(i / 4),
                .keep_in_step = (i & 1) != 0,
                .backing_off = (i & 2) != 0,
            },
            heal_action);
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
        row[i] = mutation_verdict(
            (struct push_facts){
                .relation = (enum relation)(i / 8),
                .overwrites = (i & 1) != 0,
                .expected = (i & 2) != 0,
                .outranks = (i & 4) != 0,
            },
            push_verdict);
    }
    (void)printf(
        "#define VERDICT(relation, overwrites, expected, outranks) verdict_table[8*(relation) + "
        "(overwrites) + 2*(expected) + 4*(outranks)]\n");
    print_row("verdict_table", row, (int)ARRAY_LEN(row));
}

int
main(int argc, char **argv)
{
    const char *mutation = "";

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < MUTATIONS; i++) {
            (void)puts(mutation_names[i]);
        }
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--mutate") == 0 && mutation_select(argv[2])) {
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
