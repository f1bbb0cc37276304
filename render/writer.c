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

static size_t
digits_of(uint32_t v)
{
    size_t count = 1;

    for (; v >= 10000; v /= 10000) {
        count += 4;
    }
    return count + (v >= 10) + (v >= 100) + (v >= 1000);
}

void
writer_put_int(struct buf *out, int64_t v)
{
    static const char pairs[] = "000102030405060708091011121314151617181920212223242526272829"
                                "303132333435363738394041424344454647484950515253545556575859"
                                "606162636465666768697071727374757677787980818283848586878889"
                                "90919293949596979899";
    uint32_t small = (uint32_t)v;
    size_t at = digits_of(small);
    char *to;

    if (v < 0 || v > UINT32_MAX || (to = buf_extend(out, at)) == NULL) {
        buf_i64(out, v);
        return;
    }
    for (; at > 1; small /= 100) {
        at -= 2;
        memcpy(to + at, &pairs[(size_t)2 * (small % 100)], 2);
    }
    if (at > 0) {
        *to = (char)('0' + small);
    }
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
    const struct value *lines = object_field(w->object, field);

    for (uint32_t i = 0; i < lines->count; i++) {
        PUT(w->out, "    ");
        writer_put_text(w->out, lines->u.items[i].u.text);
        writer_end(w, (int)field);
    }
}

void
writer_no_http_options(struct writer *w, bool frontend)
{
    const struct object *haproxy = w->layout->haproxy;
    const struct value *lines = object_field(haproxy, F_HAPROXY_EXTRA_DEFAULTS);

    for (uint32_t i = 0; i < lines->count; i++) {
        struct text line = lines->u.items[i].u.text;
        const struct schema_keyword *k = value_keyword(TT_DEFAULTS_DIRECTIVE, line.s, line.len);

        if (frontend ? k->http_frontend : k->http_backend) {
            PUT(w->out, "    no ");
            writer_put_text(w->out, line);
            writer_end_of(w, haproxy, F_HAPROXY_EXTRA_DEFAULTS);
        }
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
