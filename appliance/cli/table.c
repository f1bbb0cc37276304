/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show.h"

#define CELL_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS_MAX    16
#define COLUMN_LEAST   8 /* a column is not cut below this */
#define GAP            2 /* between columns */

struct table {
    struct cli *cli;
    size_t columns;
    const char *heads[COLUMNS_MAX];
    bool kept[COLUMNS_MAX]; /* not to be cut */
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
table_cell_whole(struct table *t, const char *text)
{
    t->kept[t->count % t->columns] = true;
    table_cell(t, text);
}

void
table_cell_int(struct table *t, json_int_t v)
{
    table_cell_whole(t, arena_printf(t->cli->arena, "%lld", (long long)v));
}

void
table_cell_time(struct table *t, const char *at)
{
    const char *text = show_time(t->cli, at);
    const char *zone = strstr(text, " UTC");

    table_cell_whole(
        t, zone != NULL ? arena_memdup0(t->cli->arena, text, (size_t)(zone - text)) : text);
}

void
table_cell_value(struct table *t, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (json_is_integer(v)) {
        table_cell_int(t, json_integer_value(v));
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

size_t
text_width_of(const char *s, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes && s[i] != '\0'; i++) {
        n += starts_character(s[i]);
    }
    return n;
}

size_t
text_width(const char *s)
{
    return text_width_of(s, strlen(s));
}

size_t
text_bytes(const char *s, size_t columns)
{
    size_t bytes = 0, characters = 0;

    while (s[bytes] != '\0') {
        characters += starts_character(s[bytes]);
        if (characters > columns) {
            break;
        }
        bytes++;
    }
    return bytes;
}

size_t
text_line(const char *s, size_t columns)
{
    size_t most = text_bytes(s, columns), len = most;

    if (s[most] == '\0') {
        return most;
    }
    while (len > 0 && s[len] != ' ') {
        len--;
    }
    return len > 0 ? len : most;
}

/* A cell that is wider than its column ends in "~". */
static void
print_cell(const char *s, size_t width, bool last)
{
    size_t shown = text_width(s);

    (void)fwrite(s, 1, text_bytes(s, shown > width ? width - 1 : shown), stdout);
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

/* The same over as many lines as the row needs. */
static void
print_row_wrapped(struct cli *c, const char *const *cells, const size_t *widths, size_t columns)
{
    const char *rest[COLUMNS_MAX], *line[COLUMNS_MAX];
    bool more = true;

    for (size_t i = 0; i < columns; i++) {
        rest[i] = cells[i];
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < columns; i++) {
            size_t len = text_line(rest[i], widths[i]);
            line[i] = arena_memdup0(c->arena, rest[i], len);
            rest[i] += len + (rest[i][len] == ' ');
            more = more || *rest[i] != '\0';
        }
        print_row(line, widths, columns);
    }
}

/* Of the columns from the first one on, that which can be cut; t->columns: none can. */
static size_t
widest_of(const struct table *t, const size_t *widths, size_t first)
{
    size_t widest = t->columns, most = COLUMN_LEAST;

    for (size_t i = first; i < t->columns; i++) {
        if (!t->kept[i] && widths[i] > most) {
            widest = i;
            most = widths[i];
        }
    }
    return widest;
}

/* Takes columns from the widest until the row fits; from the first, a name, in the end only. */
static void
fit(const struct table *t, size_t *widths, size_t room)
{
    size_t total = GAP * (t->columns - 1);

    for (size_t i = 0; i < t->columns; i++) {
        total += widths[i];
    }
    while (total > room) {
        size_t widest = widest_of(t, widths, 1);
        if (widest == t->columns) {
            widest = widest_of(t, widths, 0);
        }
        if (widest == t->columns) {
            return;
        }
        widths[widest]--;
        total--;
    }
}

static void
measure(const struct table *t, size_t width, size_t *widths)
{
    ASSERT(t->columns > 0);
    for (size_t i = 0; i < t->columns; i++) {
        widths[i] = text_width(t->heads[i]);
    }
    for (size_t i = 0; i < t->count; i++) {
        size_t w = text_width(t->cells[i]);
        if (w > widths[i % t->columns]) {
            widths[i % t->columns] = w;
        }
    }
    if (width > 0) {
        fit(t, widths, width);
    }
}

bool
table_is_empty(const struct table *t)
{
    return t->count == 0;
}

void
table_print(const struct table *t)
{
    size_t widths[COLUMNS_MAX];

    measure(t, (size_t)t->cli->width, widths);
    print_row(t->heads, widths, t->columns);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns) {
        print_row(t->cells + i, widths, t->columns);
    }
}

void
table_print_wrapped(struct table *t)
{
    size_t widths[COLUMNS_MAX];

    measure(t, t->cli->width > 0 ? (size_t)t->cli->width : WIDTH_DEFAULT, widths);
    print_row(t->heads, widths, t->columns);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns) {
        print_row_wrapped(t->cli, t->cells + i, widths, t->columns);
    }
}
