/* SPDX-License-Identifier: Apache-2.0 */
#include "render/quote.h"

#include <limits.h>

enum quote_class {
    QUOTE_INSIDE,  /* stands inside double quotes */
    QUOTE_BARE,    /* stands anywhere in a word */
    QUOTE_ESCAPED, /* inside double quotes behind a backslash */
    QUOTE_HEX,     /* inside double quotes as \xHH */
};

#define B(c) [c] = 1

static const unsigned char bare[UCHAR_MAX + 1] = {
    B('%'), B('*'), B('+'), B(','), B('-'), B('.'), B('/'), B('0'), B('1'), B('2'), B('3'),
    B('4'), B('5'), B('6'), B('7'), B('8'), B('9'), B(':'), B('='), B('@'), B('A'), B('B'),
    B('C'), B('D'), B('E'), B('F'), B('G'), B('H'), B('I'), B('J'), B('K'), B('L'), B('M'),
    B('N'), B('O'), B('P'), B('Q'), B('R'), B('S'), B('T'), B('U'), B('V'), B('W'), B('X'),
    B('Y'), B('Z'), B('_'), B('a'), B('b'), B('c'), B('d'), B('e'), B('f'), B('g'), B('h'),
    B('i'), B('j'), B('k'), B('l'), B('m'), B('n'), B('o'), B('p'), B('q'), B('r'), B('s'),
    B('t'), B('u'), B('v'), B('w'), B('x'), B('y'), B('z'), B('~'),
};

/* Whatever is not listed needs quotes and nothing else. */
static enum quote_class
class_of(char c)
{
    if (bare[(unsigned char)c] != 0) {
        return QUOTE_BARE;
    }
    switch (c) {
    case '"':
    case '$':
    case '\\': return QUOTE_ESCAPED;
    default: return (c >= '\0' && c < ' ') || c == 0x7f ? QUOTE_HEX : QUOTE_INSIDE;
    }
}

static bool
is_bare(struct text t)
{
    unsigned char all = t.len > 0;

    for (uint32_t i = 0; i < t.len; i++) {
        all &= bare[(unsigned char)t.s[i]];
    }
    return all != 0;
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
