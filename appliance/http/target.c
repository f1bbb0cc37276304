/* SPDX-License-Identifier: Apache-2.0 */
#include "http/target.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* Decodes len bytes; plus: "+" is a space, as forms send it. */
static err_t
decode(
    const char *raw, size_t len, bool plus, struct arena *arena, const char **ret,
    struct error *e)
{
    char *out = arena_alloc(arena, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = raw[i];

        if (c == '+' && plus) {
            c = ' ';
        } else if (c == '%') {
            int high = len - i > 2 ? hex_digit(raw[i + 1]) : -1;
            int low = len - i > 2 ? hex_digit(raw[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return error_set(e, ERR_SYNTAX, "the target has a broken escape");
            }
            c = (char)(unsigned char)(high * 16 + low);
            i += 2;
        }
        out[n++] = c;
    }
    if (memchr(out, '\0', n) != NULL || !utf8_valid(out, n) || utf8_has_control(out, n, "")) {
        return error_set(e, ERR_SYNTAX, "the target holds what is no text");
    }
    *ret = out;
    return ERR_OK;
}

/* The target without "http://host", which a client may send (RFC 9112 section 3.2.2). */
static const char *
skip_authority(const char *raw)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (strncasecmp(raw, schemes[i], len) == 0) {
            raw += len;
            return raw + strcspn(raw, "/?");
        }
    }
    return raw;
}

static err_t
parse_path(
    const char *path, size_t len, struct arena *arena, struct target *ret, struct error *e)
{
    size_t at = 1;

    if (len == 0 || (len == 1 && path[0] == '/')) {
        return ERR_OK;
    }
    if (path[0] != '/') {
        return error_set(e, ERR_SYNTAX, "the target is no path");
    }
    for (;;) {
        const char *slash = memchr(path + at, '/', len - at);
        size_t end = slash != NULL ? (size_t)(slash - path) : len;
        const char *segment = "";
        err_t code;

        if (end == at && slash != NULL) {
            return error_set(e, ERR_SYNTAX, "the path has an empty segment");
        }
        if (ret->segment_count == TARGET_MAX_SEGMENTS) {
            return error_set(e, ERR_NOT_FOUND, "there is no such path");
        }
        code = decode(path + at, end - at, false, arena, &segment, e);
        if (code != ERR_OK) {
            return code;
        }
        if (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0) {
            return error_set(e, ERR_SYNTAX, "the path has the segment \"%s\"", segment);
        }
        ret->segments[ret->segment_count++] = segment;
        if (slash == NULL) {
            return ERR_OK;
        }
        at = end + 1;
    }
}

static err_t
parse_param(
    const char *raw, size_t len, struct arena *arena, struct target *ret, struct error *e)
{
    const char *equal = memchr(raw, '=', len);
    size_t name_len = equal != NULL ? (size_t)(equal - raw) : len;
    struct target_param param = {"", ""};
    err_t code = decode(raw, name_len, true, arena, &param.name, e);

    if (code == ERR_OK && equal != NULL) {
        code = decode(equal + 1, len - name_len - 1, true, arena, &param.value, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (param.name[0] == '\0' || target_param(ret, param.name) != NULL) {
        return error_set(e, ERR_SYNTAX, "the query has a parameter twice, or one without name");
    }
    if (ret->param_count == TARGET_MAX_PARAMS) {
        return error_set(e, ERR_SYNTAX, "the query has too many parameters");
    }
    ret->params[ret->param_count++] = param;
    return ERR_OK;
}

static err_t
parse_query(const char *query, struct arena *arena, struct target *ret, struct error *e)
{
    err_t code = ERR_OK;

    while (code == ERR_OK && *query != '\0') {
        size_t len = strcspn(query, "&");

        if (len > 0) {
            code = parse_param(query, len, arena, ret, e);
        }
        query += len;
        query += *query == '&' ? 1 : 0;
    }
    return code;
}

err_t
target_parse(const char *raw, struct arena *arena, struct target *ret, struct error *e)
{
    struct target t = {.segment_count = 0};
    size_t path_len;
    err_t code;

    for (const char *p = raw; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~' || *p == '#') {
            return error_set(e, ERR_SYNTAX, "the target has a character that none may have");
        }
    }
    if (*raw == '\0') {
        return error_set(e, ERR_SYNTAX, "there is no target");
    }
    raw = skip_authority(raw);
    path_len = strcspn(raw, "?");
    code = parse_path(raw, path_len, arena, &t, e);
    if (code == ERR_OK && raw[path_len] == '?') {
        code = parse_query(raw + path_len + 1, arena, &t, e);
    }
    if (code == ERR_OK) {
        *ret = t;
    }
    return code;
}

const char *
target_param(const struct target *t, const char *name)
{
    for (size_t i = 0; i < t->param_count; i++) {
        if (strcmp(t->params[i].name, name) == 0) {
            return t->params[i].value;
        }
    }
    return NULL;
}

void
target_put_segment(struct buf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                     (*p >= 'A' && *p <= 'Z') || strchr("-._~", *p) != NULL;

        if (plain) {
            buf_putc(out, *p);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
        }
    }
}
