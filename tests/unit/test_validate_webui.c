/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own pages beside what all nodes share: an edit of them is told what is wrong, and
 * so is a change that takes them away; what others decided is no error because of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/x509.h"
#include "model/validate.h"
#include "tests/support/pair.h"

#define NOW_S ((int64_t)1800000000)

#define SHARED                                                                                 \
    "[{'kind': 'pool', 'name': 'web', 'enabled': false},"                                      \
    "{'kind': 'pool', 'name': 'db', 'mode': 'tcp', 'enabled': false},"                         \
    "{'kind': 'listener', 'name': 'https', 'port': 443, 'tls': true},"                         \
    "{'kind': 'listener', 'name': 'clear', 'port': 80},"                                       \
    "{'kind': 'listener', 'name': 'off', 'port': 81, 'enabled': false},"                       \
    "{'kind': 'listener', 'name': 'raw', 'port': 82, 'mode': 'tcp'},"                          \
    "{'kind': 'service', 'name': 'db', 'listeners': ['raw'], 'pool': 'db'},"                   \
    "{'kind': 'service', 'name': 'all', 'listeners': ['https'], 'pool': 'web',"                \
    "  'enabled': false, 'hosts': ['x.test', 'all.test']},"                                    \
    "{'kind': 'service', 'name': 'deep', 'listeners': ['https'], 'pool': 'web',"               \
    "  'hosts': ['deep.test'], 'path': '/deep'}]"

static const struct row {
    const char *webui;
    const char *code; /* NULL: nothing is said */
    bool error;       /* when the pages are edited; else always a warning */
    const char *pointer;
    const char *says;
} rows[] = {
    {"{'listener': 'gone'}", NULL, false, NULL, NULL},
    {"{'hosts': ['ui.test']}", NULL, false, NULL, NULL},
    {"{'hosts': ['ui.test'], 'listener': 'gone'}", "webui_listener", false, "/listener",
     "\"gone\" does not exist"},
    {"{'hosts': ['ui.test'], 'listener': 'off'}", "webui_listener", false, "/listener",
     "\"off\" is off"},
    {"{'hosts': ['ui.test'], 'listener': 'raw'}", "webui_listener", true, "/listener",
     "\"raw\" has mode tcp"},
    {"{'hosts': ['ui.test'], 'listener': 'clear'}", "webui_clear", false, "/listener",
     "\"clear\" has no TLS"},
    {"{'hosts': ['ui.test', 'all.test']}", "webui_host", true, "/hosts",
     "The service \"all\" has all.test"},
    {"{'hosts': ['all.test'], 'position': 'first'}", "webui_host", false, "/hosts",
     "all.test leads to its own pages and not to the service \"all\""},
    {"{'hosts': ['deep.test']}", NULL, false, NULL, NULL},
    {"{'hosts': ['deep.test'], 'position': 'first'}", "webui_host", false, "/hosts",
     "the service \"deep\""},
    {"{'hosts': ['all.test'], 'listener': 'clear'}", "webui_clear", false, "/listener",
     "clear"},
};

static void
expect(const struct pair *x, const struct row *row, bool error)
{
    const struct problem *p = row->code != NULL ? pair_problem(x, row->code) : NULL;

    assert_int_equal(x->problems.errors, error ? 1 : 0);
    if (row->code == NULL) {
        assert_null(strstr(pair_codes(x), "webui"));
        return;
    }
    assert_non_null(p);
    assert_string_equal(p->kind, "webui");
    assert_string_equal(p->pointer, row->pointer);
    assert_non_null(strstr(p->message, row->says));
}

static void
an_edit_of_them_is_told_and_others_only_warned(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct snapshot_pair before;
        struct pair x;

        print_message("  %s\n", rows[i].webui);
        pair_init(&x, SHARED);
        before = (struct snapshot_pair){snapshot_ref(x.shared), snapshot_ref(x.local)};
        pair_set(&x, K_WEBUI, "webui", rows[i].webui);
        validate_webui(&before, &x.objects, pair_clear(&x));
        expect(&x, &rows[i], rows[i].error);
        validate_all(&x.objects, NOW_S, pair_clear(&x));
        expect(&x, &rows[i], false);
        snapshot_unref(before.shared);
        snapshot_unref(before.local);
        pair_fini(&x);
    }
}

/* What a change makes of pages that are published at ui.test on https, by the webui's or the
 * change of another object. */
static const struct kept_row {
    const char *webui; /* before */
    enum kind kind;
    const char *name;
    const char *patch;   /* NULL: removed */
    const char *pointer; /* of the error, at the object that is changed; NULL: none */
    const char *warning; /* of validate_all, or NULL */
} kept_rows[] = {
    {"{}", K_LISTENER, "https", "{'name': 'other'}", "/name", "webui_listener"},
    {"{}", K_LISTENER, "https", "{'enabled': false}", "/enabled", "webui_listener"},
    {"{}", K_LISTENER, "https", "{'mode': 'tcp', 'tls': false}", "/mode", "webui_listener"},
    {"{}", K_LISTENER, "https", NULL, "", "webui_listener"},
    {"{}", K_LISTENER, "https", "{'maxconn': 100}", NULL, NULL},
    {"{}", K_LISTENER, "clear", "{'enabled': false}", NULL, NULL},
    {"{}", K_SERVICE, "deep", "{'hosts': ['deep.test', 'ui.test']}", NULL, NULL},
    {"{}", K_SERVICE, "all", "{'hosts': ['a.test', 'ui.test']}", "/hosts/1", "webui_host"},
    {"{'position': 'first'}", K_SERVICE, "all", "{'hosts': ['ui.test']}", NULL, "webui_host"},
    {"{'hosts': ['ui.test', 'all.test']}", K_SERVICE, "all", "{'note': 'x'}", NULL,
     "webui_host"},
    {"{'listener': 'off'}", K_LISTENER, "off", "{'name': 'other'}", NULL, "webui_listener"},
    {"{}", K_WEBUI, "webui", "{'listener': 'off'}", "/listener", "webui_listener"},
    {"{}", K_WEBUI, "webui", "{'listener': 'clear'}", NULL, "webui_clear"},
    {"{}", K_WEBUI, "webui", "{'hosts': []}", NULL, NULL},
    {"{'hosts': ['ui.test', 'all.test'], 'position': 'first'}", K_WEBUI, "webui",
     "{'position': 'last'}", "/hosts", "webui_host"},
};

static void
check_kept(const struct kept_row *row)
{
    struct snapshot_pair before;
    const struct problem *p;
    struct pair x;

    pair_init(&x, SHARED);
    pair_set(&x, K_WEBUI, "webui", "{'hosts': ['ui.test']}");
    pair_set(&x, K_WEBUI, "webui", row->webui);
    before = (struct snapshot_pair){snapshot_ref(x.shared), snapshot_ref(x.local)};
    if (row->patch != NULL) {
        pair_set(&x, row->kind, row->name, row->patch);
    } else {
        pair_remove(&x, row->kind, row->name);
    }
    validate_webui_kept(&before, &x.objects, pair_clear(&x));
    assert_int_equal(x.problems.errors, row->pointer != NULL ? 1 : 0);
    validate_webui(&before, &x.objects, pair_clear(&x));
    assert_int_equal(x.problems.errors, row->pointer != NULL ? 1 : 0);
    if (row->pointer != NULL) {
        p = &x.problems.items[0];
        assert_int_equal(x.problems.count, 1);
        assert_string_equal(p->kind, schema_kind(row->kind)->name);
        assert_string_equal(p->name, row->name);
        assert_string_equal(p->pointer, row->pointer);
    }
    /* Another node that takes it over is warned only. */
    validate_all(&x.objects, NOW_S, pair_clear(&x));
    p = row->warning != NULL ? pair_problem(&x, row->warning) : NULL;
    assert_int_equal(p != NULL, row->warning != NULL);
    assert_true(p == NULL || p->severity == SEVERITY_WARNING);
    snapshot_unref(before.shared);
    snapshot_unref(before.local);
    pair_fini(&x);
}

static void
a_change_that_takes_them_away_is_refused_where_it_is_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kept_rows); i++) {
        print_message("  %s %s\n", kept_rows[i].name, kept_rows[i].patch);
        check_kept(&kept_rows[i]);
    }
}

/* No name of a node's pages leaves the node. */
static void
what_other_nodes_are_told_names_no_host_of_them(void **state)
{
    struct snapshot_pair before;
    struct pair x;

    (void)state;
    pair_init(&x, SHARED);
    pair_set(&x, K_WEBUI, "webui", "{'hosts': ['sentinel.test']}");
    before = (struct snapshot_pair){snapshot_ref(x.shared), snapshot_ref(x.local)};
    pair_set(&x, K_LISTENER, "https", "{'enabled': false}");
    validate_webui_kept(&before, &x.objects, pair_clear(&x));
    assert_int_equal(x.problems.errors, 1);
    assert_null(strstr(x.problems.items[0].message, "sentinel"));
    snapshot_unref(before.shared);
    snapshot_unref(before.local);
    pair_fini(&x);
}

/* ---- the certificate ---- */

static json_t *
certified(const char *const *names, int days, bool other_key)
{
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    CLEANUP(buf_fini) struct buf unused;
    struct error e;

    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    buf_init(&unused, 65536);
    assert_int_equal(x509_selfsigned(names, NOW_S, days, &chain, &key, &e), ERR_OK);
    if (other_key) {
        buf_reset(&key);
        assert_int_equal(x509_selfsigned(names, NOW_S, days, &unused, &key, &e), ERR_OK);
    }
    return json_pack(
        "{s:[s], s:s, s:s}", "hosts", "ui.x.test", "chain", buf_str(&chain), "key",
        buf_str(&key));
}

static void
check_certified(json_t *patch, const char *codes, size_t errors, const char *pointer)
{
    char *text = json_dumps(patch, JSON_COMPACT);
    struct pair x;

    pair_init(&x, SHARED);
    pair_set(&x, K_LISTENER, "https", "{'tls': false}"); /* nothing about its services */
    pair_set(&x, K_WEBUI, "webui", text);
    free(text);
    validate_object(pair_find(&x, K_WEBUI, "webui"), NOW_S, pair_clear(&x));
    if (errors == 0) {
        validate_all(&x.objects, NOW_S, pair_clear(&x));
    }
    assert_int_equal(x.problems.errors, errors);
    if (codes[0] == '\0') {
        assert_null(strstr(pair_codes(&x), "certificate_"));
    } else {
        const struct problem *p = pair_problem(&x, codes);

        assert_non_null(p);
        assert_string_equal(p->pointer, pointer);
        assert_string_equal(p->kind, "webui");
    }
    pair_fini(&x);
    json_decref(patch);
}

static void
their_certificate_has_its_key_and_their_names(void **state)
{
    static const char *const exact[] = {"a.test", "UI.x.test", NULL};
    static const char *const wild[] = {"*.x.test", NULL};
    static const char *const other[] = {"x.test", "*.ui.x.test", "*.test", NULL};
    char texts[60][48];
    const char *many[61] = {NULL}; /* more than struct x509_info holds */
    json_t *patch;

    (void)state;
    for (size_t i = 0; i + 1 < 61; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "a-rather-long-name-number-%zu.x.test", i);
        many[i] = texts[i];
    }
    many[59] = "ui.x.test";
    check_certified(certified(many, 90, false), "", 0, NULL);
    check_certified(certified(exact, 90, false), "", 0, NULL);
    check_certified(certified(wild, 90, false), "", 0, NULL);
    check_certified(certified(other, 90, false), "certificate_names", 0, "/hosts/0");
    check_certified(certified(wild, 5, false), "certificate_expires", 0, "/chain");
    check_certified(certified(wild, 90, true), "certificate_key", 1, "/key");
    patch = certified(wild, 90, false);
    json_object_del(patch, "key");
    check_certified(patch, "certificate_key", 1, "/key");
    patch = certified(wild, 90, false);
    json_object_del(patch, "chain");
    check_certified(patch, "certificate_key", 1, "/chain");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_of_them_is_told_and_others_only_warned),
        cmocka_unit_test(a_change_that_takes_them_away_is_refused_where_it_is_made),
        cmocka_unit_test(what_other_nodes_are_told_names_no_host_of_them),
        cmocka_unit_test(their_certificate_has_its_key_and_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
