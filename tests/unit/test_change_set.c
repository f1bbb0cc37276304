/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/change_lab.h"
#include "tests/support/object_lab.h"

static void
reads(struct change_lab *w, const char *ops)
{
    json_auto_t *given = lab_json(ops);

    problems_init(&w->p, w->p.arena);
    change_set_parse(&w->set, given, w->p.arena, &w->p);
    if (w->p.count > 0) {
        print_error("%s\n", w->p.items[0].message);
    }
    assert_int_equal(w->p.count, 0);
}

static void
refuses(struct change_lab *w, const char *ops, const char *problems)
{
    json_auto_t *given = lab_json(ops);
    struct buf got;

    problems_init(&w->p, w->p.arena);
    change_set_parse(&w->set, given, w->p.arena, &w->p);
    buf_init(&got, 100000);
    for (size_t i = 0; i < w->p.count; i++) {
        buf_printf(
            &got, "%s%s %s", i > 0 ? "\n" : "", w->p.items[i].code, w->p.items[i].pointer);
        assert_int_equal(w->p.items[i].message[strlen(w->p.items[i].message) - 1], '.');
    }
    assert_string_equal(buf_str(&got), problems);
    assert_int_equal(w->p.errors, w->p.count);
    buf_fini(&got);
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
reads_every_operation(void **state)
{
    struct change_lab *w = *state;
    char hex[SHA256_HEX + 1];

    reads(
        w, "[{'op':'create','kind':'monitor','body':{'name':'n'}},"
           "{'op':'replace','kind':'pool','name':'p','body':{},'if_match':'" HEX64 "'},"
           "{'op':'replace','kind':'pool','body':{'name':'p'},'if_match':null},"
           "{'op':'merge','kind':'node','name':null,'body':{}},"
           "{'op':'delete','kind':'server','name':'b','body':null}]");
    assert_int_equal(w->set.count, 5);
    assert_int_equal(w->set.items[0].op, CHANGE_CREATE);
    assert_int_equal(w->set.items[0].kind, K_MONITOR);
    assert_null(w->set.items[0].name);
    assert_null(w->set.items[0].if_match);
    assert_true(json_is_object(w->set.items[0].body));
    assert_int_equal(w->set.items[1].op, CHANGE_REPLACE);
    assert_string_equal(w->set.items[1].name, "p");
    hash_hex(w->set.items[1].if_match, hex);
    assert_string_equal(hex, HEX64);
    assert_null(w->set.items[2].if_match);
    assert_int_equal(w->set.items[3].op, CHANGE_MERGE);
    assert_int_equal(w->set.items[4].op, CHANGE_DELETE);
    assert_null(w->set.items[4].body);
    for (size_t i = 0; i < w->set.count; i++) {
        assert_false(w->set.items[i].by_product);
    }
}

static void
points_at_what_is_wrong(void **state)
{
    struct change_lab *w = *state;

    refuses(w, "{}", "type /ops");
    refuses(w, "[7]", "type /ops/0");
    refuses(w, "[{}]", "enum /ops/0/op\nenum /ops/0/kind");
    refuses(w, "[{'op':'move','kind':'pools'}]", "enum /ops/0/op\nenum /ops/0/kind");
    refuses(w, "[{'op':1,'kind':{}}]", "enum /ops/0/op\nenum /ops/0/kind");
    refuses(
        w, "[{'op':'delete','kind':'pool','name':'a','by_product':true}]",
        "unknown_field /ops/0");
    refuses(
        w, "[{'op':'delete','kind':'pool','name':7}]",
        "type /ops/0/name\nrequired /ops/0/name");
    refuses(w, "[{'op':'delete','kind':'pool'}]", "required /ops/0/name");
    refuses(w, "[{'op':'delete','kind':'pool','name':'p','body':{}}]", "type /ops/0/body");
    refuses(w, "[{'op':'merge','kind':'pool','name':'p'}]", "type /ops/0/body");
    refuses(w, "[{'op':'merge','kind':'pool','body':{'name':'p'}}]", "required /ops/0/name");
    refuses(w, "[{'op':'create','kind':'pool','body':{}}]", "required /ops/0/name");
    refuses(
        w, "[{'op':'create','kind':'pool','body':[]}]",
        "type /ops/0/body\nrequired /ops/0/name");
    refuses(
        w, "[{'op':'merge','kind':'pool','name':'p','body':{},'if_match':'x'}]",
        "format /ops/0/if_match");
    refuses(
        w, "[{'op':'merge','kind':'pool','name':'p','body':{},'if_match':7}]",
        "format /ops/0/if_match");
    assert_int_equal(w->set.count, 0);
    refuses(
        w, "[{'op':'delete','kind':'pool','name':'p'},{}]", "enum /ops/1/op\nenum /ops/1/kind");
}

static void
holds_so_many_operations_and_no_more(void **state)
{
    struct change_lab *w = *state;
    json_auto_t *ops = json_array();
    json_auto_t *op = lab_json("{'op':'delete','kind':'server','name':'b'}");
    json_t *body = json_object();
    struct change c = {.op = CHANGE_MERGE, .kind = K_SERVER, .name = "b"};

    for (int i = 0; i < CHANGE_MAX_OPS; i++) {
        json_array_append(ops, op);
    }
    change_set_parse(&w->set, ops, w->p.arena, &w->p);
    assert_int_equal(w->p.count, 0);
    assert_int_equal(w->set.count, CHANGE_MAX_OPS);
    c.body = json_incref(body);
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_LIMIT);
    assert_int_equal(w->set.count, CHANGE_MAX_OPS);
    assert_int_equal(body->refcount, 1);
    json_decref(body);
    refuses(w, "[{}]", "items /ops");
    change_set_fini(&w->set);
    json_array_append(ops, op);
    problems_init(&w->p, w->p.arena);
    change_set_parse(&w->set, ops, w->p.arena, &w->p);
    assert_int_equal(w->p.count, 1);
    assert_int_equal(w->set.count, 0);
}

static void
what_was_read_can_be_applied(void **state)
{
    struct change_lab *w = *state;

    reads(
        w, "[{'op':'create','kind':'monitor','body':{'name':'n'}},"
           "{'op':'merge','kind':'pool','name':'p','body':{'monitor':'n'}},"
           "{'op':'delete','kind':'monitor','name':'m'}]");
    lab_works(w);
    assert_non_null(lab_find(w, K_MONITOR, "n"));
    assert_null(lab_find(w, K_MONITOR, "m"));
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(reads_every_operation),
        T(points_at_what_is_wrong),
        T(holds_so_many_operations_and_no_more),
        T(what_was_read_can_be_applied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
