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
assert_last(const struct object_lab *w, const char *pointer, const char *word)
{
    const struct problem *last = &w->p.items[w->p.count - 1];

    assert_string_equal(last->code, "newer_release");
    assert_string_equal(last->pointer, pointer);
    if (strstr(last->message, word) == NULL) {
        fail_msg("no \"%s\": %s", word, last->message);
    }
}

static void
a_later_value_of_an_earlier_field_is_named(void **state)
{
    struct object_lab *w = *state;

    assert_int_equal(errors_at(w, K_MONITOR, "{'name':'m','type':'redis'}", 1), 1);
    assert_last(w, "/type", "does not know this value");
    assert_int_equal(errors_at(w, K_MONITOR, "{'name':'m','type':'redis'}", 2), 0);
    assert_int_equal(errors_at(w, K_MONITOR, "{'name':'m','type':'http'}", 1), 0);
    /* All values of a field that came later came with it. */
    assert_int_equal(errors_at(w, K_POOL, "{'name':'p','stick':'cookie'}", 1), 1);
    assert_last(w, "/stick", "does not know this field");
}

/* Whatever its fields hold. */
static void
an_object_of_a_later_kind_is_named_once(void **state)
{
    static const char text[] = "{'name':'c','type':'src','values':['10.0.0.0/8']}";
    struct object_lab *w = *state;

    assert_int_equal(errors_at(w, K_CONDITION, text, 1), 1);
    assert_last(w, "", "does not know this kind of object");
    assert_int_equal(errors_at(w, K_CONDITION, text, 2), 0);
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
        OBJECT_LAB_TEST(a_later_value_of_an_earlier_field_is_named),
        OBJECT_LAB_TEST(an_object_of_a_later_kind_is_named_once),
        OBJECT_LAB_TEST(what_is_the_default_or_came_before_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
