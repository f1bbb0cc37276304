/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "tests/support/self.h"

static void
memory_is_zeroed_aligned_and_apart(void **state)
{
    CLEANUP(arena_cleanup) struct arena *a = arena_new(ARENA_DEFAULT_BYTES);
    unsigned char *before = NULL;

    (void)state;
    for (size_t i = 0; i < 3000; i++) {
        size_t bytes = i % 97;
        unsigned char *p = arena_alloc(a, bytes);

        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        assert_ptr_not_equal(p, before);
        for (size_t k = 0; k < bytes; k++) {
            assert_int_equal(p[k], 0);
        }
        memset(p, 0xff, bytes);
        before = p;
    }
}

static void
large_object_does_not_waste_the_current_chunk(void **state)
{
    CLEANUP(arena_cleanup) struct arena *a = arena_new(ARENA_DEFAULT_BYTES);
    char *first = arena_alloc(a, 16);
    char *large = arena_alloc(a, (size_t)1 << 20);
    char *second = arena_alloc(a, 16);

    (void)state;
    memset(large, 1, (size_t)1 << 20);
    assert_ptr_equal(second, first + 16);
}

static void
large_object_may_come_first(void **state)
{
    CLEANUP(arena_cleanup) struct arena *a = arena_new(ARENA_DEFAULT_BYTES);
    char *large = arena_alloc(a, (size_t)1 << 20);
    char *small = arena_alloc(a, 1);

    (void)state;
    memset(large, 1, (size_t)1 << 20);
    assert_int_equal(*small, 0);
}

static void
nothing_is_given_over_the_cap(void **state)
{
    CLEANUP(arena_cleanup) struct arena *a = arena_new(1024);

    (void)state;
    assert_null(arena_try_alloc(a, 1025));
    assert_null(arena_try_alloc(a, SIZE_MAX));
    assert_non_null(arena_try_alloc(a, 1000));
    assert_int_equal(arena_used_bytes(a), 1008);
    assert_null(arena_try_alloc(a, 17));
    assert_non_null(arena_try_alloc(a, 16));
    assert_null(arena_try_alloc(a, 0));
    assert_int_equal(arena_used_bytes(a), 1024);
}

static void
strings_are_copied_and_formatted(void **state)
{
    CLEANUP(arena_cleanup) struct arena *a = arena_new(ARENA_DEFAULT_BYTES);
    char source[] = "text";
    char *copy = arena_strdup(a, source);

    (void)state;
    source[0] = 'n';
    assert_string_equal(copy, "text");
    assert_string_equal(arena_memdup0(a, "a\0b", 3), "a");
    assert_memory_equal(arena_memdup0(a, "a\0b", 3), "a\0b", 4);
    assert_string_equal(arena_memdup0(a, NULL, 0), "");
    assert_string_equal(arena_printf(a, "%s-%d", "x", 42), "x-42");
    assert_string_equal(arena_printf(a, "%s", ""), "");
}

static void
free_and_cleanup_accept_null(void **state)
{
    struct arena *none = NULL;
    char *text = xstrdup("x");
    char *nothing = NULL;

    (void)state;
    arena_free(NULL);
    arena_cleanup(&none);
    xfree_cleanup(&text);
    xfree_cleanup(&nothing);
}

static void
heap_functions_give_memory_for_size_zero(void **state)
{
    CLEANUP(xfree_cleanup) char *a = xmalloc(0);
    CLEANUP(xfree_cleanup) char *b = xcalloc(0, 8);
    CLEANUP(xfree_cleanup) char *c = xrealloc(NULL, 0);
    CLEANUP(xfree_cleanup) int *d = xcalloc(4, sizeof *d);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    c = xrealloc(c, 100);
    memset(c, 1, 100);
    assert_int_equal(d[3], 0);
}

static void
take_moves_a_pointer_out(void **state)
{
    CLEANUP(xfree_cleanup) char *from = xstrdup("x");
    CLEANUP(xfree_cleanup) char *to = TAKE(from);

    (void)state;
    assert_null(from);
    assert_string_equal(to, "x");
}

static void
exceeding_the_cap_of_our_own_accord_aborts(void **state)
{
    (void)state;
    self_aborts("cap", "p != NULL (");
}

static void
using_a_freed_arena_aborts(void **state)
{
    (void)state;
    self_aborts("magic", "a->magic == ARENA_MAGIC");
}

static int
child(const char *how)
{
    if (strcmp(how, "cap") == 0) {
        struct arena *a = arena_new(10);

        (void)arena_alloc(a, 11);
    } else {
        union {
            max_align_t align;
            unsigned char bytes[256];
        } not_an_arena = {.bytes = {0}};

        void *p = &not_an_arena;

        arena_free(p);
    }
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(large_object_does_not_waste_the_current_chunk),
        cmocka_unit_test(large_object_may_come_first),
        cmocka_unit_test(nothing_is_given_over_the_cap),
        cmocka_unit_test(strings_are_copied_and_formatted),
        cmocka_unit_test(free_and_cleanup_accept_null),
        cmocka_unit_test(heap_functions_give_memory_for_size_zero),
        cmocka_unit_test(take_moves_a_pointer_out),
        cmocka_unit_test(exceeding_the_cap_of_our_own_accord_aborts),
        cmocka_unit_test(using_a_freed_arena_aborts),
    };

    return argc > 1 ? child(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
