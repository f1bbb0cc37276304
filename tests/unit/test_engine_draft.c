/* SPDX-License-Identifier: Apache-2.0 */
/* What the draft shows after an edit is what its rows make of the head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/edit.h"
#include "tests/support/engine_lab.h"

#define ACTOR      (&(struct actor){"admin maria"})
#define TEXT_BYTES 65536
#define MERGE(kind, name, body)                                                                \
    "{'op': 'merge', 'kind': '" kind "', 'name': '" name "', 'body': {" body "}}"
#define DELETE(kind, name) "{'op': 'delete', 'kind': '" kind "', 'name': '" name "'}"
#define POOL(name, server)                                                                     \
    "{'op': 'create', 'kind': 'pool', 'body': {'name': '" name                                 \
    "', 'members': [{'server': '" server "'}]}}"

static void
put_objects(const struct snapshot *s, struct buf *out)
{
    for (size_t i = 0; i < snapshot_count(s); i++) {
        const struct object *o = snapshot_at(s, i);
        char hex[SHA256_HEX + 1];

        hash_hex(&o->objhash, hex);
        if (o->kind != K_AUTOMATION_KEY) {
            buf_printf(out, "%s %s %.12s\n", schema_kind(o->kind)->name, o->name.s, hex);
        }
    }
}

static void
put_draft(struct engine_lab *l, struct buf *out)
{
    struct view *v = engine_view(l->en);

    buf_init(out, TEXT_BYTES);
    put_objects(v->draft.shared, out);
    put_objects(v->draft.local, out);
    view_unref(v);
}

/* A commit of something else has the draft made anew from its rows. */
static void
rows_say_the_same(struct engine_lab *l, const char *key)
{
    struct buf CLEANUP(buf_fini) shown;
    struct buf CLEANUP(buf_fini) made;

    put_draft(l, &shown);
    engine_lab_must(l, key);
    put_draft(l, &made);
    assert_string_equal(buf_str(&shown), buf_str(&made));
}

#define ROWS_SAY_THE_SAME(key)                                                                 \
    rows_say_the_same(                                                                         \
        l, "[{'op': 'create', 'kind': 'automation_key', 'body': {'name': '" key "'}}]")

static void
every_kind_of_edit_shows_what_its_rows_say(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_apply_ok(
        l, "[" LAB_SERVER("a") "," LAB_SERVER("b") "," LAB_SERVER("c") "," POOL("p", "a") "]");
    engine_lab_must(
        l, "[{'op': 'create', 'kind': 'server_state', 'body': {'name': 'b', 'server': 'b',"
           "'state': 'drain'}}]");
    engine_lab_must(l, "[" LAB_SERVER("d") "," MERGE("server", "a", "'port': 81") "]");
    ROWS_SAY_THE_SAME("k1");
    engine_lab_must(l, "[" MERGE("server", "b", "'name': 'bb'") "]");
    ROWS_SAY_THE_SAME("k2");
    engine_lab_must(l, "[" MERGE("server", "bb", "'name': 'b'") "]");
    ROWS_SAY_THE_SAME("k3");
    engine_lab_must(
        l, "[" DELETE("server", "b") "," MERGE("node", "node", "'peers_port': 99") "]");
    ROWS_SAY_THE_SAME("k4");
    problems_init(&l->problems, l->arena);
    assert_int_equal(
        edit_discard(l->en, K_SERVER, "b", ACTOR, &l->problems, &l->error), ERR_OK);
    ROWS_SAY_THE_SAME("k5");
    engine_lab_must(l, "[" DELETE("server", "c") "," MERGE("server", "a", "'port': 8080") "]");
    ROWS_SAY_THE_SAME("k6");
    assert_string_equal(engine_lab_draft(l), "node proxy1, server c, server d");
}

static const struct object *
drafted(struct engine_lab *l, const char *server)
{
    struct view *v = engine_view(l->en);
    const struct object *o = snapshot_by_name(v->draft.shared, K_SERVER, server);

    view_unref(v);
    return o;
}

/* Its name is taken by the head until that one is renamed in the draft. */
static void
a_row_that_was_left_out_comes_in_with_the_edit_that_makes_room(void **state)
{
    struct engine_lab *l = *state;

    engine_lab_must(l, "[" LAB_SERVER("a") "," LAB_SERVER("b") "]");
    engine_lab_apply_ok(
        l, "[{'op': 'create', 'kind': 'server', 'body': {'name': 'a', 'address': '10.0.0.9',"
           "'port': 9}}]");
    assert_int_equal(object_int(drafted(l, "a"), F_SERVER_PORT), 9);
    engine_lab_must(l, "[" MERGE("server", "b", "'port': 81") "]");
    ROWS_SAY_THE_SAME("k1");
    engine_lab_must(l, "[" MERGE("server", "a", "'name': 'c'") "]");
    ROWS_SAY_THE_SAME("k2");
    assert_int_equal(object_int(drafted(l, "a"), F_SERVER_PORT), 8080);
    assert_int_equal(object_int(drafted(l, "c"), F_SERVER_PORT), 9);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_LAB_TEST(every_kind_of_edit_shows_what_its_rows_say),
        ENGINE_LAB_TEST(a_row_that_was_left_out_comes_in_with_the_edit_that_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
