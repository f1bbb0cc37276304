/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/object_parse.h"
#include "tests/support/object_lab.h"

/* ---- secrets and read-only fields ---- */

#define PASSWORD "correct horse"

static void
keeps_a_secret_that_is_not_given(void **state)
{
    struct object_lab *w = *state;
    struct object *base = lab_parse(w, K_ADMIN, "{'name':'a','password':'" PASSWORD "'}");
    const char *const bodies[] = {
        "{'name':'a'}",
        "{'name':'a','password':{'set':true}}",
        "{'name':'a','password':'" PASSWORD "'}",
    };

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct object *o = lab_parse_over(w, K_ADMIN, bodies[i], base);

        assert_non_null(o);
        assert_string_equal(object_text(o, F_ADMIN_PASSWORD).s, PASSWORD);
        assert_true(hash_equal(&o->objhash, &base->objhash));
        object_unref(o);
    }
    object_unref(base);
}

static void
asks_for_a_secret_that_is_not_there(void **state)
{
    struct object_lab *w = *state;
    struct object *base = lab_parse(w, K_ADMIN, "{'name':'a','password':'" PASSWORD "'}");

    lab_refused(w, K_ADMIN, "{'name':'a'}", "required /password");
    lab_refused(w, K_ADMIN, "{'name':'a','password':{'set':true}}", "required /password");
    lab_refused(w, K_ADMIN, "{'name':'a','password':{'set':false}}", "required /password");
    lab_refused(w, K_ADMIN, "{'name':'a','password':null}", "required /password");
    lab_refused_over(w, K_ADMIN, "{'name':'a','password':null}", base, "required /password");
    lab_says(w, "cannot be cleared");
    lab_refused_over(
        w, K_ADMIN, "{'name':'a','password':{'set':false}}", base, "type /password");
    lab_says(w, "write null");
    lab_refused_over(w, K_ADMIN, "{'name':'a','password':{'set':1}}", base, "type /password");
    lab_refused_over(
        w, K_ADMIN, "{'name':'a','password':{'set':true,'x':1}}", base, "type /password");
    lab_refused_over(w, K_ADMIN, "{'name':'a','password':{}}", base, "type /password");
    lab_refused_over(w, K_ADMIN, "{'name':'a','password':[1]}", base, "type /password");
    object_unref(base);
}

static void
shows_secrets_only_as_set_or_not(void **state)
{
    struct object *o = lab_parse(*state, K_AUTOMATION_KEY, "{'name':'k'}");
    json_auto_t *shown = object_to_json(o, &lab_refs);
    json_auto_t *want =
        lab_json("{'id':'" LAB_ID "','kind':'automation_key','name':'k',"
                 "'scope':'full','pools':[],'key_hash':{'set':false},'note':''}");

    assert_true(json_equal(shown, want));
    assert_string_equal(json_object_iter_key(json_object_iter(shown)), "id");
    object_unref(o);
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
lets_only_the_product_set_read_only_fields(void **state)
{
    struct object_lab *w = *state;
    struct object *o = lab_parse(w, K_AUTOMATION_KEY, "{'name':'k','key_hash':{'set':false}}");
    struct object *with = NULL;
    struct object *again;
    json_auto_t *patch = lab_json("{'key_hash':'" HEX64 "'}");
    struct error e;

    lab_refused(
        w, K_AUTOMATION_KEY, "{'name':'k','key_hash':'" HEX64 "'}", "read_only /key_hash");
    assert_int_equal(object_with(o, patch, &with, &e), ERR_OK);
    assert_string_equal(object_text(with, F_AUTOMATION_KEY_KEY_HASH).s, HEX64);
    again = lab_parse_over(w, K_AUTOMATION_KEY, "{'name':'k'}", with);
    assert_true(hash_equal(&again->objhash, &with->objhash));
    object_unref(again);
    again = lab_parse_over(w, K_AUTOMATION_KEY, "{'name':'k','key_hash':{'set':true}}", with);
    assert_true(hash_equal(&again->objhash, &with->objhash));
    object_unref(again);
    lab_refused_over(
        w, K_AUTOMATION_KEY, "{'name':'k','key_hash':null}", with, "read_only /key_hash");
    lab_refused_over(
        w, K_AUTOMATION_KEY, "{'name':'k','key_hash':'0'}", with, "format /key_hash");
    object_unref(with);
    object_unref(o);
}

static void
remembers_secrets_to_wipe_them(void **state)
{
    struct object_lab *w = *state;
    const struct schema_field *f = &schema_kind(K_ADMIN)->fields[F_ADMIN_PASSWORD];
    json_auto_t *given = json_string(PASSWORD);
    struct value v = {.is_null = false};
    struct parse p;

    parse_init(&p, K_ADMIN);
    p.problems = &w->p;
    p.field = f->name;
    assert_true(parse_value(&p, f, given, &v));
    assert_int_equal(p.secret_count, 1);
    assert_ptr_equal(p.secrets[0].bytes, v.u.text.s);
    assert_int_equal(p.secrets[0].len, strlen(PASSWORD));
    assert_int_equal(p.text.len, 0);
    assert_int_equal(p.text.data[0], 0);
    assert_int_equal(p.text.data[5], 0);
    parse_fini(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECT_LAB_TEST(keeps_a_secret_that_is_not_given),
        OBJECT_LAB_TEST(asks_for_a_secret_that_is_not_there),
        OBJECT_LAB_TEST(shows_secrets_only_as_set_or_not),
        OBJECT_LAB_TEST(lets_only_the_product_set_read_only_fields),
        OBJECT_LAB_TEST(remembers_secrets_to_wipe_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
