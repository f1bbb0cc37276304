/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own pages beside what all nodes share: an edit of them is told what is wrong, and
 * nothing that others decide is ever an error because of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* Whatever becomes of the listener: nothing is refused, and the warning names it. */
static void
whoever_takes_their_listener_away_is_warned(void **state)
{
    static const char *const patches[] = {
        "{'name': 'other'}", "{'enabled': false}", "{'mode': 'tcp', 'tls': false}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(patches); i++) {
        struct snapshot_pair before;
        const struct problem *p;
        struct pair x;

        pair_init(&x, SHARED);
        pair_set(&x, K_WEBUI, "webui", "{'hosts': ['ui.test']}");
        before = (struct snapshot_pair){snapshot_ref(x.shared), snapshot_ref(x.local)};
        pair_set(&x, K_LISTENER, "https", patches[i]);
        validate_webui(&before, &x.objects, pair_clear(&x));
        assert_int_equal(x.problems.count, 0);
        validate_all(&x.objects, NOW_S, &x.problems);
        p = pair_problem(&x, "webui_listener");
        assert_non_null(p);
        assert_int_equal(p->severity, SEVERITY_WARNING);
        assert_non_null(strstr(p->message, "\"https\""));
        assert_non_null(strstr(p->message, "ui.test"));
        snapshot_unref(before.shared);
        snapshot_unref(before.local);
        pair_fini(&x);
    }
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
    json_t *patch;

    (void)state;
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
        cmocka_unit_test(whoever_takes_their_listener_away_is_warned),
        cmocka_unit_test(their_certificate_has_its_key_and_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
