/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/change_lab.h"
#include "tests/support/object_lab.h"

/* ---- create ---- */

static void
references_resolve_whatever_the_order(void **state)
{
    struct change_lab *w = *state;
    const struct object *p = lab_find(w, K_POOL, "p");
    const struct object *s = lab_find(w, K_SERVICE, "s");

    assert_string_equal(object_text(s, F_SERVICE_POOL).s, p->id);
    assert_string_equal(object_text(p, F_POOL_MONITOR).s, lab_find(w, K_MONITOR, "m")->id);
    assert_int_equal(snapshot_count(w->shared), 7);
}

static void
create_of_an_existing_name_is_a_conflict(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'m'}");
    lab_fails(w, ERR_CONFLICT, "monitor \"m\" cannot be", "exists monitor m /name");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'n'}");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'n'}");
    lab_fails(w, ERR_CONFLICT, "monitor \"n\" cannot be", "exists monitor n /name");
    /* Another kind has other names. */
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'a'}");
    lab_works(w);
}

static void
create_needs_one_name(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_MONITOR, "x", "{'name':'y'}");
    lab_fails(w, ERR_INVALID, "another name", "format monitor x /name");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{}");
    lab_fails(w, ERR_INVALID, "Name is missing", "required monitor - /name");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':7}");
    lab_fails(w, ERR_INVALID, "must be a text", "type monitor - /name");
    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'a b'}");
    lab_fails(
        w, ERR_INVALID, "monitor \"a b\" /name: Name: a name has", "format monitor a b /name");
}

static void
all_problems_of_all_operations_are_told(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_SERVICE, NULL, "{'name':'t','listeners':['x'],'pool':'y'}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'port':0}");
    lab_fails(
        w, ERR_INVALID, "",
        "range server a /port\n"
        "no_such_object service t /listeners/0\nno_such_object service t /pool");
}

/* ---- replace and merge ---- */

static void
replace_sets_what_is_not_given_to_its_default(void **state)
{
    struct change_lab *w = *state;
    const char *id = lab_find(w, K_POOL, "p")->id;
    char before[OBJECT_ID_BYTES];

    memcpy(before, id, sizeof before);
    lab_op(w, CHANGE_REPLACE, K_POOL, "p", "{'retries':1,'monitor':null}");
    lab_works(w);
    assert_string_equal(lab_find(w, K_POOL, "p")->id, before);
    assert_int_equal(object_value(lab_find(w, K_POOL, "p"), F_POOL_MEMBERS)->count, 0);
    assert_int_equal(object_int(lab_find(w, K_POOL, "p"), F_POOL_RETRIES), 1);
    lab_op(w, CHANGE_REPLACE, K_POOL, NULL, "{'name':'p','retries':2}");
    lab_works(w);
    assert_int_equal(object_int(lab_find(w, K_POOL, "p"), F_POOL_RETRIES), 2);
}

static void
merge_changes_only_what_is_given(void **state)
{
    struct change_lab *w = *state;
    const struct object *p;

    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'retries':1,'balance':'first'}");
    lab_works(w);
    p = lab_find(w, K_POOL, "p");
    assert_int_equal(object_int(p, F_POOL_RETRIES), 1);
    assert_int_equal(object_value(p, F_POOL_MEMBERS)->count, 1);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'retries':null,'monitor':null,'members':[]}");
    lab_works(w);
    p = lab_find(w, K_POOL, "p");
    assert_int_equal(object_int(p, F_POOL_RETRIES), 3);
    assert_int_equal(object_int(p, F_POOL_BALANCE), V_POOL_BALANCE_FIRST);
    assert_true(object_value(p, F_POOL_MONITOR)->is_null);
    assert_int_equal(object_value(p, F_POOL_MEMBERS)->count, 0);
}

static void
operations_on_one_object_add_up(void **state)
{
    struct change_lab *w = *state;
    const struct object *n;

    lab_op(w, CHANGE_CREATE, K_MONITOR, NULL, "{'name':'n','rise':7}");
    lab_op(w, CHANGE_MERGE, K_MONITOR, "m", "{'fall':9}");
    lab_op(w, CHANGE_MERGE, K_MONITOR, "n", "{'fall':8}");
    lab_op(w, CHANGE_MERGE, K_MONITOR, "m", "{'rise':6}");
    lab_works(w);
    n = lab_find(w, K_MONITOR, "n");
    assert_int_equal(object_int(n, F_MONITOR_RISE), 7);
    assert_int_equal(object_int(n, F_MONITOR_FALL), 8);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "m"), F_MONITOR_RISE), 6);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "m"), F_MONITOR_FALL), 9);
    lab_op(w, CHANGE_MERGE, K_MONITOR, "m", "{'fall':1}");
    lab_op(w, CHANGE_REPLACE, K_MONITOR, "m", "{'rise':5}");
    lab_op(w, CHANGE_MERGE, K_MONITOR, "m", "{'type':'http'}");
    lab_works(w);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "m"), F_MONITOR_RISE), 5);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "m"), F_MONITOR_FALL), 3);
    assert_int_equal(
        object_int(lab_find(w, K_MONITOR, "m"), F_MONITOR_TYPE), V_MONITOR_TYPE_HTTP);
}

static void
what_is_not_there_is_not_found(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_REPLACE, K_POOL, "a", "{}");
    lab_fails(w, ERR_NOT_FOUND, "pool \"a\" does not exist", "");
    lab_op(w, CHANGE_MERGE, K_POOL, "a", "{}");
    lab_fails(w, ERR_NOT_FOUND, "pool \"a\"", "");
    lab_op(w, CHANGE_DELETE, K_POOL, "a", NULL);
    lab_fails(w, ERR_NOT_FOUND, "pool \"a\"", "");
    /* Created later, so not there yet. */
    lab_op(w, CHANGE_MERGE, K_MONITOR, "n", "{}");
    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{}");
    lab_fails(w, ERR_NOT_FOUND, "monitor \"n\"", "");
    lab_op(w, CHANGE_DELETE, K_SERVER, "b", NULL);
    lab_op(w, CHANGE_MERGE, K_SERVER, "b", "{}");
    lab_fails(w, ERR_NOT_FOUND, "server \"b\"", "");
}

static void
the_first_fault_is_the_one_that_is_told(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_DELETE, K_SERVER, "z", NULL);
    lab_op(w, CHANGE_DELETE, K_SERVER, "y", NULL);
    lab_op(w, CHANGE_DELETE, K_MONITOR, "x", NULL);
    lab_fails(w, ERR_NOT_FOUND, "server \"z\"", "");
}

static void
nothing_changes_when_nothing_differs(void **state)
{
    struct change_lab *w = *state;
    const struct snapshot *shared = w->shared;
    const struct snapshot *local = w->local;

    lab_works(w);
    assert_ptr_equal(w->shared, shared);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'retries':3}");
    lab_op(w, CHANGE_MERGE, K_NODE, NULL, "{}");
    lab_works(w);
    assert_ptr_equal(w->shared, shared);
    assert_ptr_equal(w->local, local);
    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{}");
    lab_op(w, CHANGE_DELETE, K_MONITOR, "n", NULL);
    lab_works(w);
    assert_ptr_equal(w->shared, shared);
    lab_op(w, CHANGE_MERGE, K_NODE, "node", "{'note':'x'}");
    lab_works(w);
    assert_ptr_equal(w->shared, shared);
    assert_ptr_not_equal(w->local, local);
}

/* ---- if_match ---- */

static void
if_match_must_be_the_present_hash(void **state)
{
    struct change_lab *w = *state;
    struct hash present = lab_find(w, K_MONITOR, "m")->objhash;
    struct hash other = sha256("x", 1);
    struct change c = {.op = CHANGE_MERGE, .kind = K_MONITOR, .name = "m"};

    c.body = lab_json("{'rise':9}");
    c.if_match = &other;
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
    lab_fails(w, ERR_STALE, "monitor \"m\" was changed meanwhile", "");
    c.body = lab_json("{'rise':9}");
    c.if_match = &present;
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
    lab_works(w);
    c.op = CHANGE_CREATE;
    c.name = "n";
    c.body = lab_json("{}");
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
    lab_fails(w, ERR_STALE, "monitor \"n\" is to be created", "");
    /* What the set itself creates has no hash that a caller could know. */
    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{}");
    c.op = CHANGE_MERGE;
    c.body = lab_json("{}");
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
    lab_fails(w, ERR_STALE, "monitor \"n\"", "");
}

/* ---- delete ---- */

static void
what_is_in_use_cannot_be_deleted(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_fails(w, ERR_CONFLICT, "server \"a\" is in use", "in_use pool p /members/0/server");
    assert_non_null(strstr(w->p.items[0].message, "The pool \"p\" uses the server \"a\""));
    lab_op(w, CHANGE_DELETE, K_LISTENER, "l", NULL);
    lab_op(w, CHANGE_DELETE, K_POOL, "p", NULL);
    lab_op(w, CHANGE_DELETE, K_MONITOR, "m", NULL);
    lab_fails(
        w, ERR_CONFLICT, "listener \"l\" is in use",
        "in_use service s /listeners/0\nin_use service s /pool");
    lab_op(w, CHANGE_DELETE, K_SERVER, "b", NULL);
    lab_works(w);
    assert_null(lab_find(w, K_SERVER, "b"));
}

static void
users_may_go_or_let_go_in_the_same_set(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'members':[{'server':'b'}]}");
    lab_works(w);
    lab_op(w, CHANGE_DELETE, K_MONITOR, "m", NULL);
    lab_op(w, CHANGE_DELETE, K_POOL, "p", NULL);
    lab_op(w, CHANGE_DELETE, K_SERVICE, "s", NULL);
    lab_works(w);
    assert_int_equal(snapshot_count(w->shared), 3);
}

static void
a_changed_object_cannot_refer_to_what_is_deleted(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_DELETE, K_SERVER, "b", NULL);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'members':[{'server':'b'}]}");
    lab_fails(w, ERR_INVALID, "no server \"b\"", "no_such_object pool p /members/0/server");
    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'retries':1,'monitor':null}");
    lab_fails(w, ERR_INVALID, "no server \"a\"", "no_such_object pool p /members/0/server");
}

static void
deleted_and_created_again_is_another_object(void **state)
{
    struct change_lab *w = *state;
    char before[OBJECT_ID_BYTES];

    memcpy(before, lab_find(w, K_SERVER, "b")->id, sizeof before);
    lab_op(w, CHANGE_CREATE, K_SERVER, "b", "{'address':'x','port':1}");
    lab_op(w, CHANGE_DELETE, K_SERVER, "b", NULL);
    lab_op(w, CHANGE_MERGE, K_SERVER, "b", "{'port':2}");
    lab_works(w);
    assert_string_not_equal(lab_find(w, K_SERVER, "b")->id, before);
    assert_int_equal(object_int(lab_find(w, K_SERVER, "b"), F_SERVER_PORT), 2);
    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_op(w, CHANGE_CREATE, K_SERVER, "a", "{'address':'x','port':1}");
    lab_fails(w, ERR_CONFLICT, "in use", "in_use pool p /members/0/server");
    /* The pool is written anew, and so finds the new server. */
    lab_op(w, CHANGE_DELETE, K_SERVER, "a", NULL);
    lab_op(w, CHANGE_CREATE, K_SERVER, "a", "{'address':'x','port':1}");
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{}");
    lab_works(w);
}

static void
a_created_object_may_be_deleted_and_created_again(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{'rise':7}");
    lab_op(w, CHANGE_DELETE, K_MONITOR, "n", NULL);
    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{'fall':7}");
    lab_works(w);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "n"), F_MONITOR_RISE), 2);
    assert_int_equal(object_int(lab_find(w, K_MONITOR, "n"), F_MONITOR_FALL), 7);
}

/* ---- names ---- */

static void
a_rename_touches_one_object(void **state)
{
    struct change_lab *w = *state;
    const struct object *p = lab_find(w, K_POOL, "p");

    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'web1'}");
    lab_works(w);
    assert_null(lab_find(w, K_SERVER, "a"));
    assert_ptr_equal(lab_find(w, K_POOL, "p"), p);
    assert_string_equal(
        object_value(p, F_POOL_MEMBERS)->u.items[0].u.items[0].u.text.s,
        lab_find(w, K_SERVER, "web1")->id);
    lab_op(
        w, CHANGE_REPLACE, K_SERVER, "web1", "{'name':'web2','address':'10.0.0.9','port':1}");
    lab_works(w);
    assert_non_null(lab_find(w, K_SERVER, "web2"));
}

static void
references_use_the_names_that_result(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'members':[{'server':'web1'}]}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'web1'}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'retries':1,'monitor':null}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "web1", "{'name':'web2'}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_POOL, "p", "{'members':[{'server':'web2'}]}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "web2", "{'name':'web3'}");
    lab_fails(w, ERR_INVALID, "no server \"web2\"", "no_such_object pool p /members/0/server");
}

static void
two_objects_may_swap_their_names(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'b'}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "b", "{'name':'a'}");
    lab_works(w);
    assert_string_equal(
        object_text(lab_find(w, K_SERVER, "a"), F_SERVER_ADDRESS).s, "10.0.0.2");
    assert_string_equal(
        object_text(lab_find(w, K_SERVER, "b"), F_SERVER_ADDRESS).s, "10.0.0.1");
    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'c'}");
    lab_op(w, CHANGE_CREATE, K_SERVER, "a", "{'address':'new','port':1}");
    lab_works(w);
    assert_string_equal(object_text(lab_find(w, K_SERVER, "a"), F_SERVER_ADDRESS).s, "new");
}

static void
a_rename_to_a_taken_name_is_a_conflict(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'b'}");
    lab_fails(w, ERR_CONFLICT, "server \"a\" cannot be", "exists server b /name");
    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'name':'c'}");
    lab_op(w, CHANGE_MERGE, K_SERVER, "b", "{'name':'c'}");
    lab_fails(w, ERR_CONFLICT, "server \"b\" cannot be", "exists server c /name");
}

/* ---- singletons, containers ---- */

static void
singletons_can_only_be_changed(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_NODE, NULL, "{'name':'x'}");
    lab_fails(w, ERR_CONFLICT, "is always there", "");
    lab_op(w, CHANGE_DELETE, K_NODE, "node", NULL);
    lab_fails(w, ERR_CONFLICT, "cannot be deleted", "");
    lab_op(w, CHANGE_MERGE, K_NODE, "other", "{}");
    lab_fails(w, ERR_NOT_FOUND, "node \"other\"", "");
    lab_op(w, CHANGE_MERGE, K_NODE, "node", "{'name':'proxy1'}");
    lab_works(w);
    assert_string_equal(snapshot_singleton(w->local, K_NODE)->name.s, "proxy1");
    lab_op(w, CHANGE_MERGE, K_NODE, "proxy1", "{'note':'x'}");
    lab_op(w, CHANGE_MERGE, K_NODE, "node", "{'url':'http://x'}");
    lab_op(w, CHANGE_REPLACE, K_HAPROXY, NULL, "{'maxconn':99}");
    lab_works(w);
    assert_string_equal(snapshot_singleton(w->local, K_NODE)->name.s, "proxy1");
    assert_int_equal(
        object_int(snapshot_singleton(w->shared, K_HAPROXY), F_HAPROXY_MAXCONN), 99);
    assert_string_equal(
        object_text(snapshot_singleton(w->local, K_NODE), F_NODE_URL).s, "http://x");
}

static void
a_missing_container_counts_as_empty(void **state)
{
    struct change_lab *w = *state;
    struct snapshot_pair none = {NULL, NULL};
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;

    lab_op(w, CHANGE_CREATE, K_MONITOR, "n", "{}");
    lab_op(w, CHANGE_CREATE, K_POOL, "n", "{'monitor':'n'}");
    lab_op(w, CHANGE_CREATE, K_SERVER, "n", "{'address':'x','port':1}");
    lab_op(w, CHANGE_DELETE, K_SERVER, "n", NULL);
    assert_int_equal(change_apply(&w->set, &none, &shared, &local, &w->p, &w->e), ERR_OK);
    assert_int_equal(snapshot_count(shared), 2);
    assert_null(local);
    snapshot_unref(shared);
    change_set_fini(&w->set);
    lab_op(w, CHANGE_MERGE, K_NODE, NULL, "{}");
    assert_int_equal(
        change_apply(&w->set, &none, &shared, &local, &w->p, &w->e), ERR_NOT_FOUND);
}

/* ---- secrets, the product's fields ---- */

#define PASSWORD "correct horse"

static void
secrets_stay_unless_given(void **state)
{
    struct change_lab *w = *state;

    lab_op(w, CHANGE_CREATE, K_ADMIN, "a", "{'password':'" PASSWORD "'}");
    lab_works(w);
    lab_op(w, CHANGE_REPLACE, K_ADMIN, "a", "{'note':'x'}");
    lab_works(w);
    lab_op(w, CHANGE_MERGE, K_ADMIN, "a", "{'name':'b'}");
    lab_works(w);
    assert_string_equal(object_text(lab_find(w, K_ADMIN, "b"), F_ADMIN_PASSWORD).s, PASSWORD);
    lab_op(w, CHANGE_MERGE, K_ADMIN, "b", "{'password':null}");
    lab_fails(w, ERR_INVALID, "cannot be cleared", "required admin b /password");
    lab_op(w, CHANGE_MERGE, K_ADMIN, "b", "{'password':'another horse'}");
    lab_works(w);
    assert_string_equal(
        object_text(lab_find(w, K_ADMIN, "b"), F_ADMIN_PASSWORD).s, "another horse");
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
by_product(struct change_lab *w, enum change_op op, const char *name, const char *body)
{
    struct change c = {.op = op, .kind = K_AUTOMATION_KEY, .name = name, .by_product = true};

    c.body = lab_json(body);
    assert_int_equal(change_set_add(&w->set, c, &w->e), ERR_OK);
}

static void
only_the_product_gives_read_only_fields(void **state)
{
    struct change_lab *w = *state;
    const struct object *k;

    lab_op(w, CHANGE_CREATE, K_AUTOMATION_KEY, "k", "{'key_hash':'" HEX64 "'}");
    lab_fails(w, ERR_INVALID, "set by the product", "read_only automation_key k /key_hash");
    by_product(w, CHANGE_CREATE, "k", "{'key_hash':'" HEX64 "','note':'x'}");
    lab_works(w);
    k = lab_find(w, K_AUTOMATION_KEY, "k");
    assert_string_equal(object_text(k, F_AUTOMATION_KEY_KEY_HASH).s, HEX64);
    assert_string_equal(object_text(k, F_AUTOMATION_KEY_NOTE).s, "x");
    by_product(w, CHANGE_MERGE, "k", "{'key_hash':''}");
    lab_works(w);
    k = lab_find(w, K_AUTOMATION_KEY, "k");
    assert_string_equal(object_text(k, F_AUTOMATION_KEY_KEY_HASH).s, "");
    assert_string_equal(object_text(k, F_AUTOMATION_KEY_NOTE).s, "x");
    by_product(w, CHANGE_MERGE, "k", "{'key_hash':'0'}");
    lab_fails(w, ERR_INVALID, "64 lower-case", "format automation_key k ");
    by_product(w, CHANGE_MERGE, "k", "{'key_hash':'0','note':7}");
    lab_fails(w, ERR_INVALID, "Note must be a text", "type automation_key k /note");
}

/* ---- size ---- */

static void
too_many_problems_still_fail(void **state)
{
    struct change_lab *w = *state;
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    size_t kept;

    for (int i = 0; i <= PROBLEMS_MAX; i++) {
        problems_add(&w->p, SEVERITY_ERROR, "x", NULL, "y");
    }
    kept = w->p.count;
    lab_op(w, CHANGE_MERGE, K_SERVER, "a", "{'port':0}");
    assert_int_equal(
        change_apply(&w->set, &w->pair, &shared, &local, &w->p, &w->e), ERR_INVALID);
    assert_string_equal(w->e.msg, "there are too many problems");
    assert_int_equal(w->p.count, kept);
    assert_null(shared);
}

static void
thousands_of_objects_go_in_one_set(void **state)
{
    struct change_lab *w = *state;
    struct arena *arena = arena_new((size_t)64 << 20);
    int n = 2000;

    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(arena, "n%d", i);

        lab_op(
            w, CHANGE_CREATE, K_SERVICE, name,
            arena_printf(arena, "{'listeners':['l'],'pool':'n%d'}", n - 1 - i));
        lab_op(
            w, CHANGE_CREATE, K_POOL, name,
            arena_printf(arena, "{'members':[{'server':'n%d'}]}", i));
        lab_op(w, CHANGE_CREATE, K_SERVER, name, "{'address':'x','port':1}");
    }
    lab_works(w);
    assert_int_equal(snapshot_count(w->shared), 7 + 3 * n);
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(arena, "n%d", i);

        lab_op(w, CHANGE_DELETE, K_SERVER, name, NULL);
        lab_op(w, CHANGE_DELETE, K_POOL, name, NULL);
        lab_op(w, CHANGE_DELETE, K_SERVICE, name, NULL);
    }
    lab_works(w);
    assert_int_equal(snapshot_count(w->shared), 7);
    arena_free(arena);
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
        T(references_resolve_whatever_the_order),
        T(create_of_an_existing_name_is_a_conflict),
        T(create_needs_one_name),
        T(all_problems_of_all_operations_are_told),
        T(replace_sets_what_is_not_given_to_its_default),
        T(merge_changes_only_what_is_given),
        T(operations_on_one_object_add_up),
        T(what_is_not_there_is_not_found),
        T(the_first_fault_is_the_one_that_is_told),
        T(nothing_changes_when_nothing_differs),
        T(if_match_must_be_the_present_hash),
        T(what_is_in_use_cannot_be_deleted),
        T(users_may_go_or_let_go_in_the_same_set),
        T(a_changed_object_cannot_refer_to_what_is_deleted),
        T(deleted_and_created_again_is_another_object),
        T(a_created_object_may_be_deleted_and_created_again),
        T(a_rename_touches_one_object),
        T(references_use_the_names_that_result),
        T(two_objects_may_swap_their_names),
        T(a_rename_to_a_taken_name_is_a_conflict),
        T(singletons_can_only_be_changed),
        T(a_missing_container_counts_as_empty),
        T(secrets_stay_unless_given),
        T(only_the_product_gives_read_only_fields),
        T(too_many_problems_still_fail),
        T(thousands_of_objects_go_in_one_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
