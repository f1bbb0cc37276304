/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken of what another node knows of the members: keys, and names and addresses that
 * two have; these are refused where they are saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/members.h"
#include "tests/support/engine_lab.h"
#include "tests/support/member_lab.h"

static struct member
member(unsigned n, int64_t seq, const char *name, const char *key)
{
    struct member m = member_lab_of(n, seq);

    (void)snprintf(m.name, sizeof m.name, "%s", name);
    (void)snprintf(m.key, sizeof m.key, "%s", key);
    return m;
}

static bool
told(struct engine_lab *l, const struct member *by, const struct member *list, size_t count)
{
    struct members_taken taken = {.changed = false};

    if (members_merge(
            l->en, &(struct members_offer){list, count, by->id, MEMBERS_TOLD}, &taken,
            &l->error) != ERR_OK) {
        fail_msg("%s", l->error.msg);
    }
    return taken.changed;
}

static struct member
held(struct engine_lab *l, const struct member *which)
{
    struct member m = {.name = ""};

    if (members_find(l->en, which->id, &m, &l->error) != ERR_OK) {
        fail_msg("%s", l->error.msg);
    }
    return m;
}

static void
one_that_took_the_name_of_another_goes_on_telling(void **state)
{
    struct engine_lab *l = *state;
    struct member list[] = {member(1, 1, "n1", "k1"), member(2, 1, "n2", "k2")};
    struct member found;

    assert_true(told(l, &list[0], list, 2));
    list[1] = member(2, 2, "n1", "k2");
    assert_true(told(l, &list[1], list, 2));
    assert_string_equal(held(l, &list[1]).name, "n1");
    /* Its next key and its next name come as before. */
    list[1] = member(2, 3, "n1", "another");
    assert_true(told(l, &list[1], list, 2));
    assert_string_equal(held(l, &list[1]).key, "another");
    assert_int_equal(members_find(l->en, "n1", &found, &l->error), ERR_CONFLICT);
    assert_non_null(strstr(l->error.msg, list[0].id));
    assert_non_null(strstr(l->error.msg, list[1].id));
    list[1] = member(2, 4, "n9", "another");
    assert_true(told(l, &list[1], list, 2));
    assert_int_equal(members_find(l->en, "n1", &found, &l->error), ERR_OK);
    assert_string_equal(found.id, list[0].id);
}

static void
two_swap_names_and_addresses(void **state)
{
    struct engine_lab *l = *state;
    struct member list[] = {member(1, 1, "n1", "k1"), member(2, 1, "n2", "k2")};
    struct member swapped[] = {member(1, 2, "n2", "k1"), member(2, 2, "n1", "k2")};

    memcpy(swapped[0].url, list[1].url, sizeof list[1].url);
    memcpy(swapped[1].url, list[0].url, sizeof list[0].url);
    assert_true(told(l, &list[0], list, 2));
    assert_true(told(l, &list[0], &swapped[0], 1)); /* one after the other */
    assert_true(told(l, &list[1], &swapped[1], 1));
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(held(l, &list[i]).name, swapped[i].name);
        assert_string_equal(held(l, &list[i]).url, swapped[i].url);
    }
}

/* ---- keys ---- */

static void
a_key_that_another_node_tells_only_fills_a_gap(void **state)
{
    struct engine_lab *l = *state;
    struct member by = member(1, 1, "n1", "k1");
    struct member c = member(3, 1, "n3", "");

    assert_true(told(l, &by, &by, 1));
    assert_true(told(l, &by, &c, 1));
    c = member(3, 1, "n3", "right");
    assert_true(told(l, &by, &c, 1)); /* there was none */
    c = member(3, 1, "n3", "wrong");
    assert_false(told(l, &by, &c, 1));
    assert_string_equal(held(l, &c).key, "right");
    c = member(3, 2, "moved", "wrong");
    assert_true(told(l, &by, &c, 1)); /* its record, but not its key */
    assert_string_equal(held(l, &c).name, "moved");
    assert_string_equal(held(l, &c).key, "right");
}

static void
its_own_node_replaces_a_key(void **state)
{
    struct engine_lab *l = *state;
    struct member c = member(3, 1, "n3", "first");

    assert_true(told(l, &c, &c, 1));
    c = member(3, 1, "n3", "second"); /* with the record that is known */
    assert_true(told(l, &c, &c, 1));
    assert_string_equal(held(l, &c).key, "second");
    c = member(3, 2, "n3", "third");
    assert_true(told(l, &c, &c, 1));
    assert_string_equal(held(l, &c).key, "third");
}

static void
a_key_that_its_node_refuses_is_a_gap(void **state)
{
    struct engine_lab *l = *state;
    struct member by = member(1, 1, "n1", "k1");
    struct member c = member(3, 1, "n3", "old");

    assert_true(told(l, &by, &c, 1));
    members_note_key(l->en, c.id, "another", true); /* not the one that is held */
    c = member(3, 1, "n3", "new");
    assert_false(told(l, &by, &c, 1));
    members_note_key(l->en, c.id, "old", true);
    assert_true(told(l, &by, &c, 1));
    assert_string_equal(held(l, &c).key, "new");
    c = member(3, 1, "n3", "newer");
    assert_false(told(l, &by, &c, 1)); /* the gap is filled */
    members_note_key(l->en, c.id, "new", true);
    members_note_key(l->en, c.id, "new", false); /* it was taken after all */
    assert_false(told(l, &by, &c, 1));
}

/* ---- saving ---- */

static void
refused(struct engine_lab *l, const char *ops, const char *pointer, const char *naming)
{
    const struct problem *p = &l->problems.items[0];

    assert_int_equal(engine_lab_edit(l, ops), ERR_INVALID);
    assert_int_equal(l->problems.count, 1);
    assert_string_equal(p->pointer, pointer);
    if (strstr(p->message, naming) == NULL) {
        fail_msg("\"%s\" does not say %s", p->message, naming);
    }
}

#define NODE(body) "[{'op': 'merge', 'kind': 'node', 'name': 'node', 'body': {" body "}}]"
#define VIPS(op, body)                                                                         \
    "[{'op': '" op "', 'kind': 'vip_group', 'name': 'public', 'body': {" body "}}]"

static void
a_name_or_address_of_another_node_is_refused(void **state)
{
    struct engine_lab *l = *state;
    struct member other = member(2, 1, "n2", "k2");

    assert_true(told(l, &other, &other, 1));
    refused(l, NODE("'name': 'n2'"), "/name", other.url);
    refused(l, NODE("'url': 'https://192.0.2.2:8443'"), "/url", "\"n2\"");
    engine_lab_must(l, NODE("'url': 'https://192.0.2.1:8443'"));
}

/* Renamed after that was saved here, and before it is applied. */
static void
one_that_was_taken_meanwhile_is_refused_by_apply(void **state)
{
    struct engine_lab *l = *state;
    struct member other = member(2, 1, "n2", "k2");
    int64_t task;

    engine_lab_must(l, NODE("'name': 'n2'"));
    assert_true(told(l, &other, &other, 1));
    assert_int_equal(
        apply_start(
            l->en, &(struct apply_request){.who = &(struct actor){.name = "admin maria"}},
            &task, &l->problems, &l->error),
        ERR_INVALID);
    assert_string_equal(l->problems.items[l->problems.count - 1].pointer, "/name");
}

static void
what_clashes_already_stops_no_other_change(void **state)
{
    struct engine_lab *l = *state;
    struct member other = member(2, 1, "n2", "k2");

    engine_lab_apply_ok(l, NODE("'name': 'n2', 'url': 'https://192.0.2.2:8443'"));
    assert_true(told(l, &other, &other, 1));
    engine_lab_apply_ok(l, NODE("'note': 'left'"));
    engine_lab_apply_ok(l, NODE("'name': 'n3'"));
}

/* ---- VIPs ---- */

static void
a_vip_is_no_address_of_a_node(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_apply_ok(l, VIPS("create", "'addresses': ['192.0.2.9/24', '2001:db8::9/64']"));
    refused(l, NODE("'url': 'https://192.0.2.9:8443'"), "/url", "\"public\"");
    refused(l, NODE("'url': 'https://[2001:db8:0::9]:8443'"), "/url", "\"public\"");
    refused(l, NODE("'peers_address': '192.0.2.9'"), "/peers_address", "192.0.2.9");
    engine_lab_must(l, NODE("'url': 'https://192.0.2.99:8443'"));
}

static void
an_address_of_a_node_is_no_vip(void **state)
{
    struct engine_lab *l = *state;
    struct member other = member(2, 1, "n2", "k2");

    (void)snprintf(other.tables_address, sizeof other.tables_address, "%s", "198.51.100.2");
    other.tables_port = 8444;
    assert_true(told(l, &other, &other, 1));
    engine_lab_must(l, NODE("'url': 'https://192.0.2.1:8443', 'name': 'self'"));
    refused(
        l, VIPS("create", "'addresses': ['192.0.2.10/24', '192.0.2.2/24']"), "/addresses/1",
        "\"n2\"");
    refused(l, VIPS("create", "'addresses': ['198.51.100.2/24']"), "/addresses/0", "\"n2\"");
    refused(l, VIPS("create", "'addresses': ['192.0.2.1/24']"), "/addresses/0", "\"self\"");
    engine_lab_must(l, VIPS("create", "'addresses': ['192.0.2.9/24']"));
    refused(l, VIPS("merge", "'addresses': ['192.0.2.2/24']"), "/addresses/0", "\"n2\"");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(a_key_that_another_node_tells_only_fills_a_gap),
        ENGINE_LAB_TEST(its_own_node_replaces_a_key),
        ENGINE_LAB_TEST(a_key_that_its_node_refuses_is_a_gap),
        ENGINE_LAB_TEST(one_that_took_the_name_of_another_goes_on_telling),
        ENGINE_LAB_TEST(two_swap_names_and_addresses),
        ENGINE_LAB_TEST(a_name_or_address_of_another_node_is_refused),
        ENGINE_LAB_TEST(one_that_was_taken_meanwhile_is_refused_by_apply),
        ENGINE_LAB_TEST(what_clashes_already_stops_no_other_change),
        ENGINE_LAB_TEST(a_vip_is_no_address_of_a_node),
        ENGINE_LAB_TEST(an_address_of_a_node_is_no_vip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
