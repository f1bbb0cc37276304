/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/snapshot_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "model/snapshot_parts.h"

#define ID_BYTES 17

/* Of what a caller would send. */
static struct object *
parse(enum kind kind, const char *id, json_t *body)
{
    struct arena CLEANUP(arena_cleanup) *arena = arena_new(ARENA_DEFAULT_BYTES);
    const struct object_refs none = {NULL, NULL, NULL}; /* such objects refer to nothing */
    struct problems p;
    struct object *o;

    problems_init(&p, arena);
    o = object_parse(kind, id, body, NULL, &none, &p);
    assert_non_null(o);
    json_decref(body);
    return o;
}

struct object *
lab_server_port(const char *id, const char *name, unsigned port)
{
    return parse(
        K_SERVER, id,
        json_pack("{s:s, s:s, s:i}", "name", name, "address", "a", "port", (int)port));
}

struct object *
lab_server(unsigned id, const char *name)
{
    char text[ID_BYTES];

    (void)snprintf(text, sizeof text, "%016x", id);
    return lab_server_port(text, name, 80);
}

struct object *
lab_monitor(unsigned id, const char *name)
{
    char text[ID_BYTES];

    (void)snprintf(text, sizeof text, "%016x", id);
    return parse(K_MONITOR, text, json_pack("{s:s}", "name", name));
}

struct snapshot *
lab_seal(struct snapshot_edit *x)
{
    struct snapshot *s = NULL;
    struct error e;
    err_t code = snapshot_seal(x, &s, &e);

    if (code != ERR_OK) {
        print_error("%s\n", e.msg);
    }
    assert_int_equal(code, ERR_OK);
    return s;
}

struct snapshot *
lab_small(void)
{
    struct snapshot_edit *x = snapshot_edit_new(NULL);

    snapshot_edit_put(x, lab_server(2, "a"));
    snapshot_edit_put(x, lab_server(1, "b"));
    snapshot_edit_put(x, lab_monitor(1, "a"));
    return lab_seal(x);
}

void
lab_check_snapshot(const struct snapshot *s)
{
    size_t at = 0;

    assert_int_equal(s->start[0], 0);
    assert_int_equal(s->start[KIND_COUNT], s->count);
    for (size_t c = 0; c < s->chunk_count; c++) {
        assert_in_range(s->chunks[c]->count, 1, CHUNK_OBJECTS);
        for (uint32_t i = 0; i < s->chunks[c]->count; i++) {
            assert_ptr_equal(s->chunks[c]->objects[i], s->by_id[at++]);
        }
    }
    assert_int_equal(at, s->count);
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        for (size_t i = s->start[k]; i < s->start[k + 1]; i++) {
            const struct object *o = s->by_id[i];
            const struct object *n = s->by_name[i];
            uint64_t key = 1;

            assert_int_equal(o->kind, k);
            assert_int_equal(n->kind, k);
            assert_true(snapshot_id_key(o->kind, o->id, &key));
            assert_true(key == s->id_keys[i]);
            assert_true(i == s->start[k] || s->id_keys[i - 1] < key);
            assert_true(i == s->start[k] || strcmp(s->by_name[i - 1]->name.s, n->name.s) < 0);
            assert_ptr_equal(snapshot_by_id(s, o->kind, o->id), o);
            assert_ptr_equal(snapshot_by_name(s, o->kind, o->name.s), o);
        }
    }
}
