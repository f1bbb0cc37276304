/* SPDX-License-Identifier: Apache-2.0 */
#include "render/quote.h"

enum quote_class {
    QUOTE_INSIDE,  /* stands inside double quotes */
    QUOTE_BARE,    /* stands anywhere in a word */
    QUOTE_ESCAPED, /* inside double quotes behind a backslash */
    QUOTE_HEX,     /* inside double quotes as \xHH */
};

/* Whatever is not listed needs quotes and nothing else. */
static inline enum quote_class
class_of(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= '+' && c <= ':') || (c >= '@' && c <= 'Z')) {
        return QUOTE_BARE; /* with + , - . / : and @ */
    }
    switch (c) {
    case '_':
    case '=':
    case '~':
    case '*':
    case '%': return QUOTE_BARE;
    case '"':
    case '$':
    case '\\': return QUOTE_ESCAPED;
    default: return (c >= '\0' && c < ' ') || c == 0x7f ? QUOTE_HEX : QUOTE_INSIDE;
    }
}

static bool
is_bare(struct text t)
{
    for (uint32_t i = 0; i < t.len; i++) {
        if (class_of(t.s[i]) != QUOTE_BARE) {
            return false;
        }
    }
    return t.len > 0;
}

static void
put_char(struct buf *out, char c)
{
    static const char hex[] = "0123456789abcdef";

    if (class_of(c) == QUOTE_HEX) {
        unsigned char u = (unsigned char)c;
        char escape[4] = {'\\', 'x', hex[u >> 4], hex[u & 15u]};

        buf_put(out, escape, sizeof escape);
        return;
    }
    if (class_of(c) == QUOTE_ESCAPED) {
        buf_putc(out, '\\');
    }
    buf_putc(out, c);
}

void
quote_word(struct buf *out, struct text t)
{
    if (is_bare(t)) {
        buf_put(out, t.s, t.len);
        return;
    }
    buf_putc(out, '"');
    for (uint32_t i = 0; i < t.len; i++) {
        put_char(out, t.s[i]);
    }
    buf_putc(out, '"');
}

void
quote_format(struct buf *out, struct text t)
{
    if (memchr(t.s, '%', t.len) == NULL) {
        quote_word(out, t);
        return;
    }
    buf_putc(out, '"');
    for (uint32_t i = 0; i < t.len; i++) {
        if (t.s[i] == '%') {
            buf_putc(out, '%');
        }
        put_char(out, t.s[i]);
    }
    buf_putc(out, '"');
}

void
quote_html(struct buf *out, struct text t)
{
    for (uint32_t i = 0; i < t.len; i++) {
        switch (t.s[i]) {
        case '&': buf_puts(out, "&amp;"); break;
        case '<': buf_puts(out, "&lt;"); break;
        case '>': buf_puts(out, "&gt;"); break;
        case '"': buf_puts(out, "&quot;"); break;
        case '\'': buf_puts(out, "&#39;"); break;
        default: buf_putc(out, t.s[i]); break;
        }
    }
}

bool
quote_is_plain(struct text t)
{
    for (uint32_t i = 0; i < t.len; i++) {
        if (t.s[i] <= ' ' || t.s[i] > '~') {
            return false;
        }
    }
    return t.len > 0;
}

struct text
quote_text(const char *s)
{
    return (struct text){s, (uint32_t)strlen(s)};
}
