/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/object_lab.h"

/* How many errors an edit of before (NULL: nothing) to after gets; both go. */
static size_t
errors_of(struct object_lab *w, struct object *before, struct object *after)
{
    size_t had = w->p.errors;

    validate_paths(before, after, &w->p);
    object_unref(before);
    object_unref(after);
    return w->p.errors - had;
}

static struct object *
service(struct object_lab *w, const char *name, const char *path)
{
    json_auto_t *body = lab_json("{'listeners':['listener0'],'pool':'pool0'}");
    char *text;

    json_object_set_new(body, "name", json_string(name));
    json_object_set_new(body, "path", json_string(path));
    text = json_dumps(body, 0);
    struct object *o = lab_parse(w, K_SERVICE, text);
    free(text);
    return o;
}

static void
only_who_writes_such_a_path_is_refused(void **state)
{
    struct object_lab *w = *state;

    assert_int_equal(errors_of(w, NULL, service(w, "s", "/a;b")), 1);
    assert_int_equal(errors_of(w, service(w, "s", "/"), service(w, "s", "/a%5cb")), 1);
    assert_int_equal(errors_of(w, service(w, "s", "/a;b"), service(w, "t", "/a;b")), 0);
    assert_int_equal(errors_of(w, service(w, "s", "/a;b"), service(w, "s", "/a")), 0);
}

#define CONDITION(rest) lab_parse(w, K_CONDITION, "{'name':'c','type':'path'," rest "}")

static void
a_change_of_how_it_is_compared_counts(void **state)
{
    struct object_lab *w = *state;

    assert_int_equal(errors_of(w, NULL, CONDITION("'values':['/a//b','/c']")), 1);
    assert_int_equal(errors_of(w, NULL, CONDITION("'match':'regex','values':['//']")), 0);
    assert_int_equal(
        errors_of(
            w, CONDITION("'match':'regex','values':['//']"),
            CONDITION("'match':'prefix','values':['//']")),
        1);
    assert_int_equal(
        errors_of(
            w, CONDITION("'values':['//']"), CONDITION("'values':['//'],'ignore_case':true")),
        0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(only_who_writes_such_a_path_is_refused),
        OBJECT_LAB_TEST(a_change_of_how_it_is_compared_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
