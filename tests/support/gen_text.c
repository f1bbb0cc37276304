/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gen_text.h"

#include <string.h>

#include "base/x509.h"
#include "model/value.h"

#define TEXT_MAX_BYTES ((size_t)1 << 20)
#define PEM_NOW_S      1800000000
#define PEM_DAYS       3650

static const char lower[] = "abcdefghijklmnopqrstuvwxyz";
static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char hex[] = "0123456789abcdef";

static void
put_chars(struct gen *g, struct buf *b, const char *chars, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_putc(b, chars[gen_below(g, strlen(chars))]);
    }
}

static void
put_name(struct gen *g, struct buf *b)
{
    put_chars(g, b, alnum, 1);
    put_chars(
        g, b, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-",
        gen_below(g, 20));
    buf_printf(b, "%zu", g->names++);
}

static void
put_dns(struct gen *g, struct buf *b)
{
    size_t labels = gen_below(g, 3);

    for (size_t i = 0; i <= labels; i++) {
        put_chars(g, b, alnum, 1 + gen_below(g, 10));
        if (gen_chance(g, 20)) {
            buf_puts(b, "-");
            put_chars(g, b, alnum, 1);
        }
        buf_putc(b, '.');
    }
    put_chars(g, b, lower, 2 + gen_below(g, 5));
    if (gen_chance(g, 10)) {
        buf_putc(b, '.');
    }
}

static void
put_ipv4(struct gen *g, struct buf *b)
{
    buf_printf(
        b, "%zu.%zu.%zu.%zu", 1 + gen_below(g, 223), gen_below(g, 256), gen_below(g, 256),
        gen_below(g, 256));
}

static void
put_ipv6(struct gen *g, struct buf *b)
{
    buf_puts(b, gen_chance(g, 50) ? "2001:db8" : "2001:DB8");
    for (int i = 0; i < 6; i++) {
        buf_printf(b, ":%zx", gen_chance(g, 40) ? 0 : gen_below(g, 65536));
    }
}

static void
put_ip(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 15)) {
        buf_printf(b, "192.0.2.%zu", 1 + gen_below(g, 5)); /* as of VIPs */
    } else if (gen_chance(g, 50)) {
        put_ipv4(g, b);
    } else {
        put_ipv6(g, b);
    }
}

static void
put_host(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 50)) {
        put_ip(g, b);
    } else {
        put_dns(g, b);
    }
}

static void
put_path(struct gen *g, struct buf *b)
{
    size_t parts = gen_below(g, 4);

    buf_putc(b, '/');
    for (size_t i = 0; i < parts; i++) {
        put_chars(g, b, alnum, 1);
        put_chars(g, b, "abcxyz019._~!$&'()*+,;=:@-", gen_below(g, 8));
        if (gen_chance(g, 20)) {
            buf_puts(b, "%c3%BC");
        }
        if (i + 1 < parts || gen_chance(g, 30)) {
            buf_putc(b, '/');
        }
    }
}

static void
put_header_host(struct gen *g, struct buf *b)
{
    switch (gen_below(g, 3)) {
    case 0: return;
    case 1:
        buf_putc(b, '[');
        put_ipv6(g, b);
        buf_putc(b, ']');
        break;
    default: put_dns(g, b); break;
    }
    if (gen_chance(g, 50)) {
        buf_printf(b, ":%zu", 1 + gen_below(g, 65535));
    }
}

static void
put_status_set(struct gen *g, struct buf *b)
{
    size_t parts = 1 + gen_below(g, 4);

    for (size_t i = 0; i < parts; i++) {
        size_t low = 100 + gen_below(g, 500);

        buf_printf(b, "%s%zu", i > 0 ? "," : "", low);
        if (gen_chance(g, 50)) {
            buf_printf(b, "-%zu", low + gen_below(g, 600 - low));
        }
    }
}

/* What upsets a file format that forgets to quote, and characters of 2 to 4 bytes. */
static void
put_free_text(struct gen *g, struct buf *b, size_t max)
{
    static const char *const pieces[] = {
        "a",
        "B",
        "7",
        " ",
        "\"",
        "'",
        "\\",
        "#",
        "$HOME",
        "${X}",
        "%[src]",
        "{}",
        ";",
        "-i",
        "<b>",
        "&amp;",
        "`",
        "|",
        "\xc3\xbc",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "word"};
    size_t count = gen_below(g, 20);

    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[gen_below(g, ARRAY_LEN(pieces))];

        if (b->len + strlen(piece) <= max) {
            buf_puts(b, piece);
        }
    }
}

/* What upsets a regular expression, too, but is a good one. */
static void
put_pattern(struct gen *g, struct buf *b)
{
    static const char *const pieces[] = {
        "a",      "B",       " ",       "\"",  "'", "\\.", "#",        "\\$HOME",
        "[x-z]+", "(?:a|b)", "%[0-9]*", "\\d", ";", "-i",  "\xc3\xbc", "word"};
    size_t count = 1 + gen_below(g, 8);

    for (size_t i = 0; i < count; i++) {
        buf_puts(b, pieces[gen_below(g, ARRAY_LEN(pieces))]);
    }
}

/* A text, a pattern or hexadecimal digits: what is wanted stands in another field. The digits
 * are all three. */
static void
put_probe_text(struct gen *g, struct buf *b, size_t min, size_t max)
{
    switch (gen_below(g, 8)) {
    case 0: put_free_text(g, b, max); break;
    case 1: put_pattern(g, b); break;
    case 2: buf_puts(b, "22\\r\\n\\t\\\\\\xfF"); break;
    default: put_chars(g, b, hex, 2 * (1 + gen_below(g, 8))); break;
    }
    while (b->len < min) {
        buf_putc(b, 'x');
    }
    b->len = b->len < max ? b->len : min;
}

static void
put_url(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 30)) {
        return;
    }
    buf_puts(b, gen_chance(g, 50) ? "http://" : "https://");
    put_dns(g, b);
    if (gen_chance(g, 50)) {
        buf_printf(b, ":%zu", 1 + gen_below(g, 65535));
    }
    if (gen_chance(g, 50)) {
        put_path(g, b);
    }
}

static const struct gen_pem *
pem(struct gen *g)
{
    static const char *const names[] = {"app.example.test", "*.example.test", "10.0.0.1", NULL};
    size_t i = g->object % GEN_PEMS;

    while (g->pem_count <= i) {
        struct gen_pem *p = &g->pems[g->pem_count++];
        err_t code;

        buf_init(&p->chain, TEXT_MAX_BYTES);
        buf_init(&p->key, TEXT_MAX_BYTES);
        code = x509_selfsigned(names, PEM_NOW_S, PEM_DAYS, &p->chain, &p->key, NULL);
        ASSERT(code == ERR_OK);
    }
    return &g->pems[i];
}

/* At times as a Windows editor would have it. */
static void
put_pem(struct gen *g, struct buf *b, const struct buf *from)
{
    bool crlf = gen_chance(g, 30);

    for (const char *s = buf_str(from); *s != '\0'; s++) {
        if (crlf && *s == '\n') {
            buf_putc(b, '\r');
        }
        buf_putc(b, *s);
    }
    if (crlf) {
        buf_puts(b, "\r\n");
    }
}

static void
put_network(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 50)) {
        put_ipv4(g, b);
        buf_printf(b, "/%zu", gen_below(g, 33));
    } else {
        put_ip(g, b);
    }
}

static void
put_vip(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 50)) {
        buf_printf(b, "192.0.2.%zu/24", 1 + gen_below(g, 5));
    } else {
        put_ipv6(g, b);
        buf_puts(b, "/64");
    }
}

static void
put_endpoint(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 70)) {
        put_ipv4(g, b);
        buf_printf(b, ":%zu", 1 + gen_below(g, 65535));
    }
}

/* Free text without spaces at its ends. */
static void
put_line(struct gen *g, struct buf *b, size_t max)
{
    struct buf CLEANUP(buf_fini) text;
    size_t start = 0;

    buf_init(&text, TEXT_MAX_BYTES);
    put_free_text(g, &text, max - 1);
    buf_puts(&text, "x");
    while (text.data[start] == ' ') {
        start++;
    }
    buf_put(b, text.data + start, text.len - start);
}

static void
put_target(struct gen *g, struct buf *b)
{
    if (gen_chance(g, 50)) {
        put_path(g, b);
    } else {
        put_url(g, b);
    }
}

static void
put_one(struct gen *g, struct buf *b, const char *const choices[3])
{
    buf_puts(b, choices[gen_below(g, 3)]);
}

/* The types that came with rules; false for another. */
static bool
put_rule_text(struct gen *g, const struct schema_field *f, struct buf *b)
{
    static const char *const media[] = {
        "text/plain; charset=utf-8", "text/html", "application/json"};
    static const char *const global[] = {
        "tune.bufsize 32768", "maxconnrate 100", "busy-polling"};
    static const char *const defaults[] = {
        "option contstats", "retry-on conn-failure 503", "timeout client-fin 5s"};
    static const char *const listener[] = {
        "backlog 512", "rate-limit sessions 100", "option tcpka"};

    switch ((int)f->text_type) {
    case TT_TOKEN: put_chars(g, b, alnum, gen_below(g, 12)); return true;
    case TT_HEADER_VALUE:
    case TT_MATCH_VALUE: put_line(g, b, (size_t)f->max); return true;
    case TT_TARGET: put_target(g, b); return true;
    case TT_MEDIA_TYPE: put_one(g, b, media); return true;
    case TT_BODY:
        put_free_text(g, b, (size_t)f->max - 1);
        buf_puts(b, "\n");
        return true;
    case TT_GLOBAL_DIRECTIVE: put_one(g, b, global); return true;
    case TT_DEFAULTS_DIRECTIVE: put_one(g, b, defaults); return true;
    case TT_LISTENER_DIRECTIVE: put_one(g, b, listener); return true;
    }
    return false;
}

static void
put_text(struct gen *g, const struct schema_field *f, struct buf *b)
{
    if (put_rule_text(g, f, b)) {
        return;
    }
    switch ((int)f->text_type) {
    case TT_NAME: put_name(g, b); return;
    case TT_HOST: put_host(g, b); return;
    case TT_IP: put_ip(g, b); return;
    case TT_MACHINE_IP:
        if (gen_chance(g, 80)) {
            buf_printf(b, "10.%zu.%zu.1", gen_below(g, 256), gen_below(g, 256));
        }
        return;
    case TT_HOST_PATTERN:
        buf_puts(b, gen_chance(g, 30) ? "*." : "");
        put_dns(g, b);
        return;
    case TT_PATH: put_path(g, b); return;
    case TT_PATH_QUERY:
        put_path(g, b);
        buf_puts(b, gen_chance(g, 30) ? "?a=1&b=%20?/" : "");
        return;
    case TT_DNS_NAME:
        if (f->min > 0 || gen_chance(g, 70)) {
            put_dns(g, b);
        }
        return;
    case TT_WORD:
        if (f->min > 0 || gen_chance(g, 70)) {
            put_chars(g, b, alnum, 1);
            put_chars(g, b, "abcXYZ019_.-", gen_below(g, 20));
        }
        return;
    case TT_MIME_TYPE:
        put_chars(g, b, lower, 1 + gen_below(g, 8));
        buf_putc(b, '/');
        put_chars(g, b, alnum, 1);
        put_chars(g, b, "abcxyz019!#$&^_.+-", gen_below(g, 20));
        return;
    case TT_PROBE_TEXT: put_probe_text(g, b, (size_t)f->min, (size_t)f->max); return;
    case TT_HEADER_HOST: put_header_host(g, b); return;
    case TT_STATUS_SET: put_status_set(g, b); return;
    case TT_NOTE:
    case TT_TITLE: put_free_text(g, b, (size_t)f->max); return;
    case TT_URL: put_url(g, b); return;
    case TT_PEM_CHAIN: put_pem(g, b, &pem(g)->chain); return;
    case TT_PEM_CA:
    case TT_PEM_CHAIN_OR_NONE:
        if (gen_chance(g, 70)) {
            put_pem(g, b, &pem(g)->chain);
        }
        return;
    case TT_PEM_KEY: put_pem(g, b, &pem(g)->key); return;
    case TT_PEM_KEY_OR_NONE:
        if (gen_chance(g, 70)) {
            put_pem(g, b, &pem(g)->key);
        }
        return;
    case TT_PASSWORD:
        put_chars(g, b, alnum, (size_t)f->min);
        put_free_text(g, b, (size_t)f->max);
        return;
    case TT_HEX64: put_chars(g, b, hex, gen_chance(g, 50) ? 64 : 0); return;
    case TT_NETWORK: put_network(g, b); return;
    case TT_VIP: put_vip(g, b); return;
    case TT_ENDPOINT: put_endpoint(g, b); return;
    }
    ASSERT(false);
}

json_t *
gen_text(struct gen *g, const struct schema_field *f)
{
    struct buf CLEANUP(buf_fini) b;
    json_t *text;

    buf_init(&b, TEXT_MAX_BYTES);
    put_text(g, f, &b);
    text = json_stringn(buf_str(&b), b.len);
    ASSERT(text != NULL && !b.failed);
    return text;
}

bool
gen_same_text(const struct schema_field *f, const json_t *a, const json_t *b)
{
    struct buf x;
    struct buf y;
    bool same;

    if (f->type != FT_TEXT) {
        return json_equal(a, b) != 0;
    }
    buf_init(&x, TEXT_MAX_BYTES);
    buf_init(&y, TEXT_MAX_BYTES);
    same =
        value_check_text(f->text_type, json_string_value(a), json_string_length(a), &x, NULL) ==
            ERR_OK &&
        value_check_text(f->text_type, json_string_value(b), json_string_length(b), &y, NULL) ==
            ERR_OK &&
        strcmp(buf_str(&x), buf_str(&y)) == 0;
    buf_fini(&x);
    buf_fini(&y);
    return same;
}
