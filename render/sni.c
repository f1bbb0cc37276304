/* SPDX-License-Identifier: Apache-2.0 */
#include "render/sni.h"

#include <stdlib.h>

#include "base/x509.h"
#include "model/value.h"
#include "render/fields.h"
#include "render/writer.h"

#define EVERY_KEY      7u  /* a bit for each kind of key */
#define LINE_MAX_NAMES 200 /* HAProxy takes 65,536 bytes */

/* A certificate of the snapshot. */
struct certificate {
    size_t at, bytes; /* its names in sni.texts; bytes 0: it has none or was not read */
    enum x509_key key;
    bool read;
    uint32_t line; /* of the present listener */
};

struct line {
    size_t pos;
    uint32_t first, last; /* chain of its names, index + 1; 0: it has none */
};

struct name {
    struct text text;
    struct text wildcard; /* of the same certificate, which covers text; or empty */
    uint32_t line, next;
    unsigned keys; /* of the first of this text: the kinds of key for which it is taken */
    bool host;     /* a service has it */
};

struct sni {
    const struct refs *refs;
    const struct object *webui;
    struct buf texts;
    struct certificate *certificates;
    struct line *lines;
    size_t line_count, line_cap;
    struct name *names;
    size_t name_count, name_cap;
    uint32_t *slots;   /* the first name of each text, index + 1; 0: free */
    size_t slot_count; /* a power of two */
};

struct sni *
sni_new(const struct refs *refs, const struct object *webui)
{
    struct sni *s = xcalloc(1, sizeof *s);

    s->refs = refs;
    s->webui = webui;
    buf_init(&s->texts, RENDER_MAX_BYTES);
    s->certificates = xcalloc(refs->count[K_CERTIFICATE] + 1, sizeof *s->certificates);
    s->slot_count = 64;
    s->slots = xcalloc(s->slot_count, sizeof *s->slots);
    return s;
}

void
sni_cleanup(struct sni **s)
{
    if (*s != NULL) {
        buf_fini(&(*s)->texts);
        free((*s)->certificates);
        free((*s)->lines);
        free((*s)->names);
        free((*s)->slots);
        free(*s);
    }
}

void
sni_start(struct sni *s)
{
    s->line_count = 0;
    s->name_count = 0;
    memset(s->slots, 0, s->slot_count * sizeof *s->slots);
}

/* Behind those of the snapshot. */
static struct certificate *
certificate_at(const struct sni *s, size_t pos)
{
    return &s->certificates[pos == SNI_WEBUI ? s->refs->count[K_CERTIFICATE] : pos];
}

static const struct object *
object_at(const struct sni *s, size_t pos)
{
    return pos == SNI_WEBUI ? s->webui : s->refs->objects[K_CERTIFICATE][pos];
}

static void
read_certificate(struct sni *s, size_t pos)
{
    struct certificate *c = certificate_at(s, pos);
    struct text chain =
        fields_text(object_at(s, pos), pos == SNI_WEBUI ? F_WEBUI_CHAIN : F_CERTIFICATE_CHAIN);

    c->read = true;
    c->at = s->texts.len;
    c->key = x509_server_names(chain.s, chain.len, &s->texts);
    c->bytes = s->texts.len - c->at;
}

void
sni_add_line(struct sni *s, size_t pos)
{
    if (s->line_count == s->line_cap) {
        s->line_cap = s->line_cap == 0 ? 16 : s->line_cap * 2;
        s->lines = xrealloc(s->lines, s->line_cap * sizeof *s->lines);
    }
    if (pos != SNI_PLACEHOLDER) {
        certificate_at(s, pos)->line = (uint32_t)s->line_count;
        if (!certificate_at(s, pos)->read) {
            read_certificate(s, pos);
        }
    }
    s->lines[s->line_count++] = (struct line){.pos = pos};
}

/* ---- names ---- */

static bool
same(struct text a, struct text b)
{
    return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

/* Where a name stands, or could. */
static uint32_t *
slot_of(const struct sni *s, struct text name)
{
    size_t at = value_hash((uint32_t)s->refs->seed, name.s, name.len) & (s->slot_count - 1);

    while (s->slots[at] != 0 && !same(s->names[s->slots[at] - 1].text, name)) {
        at = (at + 1) & (s->slot_count - 1);
    }
    return &s->slots[at];
}

static void
grow(struct sni *s)
{
    uint32_t *old = s->slots;
    size_t count = s->slot_count;

    s->slot_count *= 2;
    s->slots = xcalloc(s->slot_count, sizeof *s->slots);
    for (size_t i = 0; i < count; i++) {
        if (old[i] != 0) {
            *slot_of(s, s->names[old[i] - 1].text) = old[i];
        }
    }
    free(old);
}

static void
give(struct sni *s, const struct name *name)
{
    struct line *line = &s->lines[name->line];
    uint32_t *slot = slot_of(s, name->text);

    if (*slot != 0) {
        struct name *first = &s->names[*slot - 1];

        if ((first->keys & name->keys) != 0) {
            return;
        }
        first->keys |= name->keys;
    }
    if (s->name_count == s->name_cap) {
        s->name_cap = s->name_cap == 0 ? 64 : s->name_cap * 2;
        s->names = xrealloc(s->names, s->name_cap * sizeof *s->names);
    }
    s->names[s->name_count++] = *name;
    if (*slot == 0) {
        *slot = (uint32_t)s->name_count;
    }
    if (line->last == 0) {
        line->first = (uint32_t)s->name_count;
    } else {
        s->names[line->last - 1].next = (uint32_t)s->name_count;
    }
    line->last = (uint32_t)s->name_count;
    if (s->name_count * 2 > s->slot_count) {
        grow(s);
    }
}

/* Takes the next name off the front; false: there is none. */
static bool
next_name(struct text *names, struct text *ret)
{
    const char *end = memchr(names->s, ' ', names->len);

    if (end == NULL) {
        return false;
    }
    *ret = (struct text){names->s, (uint32_t)(end - names->s)};
    names->s = end + 1;
    names->len -= ret->len + 1;
    return true;
}

static struct text
names_of(const struct sni *s, const struct certificate *c)
{
    return (struct text){buf_str(&s->texts) + c->at, (uint32_t)c->bytes};
}

/* Whether a certificate is for a host; *ret_wildcard: by which name, empty: by the host's. */
static bool
is_for(
    const struct sni *s, const struct certificate *c, struct text host,
    struct text *ret_wildcard)
{
    char wildcard[X509_WILDCARD_BYTES];
    const struct text other = {wildcard, (uint32_t)x509_wildcard(host.s, host.len, wildcard)};
    struct text names = names_of(s, c);
    struct text name;
    bool covered = false;

    while (next_name(&names, &name)) {
        if (same(name, host)) {
            *ret_wildcard = (struct text){.len = 0};
            return true;
        }
        if (other.len > 0 && same(name, other)) {
            *ret_wildcard = name;
            covered = true;
        }
    }
    return covered;
}

void
sni_give_host(struct sni *s, size_t pos, struct text host)
{
    const struct certificate *c = certificate_at(s, pos);
    struct name given = {.text = host, .line = c->line, .keys = EVERY_KEY, .host = true};

    if (is_for(s, c, host, &given.wildcard)) {
        give(s, &given);
    }
}

void
sni_give_webui(struct sni *s)
{
    const struct certificate *c = certificate_at(s, SNI_WEBUI);
    const struct value *hosts = object_field(s->webui, F_WEBUI_HOSTS);
    struct text wildcard; /* is not given: others have the names for which it stands */

    for (uint32_t i = 0; i < hosts->count; i++) {
        struct name given = {
            .text = hosts->u.items[i].u.text, .line = c->line, .keys = EVERY_KEY, .host = true};

        if (is_for(s, c, given.text, &wildcard)) {
            give(s, &given);
        }
    }
}

/* Whether a service has the wildcard that stands for a name. */
static bool
has_service(const struct sni *s, struct text name)
{
    char wildcard[X509_WILDCARD_BYTES];
    const struct text other = {wildcard, (uint32_t)x509_wildcard(name.s, name.len, wildcard)};
    uint32_t first;

    if (other.len == 0) {
        return false;
    }
    first = *slot_of(s, other);
    return first != 0 && s->names[first - 1].host;
}

void
sni_give_names(struct sni *s, size_t pos, enum sni_rank rank)
{
    const struct certificate *c = certificate_at(s, pos);
    struct name given = {
        .line = c->line, .keys = rank == SNI_OF_SERVICE ? EVERY_KEY : 1u << (unsigned)c->key};
    struct text names = names_of(s, c);

    while (next_name(&names, &given.text)) {
        if (rank == SNI_OF_LISTENER || !has_service(s, given.text)) {
            give(s, &given);
        }
    }
}

/* ---- lines ---- */

/* A host whose wildcard finds the same certificate needs no filter of its own. */
static bool
is_needed(const struct sni *s, const struct name *name)
{
    return name->wildcard.len == 0 ||
           s->names[*slot_of(s, name->wildcard) - 1].line != name->line;
}

static void
put_file(struct buf *out, const struct object *c)
{
    PUT(out, "\ncrt/");
    buf_puts(out, c->id);
    PUT(out, ".pem");
}

static void
put_line(const struct sni *s, const struct line *line, struct buf *out)
{
    const struct object *c = object_at(s, line->pos);
    unsigned count = 0;

    if (line->pos == SNI_WEBUI) {
        PUT(out, "# this node's own pages");
    } else {
        PUT(out, "# ");
        writer_put_text(out, c->name);
    }
    put_file(out, c);
    for (uint32_t i = line->first; i != 0; i = s->names[i - 1].next) {
        const struct name *name = &s->names[i - 1];

        if (!is_needed(s, name)) {
            continue;
        }
        if (count > 0 && count % LINE_MAX_NAMES == 0) {
            put_file(out, c);
        }
        buf_putc(out, ' ');
        writer_put_text(out, name->text);
        count++;
    }
    if (count == 0) {
        PUT(out, " !*");
    }
    buf_putc(out, '\n');
}

void
sni_write(const struct sni *s, struct buf *out)
{
    for (size_t i = 0; i < s->line_count; i++) {
        if (s->lines[i].pos == SNI_PLACEHOLDER) {
            PUT(out, "# placeholder: the listener names none itself\n"
                     "crt/placeholder.pem !*\n");
        } else {
            put_line(s, &s->lines[i], out);
        }
    }
}
