/* SPDX-License-Identifier: Apache-2.0 */
/* One edit for each way in which it can reach another object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/validate.h"
#include "tests/support/pair.h"

#define NOW_S ((int64_t)1800000000)

#define WEB                                                                                    \
    "{'kind': 'server', 'name': 'a1', 'address': '10.0.0.1', 'port': 80},"                     \
    "{'kind': 'server', 'name': 'a2', 'address': '10.0.0.2', 'port': 80},"                     \
    "{'kind': 'server', 'name': 'a3', 'address': '10.0.0.1', 'port': 81},"                     \
    "{'kind': 'pool', 'name': 'web', 'members': [{'server': 'a1'}, {'server': 'a2'},"          \
    "  {'server': 'a3'}]},"                                                                    \
    "{'kind': 'pool', 'name': 'db', 'mode': 'tcp', 'members': [{'server': 'a1'}]},"            \
    "{'kind': 'listener', 'name': 'http', 'port': 80},"                                        \
    "{'kind': 'listener', 'name': 'tcp', 'port': 90, 'mode': 'tcp'},"
#define SERVICE(name, rest)                                                                    \
    "{'kind': 'service', 'name': '" name "', 'pool': 'web', 'listeners': ['http']" rest "},"
#define ON_TCP(name, rest)                                                                     \
    "{'kind': 'service', 'name': '" name "', 'pool': 'db', 'listeners': ['tcp']" rest "},"
#define LISTENER(name, rest) "{'kind': 'listener', 'name': '" name "'" rest "},"
#define VIPS(name, rest)     "{'kind': 'vip_group', 'name': '" name "'" rest "},"
#define RULE(rest)           "{'kind': 'rule', 'name': 'r', 'action': 'deny'" rest "},"
#define MERGE(kind, name, body)                                                                \
    "{'op': 'merge', 'kind': '" kind "', 'name': '" name "', 'body': {" body "}}"

struct row {
    const char *what;
    const char *objects; /* beside WEB */
    const char *ops;
};

static const struct row harmless[] = {
    {"name of a server", "", MERGE("server", "a1", "'name': 'x'")},
    {"another address", "", MERGE("server", "a1", "'address': '10.0.0.7'")},
    {"another host",
     SERVICE("a", ", 'hosts': ['a.test']") SERVICE("b", ", 'hosts': ['b.test']"),
     MERGE("service", "a", "'hosts': ['c.test']")},
    {"an error elsewhere", SERVICE("a", "") SERVICE("b", ""),
     MERGE("server", "a1", "'address': '10.0.0.7'")},
    {"what heals", SERVICE("a", "") SERVICE("b", ""),
     MERGE("service", "b", "'enabled': false")},
    {"a pool of its own", "",
     "{'op': 'create', 'kind': 'pool', 'body': {'name': 'x', 'members': [{'server': 'a1'}]}}"},
};

static const struct row harmful[] = {
    {"address of a server", "", MERGE("server", "a1", "'address': '10.0.0.2'")},
    {"port of a server", "", MERGE("server", "a1", "'port': 81")},
    {"mode of a service's pool", SERVICE("a", ""), MERGE("pool", "web", "'mode': 'tcp'")},
    {"mode of a rule's pool",
     "{'kind': 'rule', 'name': 'r', 'action': 'use_pool', 'pool': 'web', 'listener': 'http'},",
     MERGE("pool", "web", "'mode': 'tcp'")},
    {"mode of a service's listener", SERVICE("a", ""),
     MERGE("listener", "http", "'mode': 'tcp'")},
    {"mode of a rule's listener", RULE(", 'listener': 'http'"),
     MERGE("listener", "http", "'mode': 'tcp'")},
    {"mode of the listener of a rule's service", SERVICE("a", "") RULE(", 'service': 'a'"),
     MERGE("listener", "http", "'mode': 'tcp'") "," MERGE("pool", "web", "'mode': 'tcp'")},
    {"listeners of a rule's service", SERVICE("a", "") RULE(", 'service': 'a'"),
     MERGE("service", "a", "'listeners': ['tcp'], 'pool': 'db'")},
    {"port of the tables", LISTENER("x", ", 'port': 99"),
     MERGE("node", "node", "'peers_port': 99")},
    {"port of a listener", LISTENER("x", ", 'port': 99"),
     MERGE("listener", "http", "'port': 99")},
    {"addresses of a listener", LISTENER("x", ", 'port': 80, 'addresses': ['::1']"),
     MERGE("listener", "http", "'addresses': ['::']")},
    {"a listener that is turned on", LISTENER("x", ", 'port': 80, 'enabled': false"),
     MERGE("listener", "x", "'enabled': true")},
    {"addresses of a VIP group",
     VIPS("a", ", 'addresses': ['10.1.0.1/24']") VIPS("b", ", 'addresses': ['10.1.0.2/24']"),
     MERGE("vip_group", "a", "'addresses': ['10.1.0.2/24']")},
    {"primary VIP group",
     VIPS("a", ", 'addresses': ['10.1.0.1/24'], 'primary': true")
         VIPS("b", ", 'addresses': ['10.1.0.2/24'], 'primary': false"),
     MERGE("vip_group", "b", "'primary': true")},
    {"hosts of a service",
     SERVICE("a", ", 'hosts': ['a.test']") SERVICE("b", ", 'hosts': ['b.test', 'c.test']"),
     MERGE("service", "a", "'hosts': ['c.test', 'd.test']")},
    {"no hosts", SERVICE("a", ", 'hosts': ['a.test']") SERVICE("b", ""),
     MERGE("service", "a", "'hosts': []")},
    {"path of a service", SERVICE("a", ", 'path': '/x'") SERVICE("b", ", 'path': '/y/'"),
     MERGE("service", "a", "'path': '/y'")},
    {"listeners of a service",
     LISTENER("x", ", 'port': 99") SERVICE(
         "a", "") "{'kind': 'service', 'name': 'b', 'pool': 'web', 'listeners': ['x']},",
     MERGE("service", "b", "'listeners': ['http', 'x']")},
    {"a service that is turned on", SERVICE("a", ", 'enabled': false") SERVICE("b", ""),
     MERGE("service", "a", "'enabled': true")},
    {"a second service on a listener of mode tcp",
     SERVICE("b", "") ON_TCP("a", ", 'hosts': ['a.test']"),
     MERGE("service", "b", "'listeners': ['tcp'], 'pool': 'db'")},
    {"a service that is turned on, on a listener of mode tcp",
     ON_TCP("b", ", 'enabled': false") ON_TCP("a", ", 'hosts': ['a.test']"),
     MERGE("service", "b", "'enabled': true")},
    {"a new service", SERVICE("a", ""),
     "{'op': 'create', 'kind': 'service', 'body': {'name': 'b', 'pool': 'web', 'listeners':"
     "['http']}}"},
    /* Of two that clash the later one by name is told: a name changes that. */
    {"name of a VIP group",
     VIPS("a", ", 'addresses': ['10.1.0.1/24']") VIPS("b", ", 'addresses': ['10.1.0.1/24']"),
     MERGE("vip_group", "a", "'name': 'c'")},
    {"name of a listener", LISTENER("a", ", 'port': 80"),
     MERGE("listener", "a", "'name': 'x'")},
    {"name of a service", SERVICE("a", "") SERVICE("b", ""),
     MERGE("service", "a", "'name': 'c'")},
    {"name of a service on a listener of mode tcp",
     ON_TCP("b", "") ON_TCP("c", ", 'hosts': ['a.test']"),
     MERGE("service", "b", "'name': 'd'")},
    /* Of three that clash, those that stay are told anew. */
    {"the first of three", SERVICE("a", "") SERVICE("b", "") SERVICE("c", ""),
     MERGE("service", "a", "'enabled': false")},
};

struct edit {
    struct pair x;
    struct snapshot_pair before;
};

static void
make(struct edit *t, const struct row *row)
{
    char text[4096];
    struct change_set set;
    json_auto_t *ops = NULL;

    print_message("%s\n", row->what);
    (void)snprintf(
        text, sizeof text, "[" WEB "%s{'kind': 'monitor', 'name': 'm'}]", row->objects);
    pair_init(&t->x, text);
    t->before = (struct snapshot_pair){snapshot_ref(t->x.shared), snapshot_ref(t->x.local)};
    (void)snprintf(text, sizeof text, "[%s]", row->ops);
    ops = pair_json(text);
    change_set_init(&set);
    change_set_parse(&set, ops, t->x.arena, pair_clear(&t->x));
    pair_apply(&t->x, &set);
    change_set_fini(&set);
}

static void
clear(struct edit *t)
{
    snapshot_unref(t->before.shared);
    snapshot_unref(t->before.local);
    pair_fini(&t->x);
}

static void
an_edit_that_breaks_nothing_within_its_reach_is_known_to_be_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        struct edit t;

        make(&t, &harmless[i]);
        assert_true(validate_reached(&t.before, &t.x.objects));
        clear(&t);
    }
}

static void
an_edit_that_breaks_something_else_reaches_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(harmful); i++) {
        struct edit t;

        make(&t, &harmful[i]);
        validate_beside(&t.x.objects, &t.before, NOW_S, pair_clear(&t.x));
        assert_true(t.x.problems.errors > 0);
        assert_false(validate_reached(&t.before, &t.x.objects));
        clear(&t);
    }
}

/* Of what is removed in spite of its users, these are told. */
static void
the_users_of_what_is_gone_are_reached(void **state)
{
    static const struct row row = {"gone", SERVICE("a", ""), ""};
    struct edit t;

    (void)state;
    make(&t, &row);
    pair_remove(&t.x, K_POOL, "web");
    assert_false(validate_reached(&t.before, &t.x.objects));
    clear(&t);
}

static void
an_edit_of_more_than_is_reached_one_by_one_says_nothing(void **state)
{
    static const struct row row = {"many", "", ""};
    struct edit t;
    char name[16];

    (void)state;
    make(&t, &row);
    for (int i = 0; i < 100; i++) {
        struct change_set set;
        struct change op = {.op = CHANGE_CREATE, .kind = K_SERVER};

        (void)snprintf(name, sizeof name, "s%d", i);
        op.body = json_pack("{s:s, s:s, s:i}", "name", name, "address", "10.9.0.1", "port", 80);
        change_set_init(&set);
        assert_int_equal(change_set_add(&set, op, NULL), ERR_OK);
        pair_apply(&t.x, &set);
        change_set_fini(&set);
    }
    assert_false(validate_reached(&t.before, &t.x.objects));
    clear(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_that_breaks_nothing_within_its_reach_is_known_to_be_good),
        cmocka_unit_test(an_edit_that_breaks_something_else_reaches_it),
        cmocka_unit_test(the_users_of_what_is_gone_are_reached),
        cmocka_unit_test(an_edit_of_more_than_is_reached_one_by_one_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
