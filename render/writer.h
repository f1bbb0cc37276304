/* SPDX-License-Identifier: Apache-2.0 */
/* Writes haproxy.cfg line by line and notes where each line comes from. Inside render/. */
#ifndef LOCKSTEP_RENDER_WRITER_H
#define LOCKSTEP_RENDER_WRITER_H

#include "render/fields.h"
#include "render/layout.h"
#include "render/rendered.h"

/* A literal, its length known to the compiler. */
#define PUT(b, literal) buf_put((b), "" literal, sizeof(literal) - 1)

struct writer {
    struct buf *out;
    struct rendered *rendered;
    struct layout *layout;
    const struct object *object; /* whose lines are being written, or NULL */
    size_t digest_at;            /* offset of the digest's digits */
};

void writer_grow(struct writer *w);

/* Ends a line that comes from a field of the present object, or from the whole of it (-1). */
static inline void
writer_end(struct writer *w, int field)
{
    struct rendered *r = w->rendered;

    buf_putc(w->out, '\n');
    if (r->line_count == r->line_cap) {
        writer_grow(w);
    }
    r->lines[r->line_count++] =
        (struct line_origin){w->object != NULL ? (int)w->object->kind : -1, field, w->object};
}

/* Ends a line of another object than the present one. */
static inline void
writer_end_of(struct writer *w, const struct object *o, int field)
{
    const struct object *present = w->object;

    w->object = o;
    writer_end(w, field);
    w->object = present;
}

/* Lines that stand as they are, each with its final newline; origin: the present object. */
void writer_fixed(struct writer *w, const char *lines);
/* "    keyword VALUE" and the end of the line. */
void writer_int(struct writer *w, const char *keyword, unsigned field);
void writer_time(struct writer *w, const char *keyword, unsigned field);
/* The same, but nothing where the value is the schema's default: the section "defaults" holds
 * that (writer_default_*), and a file of many pools is half as long. */
void writer_word_unless_default(struct writer *w, const char *keyword, unsigned field);
void writer_int_unless_default(struct writer *w, const char *keyword, unsigned field);
void writer_time_unless_default(struct writer *w, const char *keyword, unsigned field);
void writer_default_word(struct writer *w, const char *keyword, enum kind kind, unsigned field);
void writer_default_int(struct writer *w, const char *keyword, enum kind kind, unsigned field);
void writer_default_time(struct writer *w, const char *keyword, enum kind kind, unsigned field);
/* The items of a list of directives, as they are: their type allows nothing else. */
void writer_directives(struct writer *w, unsigned field);
/* In a section of tcp mode: turns off what the section "defaults" sets for http mode alone. */
void writer_no_http_options(struct writer *w, bool frontend);
void writer_put_int(struct buf *out, int64_t v); /* buf_i64, faster for small numbers */
/* A duration as people write it: 1500 -> "1500ms", 60000 -> "1m". */
void writer_put_ms(struct buf *out, int64_t ms);
void writer_put_run_path(struct writer *w, const char *name); /* "<run_dir>/<name>" */
/* "<run_dir>/<name> mode 660 group <socket_group>" */
void writer_put_socket(struct writer *w, const char *name);
/* Address and port of a bind or server; IPv6 in brackets. */
void writer_put_address(struct buf *out, struct text address, int64_t port);

static inline void
writer_put_text(struct buf *out, struct text t)
{
    buf_put(out, t.s, t.len);
}

/* The sections, in the order of the file. */
void haproxy_global_write(struct writer *w);
void haproxy_frontend_write(struct writer *w);
void haproxy_internal_write(struct writer *w); /* backends that answer by themselves */
void haproxy_backend_write(struct writer *w);
void haproxy_webui_write(struct writer *w);     /* nothing where they are not published */
void haproxy_clients_write(struct writer *w);   /* only when a pool shows a certificate */
void haproxy_resolvers_write(struct writer *w); /* only when a server has a name */
/* A line of "global" and sections: nothing when no pool has a stick table. */
void haproxy_localpeer_write(struct writer *w);
void haproxy_peers_write(struct writer *w);

/* The other files. */
void map_write(struct rendered *r, struct layout *p);
void certificate_write(struct rendered *r, struct layout *p);
void ca_write(struct rendered *r, struct layout *p);
void webui_write(struct rendered *r, struct layout *p);
/* The lines of a map for the host names that lead to the pages. */
void webui_put_map(struct buf *out, const struct layout *p);
void error_page_write(struct rendered *r, struct layout *p);
#define ERROR_PAGE_COUNT 3
extern const int error_page_codes[ERROR_PAGE_COUNT]; /* error/<code>.http */

#endif
