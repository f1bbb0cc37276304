/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/x509.h"
#include "model/diff.h"
#include "tests/support/pair.h"

#define DIFF_BYTES ((size_t)16 << 20)
#define HEAD       "--- a/f\n+++ b/f\n"

/* ---- texts ---- */

struct row {
    const char *what;
    const char *a;
    const char *b;
    const char *diff; /* without the two header lines; "" = no output at all */
};

static const struct row rows[] = {
    {"equal texts", "a\nb\n", "a\nb\n", ""},
    {"both empty", "", "", ""},
    {"from empty", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
    {"to empty", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
    {"one line of one", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n"},
    {"nothing in common", "a\nb\n", "c\nd\n", "@@ -1,2 +1,2 @@\n-a\n-b\n+c\n+d\n"},
    {"insertion", "a\nc\n", "a\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n+b\n c\n"},
    {"deletion", "a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
    {"three lines of context", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n",
     "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"},
    {"six lines between two changes join them", "A\n1\n2\n3\n4\n5\n6\nB\n",
     "X\n1\n2\n3\n4\n5\n6\nY\n", "@@ -1,8 +1,8 @@\n-A\n+X\n 1\n 2\n 3\n 4\n 5\n 6\n-B\n+Y\n"},
    {"seven lines part them", "A\n1\n2\n3\n4\n5\n6\n7\nB\n", "X\n1\n2\n3\n4\n5\n6\n7\nY\n",
     "@@ -1,4 +1,4 @@\n-A\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-B\n+Y\n"},
    {"no line feed at the end of the first", "a", "a\n",
     "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
    {"no line feed at the end of both", "a\nb", "x\nb",
     "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"},
    {"empty lines", "\n\n", "\n\n\n", "@@ -1,2 +1,3 @@\n \n \n+\n"},
};

static void
texts_give_unified_diffs(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    (void)state;
    buf_init(&out, DIFF_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  %s\n", rows[i].what);
        buf_reset(&out);
        assert_int_equal(diff_text("f", rows[i].a, rows[i].b, &out, &e), ERR_OK);
        if (rows[i].diff[0] == '\0') {
            assert_int_equal(out.len, 0);
        } else {
            assert_memory_equal(buf_str(&out), HEAD, strlen(HEAD));
            assert_string_equal(buf_str(&out) + strlen(HEAD), rows[i].diff);
        }
    }
}

static void
appends_to_what_is_there(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    (void)state;
    buf_init(&out, DIFF_BYTES);
    buf_puts(&out, "before\n");
    assert_int_equal(diff_text("f", "a\n", "b\n", &out, &e), ERR_OK);
    assert_string_equal(buf_str(&out), "before\n" HEAD "@@ -1 +1 @@\n-a\n+b\n");
}

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Length of the shortest edit script by the plain table; texts of single-letter lines. */
static int
edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    int table[33][33];
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (int)(i + j);
            } else if (a[2 * (i - 1)] == b[2 * (j - 1)]) {
                table[i][j] = table[i - 1][j - 1];
            } else {
                int up = table[i - 1][j];
                int left = table[i][j - 1];
                table[i][j] = 1 + (up < left ? up : left);
            }
        }
    }
    return table[n][m];
}

/* Applies a diff that has one hunk with all of the text as its context or change. */
static int
apply_and_count(const char *diff, char *left, char *right)
{
    int edits = 0;
    for (const char *s = strstr(diff, "@@\n") + 3; *s != '\0'; s = strchr(s, '\n') + 1) {
        if (*s != '+') {
            *left++ = s[1];
            *left++ = '\n';
        }
        if (*s != '-') {
            *right++ = s[1];
            *right++ = '\n';
        }
        edits += *s != ' ';
    }
    *left = '\0';
    *right = '\0';
    return edits;
}

static void
scripts_are_right_and_shortest(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    uint32_t random = 7;
    struct error e;
    (void)state;
    buf_init(&out, DIFF_BYTES);
    for (int round = 0; round < 20000; round++) {
        char text[2][65];
        char got[2][65];
        size_t lines[2];
        for (size_t side = 0; side < 2; side++) {
            lines[side] = next_random(&random) % 12;
            for (size_t i = 0; i < lines[side]; i++) {
                text[side][2 * i] = (char)('a' + next_random(&random) % 3);
                text[side][2 * i + 1] = '\n';
            }
            text[side][2 * lines[side]] = '\0';
        }
        buf_reset(&out);
        assert_int_equal(diff_text("f", text[0], text[1], &out, &e), ERR_OK);
        /* Seven equal lines or more would be cut from the hunk. */
        if (out.len > 0 && strstr(strstr(buf_str(&out), "@@\n"), "\n@@") == NULL) {
            int edits = apply_and_count(buf_str(&out), got[0], got[1]);
            int distance = edit_distance(text[0], lines[0], text[1], lines[1]);
            assert_int_equal(edits, distance);
            if (strlen(got[0]) == strlen(text[0])) {
                assert_string_equal(got[0], text[0]);
                assert_string_equal(got[1], text[1]);
            }
        }
    }
}

static void
fill(struct buf *out, const char *prefix, int lines)
{
    for (int i = 0; i < lines; i++) {
        buf_printf(out, "%s %d\n", prefix, i);
    }
}

static void
too_many_edits_are_only_counted(void **state)
{
    CLEANUP(buf_fini) struct buf a;
    CLEANUP(buf_fini) struct buf b;
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    (void)state;
    buf_init(&a, DIFF_BYTES);
    buf_init(&b, DIFF_BYTES);
    buf_init(&out, DIFF_BYTES);
    fill(&a, "old", 5000);
    fill(&b, "new", 5000);
    assert_int_equal(diff_text("f", buf_str(&a), buf_str(&b), &out, &e), ERR_OK);
    buf_puts(&b, "one more\n");
    buf_reset(&out);
    assert_int_equal(diff_text("f", buf_str(&a), buf_str(&b), &out, &e), ERR_LIMIT);
    assert_string_equal(buf_str(&out), "5000 lines removed and 5001 added, too many to list\n");
    buf_reset(&b);
    buf_reset(&out);
    fill(&a, "old", 6000);
    assert_int_equal(diff_text("f", buf_str(&a), "", &out, &e), ERR_LIMIT);
}

static void
output_over_the_maximum_is_an_error(void **state)
{
    CLEANUP(buf_fini) struct buf out;
    struct error e;
    (void)state;
    buf_init(&out, 10);
    assert_int_equal(diff_text("f", "a\n", "b\n", &out, &e), ERR_LIMIT);
}

/* ---- objects ---- */

#define OBJECTS                                                                                \
    "[{'kind': 'server', 'name': 'a1', 'address': '10.0.0.1', 'port': 80},"                    \
    "{'kind': 'server', 'name': 'a2', 'address': '10.0.0.2', 'port': 80},"                     \
    "{'kind': 'pool', 'name': 'web', 'members': [{'server': 'a1'}]},"                          \
    "{'kind': 'listener', 'name': 'http', 'port': 80},"                                        \
    "{'kind': 'service', 'name': 'site', 'listeners': ['http'], 'pool': 'web'}]"

static const char *
dump(const struct pair *x, json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    const char *kept = arena_strdup(x->arena, text);
    free(text);
    json_decref(v);
    return kept;
}

static void
apply_json(struct pair *x, const char *ops)
{
    struct change_set set;
    json_t *json = pair_json(ops);
    change_set_init(&set);
    change_set_parse(&set, json, x->arena, pair_clear(x));
    pair_apply(x, &set);
    change_set_fini(&set);
    json_decref(json);
}

/* The one element of the diff between OBJECTS and what the operations make of it. */
static json_t *
diff_of(const char *ops, struct pair *after)
{
    struct pair before;
    pair_init(&before, OBJECTS);
    pair_init(after, OBJECTS);
    apply_json(after, ops);
    json_t *all = diff_objects(&before.objects, &after->objects);
    assert_int_equal(json_array_size(all), 1);
    json_t *one = json_incref(json_array_get(all, 0));
    json_decref(all);
    pair_fini(&before);
    return one;
}

static void
equal_configurations_have_no_diff(void **state)
{
    struct pair x;
    (void)state;
    pair_init(&x, OBJECTS);
    assert_string_equal(dump(&x, diff_objects(&x.objects, &x.objects)), "[]");
    pair_fini(&x);
}

static void
changed_fields_are_shown_before_and_after(void **state)
{
    struct pair x;
    (void)state;
    json_t *one =
        diff_of("[{'op': 'merge', 'kind': 'server', 'name': 'a1', 'body': {'port': 81}}]", &x);
    assert_string_equal(json_string_value(json_object_get(one, "change")), "changed");
    assert_string_equal(json_string_value(json_object_get(one, "kind")), "server");
    assert_string_equal(json_string_value(json_object_get(one, "name")), "a1");
    assert_string_equal(
        dump(&x, json_incref(json_object_get(one, "fields"))),
        "[{\"after\":81,\"before\":80,\"field\":\"port\",\"pointer\":\"/port\"}]");
    assert_string_equal(
        dump(&x, json_incref(json_object_get(one, "effect"))), "[\"haproxy:reload\"]");
    json_decref(one);
    pair_fini(&x);
}

static void
references_are_names(void **state)
{
    struct pair x;
    (void)state;
    json_t *one = diff_of(
        "[{'op': 'merge', 'kind': 'pool', 'name': 'web',"
        " 'body': {'members': [{'server': 'a2'}]}}]",
        &x);
    json_t *field = json_array_get(json_object_get(one, "fields"), 0);
    const char *before = dump(&x, json_incref(json_object_get(field, "before")));
    const char *after = dump(&x, json_incref(json_object_get(field, "after")));
    assert_non_null(strstr(before, "\"server\":\"a1\""));
    assert_non_null(strstr(after, "\"server\":\"a2\""));
    json_decref(one);
    pair_fini(&x);
}

static void
a_note_has_no_effect(void **state)
{
    struct pair x;
    (void)state;
    json_t *one = diff_of(
        "[{'op': 'merge', 'kind': 'service', 'name': 'site', 'body': {'note': 'x'}}]", &x);
    assert_int_equal(json_array_size(json_object_get(one, "effect")), 0);
    json_decref(one);
    pair_fini(&x);
}

static void
a_rename_touches_one_object(void **state)
{
    struct pair x;
    (void)state;
    json_t *one = diff_of(
        "[{'op': 'merge', 'kind': 'server', 'name': 'a1', 'body': {'name': 'b1'}}]", &x);
    assert_string_equal(json_string_value(json_object_get(one, "name")), "b1");
    assert_string_equal(
        dump(&x, json_incref(json_object_get(one, "fields"))),
        "[{\"after\":\"b1\",\"before\":\"a1\",\"field\":\"name\",\"pointer\":\"/name\"}]");
    json_decref(one);
    pair_fini(&x);
}

static void
added_and_removed_objects_show_one_side(void **state)
{
    struct pair x;
    (void)state;
    json_t *added = diff_of("[{'op': 'create', 'kind': 'pool', 'body': {'name': 'p'}}]", &x);
    json_t *field = json_array_get(json_object_get(added, "fields"), 0);
    assert_string_equal(json_string_value(json_object_get(added, "change")), "added");
    assert_string_equal(json_string_value(json_object_get(field, "after")), "p");
    assert_null(json_object_get(field, "before"));
    json_decref(added);
    pair_fini(&x);
    json_t *removed = diff_of("[{'op': 'delete', 'kind': 'service', 'name': 'site'}]", &x);
    field = json_array_get(json_object_get(removed, "fields"), 0);
    assert_string_equal(json_string_value(json_object_get(removed, "change")), "removed");
    assert_string_equal(json_string_value(json_object_get(field, "before")), "site");
    assert_null(json_object_get(field, "after"));
    json_decref(removed);
    pair_fini(&x);
}

static void
secrets_never_show(void **state)
{
    static const char *const names[] = {"a.test", NULL};
    struct pair before;
    struct pair after;
    struct change_set set;
    struct error e;
    (void)state;
    pair_init(&before, OBJECTS);
    pair_init(&after, OBJECTS);
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    assert_int_equal(x509_selfsigned(names, 1800000000, 90, &chain, &key, &e), ERR_OK);
    change_set_init(&set);
    struct change op = {
        .op = CHANGE_CREATE,
        .kind = K_CERTIFICATE,
        .body = json_pack(
            "{s:s, s:s, s:s}", "name", "c", "chain", buf_str(&chain), "key", buf_str(&key)),
    };
    assert_int_equal(change_set_add(&set, op, &e), ERR_OK);
    pair_apply(&after, &set);
    const char *text = dump(&after, diff_objects(&before.objects, &after.objects));
    assert_null(strstr(text, "PRIVATE KEY"));
    assert_non_null(strstr(
        text,
        "{\"after\":{\"changed\":true,\"set\":true},\"field\":\"key\",\"pointer\":\"/key\"}"));
    change_set_fini(&set);
    pair_fini(&before);
    pair_fini(&after);
}

static void
both_containers_are_compared(void **state)
{
    struct pair before;
    struct pair after;
    (void)state;
    pair_init(&before, OBJECTS);
    pair_init(&after, OBJECTS);
    apply_json(
        &after, "[{'op': 'merge', 'kind': 'node', 'body': {'note': 'x'}},"
                "{'op': 'merge', 'kind': 'haproxy', 'body': {'maxconn': 500}}]");
    json_t *all = diff_objects(&before.objects, &after.objects);
    assert_int_equal(json_array_size(all), 2);
    json_t *first = json_array_get(all, 0);
    json_t *second = json_array_get(all, 1);
    assert_string_equal(json_string_value(json_object_get(first, "kind")), "haproxy");
    assert_string_equal(json_string_value(json_object_get(second, "kind")), "node");
    json_decref(all);
    pair_fini(&before);
    pair_fini(&after);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_give_unified_diffs),
        cmocka_unit_test(appends_to_what_is_there),
        cmocka_unit_test(scripts_are_right_and_shortest),
        cmocka_unit_test(too_many_edits_are_only_counted),
        cmocka_unit_test(output_over_the_maximum_is_an_error),
        cmocka_unit_test(equal_configurations_have_no_diff),
        cmocka_unit_test(changed_fields_are_shown_before_and_after),
        cmocka_unit_test(references_are_names),
        cmocka_unit_test(a_note_has_no_effect),
        cmocka_unit_test(a_rename_touches_one_object),
        cmocka_unit_test(added_and_removed_objects_show_one_side),
        cmocka_unit_test(secrets_never_show),
        cmocka_unit_test(both_containers_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
