/* SPDX-License-Identifier: Apache-2.0 */
#include "render/writer.h"

#include "render/quote.h"

#define LINES_FIRST 256

void
writer_grow(struct writer *w)
{
    struct rendered *r = w->rendered;

    r->line_cap = r->line_cap == 0 ? LINES_FIRST : r->line_cap * 2;
    r->lines = xrealloc(r->lines, r->line_cap * sizeof *r->lines);
}

void
writer_fixed(struct writer *w, const char *lines)
{
    const char *end;

    for (; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        buf_put(w->out, lines, (size_t)(end - lines));
        writer_end(w, -1);
    }
    ASSERT(*lines == '\0');
}

void
writer_put_int(struct buf *out, int64_t v)
{
    char digits[10];
    size_t at = sizeof digits;
    uint32_t small = (uint32_t)v;

    if (v < 0 || v > UINT32_MAX) {
        buf_i64(out, v);
        return;
    }
    if (small < 10) {
        buf_putc(out, (char)('0' + small));
        return;
    }
    do {
        digits[--at] = (char)('0' + small % 10);
        small /= 10;
    } while (small > 0);
    buf_put(out, digits + at, sizeof digits - at);
}

void
writer_put_ms(struct buf *out, int64_t ms)
{
    uint32_t v = (uint32_t)ms;

    ASSERT(ms >= 0 && ms <= UINT32_MAX);
    if (v % 1000 != 0 || v == 0) {
        writer_put_int(out, v);
        PUT(out, "ms");
        return;
    }
    v /= 1000;
    if (v % 60 != 0) {
        writer_put_int(out, v);
        PUT(out, "s");
    } else if (v % 3600 != 0) {
        writer_put_int(out, v / 60);
        PUT(out, "m");
    } else {
        writer_put_int(out, v / 3600);
        PUT(out, "h");
    }
}

static void
put_keyword(struct buf *out, const char *keyword)
{
    PUT(out, "    ");
    buf_puts(out, keyword);
    buf_putc(out, ' ');
}

void
writer_int(struct writer *w, const char *keyword, unsigned field)
{
    put_keyword(w->out, keyword);
    writer_put_int(w->out, fields_int(w->object, field));
    writer_end(w, (int)field);
}

void
writer_time(struct writer *w, const char *keyword, unsigned field)
{
    put_keyword(w->out, keyword);
    writer_put_ms(w->out, fields_int(w->object, field));
    writer_end(w, (int)field);
}

void
writer_word_unless_default(struct writer *w, const char *keyword, unsigned field)
{
    if (fields_differ(w->object, field)) {
        put_keyword(w->out, keyword);
        buf_puts(w->out, fields_word(w->object, field));
        writer_end(w, (int)field);
    }
}

void
writer_int_unless_default(struct writer *w, const char *keyword, unsigned field)
{
    if (fields_differ(w->object, field)) {
        writer_int(w, keyword, field);
    }
}

void
writer_time_unless_default(struct writer *w, const char *keyword, unsigned field)
{
    if (fields_differ(w->object, field)) {
        writer_time(w, keyword, field);
    }
}

void
writer_default_word(struct writer *w, const char *keyword, enum kind kind, unsigned field)
{
    const struct schema_field *f = &schema_kind(kind)->fields[field];

    put_keyword(w->out, keyword);
    buf_puts(w->out, f->values[f->default_int]);
    writer_end(w, -1);
}

void
writer_default_int(struct writer *w, const char *keyword, enum kind kind, unsigned field)
{
    put_keyword(w->out, keyword);
    writer_put_int(w->out, schema_kind(kind)->fields[field].default_int);
    writer_end(w, -1);
}

void
writer_default_time(struct writer *w, const char *keyword, enum kind kind, unsigned field)
{
    put_keyword(w->out, keyword);
    writer_put_ms(w->out, schema_kind(kind)->fields[field].default_int);
    writer_end(w, -1);
}

void
writer_directives(struct writer *w, unsigned field)
{
    const struct value *lines = &w->object->fields[field];

    for (uint32_t i = 0; i < lines->count; i++) {
        PUT(w->out, "    ");
        writer_put_text(w->out, lines->u.items[i].u.text);
        writer_end(w, (int)field);
    }
}

void
writer_put_address(struct buf *out, struct text address, int64_t port)
{
    bool v6 = memchr(address.s, ':', address.len) != NULL;

    if (v6) {
        buf_putc(out, '[');
    }
    writer_put_text(out, address);
    if (v6) {
        buf_putc(out, ']');
    }
    buf_putc(out, ':');
    writer_put_int(out, port);
}

void
writer_put_run_path(struct writer *w, const char *name)
{
    const char *path =
        arena_printf(w->rendered->state->names, "%s/%s", w->layout->in->run_dir, name);

    quote_word(w->out, quote_text(path));
}

void
writer_put_socket(struct writer *w, const char *name)
{
    writer_put_run_path(w, name);
    PUT(w->out, " mode 660 group ");
    quote_word(w->out, quote_text(w->layout->in->socket_group));
}
