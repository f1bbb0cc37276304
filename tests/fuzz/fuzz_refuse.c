/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses a forbidden line and where to put it, the rest is a haproxy.cfg.
 * What is accepted is read word for word as HAProxy reads it, and has no forbidden keyword;
 * with the forbidden line put in at the start of any line, nothing is accepted; no expression
 * outside of a rule names a file elsewhere. HAProxy has no lines that go on in the next one, so
 * nothing can swallow it. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "helper/refuse_tables.h"
#include "helper/words.h"

#define RUN_DIR        "/run/lockstep"
#define LIST           "crt-list/a.list"
#define TEXT_MAX_BYTES ((size_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const forbidden[] = {
    "program",
    "insecure-fork-wanted",
    "insecure-setuid-wanted",
    "external-check",
    "lua-load",
    "lua-load-per-thread",
    "lua-prepend-path",
    "module-load",
    "setenv",
    "mailers",
    "ring",
    "fcgi-app",
    "uid",
    "unix-bind",
    "pidfile",
    "crt-base",
    "crt-store",
    "ssl-engine",
    "log-forward",
    ".if",
};

/* HAProxy's parse_line() with the options that it has for its file, for a line without
 * environment variables, written anew from the manual and its source. */
struct reader {
    const char *in;
    const char *end;
    struct buf out; /* words, each with a NUL */
    size_t words;
};

static char
at(const struct reader *r, size_t i)
{
    return (size_t)(r->end - r->in) > i ? r->in[i] : '\0';
}

static unsigned
hex_of(const char *s)
{
    static const char digits[] = "0123456789abcdef";
    unsigned value = 0;

    for (size_t i = 0; i < 2; i++) {
        const char *digit = strchr(digits, tolower((unsigned char)s[i]));

        ASSERT(digit != NULL && *digit != '\0');
        value = value * 16 + (unsigned)(digit - digits);
    }
    return value;
}

static void
read_escape(struct reader *r, bool in_double)
{
    static const char meant[] = " \\#'\"tnr";
    static const char stands_for[] = " \\#'\"\t\n\r";
    char next = at(r, 1);
    const char *found = next != '\0' ? strchr(meant, next) : NULL;

    if (found != NULL) {
        buf_putc(&r->out, stands_for[found - meant]);
        r->in += 2;
    } else if (next == 'x') {
        ASSERT(r->end - r->in >= 4);
        buf_putc(&r->out, (char)hex_of(r->in + 2));
        r->in += 4;
    } else {
        buf_putc(&r->out, next == '$' && in_double ? '$' : '\\');
        r->in += next == '$' && in_double ? 2 : 1;
    }
}

static void
end_word(struct reader *r)
{
    buf_putc(&r->out, '\0');
    r->words++;
}

static void
read_line(struct reader *r)
{
    char quote = '\0';

    while (r->in < r->end && isspace((unsigned char)*r->in)) {
        r->in++;
    }
    while (r->in < r->end) {
        char c = *r->in;

        if (c == '#' && quote == '\0') {
            break;
        }
        if ((c == '"' || c == '\'') && (quote == '\0' || quote == c)) {
            quote = quote == '\0' ? c : '\0';
            r->in++;
        } else if (c == '\\' && quote != '\'') {
            read_escape(r, quote == '"');
        } else if (isspace((unsigned char)c) && quote == '\0') {
            while (r->in < r->end && isspace((unsigned char)*r->in)) {
                r->in++;
            }
            end_word(r);
        } else {
            ASSERT(c != '$' || quote != '"');
            buf_putc(&r->out, c);
            r->in++;
        }
    }
    ASSERT(quote == '\0');
    end_word(r);
}

static void
check_keyword(const char *keyword)
{
    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        ASSERT(strcmp(keyword, forbidden[i]) != 0);
    }
}

static bool
is_modifier(const char *word)
{
    return strcmp(word, "no") == 0 || strcmp(word, "default") == 0;
}

/* Only rules of HTTP hold texts of users, which may look like expressions. */
static void
check_expressions(const struct words *w)
{
    const char *keyword = w->at[w->count > 1 && is_modifier(w->at[0]) ? 1 : 0];

    if (refuse_section_find(keyword) != NULL || strncmp(keyword, "http-", 5) == 0) {
        return;
    }
    for (size_t i = 1; i < w->count; i++) {
        const char *p = w->at[i];

        while ((p = strstr(p, "map(/")) != NULL) {
            ASSERT(
                p > w->at[i] &&
                (isalnum((unsigned char)p[-1]) || strchr("_.:-", p[-1]) != NULL));
            p++;
        }
    }
}

static void
check_line(struct span line)
{
    CLEANUP(words_fini) struct words words;
    struct reader r = {.in = line.p, .end = line.p + line.n};
    struct error e = {.code = ERR_OK};
    const char *word;
    size_t count = 0;

    buf_init(&r.out, TEXT_MAX_BYTES);
    words_init(&words);
    ASSERT(words_parse(&words, line, &e) == ERR_OK);
    read_line(&r);
    word = buf_str(&r.out);
    for (; count < r.words; count++, word += strlen(word) + 1) {
        /* Behind a space at the end of the line HAProxy sees an empty word. */
        ASSERT(count < words.count || (count + 1 == r.words && word[0] == '\0'));
        ASSERT(count >= words.count || strcmp(word, words.at[count]) == 0);
    }
    ASSERT(words.count <= count);
    for (size_t i = 0; i < words.count && i < 2; i++) {
        if (i == 0 || is_modifier(words.at[0])) {
            check_keyword(words.at[i]);
        }
    }
    if (words.count > 0) {
        check_expressions(&words);
    }
    buf_fini(&r.out);
}

/* At the start of the line in which the byte at place is. */
static void
check_put_in(const struct refuse *r, const char *line, struct span text, size_t place)
{
    CLEANUP(buf_fini) struct buf all;
    struct error e = {.code = ERR_OK};
    err_t code;

    while (place > 0 && text.p[place - 1] != '\n') {
        place--;
    }
    buf_init(&all, TEXT_MAX_BYTES);
    buf_put(&all, text.p, place);
    buf_printf(&all, "%s x\n", line);
    buf_put(&all, text.p + place, text.n - place);
    ASSERT(!all.failed);
    code = refuse_config(r, buf_str(&all), all.len, &e);
    ASSERT(code == ERR_DENIED && e.code == code && e.msg[0] != '\0');
}

static void
name_files(struct staged *files)
{
    staged_add(files, LIST);
    staged_add(files, "crt/a.pem");
    staged_add(files, "error/503.http");
    staged_add(files, STAGED_CONFIG);
    staged_add(files, "map/a.map");
    staged_sort(files);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct staged files;
    struct refuse r = {.files = &files, .run_dir = RUN_DIR};
    struct error e = {.code = ERR_OK};
    struct span text;
    struct span line;

    if (size == 0) {
        return 0;
    }
    if (files.count == 0) {
        name_files(&files);
    }
    text = (struct span){(const char *)data + 1, size - 1};
    for (size_t step = 0; step < 4; step++) {
        check_put_in(&r, forbidden[data[0] % ARRAY_LEN(forbidden)], text, text.n * step / 3);
    }
    if (refuse_config(&r, text.p, text.n, &e) == ERR_OK) {
        while (span_line(&text, &line)) {
            check_line(line);
        }
        ASSERT(text.n == 0);
    }
    text = (struct span){(const char *)data + 1, size - 1};
    if (refuse_crt_list(&r, LIST, text.p, text.n, &e) != ERR_OK) {
        ASSERT(e.code == ERR_DENIED);
    }
    return 0;
}
