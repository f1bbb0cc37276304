/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/stat.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "haproxy/output.h"
#include "haproxy/span.h"

#define COLUMNS_MAX 512 /* 2.6 has 120, 3.0 has 150 */
#define TEXT_MAX    255

/* ---- lines ---- */

/* One field as it stands, with its quotes. */
struct line {
    struct span fields[COLUMNS_MAX];
    size_t count;
};

/* Behind the quoted field that starts at p: behind its closing quote, or end. */
static const char *
skip_quoted(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p != '"') {
            continue;
        }
        if (p + 1 == end || p[1] != '"') {
            return p + 1;
        }
        p++;
    }
    return end;
}

/* Takes the next line off *rest, also one that is wrong. False: it was cut, has too many
 * fields, or text behind a closing quote. */
static bool
take_line(struct span *rest, struct line *ret)
{
    const char *p = rest->p;
    const char *end = p + rest->n;
    const char *start = p;
    bool good = true;

    ret->count = 0;
    while (p < end) {
        if (p == start && *p == '"') {
            p = skip_quoted(p, end);
            good = good && p < end && (*p == ',' || *p == '\n');
            continue;
        }
        if (*p == ',' || *p == '\n') {
            good = good && ret->count < COLUMNS_MAX;
            if (good) {
                ret->fields[ret->count++] = (struct span){start, (size_t)(p - start)};
            }
            start = p + 1;
        }
        if (*p++ == '\n') {
            *rest = (struct span){p, (size_t)(end - p)};
            return good;
        }
    }
    *rest = (struct span){end, 0};
    return false;
}

static const char *
field_text(struct span s, struct arena *a)
{
    char text[TEXT_MAX + 1];
    size_t len = 0;
    bool quoted = s.n >= 2 && s.p[0] == '"';

    if (quoted) {
        s = (struct span){s.p + 1, s.n - 2};
    }
    for (size_t i = 0; i < s.n && len < TEXT_MAX; i++) {
        text[len++] = s.p[i];
        i += quoted && s.p[i] == '"' ? 1 : 0;
    }
    output_clean(text, len);
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    }
    return arena_memdup0(a, text, len);
}

/* ---- columns ---- */

enum column_type { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_TYPE, COLUMN_OTHER };

struct column {
    const char *name;
    size_t offset; /* in a row */
    enum column_type type;
    bool needed; /* the header has it, and no row leaves it empty */
};

#define STAT_NEED(name)   {#name, offsetof(struct stat_row, name), COLUMN_TEXT, true},
#define STAT_TEXT(name)   {#name, offsetof(struct stat_row, name), COLUMN_TEXT, false},
#define STAT_NUMBER(name) {#name, offsetof(struct stat_row, name), COLUMN_NUMBER, false},
static const struct column known[] = {STAT_NEEDED(STAT_NEED) STAT_TEXTS(STAT_TEXT) STAT_NUMBERS(
    STAT_NUMBER){"type", 0, COLUMN_TYPE, true}};

static const struct column other = {"", 0, COLUMN_OTHER, false};

struct header {
    const struct column *columns[COLUMNS_MAX];
    size_t count;
};

static const struct column *
column_of(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (span_is(name, known[i].name)) {
            return &known[i];
        }
    }
    return &other;
}

static bool
has_column(const struct header *h, const struct column *c)
{
    for (size_t i = 0; i < h->count; i++) {
        if (h->columns[i] == c) {
            return true;
        }
    }
    return false;
}

static bool
read_header(struct span *rest, struct line *line, struct header *ret)
{
    static const char mark[] = "# ";

    if (!span_starts(*rest, mark)) {
        return false;
    }
    *rest = (struct span){rest->p + sizeof mark - 1, rest->n - (sizeof mark - 1)};
    if (!take_line(rest, line)) {
        return false;
    }
    ret->count = line->count;
    for (size_t i = 0; i < line->count; i++) {
        ret->columns[i] = column_of(line->fields[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].needed && !has_column(ret, &known[i])) {
            return false;
        }
    }
    return true;
}

/* ---- rows ---- */

static void
empty_row(struct stat_row *row)
{
    *row = (struct stat_row){.type = STAT_FRONTEND};
#define STAT_EMPTY_TEXT(name)   row->name = "";
#define STAT_EMPTY_NUMBER(name) row->name = -1;
    STAT_NEEDED(STAT_EMPTY_TEXT)
    STAT_TEXTS(STAT_EMPTY_TEXT)
    STAT_NUMBERS(STAT_EMPTY_NUMBER)
}

static bool
is_empty(struct span s)
{
    return s.n == 0 || (s.n == 2 && s.p[0] == '"');
}

/* Rows that are left out must not cost memory: texts are copied when all the rest is right. */
static bool
read_number(struct stat_row *row, const struct column *c, struct span s)
{
    int64_t v = -1;

    switch (c->type) {
    case COLUMN_OTHER:
    case COLUMN_TEXT: return !c->needed || !is_empty(s);
    case COLUMN_NUMBER:
        if (s.n > 0 && !span_number(s, INT64_MAX, &v)) {
            return false;
        }
        memcpy((char *)row + c->offset, &v, sizeof v);
        return true;
    case COLUMN_TYPE: break;
    }
    if (!span_number(s, STAT_LISTENER, &v)) {
        return false;
    }
    row->type = (enum stat_type)v;
    return true;
}

/* Rows of one proxy stand together: they share its name. */
static void
read_text(
    struct stat_row *row, const struct column *c, struct span s, struct arena *a,
    const struct stat_row *before)
{
    const char *text;

    if (before != NULL && c->offset == offsetof(struct stat_row, pxname) &&
        span_is(s, before->pxname)) {
        text = before->pxname;
    } else {
        text = s.n > 0 ? field_text(s, a) : "";
    }
    memcpy((char *)row + c->offset, &text, sizeof text);
}

static bool
read_row(
    const struct header *h, const struct line *line, struct arena *a,
    const struct stat_row *before, struct stat_row *ret)
{
    if (line->count != h->count) {
        return false;
    }
    empty_row(ret);
    for (size_t i = 0; i < h->count; i++) {
        if (!read_number(ret, h->columns[i], line->fields[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < h->count; i++) {
        if (h->columns[i]->type == COLUMN_TEXT) {
            read_text(ret, h->columns[i], line->fields[i], a, before);
        }
    }
    return true;
}

static struct stat_row *
next_row(struct stat_table *t, size_t *cap)
{
    if (t->count == *cap) {
        *cap = *cap == 0 ? 64 : *cap * 2;
        t->rows = xrealloc(t->rows, *cap * sizeof *t->rows);
    }
    return &t->rows[t->count];
}

err_t
stat_parse(
    const char *text, size_t bytes, struct arena *a, struct stat_table *ret, struct error *e)
{
    struct line *line = xcalloc(1, sizeof *line);
    struct header *header = xcalloc(1, sizeof *header);
    struct span rest = {text, bytes};
    struct stat_table table = {.rows = NULL};
    size_t cap = 0;
    bool good = read_header(&rest, line, header);

    /* An empty line ends the answer. */
    while (good && rest.n > 0 && rest.p[0] != '\n') {
        bool whole = take_line(&rest, line);
        struct stat_row *row = next_row(&table, &cap);
        const struct stat_row *before = table.count > 0 ? row - 1 : NULL;

        if (whole && table.count < STAT_MAX_ROWS && read_row(header, line, a, before, row)) {
            table.count++;
        } else {
            table.parse_errors++;
        }
    }
    free(line);
    free(header);
    if (!good) {
        return error_set(
            e, ERR_INVALID, "the answer to \"show stat\" has no header of its columns");
    }
    *ret = table;
    return ERR_OK;
}

void
stat_table_fini(struct stat_table *t)
{
    free(t->rows);
    *t = (struct stat_table){.rows = NULL};
}
