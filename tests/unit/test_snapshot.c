/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/snapshot_parts.h"
#include "tests/support/snapshot_lab.h"

/* ---- reading ---- */

static void
starts_with_the_singletons_of_the_scope(void **state)
{
    (void)state;
    for (int scope = SCOPE_SHARED; scope <= SCOPE_LOCAL; scope++) {
        struct snapshot *s = snapshot_initial((enum scope)scope);
        size_t count = 0;

        lab_check_snapshot(s);
        for (unsigned k = 0; k < KIND_COUNT; k++) {
            bool here = schema_kinds[k].singleton && (int)schema_kinds[k].scope == scope;

            count += here ? 1 : 0;
            if (schema_kinds[k].singleton) {
                assert_int_equal(snapshot_singleton(s, (enum kind)k) != NULL, here);
            }
        }
        assert_int_equal(snapshot_count(s), count);
        assert_true(count > 0);
        snapshot_unref(s);
    }
}

static void
finds_by_id_and_by_name_within_the_kind(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();

    lab_check_snapshot(s);
    assert_string_equal(snapshot_by_id(s, K_SERVER, "0000000000000002")->name.s, "a");
    assert_string_equal(snapshot_by_name(s, K_SERVER, "b")->id, "0000000000000001");
    assert_int_equal(snapshot_by_name(s, K_MONITOR, "a")->kind, K_MONITOR);
    assert_null(snapshot_by_id(s, K_SERVER, "0000000000000003"));
    assert_null(snapshot_by_id(s, K_SERVER, "0000000000000000"));
    assert_null(snapshot_by_id(s, K_MONITOR, "0000000000000002"));
    assert_null(snapshot_by_id(s, K_POOL, "0000000000000001"));
    assert_null(snapshot_by_name(s, K_SERVER, ""));
    assert_null(snapshot_by_name(s, K_SERVER, "aa"));
    assert_null(snapshot_by_name(s, K_SERVER, "c"));
    assert_null(snapshot_by_name(s, K_POOL, "a"));
    snapshot_unref(s);
}

static void
refuses_what_is_no_id(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    struct snapshot *initial = snapshot_initial(SCOPE_SHARED);
    uint64_t key = 1;

    assert_null(snapshot_by_id(s, K_SERVER, ""));
    assert_null(snapshot_by_id(s, K_SERVER, "2"));
    assert_null(snapshot_by_id(s, K_SERVER, "00000000000000002"));
    assert_null(snapshot_by_id(s, K_SERVER, "000000000000000A"));
    assert_null(snapshot_by_id(s, K_SERVER, "server"));
    assert_false(snapshot_id_key(K_SERVER, "000000000000000", &key));
    assert_false(snapshot_id_key(K_SERVER, "00000000000000001", &key));
    assert_false(snapshot_id_key(K_SERVER, "g000000000000000", &key));
    assert_false(snapshot_id_key(K_SERVER, "000000000000000G", &key));
    assert_false(snapshot_id_key(K_HAPROXY, "0000000000000000", &key));
    assert_true(snapshot_id_key(K_SERVER, "0123456789abcdef", &key));
    assert_true(key == 0x0123456789abcdefu);
    assert_null(snapshot_by_id(initial, K_HAPROXY, "0000000000000000"));
    assert_non_null(snapshot_by_id(initial, K_HAPROXY, "haproxy"));
    snapshot_unref(initial);
    snapshot_unref(s);
}

static void
lists_a_kind_by_name_and_all_by_id(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    const struct object *const *all;

    assert_int_equal(snapshot_kind(s, K_SERVER, &all), 2);
    assert_string_equal(all[0]->name.s, "a");
    assert_string_equal(all[1]->name.s, "b");
    assert_int_equal(snapshot_kind(s, K_POOL, &all), 0);
    assert_int_equal(snapshot_count(s), 3);
    assert_int_equal(snapshot_at(s, 0)->kind, K_MONITOR);
    assert_string_equal(snapshot_at(s, 1)->name.s, "b");
    assert_string_equal(snapshot_at(s, 2)->name.s, "a");
    snapshot_unref(s);
}

static void
resolves_names_and_ids_over_both_containers(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    struct snapshot *local = snapshot_initial(SCOPE_LOCAL);
    struct snapshot_pair pair = {s, local};
    struct snapshot_pair none = {NULL, NULL};
    struct object_refs refs = snapshot_refs(&pair);

    assert_string_equal(refs.id_of_name(refs.ctx, K_SERVER, "a"), "0000000000000002");
    assert_string_equal(refs.name_of_id(refs.ctx, K_SERVER, "0000000000000001"), "b");
    assert_string_equal(refs.id_of_name(refs.ctx, K_NODE, "node"), "node");
    assert_null(refs.id_of_name(refs.ctx, K_SERVER, "x"));
    assert_null(refs.name_of_id(refs.ctx, K_SERVER, "0000000000000009"));
    assert_ptr_equal(snapshot_of(&pair, K_POOL), s);
    assert_ptr_equal(snapshot_of(&pair, K_ADMIN), local);
    refs = snapshot_refs(&none);
    assert_null(refs.id_of_name(refs.ctx, K_SERVER, "a"));
    assert_null(refs.name_of_id(refs.ctx, K_NODE, "node"));
    snapshot_unref(local);
    snapshot_unref(s);
}

/* ---- fingerprint ---- */

static void
fingerprint_is_the_hash_of_its_lines(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    char text[1000];
    char hex[3][SHA256_HEX + 1];
    struct hash want;
    struct hash got;

    for (size_t i = 0; i < 3; i++) {
        hash_hex(&snapshot_at(s, i)->objhash, hex[i]);
    }
    for (int version = 7; version <= 8; version++) {
        int n = snprintf(
            text, sizeof text,
            "%d\nmonitor 0000000000000001 %s\nserver 0000000000000001 %s\n"
            "server 0000000000000002 %s\n",
            version, hex[0], hex[1], hex[2]);

        want = sha256(text, (size_t)n);
        for (int again = 0; again < 2; again++) {
            got = snapshot_fp(s, version);
            assert_true(hash_equal(&want, &got));
        }
    }
    snapshot_unref(s);
}

static void
fingerprint_of_nothing_has_only_the_version(void **state)
{
    (void)state;
    struct snapshot *s = lab_seal(snapshot_edit_new(NULL));
    struct hash want = sha256("1\n", 2);
    struct hash got = snapshot_fp(s, 1);

    assert_true(hash_equal(&want, &got));
    assert_int_equal(snapshot_count(s), 0);
    snapshot_unref(s);
}

/* ---- differences ---- */

static void
note_difference(void *ctx, const struct object *before, const struct object *after)
{
    buf_printf(
        ctx, "%s>%s ", before != NULL ? before->name.s : "",
        after != NULL ? after->name.s : "");
}

static void
differs(const struct snapshot *a, const struct snapshot *b, const char *want)
{
    struct buf text;

    buf_init(&text, 10000);
    snapshot_diff(a, b, note_difference, &text);
    assert_string_equal(buf_str(&text), want);
    buf_fini(&text);
}

static void
tells_differences_in_the_order_of_ids(void **state)
{
    (void)state;
    struct snapshot *a = lab_small();
    struct snapshot *none = lab_seal(snapshot_edit_new(NULL));
    struct snapshot_edit *x = snapshot_edit_new(a);
    struct snapshot *b;

    snapshot_edit_put(x, lab_server(1, "bb"));
    snapshot_edit_put(x, lab_server(2, "a")); /* the same content in another object */
    snapshot_edit_put(x, lab_server(0, "n"));
    snapshot_edit_put(x, lab_server(3, "m"));
    snapshot_edit_remove(x, K_MONITOR, "0000000000000001");
    b = lab_seal(x);
    differs(a, b, "a> >n b>bb >m ");
    differs(b, a, ">a n> bb>b m> ");
    differs(a, a, "");
    differs(none, a, ">a >b >a ");
    differs(a, none, "a> b> a> ");
    snapshot_unref(none);
    snapshot_unref(a);
    snapshot_unref(b);
}

/* Long runs that are the same are passed over as such. */
static void
tells_few_differences_of_many_objects(void **state)
{
    (void)state;
    struct snapshot_edit *x = snapshot_edit_new(NULL);
    struct snapshot *a;
    struct snapshot *b;
    char name[16];

    for (unsigned id = 1; id <= 300; id++) {
        (void)snprintf(name, sizeof name, "s%u", id);
        snapshot_edit_put(x, lab_server(id, name));
    }
    a = lab_seal(x);
    x = snapshot_edit_new(a);
    snapshot_edit_put(x, lab_server(64, "first"));
    snapshot_edit_remove(x, K_SERVER, "0000000000000081"); /* 129 */
    snapshot_edit_put(x, lab_server(299, "last"));
    snapshot_edit_put(x, lab_server(301, "new"));
    b = lab_seal(x);
    differs(a, b, "s64>first s129> s299>last >new ");
    differs(b, a, "first>s64 >s129 last>s299 new> ");
    differs(b, b, "");
    snapshot_unref(a);
    snapshot_unref(b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_with_the_singletons_of_the_scope),
        cmocka_unit_test(finds_by_id_and_by_name_within_the_kind),
        cmocka_unit_test(refuses_what_is_no_id),
        cmocka_unit_test(lists_a_kind_by_name_and_all_by_id),
        cmocka_unit_test(resolves_names_and_ids_over_both_containers),
        cmocka_unit_test(fingerprint_is_the_hash_of_its_lines),
        cmocka_unit_test(fingerprint_of_nothing_has_only_the_version),
        cmocka_unit_test(tells_differences_in_the_order_of_ids),
        cmocka_unit_test(tells_few_differences_of_many_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
