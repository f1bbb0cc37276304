/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/publishing.h"

#define APP "{'url': 'https://app.test', 'to': ['10.0.0.5:8080', '10.0.0.6:8080']}"

/* ---- certificates ---- */

static void
init_with_certificate(struct pair *x, const char *name, const char *const *names, int days)
{
    json_t *objects = json_array();
    json_array_append_new(objects, publish_certificate(name, names, days));
    pair_init_json(x, objects);
    json_decref(objects);
}

static void
uploaded_certificate_is_used_when_it_covers_all(void **state)
{
    static const char *const names[] = {"*.test", NULL};
    struct pair x;
    (void)state;
    init_with_certificate(&x, "wild", names, 200);
    publish_text(&x, APP, NULL);
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "certificate"), "\"wild\"");
    assert_null(pair_find(&x, K_CERTIFICATE, "app.test"));
    publish_text(
        &x, "{'url': 'https://a.app.test', 'to': ['10.0.0.5:8080'], 'name': 'app.test'}", NULL);
    assert_string_equal(
        publish_shown(&x, K_SERVICE, "app.test", "certificate"), "\"app.test\"");
    pair_fini(&x);
}

static void
expired_certificate_is_not_chosen(void **state)
{
    static const char *const names[] = {"app.test", NULL};
    struct pair x;
    (void)state;
    init_with_certificate(&x, "old", names, 99);
    publish_text(&x, APP, NULL);
    assert_string_equal(
        publish_shown(&x, K_SERVICE, "app.test", "certificate"), "\"app.test\"");
    pair_fini(&x);
}

static void
placeholder_is_remade_for_new_names_and_goes_when_not_needed(void **state)
{
    static const char *const both = "{'urls': ['https://app.test', 'https://b.test'],"
                                    " 'to': ['10.0.0.5:8080', '10.0.0.6:8080']}";
    static const char *const names[] = {"app.test", "b.test", NULL};
    struct pair x;
    struct change_set set;
    struct error e;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    struct hash first = pair_find(&x, K_CERTIFICATE, "app.test")->objhash;
    const char *id = arena_strdup(x.arena, pair_find(&x, K_CERTIFICATE, "app.test")->id);
    publish_text(&x, both, NULL);
    const struct object *made = pair_find(&x, K_CERTIFICATE, "app.test");
    assert_false(hash_equal(&first, &made->objhash));
    assert_string_equal(made->id, id);
    struct hash second = made->objhash;
    publish_text(&x, APP, NULL); /* fewer names: still covers */
    assert_true(hash_equal(&second, &pair_find(&x, K_CERTIFICATE, "app.test")->objhash));
    change_set_init(&set);
    json_t *body = publish_certificate("real", names, 300);
    json_object_del(body, "kind");
    struct change op = {.op = CHANGE_CREATE, .kind = K_CERTIFICATE, .body = body};
    assert_int_equal(change_set_add(&set, op, &e), ERR_OK);
    pair_apply(&x, &set);
    change_set_fini(&set);
    publish_text(&x, both, NULL);
    assert_string_equal(publish_shown(&x, K_SERVICE, "app.test", "certificate"), "\"real\"");
    assert_null(pair_find(&x, K_CERTIFICATE, "app.test"));
    pair_fini(&x);
}

static void
uploaded_certificate_is_never_remade(void **state)
{
    static const char *const names[] = {"app.test", NULL};
    struct pair x;
    (void)state;
    init_with_certificate(&x, "app.test", names, 200);
    struct hash before = pair_find(&x, K_CERTIFICATE, "app.test")->objhash;
    publish_text(&x, APP, NULL);
    publish_text(
        &x, "{'urls': ['https://app.test', 'https://b.test'], 'to': ['10.0.0.5:8080']}", NULL);
    assert_string_equal(pair_codes(&x), "certificate_names");
    assert_non_null(strstr(x.problems.items[0].message, "b.test"));
    assert_string_equal(
        publish_shown(&x, K_SERVICE, "app.test", "certificate"), "\"app.test\"");
    assert_true(hash_equal(&before, &pair_find(&x, K_CERTIFICATE, "app.test")->objhash));
    json_t *other =
        pair_json("{'url': 'https://c.test', 'to': ['10.0.0.5:8080'], 'name': 'app.test'}");
    assert_null(publish_to(&x, other, NULL));
    assert_string_equal(pair_codes(&x), "certificate_names");
    json_decref(other);
    publish_remove(&x, "app.test");
    assert_true(hash_equal(&before, &pair_find(&x, K_CERTIFICATE, "app.test")->objhash));
    pair_fini(&x);
}

static void
certificate_pasted_over_a_placeholder_is_an_upload(void **state)
{
    static const char *const names[] = {"app.test", NULL};
    struct pair x;
    struct change_set set;
    struct error e;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    change_set_init(&set);
    json_t *body = publish_certificate("app.test", names, 300);
    json_object_del(body, "kind");
    struct change op = {
        .op = CHANGE_MERGE, .kind = K_CERTIFICATE, .name = "app.test", .body = body};
    assert_int_equal(change_set_add(&set, op, &e), ERR_OK);
    pair_apply(&x, &set);
    change_set_fini(&set);
    assert_string_equal(publish_shown(&x, K_CERTIFICATE, "app.test", "source"), "\"upload\"");
    struct hash pasted = pair_find(&x, K_CERTIFICATE, "app.test")->objhash;
    publish_text(
        &x, "{'urls': ['https://app.test', 'https://b.test'], 'to': ['10.0.0.5:8080']}", NULL);
    assert_true(hash_equal(&pasted, &pair_find(&x, K_CERTIFICATE, "app.test")->objhash));
    publish_remove(&x, "app.test");
    assert_non_null(pair_find(&x, K_CERTIFICATE, "app.test"));
    pair_fini(&x);
}

static void
placeholder_that_others_show_is_not_remade(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, NULL);
    publish_text(&x, APP, NULL);
    const char *id = pair_find(&x, K_CERTIFICATE, "app.test")->id;
    pair_set(&x, K_LISTENER, "https", arena_printf(x.arena, "{'certificates': ['%s']}", id));
    publish_text(&x, APP, NULL);
    json_t *other =
        pair_json("{'url': 'https://c.test', 'to': ['10.0.0.5:8080'], 'name': 'app.test'}");
    assert_null(publish_to(&x, other, NULL));
    assert_string_equal(pair_codes(&x), "shared_object");
    assert_non_null(strstr(x.problems.items[0].message, "listener \"https\""));
    json_decref(other);
    pair_fini(&x);
}

static err_t
fail_to_make(
    void *ctx, const char *const *names, struct buf *chain, struct buf *key, struct error *e)
{
    (void)ctx;
    (void)names;
    (void)chain;
    (void)key;
    return error_set(e, ERR_INTERNAL, "no entropy today");
}

/* So many names that what is read of the placeholder is cut. */
static void
placeholder_of_many_names_stays_while_the_names_do(void **state)
{
    struct pair x;
    size_t ops = 1;
    json_t *urls = json_array();
    (void)state;
    for (int i = 0; i < 100; i++) {
        char url[80];
        (void)snprintf(
            url, sizeof(url), "https://host-with-a-rather-long-name-%d.example.test", i);
        json_array_append_new(urls, json_string(url));
    }
    json_t *request =
        json_pack("{s:o, s:[s], s:s}", "urls", urls, "to", "10.0.0.1:80", "name", "many");
    pair_init(&x, NULL);
    assert_non_null(publish_to(&x, request, NULL));
    assert_non_null(publish_to(&x, request, &ops));
    assert_int_equal(ops, 0);
    json_array_set_new(urls, 7, json_string("https://other.example.test"));
    assert_non_null(publish_to(&x, request, &ops));
    assert_int_equal(ops, 2); /* certificate and service */
    json_decref(request);
    pair_fini(&x);
}

static void
placeholder_is_remade_before_it_expires(void **state)
{
    struct pair x;
    struct change_set set;
    const char *service = NULL;
    json_t *request = pair_json("{'url': 'https://intranet', 'to': ['10.0.0.1:80']}");
    (void)state;
    pair_init(&x, NULL);
    assert_non_null(publish_to(&x, request, NULL));
    struct publish_input in = {
        .now = &x.objects,
        .now_s = PUBLISH_NOW_S + (int64_t)(365 - 15) * 86400,
        .tools = {fail_to_make, NULL}};
    change_set_init(&set);
    publish_plan(request, &in, x.arena, &set, &service, pair_clear(&x));
    assert_string_equal(service, "intranet");
    in.now_s += (int64_t)2 * 86400;
    publish_plan(request, &in, x.arena, &set, &service, pair_clear(&x));
    assert_string_equal(pair_codes(&x), "placeholder"); /* it tried */
    change_set_fini(&set);
    json_decref(request);
    pair_fini(&x);
}

static void
failing_to_make_a_placeholder_changes_nothing(void **state)
{
    struct pair x;
    struct change_set set;
    const char *service = "untouched";
    json_t *request = pair_json(APP);
    (void)state;
    pair_init(&x, NULL);
    struct publish_input in = {
        .now = &x.objects, .now_s = PUBLISH_NOW_S, .tools = {fail_to_make, NULL}};
    change_set_init(&set);
    publish_plan(request, &in, x.arena, &set, &service, &x.problems);
    assert_int_equal(set.count, 0);
    assert_null(service);
    assert_string_equal(pair_codes(&x), "placeholder");
    assert_non_null(strstr(x.problems.items[0].message, "no entropy today"));
    json_decref(request);
    pair_fini(&x);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploaded_certificate_is_used_when_it_covers_all),
        cmocka_unit_test(expired_certificate_is_not_chosen),
        cmocka_unit_test(placeholder_is_remade_for_new_names_and_goes_when_not_needed),
        cmocka_unit_test(uploaded_certificate_is_never_remade),
        cmocka_unit_test(certificate_pasted_over_a_placeholder_is_an_upload),
        cmocka_unit_test(placeholder_that_others_show_is_not_remade),
        cmocka_unit_test(placeholder_of_many_names_stays_while_the_names_do),
        cmocka_unit_test(placeholder_is_remade_before_it_expires),
        cmocka_unit_test(failing_to_make_a_placeholder_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
