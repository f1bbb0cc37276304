/* SPDX-License-Identifier: Apache-2.0 */
#include "model/publish_text.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/value.h"

#define TEXT_MAX   2048
#define PORT_MAX   65535
#define QUOTED_MAX 64 /* of a text, in bytes */

void
parser_at(struct parser *ps, const char *pointer, const json_t *v)
{
    const char *text = json_string_value(v);

    ps->pointer = pointer;
    /* A password stands before "@", a key may stand in a query. */
    ps->text = text != NULL && text[0] != '\0' && strpbrk(text, "@?#") == NULL ? text : NULL;
}

/* message with the text that it is about, detail and end behind it. */
static bool
fail(
    const struct parser *ps, const char *code, const char *message, const char *detail,
    const char *end)
{
    const struct problem where = {.pointer = ps->pointer};
    const char *text = ps->text != NULL ? ps->text : "";
    int len = problems_cut(text, QUOTED_MAX);
    const char *quote = len > 0 ? "\"" : "";
    const char *cut = text[len] != '\0' ? "..." : "";

    problems_add(
        ps->p, SEVERITY_ERROR, code, &where, "%s%.*s%s%s%s%s%s%s", quote, len, text, cut, quote,
        len > 0 ? ": " : "", message, detail, end);
    return false;
}

bool
parser_fail(const struct parser *ps, const char *code, const char *message)
{
    return fail(ps, code, message, "", "");
}

bool
parser_fail_with(
    const struct parser *ps, const char *code, const char *message, const char *detail)
{
    return fail(ps, code, arena_printf(ps->arena, "%s ", message), detail, ".");
}

const char *
parser_check(
    const struct parser *ps, const struct schema_field *field, const char *text,
    const char *code, const char *message)
{
    CLEANUP(buf_fini) struct buf normal;
    struct error e = {0};
    size_t len = strlen(text);
    buf_init(&normal, TEXT_MAX + 1);
    if (value_check_text(field->text_type, text, len, &normal, &e) != ERR_OK) {
        parser_fail_with(ps, code, message, e.msg);
        return NULL;
    }
    if (normal.len > (size_t)field->max) {
        const struct problem where = {.pointer = ps->pointer};
        problems_add(
            ps->p, SEVERITY_ERROR, "too_long", &where, "%s it is longer than %lld characters.",
            message, (long long)field->max);
        return NULL;
    }
    return arena_strdup(ps->arena, buf_str(&normal));
}

const char *
parser_text(const struct parser *ps, const json_t *v)
{
    const char *s = json_string_value(v);
    if (s == NULL) {
        parser_fail(ps, "type", "This must be a text.");
        return NULL;
    }
    if (json_string_length(v) > TEXT_MAX) {
        parser_fail(ps, "too_long", "This text is longer than 2048 bytes.");
        return NULL;
    }
    for (size_t i = 0; i < json_string_length(v); i++) {
        if (s[i] <= ' ' || s[i] > '~') {
            parser_fail(
                ps, "characters",
                "Spaces, control characters and letters outside ASCII cannot stand here (write "
                "international names in their xn-- form).");
            return NULL;
        }
    }
    return s;
}

int
parser_port(const char *s, size_t len)
{
    int port = 0;
    if (len == 0 || len > 5 || s[0] == '0') {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return -1;
        }
        port = port * 10 + (s[i] - '0');
    }
    return port <= PORT_MAX ? port : -1;
}

bool
parser_authority(const struct parser *ps, const char *s, size_t len, struct authority *ret)
{
    const char *end = s + len;
    const char *colon = memchr(s, ':', len);
    *ret = (struct authority){.ipv6 = len > 0 && s[0] == '['};
    if (ret->ipv6) {
        const char *close = memchr(s, ']', len);
        if (close == NULL || (close + 1 < end && close[1] != ':')) {
            return parser_fail(ps, "brackets", "Write an IPv6 address as [2001:db8::1]:8080.");
        }
        ret->host = arena_memdup0(ps->arena, s + 1, (size_t)(close - s - 1));
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        size_t host_len = colon != NULL ? (size_t)(colon - s) : len;
        ret->host = arena_memdup0(ps->arena, s, host_len);
        if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL) {
            return parser_fail(
                ps, "brackets",
                "There is more than one colon: put an IPv6 address in brackets, as "
                "[2001:db8::1]:8080.");
        }
    }
    if (colon != NULL) {
        ret->has_port = true;
        ret->port = parser_port(colon + 1, (size_t)(end - colon - 1));
    }
    return true;
}
