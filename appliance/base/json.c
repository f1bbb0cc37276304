/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"

#define JSON_INT_MAX    ((int64_t)9007199254740991) /* 2^53 - 1 */
#define JSON_INT_DIGITS 16
/* Values made by the program wrap parsed ones, so that they may be deeper than those. */
#define DUMP_MAX_DEPTH 64

/* Position in the text, for messages. */
struct scan {
    const char *at;
    const char *end;
    const char *line_start;
    size_t line;
};

static err_t
refuse(const struct scan *s, struct error *e, const char *reason)
{
    size_t column = 1;

    for (const char *p = s->line_start; p < s->at; p++) {
        if (((unsigned char)*p & 0xc0u) != 0x80u) {
            column++;
        }
    }
    return error_set(e, ERR_SYNTAX, "line %zu, column %zu: %s", s->line, column, reason);
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static err_t
scan_number(struct scan *s, struct error *e)
{
    const char *p = s->at;
    const char *digits;
    int64_t v = 0;

    if (*p == '-') {
        p++;
    }
    digits = p;
    while (p < s->end && is_digit(*p)) {
        if (p - digits >= JSON_INT_DIGITS) {
            return refuse(s, e, "integer is too large");
        }
        v = v * 10 + (*p - '0');
        p++;
    }
    if (v > JSON_INT_MAX) {
        return refuse(s, e, "integer is too large");
    }
    if (p > digits && p < s->end && (*p == '.' || *p == 'e' || *p == 'E')) {
        return refuse(s, e, "number is not an integer");
    }
    s->at = p;
    return ERR_OK;
}

static void
scan_string(struct scan *s)
{
    s->at++;
    while (s->at < s->end && *s->at != '"' && *s->at != '\n') {
        s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
    }
    if (s->at < s->end && *s->at == '"') {
        s->at++;
    }
}

/* What jansson has no limit for (it recurses to 2048, and an empty list of two bytes becomes
 * 130 in memory) or would turn into a real. Syntax is
 * not checked here: whatever is wrong with it, jansson refuses afterwards. */
static err_t
scan_text(const char *text, size_t len, struct error *e)
{
    struct scan s = {.at = text, .end = text + len, .line_start = text, .line = 1};
    size_t values = 1;
    int depth = 0;

    while (s.at < s.end) {
        char c = *s.at;

        if (c == '"') {
            scan_string(&s);
            continue;
        }
        if (c == '-' || is_digit(c)) {
            err_t code = scan_number(&s, e);

            if (code != ERR_OK) {
                return code;
            }
            continue;
        }
        if (c == '[' || c == '{') {
            depth++;
            if (depth > JSON_MAX_DEPTH) {
                return refuse(&s, e, "nested too deeply");
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
        values += c == '[' || c == '{' || c == ',' ? 1 : 0;
        if (values > JSON_MAX_VALUES) {
            return refuse(&s, e, "too many values");
        }
        s.at++;
        if (c == '\n') {
            s.line++;
            s.line_start = s.at;
        }
    }
    return ERR_OK;
}

/* jansson quotes a piece of the text, which may be cut anywhere or hold anything. */
static err_t
refused_by_jansson(const json_error_t *je, struct error *e)
{
    char reason[JSON_ERROR_TEXT_LENGTH];
    size_t n = 0;

    while (n + 1 < sizeof reason && je->text[n] != '\0') {
        char c = je->text[n];

        reason[n++] = c >= ' ' && c <= '~' ? c : '?';
    }
    reason[n] = '\0';
    return error_set(e, ERR_SYNTAX, "line %d, column %d: %s", je->line, je->column, reason);
}

err_t
json_parse(const char *text, size_t len, json_t **ret, struct error *e)
{
    json_error_t je;
    err_t code;
    json_t *v;

    /* An empty buffer may have no memory at all. */
    text = len > 0 ? text : "";
    code = scan_text(text, len, e);
    if (code != ERR_OK) {
        return code;
    }
    v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (v == NULL) {
        return refused_by_jansson(&je, e);
    }
    *ret = v;
    return ERR_OK;
}

static void
put_string(struct buf *out, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    size_t start = 0;

    buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        char escape[6] = {'\\', (char)c, '0', '0', hex[c >> 4], hex[c & 15u]};
        size_t escape_len = 2;

        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        switch (c) {
        case '"':
        case '\\': break;
        case '\b': escape[1] = 'b'; break;
        case '\t': escape[1] = 't'; break;
        case '\n': escape[1] = 'n'; break;
        case '\f': escape[1] = 'f'; break;
        case '\r': escape[1] = 'r'; break;
        default:
            escape[1] = 'u';
            escape_len = sizeof escape;
            break;
        }
        buf_put(out, s + start, i - start);
        buf_put(out, escape, escape_len);
        start = i + 1;
    }
    buf_put(out, s + start, len - start);
    buf_putc(out, '"');
}

struct member {
    const char *key;
    size_t key_len;
    const json_t *value;
};

/* One open container. Its members are members[first..last) of the dump. */
struct level {
    size_t first;
    size_t next;
    size_t last;
    bool object;
};

struct dump {
    struct buf *out;
    bool pretty;
    int depth;
    struct level levels[DUMP_MAX_DEPTH];
    struct member *members;
    size_t member_count;
    size_t member_cap;
};

static int
member_compare(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    size_t common = x->key_len < y->key_len ? x->key_len : y->key_len;
    /* The order of bytes in UTF-8 is the order of code points. */
    int order = memcmp(x->key, y->key, common);

    if (order != 0) {
        return order;
    }
    return x->key_len < y->key_len ? -1 : x->key_len > y->key_len;
}

static void
push_member(struct dump *d, const char *key, const json_t *value)
{
    if (d->member_count == d->member_cap) {
        d->member_cap = d->member_cap == 0 ? 64 : d->member_cap * 2;
        d->members = xrealloc(d->members, d->member_cap * sizeof *d->members);
    }
    d->members[d->member_count++] = (struct member){key, strlen(key), value};
}

static void
put_line_start(struct dump *d)
{
    if (d->pretty) {
        buf_putc(d->out, '\n');
        for (int i = 0; i < d->depth; i++) {
            buf_puts(d->out, "  ");
        }
    }
}

static void
open_container(struct dump *d, const json_t *v)
{
    struct level *l = &d->levels[d->depth];
    bool object = json_is_object(v);

    ASSERT(d->depth < DUMP_MAX_DEPTH);
    l->object = object;
    l->first = d->member_count;
    l->next = l->first;
    if (object) {
        const char *key;
        json_t *value;

        /* jansson iterates over a const object only through a non-const type. */
        union {
            const json_t *in;
            json_t *out;
        } u = {.in = v};

        json_object_foreach(u.out, key, value)
        {
            push_member(d, key, value);
        }
    } else {
        size_t count = json_array_size(v);

        for (size_t i = 0; i < count; i++) {
            push_member(d, "", json_array_get(v, i));
        }
    }
    l->last = d->member_count;
    if (object && !d->pretty && l->last - l->first > 1) {
        qsort(d->members + l->first, l->last - l->first, sizeof *d->members, member_compare);
    }
    buf_putc(d->out, object ? '{' : '[');
    d->depth++;
}

static void
close_container(struct dump *d)
{
    const struct level *l = &d->levels[d->depth - 1];

    d->depth--;
    if (l->last > l->first) {
        put_line_start(d);
    }
    d->member_count = l->first;
    buf_putc(d->out, l->object ? '}' : ']');
}

static void
put_value(struct dump *d, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
    case JSON_ARRAY: open_container(d, v); return;
    case JSON_STRING: put_string(d->out, json_string_value(v), json_string_length(v)); return;
    case JSON_INTEGER: buf_i64(d->out, json_integer_value(v)); return;
    case JSON_TRUE: buf_puts(d->out, "true"); return;
    case JSON_FALSE: buf_puts(d->out, "false"); return;
    case JSON_NULL: buf_puts(d->out, "null"); return;
    case JSON_REAL: ASSERT(!json_is_real(v));
    }
}

static void
dump_value(const json_t *v, struct buf *out, bool pretty)
{
    struct dump d;

    d.out = out;
    d.pretty = pretty;
    d.depth = 0;
    d.members = NULL;
    d.member_count = 0;
    d.member_cap = 0;
    put_value(&d, v);
    while (d.depth > 0) {
        struct level *l = &d.levels[d.depth - 1];
        struct member m;

        if (l->next == l->last) {
            close_container(&d);
            continue;
        }
        m = d.members[l->next];
        if (l->next > l->first) {
            buf_putc(out, ',');
        }
        l->next++;
        put_line_start(&d);
        if (l->object) {
            put_string(out, m.key, m.key_len);
            buf_puts(out, pretty ? ": " : ":");
        }
        put_value(&d, m.value);
    }
    free(d.members);
}

void
json_canonical(const json_t *v, struct buf *out)
{
    dump_value(v, out, false);
}

void
json_pretty(const json_t *v, struct buf *out)
{
    dump_value(v, out, true);
    buf_putc(out, '\n');
}

/* *ret: NULL when the key is absent or null and may be so. */
static err_t
find(const json_t *obj, const char *key, bool optional, const json_t **ret, struct error *e)
{
    const json_t *v;

    if (!json_is_object(obj)) {
        return error_set(e, ERR_SYNTAX, "expected an object with \"%s\"", key);
    }
    v = json_object_get(obj, key);
    if (optional && json_is_null(v)) {
        v = NULL;
    }
    if (v == NULL && !optional) {
        return error_set(e, ERR_SYNTAX, "\"%s\" is missing", key);
    }
    *ret = v;
    return ERR_OK;
}

static err_t
read_str(const json_t *obj, const char *key, bool optional, const char **ret, struct error *e)
{
    const json_t *v = NULL;
    err_t code = find(obj, key, optional, &v, e);

    if (code != ERR_OK || v == NULL) {
        return code;
    }
    if (!json_is_string(v)) {
        return error_set(e, ERR_SYNTAX, "\"%s\" is not a string", key);
    }
    *ret = json_string_value(v);
    return ERR_OK;
}

static err_t
check_int(
    const json_t *v, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
    int64_t n;

    if (!json_is_integer(v)) {
        return error_set(e, ERR_SYNTAX, "\"%s\" is not an integer", key);
    }
    n = json_integer_value(v);
    if (n < min || n > max) {
        return error_set(
            e, ERR_INVALID, "\"%s\" is %lld, not within %lld to %lld", key, (long long)n,
            (long long)min, (long long)max);
    }
    *ret = n;
    return ERR_OK;
}

static err_t
read_bool(const json_t *obj, const char *key, bool optional, bool *ret, struct error *e)
{
    const json_t *v = NULL;
    err_t code = find(obj, key, optional, &v, e);

    if (code != ERR_OK || v == NULL) {
        return code;
    }
    if (!json_is_boolean(v)) {
        return error_set(e, ERR_SYNTAX, "\"%s\" is not true or false", key);
    }
    *ret = json_is_true(v);
    return ERR_OK;
}

err_t
json_get_str(const json_t *obj, const char *key, const char **ret, struct error *e)
{
    return read_str(obj, key, false, ret, e);
}

err_t
json_get_int(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
    const json_t *v = NULL;
    err_t code = find(obj, key, false, &v, e);

    return code != ERR_OK ? code : check_int(v, key, min, max, ret, e);
}

err_t
json_get_bool(const json_t *obj, const char *key, bool *ret, struct error *e)
{
    return read_bool(obj, key, false, ret, e);
}

err_t
json_opt_str(const json_t *obj, const char *key, const char **ret, struct error *e)
{
    return read_str(obj, key, true, ret, e);
}

err_t
json_opt_int(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
    const json_t *v = NULL;
    err_t code = find(obj, key, true, &v, e);

    return code != ERR_OK || v == NULL ? code : check_int(v, key, min, max, ret, e);
}

err_t
json_opt_bool(const json_t *obj, const char *key, bool *ret, struct error *e)
{
    return read_bool(obj, key, true, ret, e);
}

err_t
json_only_keys(const json_t *obj, const char *const *keys, struct error *e)
{
    union {
        const json_t *in;
        json_t *out;
    } u = {.in = obj};

    const char *key;
    json_t *value;

    if (!json_is_object(obj)) {
        return error_set(e, ERR_SYNTAX, "expected an object");
    }
    json_object_foreach(u.out, key, value)
    {
        const char *const *k = keys;

        while (*k != NULL && strcmp(*k, key) != 0) {
            k++;
        }
        if (*k == NULL) {
            return error_set(e, ERR_SYNTAX, "\"%s\" is not known here", key);
        }
    }
    return ERR_OK;
}
