/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/x509.h"
#include "tests/support/object_lab.h"

#define SERVER     "{'name':'server1','address':'10.0.0.1','port':80}"
#define PASSWORD   "correct horse"
#define SERVER_ID  "00000000000000a1"
#define MONITOR_ID "00000000000000a2"
#define TEXT_BYTES ((size_t)1 << 20)

/* ---- singletons ---- */

static void
singletons_exist_with_their_defaults(void **state)
{
    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        struct object *o;
        struct object *again = NULL;

        if (!schema_kinds[k].singleton) {
            continue;
        }
        o = object_singleton((enum kind)k);
        assert_string_equal(o->id, schema_kinds[k].name);
        assert_string_equal(o->name.s, schema_kinds[k].name);
        assert_int_equal(
            object_from_canonical(
                (enum kind)k, o->id, o->canonical, o->canonical_len, &again, NULL),
            ERR_OK);
        object_unref(again);
        object_unref(o);
    }
}

static void
singleton_keeps_its_name_where_it_is_read_only(void **state)
{
    struct object_lab *w = *state;
    struct object *base = object_singleton(K_HAPROXY);
    json_auto_t *body = lab_json("{'name':'haproxy','maxconn':50}");
    json_auto_t *other = lab_json("{'name':'other'}");
    struct object *o = object_parse(K_HAPROXY, "haproxy", body, base, &lab_refs, &w->p);

    assert_int_equal(object_int(o, F_HAPROXY_MAXCONN), 50);
    object_unref(o);
    assert_null(object_parse(K_HAPROXY, "haproxy", other, base, &lab_refs, &w->p));
    assert_string_equal(w->p.items[0].code, "read_only");
    object_unref(base);
}

/* ---- which fields differ from their defaults ---- */

static void
knows_which_fields_differ(void **state)
{
    struct object_lab *w = *state;
    const uint64_t name = UINT64_C(1) << F_LISTENER_NAME;
    const uint64_t port = UINT64_C(1) << F_LISTENER_PORT;
    const uint64_t addresses = UINT64_C(1) << F_LISTENER_ADDRESSES;
    const uint64_t certificates = UINT64_C(1) << F_LISTENER_CERTIFICATES;
    struct object *o = lab_parse(w, K_LISTENER, "{'name':'web','port':80,'mode':'http'}");

    assert_int_equal(o->differs & ~addresses, name | port);
    object_unref(o);
    o = lab_parse(
        w, K_LISTENER,
        "{'name':'web','port':443,'tls':true,'certificates':['certificate0'],'maxconn':9}");
    assert_int_equal(
        o->differs & ~addresses, name | port | certificates | UINT64_C(1) << F_LISTENER_TLS |
                                     UINT64_C(1) << F_LISTENER_MAXCONN);
    object_unref(o);
    o = lab_parse(
        w, K_SERVICE, "{'name':'s','listeners':['listener0'],'pool':'pool0','note':'x'}");
    assert_int_equal(o->differs >> F_SERVICE_NOTE & 1, 1);
    assert_int_equal(o->differs >> F_SERVICE_CERTIFICATE & 1, 0);
    assert_int_equal(o->differs >> F_SERVICE_PATH & 1, 0);
    assert_string_equal(object_text(o, F_SERVICE_NOTE).s, "x");
    assert_string_equal(object_text(o, F_SERVICE_PATH).s, "/");
    assert_true(object_value(o, F_SERVICE_CERTIFICATE)->is_null);
    assert_true(object_bool(o, F_SERVICE_REDIRECT_HTTPS));
    assert_int_equal(object_value(o, F_SERVICE_HOSTS)->count, 0);
    object_unref(o);
}

/* ---- canonical bytes ---- */

#define CANONICAL "{\"address\":\"a\",\"maxconn\":0,\"name\":\"n\",\"port\":1}"

static void
corrupt(enum kind kind, const char *id, const char *bytes, const char *words)
{
    struct object *o = NULL;
    struct error e;

    assert_int_equal(
        object_from_canonical(kind, id, bytes, strlen(bytes), &o, &e), ERR_CORRUPT);
    assert_null(o);
    if (strstr(e.msg, words) == NULL) {
        print_error("%s\n", e.msg);
    }
    assert_non_null(strstr(e.msg, words));
}

static void
canonical_bytes_must_be_exact(void **state)
{
    (void)state;
    struct object *o = NULL;
    struct error e;

    assert_int_equal(
        object_from_canonical(K_SERVER, SERVER_ID, CANONICAL, strlen(CANONICAL), &o, &e),
        ERR_OK);
    assert_string_equal(o->canonical, CANONICAL);
    object_unref(o);
    corrupt(K_SERVER, "xyz", CANONICAL, "\"xyz\" is no id of a server");
    corrupt(K_SERVER, "0123456789ABCDEF", CANONICAL, "no id");
    corrupt(K_SERVER, SERVER_ID "0", CANONICAL, "no id");
    corrupt(K_HAPROXY, SERVER_ID, CANONICAL, "no id");
    corrupt(K_SERVER, SERVER_ID, "", "server " SERVER_ID ": line 1");
    corrupt(K_SERVER, SERVER_ID, "[]", "no JSON object");
    corrupt(K_SERVER, SERVER_ID, CANONICAL " ", "not the canonical form");
    corrupt(
        K_SERVER, SERVER_ID, "{\"maxconn\":0,\"address\":\"a\",\"name\":\"n\",\"port\":1}",
        "not the canonical form");
    corrupt(K_SERVER, SERVER_ID, "{\"address\":\"a\",\"name\":\"n\",\"port\":1}", "canonical");
    corrupt(
        K_SERVER, SERVER_ID, "{\"address\":\"A\",\"maxconn\":0,\"name\":\"n\",\"port\":1}",
        "canonical");
    corrupt(
        K_SERVER, SERVER_ID, "{\"address\":\"a\",\"maxconn\":0,\"name\":\"n\",\"port\":0}",
        "/port: Port must be");
    corrupt(K_SERVER, SERVER_ID, "{\"id\":\"" SERVER_ID "\"}", "/name");
    corrupt(
        K_ADMIN, SERVER_ID, "{\"name\":\"n\",\"note\":\"\",\"password\":{\"set\":true}}",
        "/password");
}

static void
fields_that_came_later_stand_in_the_bytes_when_they_say_something(void **state)
{
    struct object_lab *w = *state;
    struct object *plain = lab_parse(w, K_POOL, "{'name':'a'}");
    struct object *sticky = lab_parse(w, K_POOL, "{'name':'a','stick':'source'}");
    struct object *again = NULL;

    assert_null(strstr(plain->canonical, "stick"));
    assert_non_null(strstr(sticky->canonical, "\"stick\":\"source\""));
    assert_null(strstr(sticky->canonical, "cookie_name"));
    assert_int_equal(
        object_from_canonical(
            K_POOL, LAB_ID, sticky->canonical, sticky->canonical_len, &again, NULL),
        ERR_OK);
    assert_true(hash_equal(&again->objhash, &sticky->objhash));
    object_unref(again);
    object_unref(sticky);
    object_unref(plain);
    corrupt(
        K_SERVER, SERVER_ID,
        "{\"address\":\"a\",\"maxconn\":0,\"maxqueue\":0,\"name\":\"n\",\"port\":1}",
        "not the canonical form");
}

static void
canonical_references_are_ids(void **state)
{
    struct object_lab *w = *state;
    struct object *o = lab_parse(
        w, K_SERVICE, "{'name':'s','listeners':['listener1','listener2'],'pool':'pool1'}");
    char *bytes = xstrdup(o->canonical);
    char *at = strstr(bytes, "\"pool\":\"0000000000000001");
    struct object *again = NULL;

    assert_int_equal(
        object_from_canonical(K_SERVICE, LAB_ID, bytes, strlen(bytes), &again, NULL), ERR_OK);
    object_unref(again);
    at[8] = 'P';
    corrupt(K_SERVICE, LAB_ID, bytes, "no id of a pool");
    at[8] = '0';
    /* The listeners, sorted by id, in the other order. */
    strstr(bytes, "0001\",\"0000")[3] = '3';
    corrupt(K_SERVICE, LAB_ID, bytes, "canonical");
    free(bytes);
    object_unref(o);
}

static void
patches_by_the_product_are_checked(void **state)
{
    struct object_lab *w = *state;
    struct object *o = lab_parse(w, K_SERVER, SERVER);
    json_auto_t *good = lab_json("{'port':81,'maxconn':null}");
    json_auto_t *bad = lab_json("{'port':0}");
    struct object *with = NULL;
    struct error e;

    assert_int_equal(object_with(o, good, &with, &e), ERR_OK);
    assert_int_equal(object_int(with, F_SERVER_PORT), 81);
    assert_string_equal(with->id, o->id);
    object_unref(with);
    assert_int_equal(object_with(o, bad, &with, &e), ERR_INVALID);
    assert_string_equal(
        e.msg, "server " LAB_ID ": /port: Port must be from 1 to 65535, not 0.");
    object_unref(o);
}

static void
certificates_have_their_pem_in_the_canonical_form(void **state)
{
    struct object_lab *w = *state;
    const char *const names[] = {"a.example", NULL};
    json_auto_t *body = lab_json("{'name':'c'}");
    struct object *again = NULL;
    struct object *o;
    struct buf chain;
    struct buf key;

    buf_init(&chain, TEXT_BYTES);
    buf_init(&key, TEXT_BYTES);
    assert_int_equal(x509_selfsigned(names, 1800000000, 9, &chain, &key, NULL), ERR_OK);
    json_object_set_new(body, "chain", json_string(buf_str(&chain)));
    json_object_set_new(body, "key", json_string(buf_str(&key)));
    o = object_parse(K_CERTIFICATE, LAB_ID, body, NULL, &lab_refs, &w->p);
    assert_non_null(o);
    assert_string_equal(object_text(o, F_CERTIFICATE_KEY).s, buf_str(&key));
    assert_non_null(strstr(o->canonical, "-----END PRIVATE KEY-----\\n\","));
    assert_int_equal(
        object_from_canonical(
            K_CERTIFICATE, LAB_ID, o->canonical, o->canonical_len, &again, NULL),
        ERR_OK);
    object_unref(again);
    object_unref(o);
    buf_fini(&chain);
    buf_fini(&key);
}

/* ---- life, references, effects ---- */

static void
counts_references(void **state)
{
    struct object *o = lab_parse(*state, K_ADMIN, "{'name':'a','password':'" PASSWORD "'}");

    assert_ptr_equal(object_ref(o), o);
    object_unref(o);
    assert_string_equal(object_text(o, F_ADMIN_PASSWORD).s, PASSWORD);
    object_unref(o);
    object_unref(NULL);
}

static void
makes_ids_that_differ(void **state)
{
    (void)state;
    char a[OBJECT_ID_BYTES];
    char b[OBJECT_ID_BYTES];

    object_new_id(a);
    object_new_id(b);
    assert_int_equal(strlen(a), 16);
    assert_int_equal(strspn(a, "0123456789abcdef"), 16);
    assert_string_not_equal(a, b);
}

static void
note_ref(void *ctx, enum kind kind, const char *id, const char *pointer)
{
    buf_printf(ctx, "%s %s %s\n", schema_kind(kind)->name, id + 15, pointer);
}

static void
has_refs(struct object *o, const char *want)
{
    struct buf b;

    buf_init(&b, TEXT_BYTES);
    object_each_ref(o, note_ref, &b);
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
    object_unref(o);
}

static void
tells_every_reference_with_its_place(void **state)
{
    struct object_lab *w = *state;
    struct buf body;

    has_refs(lab_parse(w, K_SERVER, SERVER), "");
    has_refs(lab_parse(w, K_POOL, "{'name':'a','monitor':'monitor1'}"), "monitor 1 /monitor\n");
    has_refs(
        lab_parse(
            w, K_SERVICE, "{'name':'s','listeners':['listener2','listener1'],'pool':'pool3'}"),
        "listener 1 /listeners/0\nlistener 2 /listeners/1\npool 3 /pool\n");
    buf_init(&body, TEXT_BYTES);
    buf_puts(&body, "{'name':'a','members':[");
    for (int i = 0; i < 12; i++) {
        buf_printf(&body, "%s{'server':'server%d'}", i > 0 ? "," : "", i % 4);
    }
    buf_puts(&body, "]}");
    has_refs(
        lab_parse(w, K_POOL, buf_str(&body)),
        "server 0 /members/0/server\nserver 1 /members/1/server\n"
        "server 2 /members/2/server\nserver 3 /members/3/server\n"
        "server 0 /members/4/server\nserver 1 /members/5/server\n"
        "server 2 /members/6/server\nserver 3 /members/7/server\n"
        "server 0 /members/8/server\nserver 1 /members/9/server\n"
        "server 2 /members/10/server\nserver 3 /members/11/server\n");
    buf_fini(&body);
}

static void
shows_the_id_of_what_is_gone(void **state)
{
    struct object *before = lab_parse(*state, K_POOL, "{'name':'a'}");
    json_auto_t *patch = json_pack("{s:s}", "monitor", MONITOR_ID);
    struct object *o = NULL;
    json_t *shown;

    assert_int_equal(object_with(before, patch, &o, NULL), ERR_OK);
    object_unref(before);
    shown = object_to_json(o, &lab_refs);
    assert_string_equal(json_string_value(json_object_get(shown, "monitor")), MONITOR_ID);
    json_decref(shown);
    object_unref(o);
}

static void
effect_is_that_of_the_fields_that_differ(void **state)
{
    struct object_lab *w = *state;
    struct object *a;
    struct object *b;
    struct object *c;

    a = lab_parse(w, K_SERVICE, "{'name':'s','listeners':['listener1'],'pool':'pool1'}");
    b = lab_parse(
        w, K_SERVICE, "{'name':'s','listeners':['listener1'],'pool':'pool1','note':'y'}");
    c = lab_parse(
        w, K_SERVICE, "{'name':'s','listeners':['listener2'],'pool':'pool1','note':'y'}");
    assert_int_equal(object_effect(a, a), EFFECT_NONE);
    assert_int_equal(object_effect(a, b), EFFECT_NONE);
    assert_int_equal(object_effect(b, c), EFFECT_HAPROXY_RELOAD);
    assert_int_equal(object_effect(a, NULL), EFFECT_HAPROXY_RELOAD);
    assert_int_equal(object_effect(NULL, a), EFFECT_HAPROXY_RELOAD);
    object_unref(a);
    object_unref(b);
    object_unref(c);
}

/* ---- what the code relies on in the tables ---- */

static void
schema_has_only_shapes_that_parsing_knows(void **state)
{
    (void)state;
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = &schema_kinds[k];

        assert_true(k == 0 || strcmp(schema_kinds[k - 1].name, kind->name) < 0);
        assert_true(strlen(kind->name) < OBJECT_ID_BYTES);
        for (uint32_t i = 0; i < kind->field_count; i++) {
            const struct schema_field *f = &kind->fields[i];

            assert_true(f->type != FT_RECORD || (f->list && f->ordered));
            assert_true(!f->secret || (f->type == FT_TEXT && !f->list && !f->nullable));
            for (uint32_t j = 0; j < f->field_count; j++) {
                const struct schema_field *sub = &f->fields[j];

                assert_true(sub->type != FT_RECORD && !sub->list);
                assert_true(!sub->secret && !sub->read_only);
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(singletons_exist_with_their_defaults),
        OBJECT_LAB_TEST(singleton_keeps_its_name_where_it_is_read_only),
        OBJECT_LAB_TEST(knows_which_fields_differ),
        OBJECT_LAB_TEST(canonical_bytes_must_be_exact),
        OBJECT_LAB_TEST(fields_that_came_later_stand_in_the_bytes_when_they_say_something),
        OBJECT_LAB_TEST(canonical_references_are_ids),
        OBJECT_LAB_TEST(certificates_have_their_pem_in_the_canonical_form),
        OBJECT_LAB_TEST(patches_by_the_product_are_checked),
        OBJECT_LAB_TEST(counts_references),
        OBJECT_LAB_TEST(makes_ids_that_differ),
        OBJECT_LAB_TEST(tells_every_reference_with_its_place),
        OBJECT_LAB_TEST(shows_the_id_of_what_is_gone),
        OBJECT_LAB_TEST(effect_is_that_of_the_fields_that_differ),
        OBJECT_LAB_TEST(schema_has_only_shapes_that_parsing_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
