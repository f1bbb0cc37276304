/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/object_parse.h"
#include "tests/support/object_lab.h"

#define SERVER "{'name':'server1','address':'10.0.0.1','port':80}"

/* ---- what is accepted ---- */

static void
fills_defaults_and_normalises(void **state)
{
    struct object *o =
        lab_parse(*state, K_SERVER, "{'name':'web1','address':'Web1.LAN.','port':80}");
    struct hash h = sha256(o->canonical, o->canonical_len);

    lab_canonical(o, "{'address':'web1.lan','maxconn':0,'name':'web1','port':80}");
    assert_true(hash_equal(&h, &o->objhash));
    assert_int_equal(o->canonical_len, strlen(o->canonical));
    assert_string_equal(o->id, LAB_ID);
    assert_int_equal(o->kind, K_SERVER);
    assert_string_equal(o->name.s, "web1");
    assert_int_equal(o->name.len, 4);
    assert_int_equal(object_int(o, F_SERVER_PORT), 80);
    assert_int_equal(object_int(o, F_SERVER_MAXCONN), 0);
    assert_string_equal(object_text(o, F_SERVER_ADDRESS).s, "web1.lan");
    object_unref(o);
}

static void
writes_references_as_ids_and_null_as_null(void **state)
{
    struct object *o = lab_parse(
        *state, K_POOL,
        "{'name':'app','mode':'tcp','members':[{'server':'server2','role':'backup'},"
        "{'server':'server1','weight':7}],'monitor':null}");

    assert_non_null(strstr(
        o->canonical,
        ",\"members\":[{\"role\":\"backup\",\"server\":\"0000000000000002\",\"weight\":100},"
        "{\"role\":\"active\",\"server\":\"0000000000000001\",\"weight\":7}],\"mode\":\"tcp\","
        "\"monitor\":null,\"name\":\"app\","));
    assert_true(object_value(o, F_POOL_MONITOR)->is_null);
    assert_int_equal(object_value(o, F_POOL_MEMBERS)->count, 2);
    assert_int_equal(object_int(o, F_POOL_MODE), V_POOL_MODE_TCP);
    object_unref(o);
}

static void
sorts_lists_whose_order_means_nothing(void **state)
{
    struct object *o = lab_parse(
        *state, K_SERVICE,
        "{'name':'s','listeners':['listener2','listener1'],'pool':'pool1',"
        "'hosts':['b.x','*.a','a.x']}");

    lab_canonical(
        o,
        "{'certificate':null,'enabled':true,'hosts':['*.a','a.x','b.x'],"
        "'listeners':['0000000000000001','0000000000000002'],'name':'s','note':'','path':'/',"
        "'pool':'0000000000000001','redirect_https':true}");
    assert_true(object_bool(o, F_SERVICE_ENABLED));
    object_unref(o);
    o = lab_parse(
        *state, K_LISTENER,
        "{'name':'l','port':1,'certificates':['certificate2','certificate1']}");
    assert_string_equal(
        object_value(o, F_LISTENER_CERTIFICATES)->u.items[0].u.text.s, "0000000000000002");
    lab_canonical(
        o, "{'addresses':['0.0.0.0','::'],"
           "'certificates':['0000000000000002','0000000000000001'],'client_timeout_ms':60000,"
           "'enabled':true,'maxconn':0,'mode':'http','name':'l','port':1,'tls':false}");
    object_unref(o);
}

static void
keeps_fields_that_have_no_meaning_now(void **state)
{
    struct object *o =
        lab_parse(*state, K_MONITOR, "{'name':'m','type':'tcp','path':'/x','method':'HEAD'}");

    assert_string_equal(object_text(o, F_MONITOR_PATH).s, "/x");
    object_unref(o);
    lab_refused(*state, K_MONITOR, "{'name':'m','type':'tcp','path':'x'}", "format /path");
}

static void
escapes_quotes_backslashes_and_line_ends(void **state)
{
    struct object *o = lab_parse(
        *state, K_SERVICE,
        "{'name':'s','listeners':['listener1'],'pool':'pool1','note':'\\u0022\\\\ \\u00fc/'}");

    assert_non_null(strstr(o->canonical, "\"note\":\"\\\"\\\\ \xc3\xbc/\""));
    assert_string_equal(object_text(o, F_SERVICE_NOTE).s, "\"\\ \xc3\xbc/");
    object_unref(o);
}

static void
takes_its_own_id_and_kind_back(void **state)
{
    object_unref(lab_parse(
        *state, K_SERVER,
        "{'id':'" LAB_ID "','kind':'server','name':'a','address':'b','port':1}"));
    lab_refused(
        *state, K_SERVER,
        "{'id':'00000000000000a1','kind':'servers','name':'a','address':'b','port':1}",
        "read_only /id\nread_only /kind");
    lab_refused(
        *state, K_SERVER, "{'id':7,'name':'a','address':'b','port':1}", "read_only /id");
}

static void
thousand_members_fit_and_no_more(void **state)
{
    struct object_lab *w = *state;
    json_auto_t *body = lab_json("{'name':'app'}");
    json_t *members = json_array();
    struct object *o;

    json_object_set_new(body, "members", members);
    for (int i = 0; i < 1000; i++) {
        json_array_append_new(members, json_pack("{s:s}", "server", "server1"));
    }
    o = object_parse(K_POOL, LAB_ID, body, NULL, &lab_refs, &w->p);
    assert_non_null(o);
    assert_int_equal(object_value(o, F_POOL_MEMBERS)->count, 1000);
    object_unref(o);
    json_array_append_new(members, json_pack("{s:s}", "server", "server1"));
    assert_null(object_parse(K_POOL, LAB_ID, body, NULL, &lab_refs, &w->p));
    assert_string_equal(w->p.items[0].code, "items");
    lab_says(w, "0 to 1000 items, not 1001");
}

/* ---- what is refused ---- */

static void
names_every_problem_at_once(void **state)
{
    lab_refused(
        *state, K_POOL,
        "{'balance':'fast','members':[{'server':'nobody','weight':900},{'weight':1,'x':1},7],"
        "'retries':'3','colour':'red'}",
        "required /name\nenum /balance\nno_such_object /members/0/server\n"
        "range /members/0/weight\nunknown_field /members/1/x\nrequired /members/1/server\n"
        "type /members/2\ntype /retries\nunknown_field /colour");
}

static void
tells_types_apart(void **state)
{
    struct object_lab *w = *state;

    lab_refused(
        w, K_SERVER, "{'name':1,'address':[],'port':'80','maxconn':true}",
        "type /name\ntype /address\ntype /port\ntype /maxconn");
    lab_says(w, "Name must be a text");
    lab_refused(
        w, K_LISTENER, "{'name':'a','port':1,'enabled':1,'mode':2,'addresses':'::'}",
        "type /enabled\ntype /mode\ntype /addresses");
    lab_refused(
        w, K_SERVICE, "{'name':'a','listeners':[1],'pool':{}}",
        "type /listeners/0\ntype /pool");
    lab_says(w, "the name of a listener");
    lab_refused(w, K_SERVER, "[]", "type ");
    lab_refused(
        w, K_SERVER, "{'name':null,'address':'a','port':null}", "type /name\ntype /port");
    lab_says(w, "must not be null");
    lab_refused(
        w, K_POOL, "{'name':'a','members':[{'server':null}]}", "type /members/0/server");
    lab_refused(w, K_LISTENER, "{'name':'a','port':1,'addresses':null}", "type /addresses");
}

static void
says_the_range_and_its_unit(void **state)
{
    struct object_lab *w = *state;

    lab_refused(w, K_SERVER, "{'name':'a','address':'b','port':0}", "range /port");
    lab_says(w, "Port must be from 1 to 65535, not 0.");
    lab_refused(w, K_SERVER, "{'name':'a','address':'b','port':65536}", "range /port");
    lab_refused(w, K_POOL, "{'name':'a','connect_timeout_ms':0}", "range /connect_timeout_ms");
    lab_says(w, "from 1 to 600000 ms, not 0.");
}

static void
says_the_length_of_texts(void **state)
{
    struct object_lab *w = *state;
    char body[2048];

    lab_refused(w, K_SERVER, "{'name':'','address':'b','port':1}", "range /name");
    lab_says(w, "Name must not be empty.");
    (void)snprintf(body, sizeof body, "{'name':'%065d','address':'b','port':1}", 0);
    lab_refused(w, K_SERVER, body, "range /name");
    lab_says(w, "at most 64 bytes, not 65");
    (void)snprintf(body, sizeof body, "{'name':'%01000d','address':'b','port':1}", 0);
    lab_refused(w, K_SERVER, body, "range /name");
    lab_refused(w, K_ADMIN, "{'name':'a','password':'short'}", "range /password");
    lab_says(w, "at least 12 bytes, not 5");
    lab_refused(w, K_MONITOR, "{'name':'a','expect_status':''}", "range /expect_status");
    lab_says(w, "must not be empty");
    lab_refused(w, K_MONITOR, "{'name':'a','expect_status':'20'}", "format /expect_status");
}

static void
gives_the_reason_of_a_text_check(void **state)
{
    struct object_lab *w = *state;

    lab_refused(w, K_SERVER, "{'name':'a','address':'1.2.3','port':1}", "format /address");
    lab_says(w, "Address: this is not an IP address.");
    lab_refused(
        w, K_LISTENER, "{'name':'a','port':1,'addresses':['::','x']}", "format /addresses/1");
}

static void
lists_the_values_of_an_enum(void **state)
{
    struct object_lab *w = *state;

    lab_refused(w, K_POOL, "{'name':'a','mode':'udp'}", "enum /mode");
    lab_says(w, "one of \"http\", \"tcp\", not \"udp\"");
    lab_refused(w, K_POOL, "{'name':'a','mode':false}", "type /mode");
    lab_says(w, "one of the texts \"http\", \"tcp\"");
}

static void
refuses_duplicates_in_sets(void **state)
{
    struct object_lab *w = *state;

    lab_refused(
        w, K_SERVICE,
        "{'name':'s','listeners':['listener2','listener1','listener2'],'pool':'pool1',"
        "'hosts':['b.x','a.x','B.x.','b.x']}",
        "duplicate /listeners/2\nduplicate /hosts/2\nduplicate /hosts/3");
    /* Order has a meaning there, so it is no set. */
    object_unref(lab_parse(
        w, K_LISTENER, "{'name':'l','port':1,'certificates':['certificate1','certificate1']}"));
}

/* No kind has such a list yet. */
static void
sorts_sets_of_numbers(void **state)
{
    struct object_lab *w = *state;
    const struct schema_field f = {
        .type = FT_INT,
        .list = true,
        .max = 9,
        .max_items = 9,
        .label = "Digits",
        .name = "digits"};
    json_auto_t *good = lab_json("[3,1,2]");
    json_auto_t *bad = lab_json("[3,1,3]");
    struct value v = {.is_null = false};
    struct value ignored = {.is_null = false};
    struct parse p;

    parse_init(&p, K_SERVER);
    p.problems = &w->p;
    p.field = f.name;
    assert_true(parse_value(&p, &f, good, &v));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(v.u.items[i].u.i, i + 1);
    }
    assert_false(parse_value(&p, &f, bad, &ignored));
    assert_string_equal(w->p.items[0].code, "duplicate");
    assert_string_equal(w->p.items[0].pointer, "/digits/2");
    parse_fini(&p);
}

static void
counts_items(void **state)
{
    struct object_lab *w = *state;

    lab_refused(w, K_LISTENER, "{'name':'a','port':1,'addresses':[]}", "items /addresses");
    lab_says(w, "1 to 64 items, not 0");
    lab_refused(w, K_SERVICE, "{'name':'a','pool':'pool1'}", "required /listeners");
}

static void
refuses_unknown_references(void **state)
{
    struct object_lab *w = *state;

    lab_refused(
        w, K_SERVICE, "{'name':'a','listeners':['pool1'],'pool':'pool9'}",
        "no_such_object /listeners/0\nno_such_object /pool");
    lab_says(w, "there is no listener \"pool1\"");
}

static void
escapes_and_cuts_foreign_keys(void **state)
{
    struct object_lab *w = *state;
    json_auto_t *body = lab_json(SERVER);
    char key[1200];

    lab_refused(
        w, K_SERVER, "{'name':'a','address':'b','port':1,'x~/y':1}", "unknown_field /x~0~1y");
    lab_says(w, "no field \"x~/y\" in the kind server");
    lab_refused(
        w, K_POOL, "{'name':'a','members':[{'server':'server1','~':1}]}",
        "unknown_field /members/0/~0");
    lab_says(w, "in an item of the field members");
    memset(key, '~', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    json_object_set_new(body, key, json_true());
    problems_init(&w->p, w->p.arena);
    assert_null(object_parse(K_SERVER, LAB_ID, body, NULL, &lab_refs, &w->p));
    assert_int_equal(w->p.count, 1);
    assert_in_range(strlen(w->p.items[0].pointer), 200, 260);
}

static void
names_the_object_in_problems(void **state)
{
    struct object_lab *w = *state;
    struct object *base = lab_parse(w, K_SERVER, SERVER);

    lab_refused(w, K_SERVER, "{'name':'x y','address':'b','port':1}", "format /name");
    assert_string_equal(w->p.items[0].name, "x y");
    lab_refused_over(w, K_SERVER, "{'address':'b','port':1}", base, "required /name");
    assert_string_equal(w->p.items[0].name, "server1");
    lab_refused(w, K_SERVER, "{'address':'b','port':1}", "required /name");
    assert_null(w->p.items[0].name);
    object_unref(base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(fills_defaults_and_normalises),
        OBJECT_LAB_TEST(writes_references_as_ids_and_null_as_null),
        OBJECT_LAB_TEST(sorts_lists_whose_order_means_nothing),
        OBJECT_LAB_TEST(keeps_fields_that_have_no_meaning_now),
        OBJECT_LAB_TEST(escapes_quotes_backslashes_and_line_ends),
        OBJECT_LAB_TEST(takes_its_own_id_and_kind_back),
        OBJECT_LAB_TEST(thousand_members_fit_and_no_more),
        OBJECT_LAB_TEST(names_every_problem_at_once),
        OBJECT_LAB_TEST(tells_types_apart),
        OBJECT_LAB_TEST(says_the_range_and_its_unit),
        OBJECT_LAB_TEST(says_the_length_of_texts),
        OBJECT_LAB_TEST(gives_the_reason_of_a_text_check),
        OBJECT_LAB_TEST(lists_the_values_of_an_enum),
        OBJECT_LAB_TEST(refuses_duplicates_in_sets),
        OBJECT_LAB_TEST(sorts_sets_of_numbers),
        OBJECT_LAB_TEST(counts_items),
        OBJECT_LAB_TEST(refuses_unknown_references),
        OBJECT_LAB_TEST(escapes_and_cuts_foreign_keys),
        OBJECT_LAB_TEST(names_the_object_in_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
