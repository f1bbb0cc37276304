/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "model/problems.h"

#define ARENA_BYTES ((size_t)1 << 20)

static void
keeps_copies_of_what_is_told(void **state)
{
    (void)state;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct problems p;
    char name[] = "web1";
    struct problem where = {.kind = "server", .name = name, .pointer = "/port"};

    problems_init(&p, arena);
    problems_add(&p, SEVERITY_ERROR, "range", &where, "Port %d is too high.", 70000);
    name[0] = 'X';
    assert_int_equal(p.count, 1);
    assert_int_equal(p.errors, 1);
    assert_int_equal(p.items[0].severity, SEVERITY_ERROR);
    assert_string_equal(p.items[0].code, "range");
    assert_string_equal(p.items[0].kind, "server");
    assert_string_equal(p.items[0].name, "web1");
    assert_string_equal(p.items[0].pointer, "/port");
    assert_string_equal(p.items[0].message, "Port 70000 is too high.");
    arena_free(arena);
}

static void
needs_no_place_and_counts_warnings_apart(void **state)
{
    (void)state;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct problems p;

    problems_init(&p, arena);
    problems_add(&p, SEVERITY_WARNING, "empty", NULL, "Nothing here.");
    assert_int_equal(p.count, 1);
    assert_int_equal(p.errors, 0);
    assert_null(p.items[0].kind);
    assert_null(p.items[0].name);
    assert_string_equal(p.items[0].pointer, "");
    arena_free(arena);
}

static void
counts_what_does_not_fit(void **state)
{
    (void)state;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct problems p;

    problems_init(&p, arena);
    for (int i = 0; i < PROBLEMS_MAX + 7; i++) {
        problems_add(&p, SEVERITY_ERROR, "x", NULL, "%d", i);
    }
    assert_int_equal(p.count, PROBLEMS_MAX);
    assert_int_equal(p.dropped, 7);
    assert_int_equal(p.errors, PROBLEMS_MAX + 7);
    assert_string_equal(p.items[PROBLEMS_MAX - 1].message, "99");
    arena_free(arena);
}

static void
survives_a_full_arena(void **state)
{
    (void)state;
    const char *const texts[] = {"kind", "name", "pointer", "message"};

    /* Room for none to three of the four texts. */
    for (size_t fit = 0; fit < ARRAY_LEN(texts); fit++) {
        struct arena *arena = arena_new(16 * fit);
        struct problem where = {.kind = texts[0], .name = texts[1], .pointer = texts[2]};
        struct problems p;

        problems_init(&p, arena);
        problems_add(&p, SEVERITY_ERROR, "x", &where, "%s", texts[3]);
        assert_int_equal(p.count, 0);
        assert_int_equal(p.dropped, 1);
        assert_int_equal(p.errors, 1);
        arena_free(arena);
    }
}

static void
cuts_long_texts_at_a_character(void **state)
{
    (void)state;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct problems p;
    char text[3000];

    for (size_t shift = 0; shift < 4; shift++) {
        struct problem where = {.name = text};
        size_t at = shift;

        memset(text, 'a', shift);
        for (; at + 4 < sizeof text; at += 4) {
            memcpy(text + at, "\xf0\x9f\x98\x80", 4);
        }
        text[at] = '\0';
        problems_init(&p, arena);
        problems_add(&p, SEVERITY_ERROR, "x", &where, "%s", text);
        assert_int_equal(p.count, 1);
        assert_in_range(strlen(p.items[0].message), 508, 511);
        assert_true(utf8_valid(p.items[0].message, strlen(p.items[0].message)));
        assert_true(utf8_valid(p.items[0].name, strlen(p.items[0].name)));
    }
    arena_free(arena);
}

static void
cut_length_never_splits_a_character(void **state)
{
    (void)state;
    assert_int_equal(problems_cut("", 5), 0);
    assert_int_equal(problems_cut("abc", 5), 3);
    assert_int_equal(problems_cut("abc", 2), 2);
    assert_int_equal(problems_cut("abc", 0), 0);
    assert_int_equal(problems_cut("a\xc3\xbc", 2), 1);
    assert_int_equal(problems_cut("a\xc3\xbc", 3), 3);
    assert_int_equal(problems_cut("\xe2\x82\xac", 2), 0);
    /* No character at all. */
    assert_int_equal(problems_cut("ab\x80\x80\x80\x80\x80", 6), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_copies_of_what_is_told),
        cmocka_unit_test(needs_no_place_and_counts_warnings_apart),
        cmocka_unit_test(counts_what_does_not_fit),
        cmocka_unit_test(survives_a_full_arena),
        cmocka_unit_test(cuts_long_texts_at_a_character),
        cmocka_unit_test(cut_length_never_splits_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
