/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/heap.h"

#define PIECES      100000
#define PIECE_BYTES 1000
#define FREED_BYTES ((size_t)80 << 20)

static size_t
resident_kb(void)
{
    char line[256];
    size_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");

    assert_non_null(f);
    while (kb == 0 && fgets(line, sizeof line, f) != NULL) {
        static const char key[] = "VmRSS:";

        for (char *p = line + strlen(key); strncmp(line, key, strlen(key)) == 0 && *p != '\0';
             p++) {
            kb = *p >= '0' && *p <= '9' ? kb * 10 + (size_t)(*p - '0') : kb;
        }
    }
    (void)fclose(f);
    return kb;
}

/* 100 MB, of which the last piece stays: so the allocator keeps all that is below it. */
static void *
take_and_free(void)
{
    static void *pieces[PIECES];

    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = xmalloc(PIECE_BYTES);
        memset(pieces[i], 1, PIECE_BYTES);
    }
    for (size_t i = 0; i + 1 < PIECES; i++) {
        free(pieces[i]);
    }
    return pieces[PIECES - 1];
}

static void
what_was_freed_goes_back_to_the_system_each_time(void **state)
{
    struct heap_watch h = {.kept = 0};

    (void)state;
    heap_round(&h);
    for (int i = 0; i < 2; i++) {
        void *last = take_and_free();
        size_t before_kb = resident_kb();

        bool own = mallinfo2().fordblks < FREED_BYTES; /* sanitizers and valgrind have one */

        heap_round(&h);
        assert_true(own || resident_kb() + FREED_BYTES / 1024 < before_kb);
        free(last);
        last = xmalloc((size_t)1 << 20); /* uses what is kept: less is free */
        heap_round(&h);
        free(last);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_goes_back_to_the_system_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
