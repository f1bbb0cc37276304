/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define CELL_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS_MAX    16

struct table {
    struct cli *cli;
    size_t columns;
    const char *heads[COLUMNS_MAX];
    const char **cells;
    size_t count, cap;
};

struct table *
table_new(struct cli *c, const char *const *heads, size_t count)
{
    ASSERT(count <= COLUMNS_MAX);
    struct table *t = arena_alloc(c->arena, sizeof(*t));
    t->cli = c;
    t->columns = count;
    for (size_t i = 0; i < count; i++) {
        t->heads[i] = heads[i];
    }
    return t;
}

void
table_cell(struct table *t, const char *text)
{
    CLEANUP(buf_fini) struct buf clean;

    buf_init(&clean, CELL_MAX_BYTES);
    cli_put_text(&clean, text);
    if (t->count == t->cap) {
        size_t cap = t->cap == 0 ? 256 : t->cap * 2;
        const char **cells = arena_alloc(t->cli->arena, cap * sizeof(*cells));
        if (t->count > 0) {
            memcpy(cells, t->cells, t->count * sizeof(*cells));
        }
        t->cells = cells;
        t->cap = cap;
    }
    t->cells[t->count++] = arena_strdup(t->cli->arena, buf_str(&clean));
}

void
table_cell_int(struct table *t, json_int_t v)
{
    table_cell(t, arena_printf(t->cli->arena, "%lld", (long long)v));
}

/* Characters, taken as one column each. */
static size_t
width_of(const char *s)
{
    size_t n = 0;

    for (; *s != '\0'; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

static void
print_row(const char *const *cells, const size_t *widths, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        (void)fputs(cells[i], stdout);
        if (i + 1 < columns) {
            printf("%*s", (int)(widths[i] - width_of(cells[i]) + 2), "");
        }
    }
    putchar('\n');
}

void
table_print(const struct table *t)
{
    size_t widths[COLUMNS_MAX];

    ASSERT(t->columns > 0);
    for (size_t i = 0; i < t->columns; i++) {
        widths[i] = width_of(t->heads[i]);
    }
    for (size_t i = 0; i < t->count; i++) {
        size_t w = width_of(t->cells[i]);
        if (w > widths[i % t->columns]) {
            widths[i % t->columns] = w;
        }
    }
    print_row(t->heads, widths, t->columns);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns) {
        print_row(t->cells + i, widths, t->columns);
    }
}
