/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/edit_check.h"
#include "tests/support/pair.h"

#define NOW_S      ((int64_t)1800000000)
#define NAME_BYTES 32

static json_t *
empty_pools(int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        char name[NAME_BYTES];

        (void)snprintf(name, sizeof name, "empty%d", i);
        json_array_append_new(list, json_pack("{s:s, s:s}", "kind", "pool", "name", name));
    }
    return list;
}

/* More warnings than a list of problems holds. */
static void
warnings_do_not_hide_why_an_edit_is_refused(void **state)
{
    json_auto_t *list = empty_pools(PROBLEMS_MAX);
    struct pair before;
    struct pair after;
    struct problems *p;

    (void)state;
    pair_init_json(&before, list);
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s}", "kind", "monitor", "name", "m", "type", "agent"));
    pair_init_json(&after, list);
    p = pair_clear(&after);
    assert_int_equal(edit_new_errors(&before.objects, &after.objects, NOW_S, p), 1);
    assert_string_equal(p->items[0].name, "m");
    assert_string_equal(p->items[0].pointer, "/port");
    pair_fini(&before);
    pair_fini(&after);
}

/* Of errors elsewhere nothing is said, and those that an edit adds to its own are new. */
static void
old_errors_do_not_stand_in_the_way(void **state)
{
    static const char wrong[] = "[{'kind': 'monitor', 'name': 'm', 'type': 'agent'},"
                                "{'kind': 'listener', 'name': 'a', 'port': 80},"
                                "{'kind': 'listener', 'name': 'b', 'port': 81}]";
    struct snapshot_pair before;
    struct pair x;

    (void)state;
    pair_init(&x, wrong);
    before = pair_ref(&x.objects);
    pair_set(&x, K_LISTENER, "b", "{'port': 82}");
    assert_int_equal(edit_new_errors(&before, &x.objects, NOW_S, pair_clear(&x)), 0);
    pair_set(&x, K_MONITOR, "m", "{'interval_ms': 5000}");
    assert_int_equal(edit_new_errors(&before, &x.objects, NOW_S, pair_clear(&x)), 0);
    pair_set(&x, K_LISTENER, "b", "{'port': 80}");
    assert_int_equal(edit_new_errors(&before, &x.objects, NOW_S, pair_clear(&x)), 1);
    assert_string_equal(x.problems.items[0].code, "port_clash");
    assert_string_equal(x.problems.items[0].name, "b");
    pair_cleanup(&before);
    pair_fini(&x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_do_not_hide_why_an_edit_is_refused),
        cmocka_unit_test(old_errors_do_not_stand_in_the_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
