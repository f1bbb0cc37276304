/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show.h"

#define CELL_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS_MAX    16
#define COLUMN_LEAST   8 /* a column is not cut below this */
#define GAP            2 /* between columns */
#define LIST_SHOWN     3

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
    memset(t, 0, sizeof(*t));
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
    cli_put_text(&clean, text != NULL && text[0] != '\0' ? text : NULL);
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

/* "a, b, c" of texts, or of the servers of a pool's members; more than a few are counted. */
static const char *
list_text(struct cli *c, const json_t *list)
{
    CLEANUP(buf_fini) struct buf out = {0};
    const json_t *item;
    size_t i;

    if (json_array_size(list) > LIST_SHOWN) {
        return arena_printf(c->arena, "%zu items", json_array_size(list));
    }
    buf_init(&out, CELL_MAX_BYTES);
    json_array_foreach(list, i, item)
    {
        const json_t *server = json_object_get(item, "server");
        buf_puts(&out, i > 0 ? ", " : "");
        cli_put_value(&out, server != NULL ? server : item);
    }
    return arena_strdup(c->arena, buf_str(&out));
}

void
table_cell_value(struct table *t, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (json_is_array(v)) {
        table_cell(t, list_text(t->cli, v));
        return;
    }
    if (json_is_boolean(v)) {
        table_cell(t, json_is_true(v) ? "yes" : "no");
        return;
    }
    buf_init(&text, CELL_MAX_BYTES);
    cli_put_value(&text, v);
    table_cell(t, buf_str(&text));
}

static bool
starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Characters, taken as one column each. */
static size_t
width_of(const char *s)
{
    size_t n = 0;

    for (; *s != '\0'; s++) {
        n += starts_character(*s);
    }
    return n;
}

/* A cell that is wider than its column ends in "~". */
static void
print_cell(const char *s, size_t width, bool last)
{
    size_t shown = width_of(s), wanted = shown > width ? width - 1 : shown;
    size_t bytes = 0, characters = 0;

    while (s[bytes] != '\0') {
        characters += starts_character(s[bytes]);
        if (characters > wanted) {
            break;
        }
        bytes++;
    }
    (void)fwrite(s, 1, bytes, stdout);
    if (shown > width) {
        putchar('~');
    } else if (!last) {
        printf("%*s", (int)(width - shown), "");
    }
    printf("%s", last ? "\n" : "  ");
}

static void
print_row(const char *const *cells, const size_t *widths, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        print_cell(cells[i], widths[i], i + 1 == columns);
    }
}

/* Takes columns from the widest until the row fits. */
static void
fit(size_t *widths, size_t columns, size_t room)
{
    size_t total = GAP * (columns - 1);

    for (size_t i = 0; i < columns; i++) {
        total += widths[i];
    }
    while (total > room) {
        size_t widest = 0;
        for (size_t i = 1; i < columns; i++) {
            widest = widths[i] > widths[widest] ? i : widest;
        }
        if (widths[widest] <= COLUMN_LEAST) {
            return;
        }
        widths[widest]--;
        total--;
    }
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
    if (t->cli->width > 0) {
        fit(widths, t->columns, (size_t)t->cli->width);
    }
    print_row(t->heads, widths, t->columns);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns) {
        print_row(t->cells + i, widths, t->columns);
    }
}
