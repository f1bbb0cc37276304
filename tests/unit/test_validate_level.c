/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/object_lab.h"

/* How many values of the object a node of that level does not know. */
static size_t
errors_at(struct object_lab *w, enum kind kind, const char *text, int level)
{
    struct object *o = lab_parse(w, kind, text);
    size_t had = w->p.errors;

    validate_level(o, level, "n2 (release 1.0)", &w->p);
    object_unref(o);
    return w->p.errors - had;
}

static void
a_value_in_a_later_field_is_named(void **state)
{
    struct object_lab *w = *state;
    const struct problem *last;

    assert_int_equal(errors_at(w, K_POOL, "{'name':'p','enabled':false}", 1), 1);
    last = &w->p.items[w->p.count - 1];
    assert_string_equal(last->code, "newer_release");
    assert_string_equal(last->name, "p");
    assert_string_equal(last->pointer, "/enabled");
    assert_non_null(strstr(last->message, "n2 (release 1.0)"));
    assert_int_equal(errors_at(w, K_POOL, "{'name':'p','enabled':false}", 2), 0);
}

static void
what_is_the_default_or_came_before_is_fine(void **state)
{
    struct object_lab *w = *state;

    assert_int_equal(errors_at(w, K_POOL, "{'name':'p','enabled':true}", 1), 0);
    assert_int_equal(errors_at(w, K_POOL, "{'name':'p','retries':7}", 1), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(a_value_in_a_later_field_is_named),
        OBJECT_LAB_TEST(what_is_the_default_or_came_before_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
