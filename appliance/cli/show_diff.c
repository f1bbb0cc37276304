/* SPDX-License-Identifier: Apache-2.0 */
/* Differences as people read them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/date.h"
#include "base/json.h"
#include "cli/show.h"

#define TEXT_MAX_BYTES ((size_t)64 << 20)
#define LENGTH_BYTES   ((size_t)32)
#define VALUE_LEAST    20 /* columns of a value that is cut */
#define VALUE_INDENT   10 /* columns before it */
#define CUT            "..."

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define PLAIN "\033[0m"

static void
put_colored(const struct cli *c, const char *color, const char *line)
{
    printf("%s%s%s\n", c->color ? color : "", line, c->color ? PLAIN : "");
}

/* ---- fields ---- */

/* What is told of a secret: whether it is set, and that it is another one now. */
static bool
is_secret(const json_t *v)
{
    return json_is_object(v) && json_object_size(v) == 2 &&
           json_is_true(json_object_get(v, "changed")) && json_object_get(v, "set") != NULL;
}

static void
put_value(struct buf *out, const json_t *v)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (v == NULL) {
        buf_putc(out, '-');
        return;
    }
    if (is_secret(v)) {
        buf_puts(out, json_is_true(json_object_get(v, "set")) ? "(set)" : "(not set)");
        return;
    }
    buf_init(&text, TEXT_MAX_BYTES);
    json_canonical(v, &text);
    cli_put_text(out, buf_str(&text));
}

/* Columns that two texts have in common from their beginning. */
static size_t
common_columns(const char *a, const char *b)
{
    size_t bytes = 0;

    while (a[bytes] != '\0' && a[bytes] == b[bytes]) {
        bytes++;
    }
    while (bytes > 0 && ((unsigned char)a[bytes] & 0xc0) == 0x80) {
        bytes--; /* to the beginning of its character */
    }
    return text_width_of(a, bytes);
}

/* The columns from the given one on, with marks where something is left out. */
static void
put_part(struct buf *out, const char *s, size_t from, size_t room)
{
    size_t at = text_bytes(s, from);
    bool whole = text_width(s + at) <= room;
    size_t len = text_bytes(s + at, whole ? room : room - strlen(CUT));

    buf_puts(out, from > 0 ? CUT : "");
    buf_put(out, s + at, len);
    buf_puts(out, whole ? "" : CUT);
}

void
show_cut(
    const char *before, const char *after, size_t room, struct buf *ret_before,
    struct buf *ret_after)
{
    size_t common = common_columns(before, after);
    bool whole = text_width(before) <= room && text_width(after) <= room;
    size_t from = !whole && common > room / 2 ? common - room / 4 : 0;
    size_t left = from > 0 ? room - strlen(CUT) : room;

    put_part(ret_before, before, from, left);
    put_part(ret_after, after, from, left);
}

/* On one line where that fits, else a line each. */
static void
show_field(const struct cli *c, const json_t *field)
{
    CLEANUP(buf_fini) struct buf name;
    CLEANUP(buf_fini) struct buf before;
    CLEANUP(buf_fini) struct buf after;
    CLEANUP(buf_fini) struct buf cut_before = {0};
    CLEANUP(buf_fini) struct buf cut_after = {0};
    const char *pointer = cli_str(field, "pointer");
    const json_t *was = json_object_get(field, "before"), *is = json_object_get(field, "after");
    size_t width = c->width > 0 ? (size_t)c->width : SIZE_MAX;

    buf_init(&name, TEXT_MAX_BYTES);
    buf_init(&before, TEXT_MAX_BYTES);
    buf_init(&after, TEXT_MAX_BYTES);
    cli_put_text(&name, pointer[0] == '/' ? pointer + 1 : cli_str(field, "field"));
    put_value(&before, was);
    if (is_secret(was) && json_equal(was, is)) {
        buf_puts(&after, "(another one)");
    } else {
        put_value(&after, is);
    }
    if (text_width(buf_str(&name)) + text_width(buf_str(&before)) +
            text_width(buf_str(&after)) + VALUE_INDENT + 2 <=
        width) {
        printf("      %s: %s -> %s\n", buf_str(&name), buf_str(&before), buf_str(&after));
        return;
    }
    buf_init(&cut_before, TEXT_MAX_BYTES);
    buf_init(&cut_after, TEXT_MAX_BYTES);
    show_cut(
        buf_str(&before), buf_str(&after),
        width < VALUE_LEAST + VALUE_INDENT ? VALUE_LEAST : width - VALUE_INDENT, &cut_before,
        &cut_after);
    printf("      %s:\n        - %s\n", buf_str(&name), buf_str(&cut_before));
    printf("        + %s\n", buf_str(&cut_after));
}

/* ---- objects ---- */

static int
by_kind_and_name(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    int kind = strcmp(cli_str(*x, "kind"), cli_str(*y, "kind"));

    return kind != 0 ? kind : strcmp(cli_str(*x, "name"), cli_str(*y, "name"));
}

static void
show_changed(const struct cli *c, const json_t *object)
{
    CLEANUP(buf_fini) struct buf line;
    const char *change = cli_str(object, "change");
    bool added = strcmp(change, "added") == 0;
    bool removed = strcmp(change, "removed") == 0;
    const json_t *field;
    size_t i;

    buf_init(&line, TEXT_MAX_BYTES);
    buf_printf(&line, "  %c ", added ? '+' : removed ? '-' : '~');
    put_object(&line, cli_str(object, "kind"), cli_str(object, "name"));
    put_colored(c, added ? GREEN : removed ? RED : CYAN, buf_str(&line));
    if (added || removed) {
        return;
    }
    json_array_foreach(json_object_get(object, "fields"), i, field)
    {
        show_field(c, field);
    }
}

void
show_objects(const struct cli *c, const json_t *objects)
{
    size_t count = json_array_size(objects);
    const json_t **sorted = arena_alloc(c->arena, (count + 1) * sizeof(*sorted));

    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_array_get(objects, i);
    }
    qsort(sorted, count, sizeof(*sorted), by_kind_and_name);
    for (size_t i = 0; i < count; i++) {
        show_changed(c, sorted[i]);
    }
}

/* ---- text ---- */

static void
show_diff_line(const struct cli *c, const char *from, size_t len)
{
    CLEANUP(buf_fini) struct buf line;
    CLEANUP(buf_fini) struct buf clean;
    const char *color = *from == '+' ? GREEN : *from == '-' ? RED : *from == '@' ? CYAN : "";

    buf_init(&line, TEXT_MAX_BYTES);
    buf_init(&clean, TEXT_MAX_BYTES);
    buf_put(&line, from, len);
    cli_put_text(&clean, buf_str(&line));
    put_colored(c, color, buf_str(&clean));
}

void
show_unified(const struct cli *c, const char *diff)
{
    while (*diff != '\0') {
        size_t len = strcspn(diff, "\n");
        show_diff_line(c, diff, len);
        diff += len + (diff[len] == '\n');
    }
}

/* Not when there are none: then a reload takes nothing from anybody. */
static void
show_sessions(const json_t *sessions)
{
    CLEANUP(buf_fini) struct buf length;
    long long open = cli_int(sessions, "open");

    buf_init(&length, LENGTH_BYTES);
    if (open > 0) {
        date_put_length(&length, cli_int(sessions, "at_most_s"));
        printf(
            "\nIf this reloads HAProxy, %lld open connection%s on for at most %s.\n", open,
            open == 1 ? " goes" : "s go", buf_str(&length));
    }
}

void
show_diff(struct cli *c, const json_t *diff)
{
    show_objects(c, json_object_get(diff, "objects"));
    const char *text = cli_str(diff, "haproxy_cfg");
    if (text[0] != '\0') {
        putchar('\n');
        show_unified(c, text);
    }
    show_sessions(json_object_get(diff, "sessions"));
    (void)fflush(stdout);
    show_problems(json_object_get(diff, "problems"));
}
