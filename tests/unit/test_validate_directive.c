/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/object_lab.h"

static size_t
count_of(struct object_lab *w, const struct object *before, const struct object *after)
{
    problems_init(&w->p, w->p.arena);
    validate_directives(before, after, &w->p);
    return w->p.errors;
}

static struct object *
parse(struct object_lab *w, const char *text)
{
    json_auto_t *body = lab_json(text);
    struct object *o = object_parse(K_HAPROXY, "haproxy", body, NULL, &lab_refs, &w->p);

    assert_non_null(o);
    return o;
}

/* What an earlier version let in opens, and stands in nobody's way until the list is edited. */
static void
stored_lines_that_would_be_refused_today_stay(void **state)
{
    static const char stored[] =
        "{'extra_global':['maxconnrate abc','tune.bufsize 1','busy-polling on']}";
    struct object_lab *w = *state;
    struct object *before = parse(w, stored);
    struct object *after = parse(
        w, "{'error_title':'Sorry','extra_global':['maxconnrate abc','tune.bufsize 1',"
           "'busy-polling on']}");
    struct object *edited =
        parse(w, "{'extra_global':['maxconnrate abc','tune.bufsize 32768']}");
    struct object *opened = NULL;

    assert_int_equal(
        object_from_canonical(
            K_HAPROXY, before->id, before->canonical, before->canonical_len, &opened, NULL),
        ERR_OK);
    assert_int_equal(count_of(w, before, after), 0);
    assert_int_equal(count_of(w, NULL, after), 3);
    assert_string_equal(w->p.items[2].pointer, "/extra_global/2");
    assert_string_equal(
        w->p.items[2].message, "busy-polling takes nothing, not \"busy-polling on\".");
    assert_int_equal(count_of(w, before, edited), 1);
    assert_string_equal(w->p.items[0].pointer, "/extra_global/0");
    object_unref(before);
    object_unref(after);
    object_unref(edited);
    object_unref(opened);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(stored_lines_that_would_be_refused_today_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
