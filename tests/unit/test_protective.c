/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/change_lab.h"

/* C263 */
static void
replace_does_not_undo_a_protection_by_leaving_it_out(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_LISTENER, NULL, "{'name':'t','port':443,'tls':true}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444}");
    lab_fails(w, ERR_INVALID, "would undo", "left_out listener t /tls");
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444,'tls':true}");
    lab_works(w);
    /* By a word, or where there is nothing to undo. */
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':444,'tls':false}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_LISTENER, "t", "{'port':445}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_LISTENER, "t", "{'tls':true}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_LISTENER, "t", "{'tls':null}");
    lab_works(w);
}

/* Whatever is marked can be left out only while it has its default. */
static void
every_marked_field_has_a_default(void **state)
{
    size_t marked = 0;

    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);

        for (uint32_t i = 0; i < kind->field_count; i++) {
            marked += kind->fields[i].protective ? 1 : 0;
            assert_false(kind->fields[i].protective && kind->fields[i].required);
        }
    }
    assert_true(marked >= 4);
}

static int
setup(void **state)
{
    *state = change_lab_new();
    return 0;
}

static int
teardown(void **state)
{
    change_lab_free(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            replace_does_not_undo_a_protection_by_leaving_it_out, setup, teardown),
        cmocka_unit_test(every_marked_field_has_a_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
