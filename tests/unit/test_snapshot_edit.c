/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/snapshot_parts.h"
#include "tests/support/gen.h"
#include "tests/support/snapshot_lab.h"

#define ID_BYTES 17

/* ---- editing ---- */

static void
an_edit_leaves_the_snapshot_as_it_was(void **state)
{
    (void)state;
    struct snapshot *before = lab_small();
    struct hash fp = snapshot_fp(before, 1);
    struct snapshot_edit *x = snapshot_edit_new(before);
    struct snapshot *after;
    struct hash now;

    snapshot_edit_put(x, lab_server(3, "c"));
    snapshot_edit_put(x, lab_server(1, "z"));
    snapshot_edit_remove(x, K_SERVER, "0000000000000002");
    snapshot_edit_remove(x, K_SERVER, "00000000000000ff");
    after = lab_seal(x);
    lab_check_snapshot(before);
    lab_check_snapshot(after);
    now = snapshot_fp(before, 1);
    assert_true(hash_equal(&fp, &now));
    assert_int_equal(snapshot_count(before), 3);
    assert_int_equal(snapshot_count(after), 3);
    assert_null(snapshot_by_name(after, K_SERVER, "b"));
    assert_null(snapshot_by_name(after, K_SERVER, "a"));
    assert_string_equal(snapshot_by_name(after, K_SERVER, "z")->id, "0000000000000001");
    snapshot_unref(before);
    lab_check_snapshot(after);
    snapshot_unref(after);
}

static void
the_last_edit_of_an_object_holds(void **state)
{
    (void)state;
    struct snapshot *before = lab_small();
    struct snapshot_edit *x = snapshot_edit_new(before);
    struct snapshot *after;

    snapshot_edit_put(x, lab_server(9, "x"));
    snapshot_edit_put(x, lab_server(9, "y"));
    snapshot_edit_remove(x, K_SERVER, "0000000000000001");
    snapshot_edit_put(x, lab_server(1, "bb"));
    snapshot_edit_put(x, lab_server(2, "q"));
    snapshot_edit_remove(x, K_SERVER, "0000000000000002");
    after = lab_seal(x);
    lab_check_snapshot(after);
    assert_int_equal(snapshot_count(after), 3);
    assert_non_null(snapshot_by_name(after, K_SERVER, "y"));
    assert_non_null(snapshot_by_name(after, K_SERVER, "bb"));
    assert_null(snapshot_by_id(after, K_SERVER, "0000000000000002"));
    snapshot_unref(after);
    snapshot_unref(before);
}

static void
conflicts(struct snapshot_edit *x, const char *words)
{
    struct snapshot *s = NULL;
    struct error e;

    assert_int_equal(snapshot_seal(x, &s, &e), ERR_CONFLICT);
    assert_null(s);
    assert_string_equal(e.msg, words);
}

static void
two_objects_of_a_kind_cannot_have_one_name(void **state)
{
    (void)state;
    struct snapshot *before = lab_small();
    struct snapshot_edit *x = snapshot_edit_new(before);

    snapshot_edit_put(x, lab_server(7, "b"));
    conflicts(x, "there is already a server named \"b\"");
    x = snapshot_edit_new(before);
    snapshot_edit_put(x, lab_server(7, "x"));
    snapshot_edit_put(x, lab_server(8, "x"));
    conflicts(x, "there is already a server named \"x\"");
    x = snapshot_edit_new(before);
    snapshot_edit_put(x, lab_server(2, "b"));
    conflicts(x, "there is already a server named \"b\"");
    x = snapshot_edit_new(NULL);
    snapshot_edit_put(x, lab_server(2, "b"));
    snapshot_edit_put(x, lab_server(3, "b"));
    conflicts(x, "there is already a server named \"b\"");
    lab_check_snapshot(before);
    snapshot_unref(before);
}

static void
names_may_move_from_one_object_to_another(void **state)
{
    (void)state;
    struct snapshot *before = lab_small();
    struct snapshot_edit *x = snapshot_edit_new(before);
    struct snapshot *after;

    snapshot_edit_put(x, lab_server(1, "a"));
    snapshot_edit_put(x, lab_server(2, "b"));
    after = lab_seal(x);
    lab_check_snapshot(after);
    assert_string_equal(snapshot_by_name(after, K_SERVER, "a")->id, "0000000000000001");
    snapshot_unref(after);
    x = snapshot_edit_new(before);
    snapshot_edit_remove(x, K_SERVER, "0000000000000001");
    snapshot_edit_put(x, lab_server(5, "b"));
    after = lab_seal(x);
    lab_check_snapshot(after);
    assert_string_equal(snapshot_by_name(after, K_SERVER, "b")->id, "0000000000000005");
    snapshot_unref(after);
    snapshot_unref(before);
}

static void
an_abandoned_edit_releases_what_it_took(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    struct snapshot_edit *x = snapshot_edit_new(s);

    snapshot_edit_put(x, lab_server(3, "c"));
    snapshot_edit_remove(x, K_SERVER, "0000000000000001");
    snapshot_edit_free(x);
    snapshot_edit_free(NULL);
    snapshot_unref(NULL);
    snapshot_cleanup(&s);
}

/* ---- size ---- */

#define MANY 5000u

static struct snapshot *
many(void)
{
    struct snapshot_edit *x = snapshot_edit_new(NULL);
    char name[20];

    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        snapshot_edit_put(x, lab_server(i, name));
    }
    return lab_seal(x);
}

static void
fingerprint_covers_all_objects(void **state)
{
    (void)state;
    struct snapshot *s = many();
    struct buf lines;
    struct hash want;
    struct hash got = snapshot_fp(s, 1);

    buf_init(&lines, 200 * MANY);
    buf_puts(&lines, "1\n");
    for (size_t i = 0; i < snapshot_count(s); i++) {
        const struct object *o = snapshot_at(s, i);
        char hex[SHA256_HEX + 1];

        hash_hex(&o->objhash, hex);
        buf_printf(&lines, "server %s %s\n", o->id, hex);
    }
    want = sha256(lines.data, lines.len);
    assert_true(hash_equal(&want, &got));
    buf_fini(&lines);
    snapshot_unref(s);
}

static size_t
chunks_in_common(const struct snapshot *a, const struct snapshot *b)
{
    size_t count = 0;

    for (size_t i = 0; i < a->chunk_count; i++) {
        for (size_t j = 0; j < b->chunk_count; j++) {
            count += a->chunks[i] == b->chunks[j] ? 1 : 0;
        }
    }
    return count;
}

static void
an_edit_shares_the_chunks_that_it_does_not_touch(void **state)
{
    (void)state;
    struct snapshot *before = many();
    struct snapshot_edit *x = snapshot_edit_new(before);
    struct snapshot *after;

    lab_check_snapshot(before);
    assert_int_equal(before->chunk_count, (MANY + CHUNK_OBJECTS - 1) / CHUNK_OBJECTS);
    snapshot_edit_put(x, lab_server(MANY / 2, "new"));
    after = lab_seal(x);
    lab_check_snapshot(after);
    assert_int_equal(chunks_in_common(before, after), before->chunk_count - 1);
    snapshot_unref(before);
    lab_check_snapshot(after);
    snapshot_unref(after);
}

static void
removing_nearly_all_leaves_few_chunks(void **state)
{
    (void)state;
    struct snapshot *s = many();

    for (unsigned step = 0; step < 10; step++) {
        struct snapshot_edit *x = snapshot_edit_new(s);
        struct snapshot *next;
        char id[ID_BYTES];

        for (unsigned i = 0; i < MANY; i++) {
            if (i % 10 == step && i % 100 != 0) {
                (void)snprintf(id, sizeof id, "%016x", i);
                snapshot_edit_remove(x, K_SERVER, id);
            }
        }
        next = lab_seal(x);
        lab_check_snapshot(next);
        snapshot_unref(s);
        s = next;
    }
    assert_int_equal(snapshot_count(s), MANY / 100);
    assert_in_range(s->chunk_count, 1, 3);
    snapshot_unref(s);
}

#define MODEL_IDS  700u
#define MODEL_RUNS 400

/* Random edits against a plain table of which id has which name and port. */
static void
random_edits_agree_with_a_plain_table(void **state)
{
    (void)state;
    struct gen *g = gen_new(4711);
    unsigned port[MODEL_IDS] = {0};
    struct snapshot *s = snapshot_initial(SCOPE_SHARED);
    size_t fixed = snapshot_count(s);

    for (int run = 0; run < MODEL_RUNS; run++) {
        struct snapshot_edit *x = snapshot_edit_new(s);
        size_t edits = gen_chance(g, 20) ? gen_below(g, 300) : gen_below(g, 4);
        struct snapshot *next;
        size_t count = fixed;

        for (size_t i = 0; i < edits; i++) {
            unsigned id = (unsigned)gen_below(g, MODEL_IDS);
            char name[20];
            char text[ID_BYTES];

            (void)snprintf(name, sizeof name, "s%u", id);
            (void)snprintf(text, sizeof text, "%016x", id * 3);
            port[id] =
                gen_chance(g, run % 100 < 50 ? 20 : 60) ? 0 : 1 + (unsigned)gen_below(g, 65535);
            if (port[id] == 0) {
                snapshot_edit_remove(x, K_SERVER, text);
            } else {
                snapshot_edit_put(x, lab_server_port(text, name, port[id]));
            }
        }
        next = lab_seal(x);
        lab_check_snapshot(next);
        for (unsigned id = 0; id < MODEL_IDS; id++) {
            char text[ID_BYTES];
            const struct object *o;

            (void)snprintf(text, sizeof text, "%016x", id * 3);
            o = snapshot_by_id(next, K_SERVER, text);
            assert_int_equal(o != NULL ? object_int(o, F_SERVER_PORT) : 0, port[id]);
            count += port[id] != 0 ? 1 : 0;
        }
        assert_int_equal(snapshot_count(next), count);
        snapshot_unref(s);
        s = next;
    }
    snapshot_unref(s);
    gen_free(g);
}

/* ---- threads ---- */

static void *
use(void *ctx)
{
    const struct snapshot *shared = ctx;

    for (int i = 0; i < 200; i++) {
        struct snapshot *mine = snapshot_ref(shared);
        struct object *o = object_ref(snapshot_by_name(mine, K_SERVER, "a"));
        struct snapshot_edit *x = snapshot_edit_new(mine);
        struct snapshot *next = NULL;
        struct hash fp = snapshot_fp(mine, 1 + i % 2);

        (void)fp;
        snapshot_edit_put(x, o);
        if (snapshot_seal(x, &next, NULL) == ERR_OK) {
            snapshot_unref(next);
        }
        snapshot_unref(mine);
    }
    return NULL;
}

static void
threads_share_a_snapshot(void **state)
{
    (void)state;
    struct snapshot *s = lab_small();
    pthread_t threads[4];

    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use, s), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(s->refs, 1);
    lab_check_snapshot(s);
    snapshot_unref(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_leaves_the_snapshot_as_it_was),
        cmocka_unit_test(the_last_edit_of_an_object_holds),
        cmocka_unit_test(two_objects_of_a_kind_cannot_have_one_name),
        cmocka_unit_test(names_may_move_from_one_object_to_another),
        cmocka_unit_test(an_abandoned_edit_releases_what_it_took),
        cmocka_unit_test(fingerprint_covers_all_objects),
        cmocka_unit_test(an_edit_shares_the_chunks_that_it_does_not_touch),
        cmocka_unit_test(removing_nearly_all_leaves_few_chunks),
        cmocka_unit_test(random_edits_agree_with_a_plain_table),
        cmocka_unit_test(threads_share_a_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
