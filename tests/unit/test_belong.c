/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are part of another one follow its name and go with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/belong.h"
#include "model/validate.h"
#include "tests/support/change_lab.h"

static int
set_up(void **state)
{
    struct change_lab *w = change_lab_new();

    lab_op(w, CHANGE_CREATE, K_SERVER_STATE, NULL, "{'name':'a','server':'a','state':'drain'}");
    lab_op(w, CHANGE_CREATE, K_SERVER_STATE, NULL, "{'name':'b','server':'b','weight':50}");
    lab_works(w);
    *state = w;
    return 0;
}

static int
tear_down(void **state)
{
    change_lab_free(*state);
    return 0;
}

static int64_t
state_of(const struct change_lab *w, const char *name)
{
    return object_int(lab_find(w, K_SERVER_STATE, name), F_SERVER_STATE_STATE);
}

static void
a_rename_is_followed(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'first'}");
    lab_works(w);
    assert_null(lab_find(w, K_SERVER_STATE, "a"));
    assert_int_equal(state_of(w, "first"), V_SERVER_STATE_STATE_DRAIN);
}

static void
swapped_names_are_followed(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'b'}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "b", "{'name':'a'}");
    lab_works(w);
    assert_int_equal(state_of(w, "b"), V_SERVER_STATE_STATE_DRAIN);
    assert_int_equal(state_of(w, "a"), V_SERVER_STATE_STATE_READY);
}

static void
it_goes_with_its_object_and_is_no_user_of_it(void **state)
{
    struct change_lab *w = *state;

    assert_int_equal(
        validate_in_use(&w->pair, K_SERVER, lab_find(w, K_SERVER, "b")->id, &w->p), 0);
    lab_op(w, CHANGE_DELETE, K_SERVER, "b", NULL);
    lab_works(w);
    assert_null(lab_find(w, K_SERVER_STATE, "b"));
    assert_int_equal(state_of(w, "a"), V_SERVER_STATE_STATE_DRAIN);
    /* One that others use stays, and with it its state. */
    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_fails(w, ERR_CONFLICT, "in use", "in_use pool p /members/0/server");
}

static void
it_has_the_name_of_its_object(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_DELETE, K_SERVER_STATE, "a", NULL);
    lab_works(w);
    lab_op(w, CHANGE_CREATE, K_SERVER_STATE, NULL, "{'name':'x','server':'a'}");
    lab_fails(w, ERR_INVALID, "name of its server", "name server_state x /name");
    lab_op(w, CHANGE_MERGE, K_SERVER_STATE, "b", "{'server':'a'}");
    lab_fails(w, ERR_INVALID, "name of its server", "name server_state b /name");
}

static void
what_does_not_change_stays_the_same_snapshot(void **state)
{
    struct change_lab *w = *state;
    struct snapshot_pair pair = {w->shared, NULL};

    assert_int_equal(belong_settle(&pair, &w->e), ERR_OK);
    assert_ptr_equal(pair.shared, w->shared);
    assert_null(pair.local);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rename_is_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(swapped_names_are_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            it_goes_with_its_object_and_is_no_user_of_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_has_the_name_of_its_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_does_not_change_stays_the_same_snapshot, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
