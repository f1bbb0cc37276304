/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of HTTP, and lines for HAProxy's sections. */
#include <string.h>

#include "model/problems.h"
#include "model/value.h"
#include "model/value_checks.h"

#define SHOWN_BYTES 60

err_t
value_check_token(const char *s, size_t len, struct buf *out, struct error *e)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(s[i]) && strchr("_.~-", s[i]) == NULL) {
            return error_set(
                e, ERR_INVALID, "use only letters, digits, \"_\", \".\", \"~\" and \"-\"");
        }
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* One line that is compared or sent as it is; HTTP and HAProxy's files drop spaces at its
 * ends. */
err_t
value_check_line(const char *s, size_t len, struct buf *out, struct error *e)
{
    if (len > 0 && (s[0] == ' ' || s[len - 1] == ' ')) {
        return error_set(e, ERR_INVALID, "it has no spaces at its ends");
    }
    buf_put(out, s, len);
    return ERR_OK;
}

err_t
value_check_target(const char *s, size_t len, struct buf *out, struct error *e)
{
    if (len > 0 && s[0] != '/') {
        return value_check_url(s, len, out, e);
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] <= ' ' || s[i] > '~') {
            return error_set(
                e, ERR_INVALID, "write spaces and letters with accents as %%XX, as in a URL");
        }
    }
    buf_put(out, s, len);
    return ERR_OK;
}

static size_t
word_length(const char *s, size_t len, const char *also)
{
    size_t n = 0;

    while (n < len && (is_alnum(s[n]) || strchr(also, s[n]) != NULL)) {
        n++;
    }
    return n;
}

/* "; name=value", or 0. */
static size_t
parameter_length(const char *s, size_t len)
{
    size_t n = len > 1 && s[0] == ';' ? 1 : len;
    size_t name;
    size_t value;

    if (n < len && s[n] == ' ') {
        n++;
    }
    name = word_length(s + n, len - n, "_-");
    n += name;
    if (name == 0 || n >= len || s[n] != '=') {
        return 0;
    }
    n++;
    value = word_length(s + n, len - n, "_.-");
    return value == 0 ? 0 : n + value;
}

err_t
value_check_media_type(const char *s, size_t len, struct buf *out, struct error *e)
{
    static const char also[] = "!#$&^_.+-";
    size_t n = word_length(s, len, also);
    size_t sub =
        n > 0 && n < len && s[n] == '/' ? word_length(s + n + 1, len - n - 1, also) : 0;

    if (sub > 0) {
        n += 1 + sub;
        while (n < len) {
            size_t parameter = parameter_length(s + n, len - n);

            if (parameter == 0) {
                break;
            }
            n += parameter;
        }
    }
    if (sub == 0 || n < len) {
        return error_set(
            e, ERR_INVALID, "write a media type such as \"text/html; charset=utf-8\"");
    }
    buf_put(out, s, len);
    return ERR_OK;
}

/* ---- directives ---- */

/* What needs no quotes, names no file and begins no variable or expression. */
static bool
is_directive_char(char c)
{
    return is_alnum(c) || strchr("_.,:=+-", c) != NULL;
}

const struct schema_keyword *
value_keyword(enum text_type type, const char *s, size_t len)
{
    const struct schema_keyword *k = schema_text_type_keywords[type];

    for (; k != NULL && k->word != NULL; k++) {
        size_t n = strlen(k->word);

        if (starts_with(s, len, k->word) && (n == len || s[n] == ' ')) {
            return k;
        }
    }
    return NULL;
}

static err_t
check_directive(
    enum text_type type, const char *s, size_t len, struct buf *out, struct error *e)
{
    if (value_keyword(type, s, len) == NULL) {
        return error_set(
            e, ERR_INVALID,
            "\"%.*s\" does not begin with one of the keywords that are allowed here (the "
            "reference of text types lists them)",
            problems_cut(s, len < SHOWN_BYTES ? len : SHOWN_BYTES), s);
    }
    for (size_t i = 0; i < len; i++) {
        bool single = s[i] == ' ' && i + 1 < len && s[i + 1] != ' ';

        if (!is_directive_char(s[i]) && !single) {
            return error_set(
                e, ERR_INVALID,
                "values have only letters, digits and \"_.,:=+-\", with single spaces between "
                "them");
        }
    }
    buf_put(out, s, len);
    return ERR_OK;
}

err_t
value_check_global_directive(const char *s, size_t len, struct buf *out, struct error *e)
{
    return check_directive(TT_GLOBAL_DIRECTIVE, s, len, out, e);
}

err_t
value_check_defaults_directive(const char *s, size_t len, struct buf *out, struct error *e)
{
    return check_directive(TT_DEFAULTS_DIRECTIVE, s, len, out, e);
}

err_t
value_check_listener_directive(const char *s, size_t len, struct buf *out, struct error *e)
{
    return check_directive(TT_LISTENER_DIRECTIVE, s, len, out, e);
}
