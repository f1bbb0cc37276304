/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/words.h"

#include <stdbool.h>
#include <stdint.h>

struct scan {
    const char *p;
    const char *end;
    bool single; /* inside '...' */
    bool quoted; /* inside "..." */
};

void
words_init(struct words *w)
{
    w->count = 0;
    buf_init(&w->text, WORDS_LINE_MAX_BYTES);
}

void
words_fini(struct words *w)
{
    buf_fini(&w->text);
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static err_t
hex_escape(struct scan *s, char *ret, struct error *e)
{
    int high = s->end - s->p >= 4 ? hex_digit(s->p[2]) : -1;
    int low = high >= 0 ? hex_digit(s->p[3]) : -1;

    if (low < 0) {
        return error_set(e, ERR_DENIED, "a \\x without two hexadecimal digits");
    }
    *ret = (char)(high * 16 + low);
    s->p += 4;
    return ERR_OK;
}

/* s->p stands at a backslash outside single quotes. One that HAProxy knows no meaning for
 * stays, with what follows it. */
static err_t
escape(struct scan *s, char *ret, struct error *e)
{
    char next = s->end - s->p >= 2 ? s->p[1] : '\0';
    char c;

    switch (next) {
    case ' ':
    case '\\':
    case '#':
    case '\'':
    case '"': c = next; break;
    case 't': c = '\t'; break;
    case 'n': c = '\n'; break;
    case 'r': c = '\r'; break;
    case '$': c = s->quoted ? '$' : '\\'; break;
    case 'x': return hex_escape(s, ret, e);
    default: c = '\\'; break;
    }
    *ret = c;
    s->p += c == '\\' && next != '\\' ? 1 : 2;
    return ERR_OK;
}

static bool
toggle_quote(struct scan *s)
{
    if (*s->p == '"' && !s->single) {
        s->quoted = !s->quoted;
    } else if (*s->p == '\'' && !s->quoted) {
        s->single = !s->single;
    } else {
        return false;
    }
    s->p++;
    return true;
}

static bool
at_word_end(const struct scan *s)
{
    return !s->single && !s->quoted && (*s->p == ' ' || *s->p == '\t' || *s->p == '#');
}

/* One word, NUL-terminated, is added to the text. */
static err_t
scan_word(struct scan *s, struct buf *out, struct error *e)
{
    while (s->p < s->end && !at_word_end(s)) {
        char c = *s->p;

        if (toggle_quote(s)) {
            continue;
        }
        if (c == '$' && s->quoted) {
            return error_set(e, ERR_DENIED, "an environment variable");
        }
        if (c == '\\' && !s->single) {
            err_t code = escape(s, &c, e);

            if (code != ERR_OK) {
                return code;
            }
        } else {
            s->p++;
        }
        if (c == '\0') {
            return error_set(e, ERR_DENIED, "a NUL character");
        }
        buf_putc(out, c);
    }
    buf_putc(out, '\0');
    return s->single || s->quoted ? error_set(e, ERR_DENIED, "a quote that does not end")
                                  : ERR_OK;
}

static err_t
check_characters(struct span line, struct error *e)
{
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return error_set(e, ERR_DENIED, "a control character");
        }
    }
    return ERR_OK;
}

static void
skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t')) {
        s->p++;
    }
}

err_t
words_parse(struct words *w, struct span line, struct error *e)
{
    struct scan s = {.p = line.p, .end = line.p + line.n};
    size_t offsets[WORDS_MAX] = {0};
    err_t code = check_characters(line, e);

    w->count = 0;
    buf_reset(&w->text);
    if (code != ERR_OK) {
        return code;
    }
    for (skip_space(&s); s.p < s.end && *s.p != '#'; skip_space(&s)) {
        if (w->count == WORDS_MAX) {
            return error_set(e, ERR_DENIED, "more than %d words", WORDS_MAX);
        }
        offsets[w->count++] = w->text.len;
        code = scan_word(&s, &w->text, e);
        if (code == ERR_OK) {
            code = buf_status(&w->text, e);
        }
        if (code != ERR_OK) {
            return code;
        }
    }
    /* Only now: the text may have moved while it grew. */
    for (size_t i = 0; i < w->count; i++) {
        w->at[i] = w->text.data + offsets[i];
    }
    if (w->count > 0 && w->at[0][0] == '\0') {
        return error_set(e, ERR_DENIED, "a first word that is empty");
    }
    return ERR_OK;
}
