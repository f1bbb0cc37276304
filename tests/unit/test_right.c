/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/right.h"

#define BIT(n) ((unsigned)(i >> (n)) & 1u)

/* The table "who may edit" in words, over all facts. */
static enum right
expected(const struct right_facts *f)
{
    if (!f->peers) {
        return RIGHT_EDIT; /* a node alone defers to nobody, with a VIP or without */
    }
    if (!f->configured) {
        return f->unlocked ? RIGHT_EDIT : RIGHT_LOCKED;
    }
    if (f->self_holds) {
        return RIGHT_EDIT; /* with two holders both may */
    }
    if (f->other_holds) {
        return RIGHT_ELSEWHERE; /* unlocking changes nothing */
    }
    return f->unlocked ? RIGHT_EDIT : RIGHT_LOCKED;
}

static void
every_combination_of_facts(void **state)
{
    (void)state;
    for (int i = 0; i < 32; i++) {
        const struct right_facts f = {
            BIT(0) != 0, BIT(1) != 0, BIT(2) != 0, BIT(3) != 0, BIT(4) != 0};

        assert_int_equal(right_of(&f), expected(&f));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_combination_of_facts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
