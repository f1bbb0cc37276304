/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct error_row {
    const char *name;
    int http_status;
};

#define ERROR_ROW(code, name, status) [ERR_##code] = {#name, status},
static const struct error_row error_rows[] = {ERR_LIST(ERROR_ROW)};
#undef ERROR_ROW

/* A cut in the middle of a character would make the whole message invalid UTF-8. */
static void
trim_cut_character(char *msg)
{
    size_t len = strlen(msg);
    size_t start = len;

    while (start > 0 && len - start < 4) {
        start--;
        if (((unsigned char)msg[start] & 0xc0u) != 0x80u) {
            break;
        }
    }
    if (start < len && !utf8_valid(msg + start, len - start)) {
        msg[start] = '\0';
    }
}

static size_t append_v(char *msg, size_t at, const char *fmt, va_list ap) PRINTF_LIKE(3, 0);

static size_t
append_v(char *msg, size_t at, const char *fmt, va_list ap)
{
    int n = vsnprintf(msg + at, ERROR_MSG_BYTES - at, fmt, ap);

    if (n < 0) {
        msg[at] = '\0';
        return at;
    }
    if ((size_t)n >= ERROR_MSG_BYTES - at) {
        trim_cut_character(msg);
        return ERROR_MSG_BYTES - 1;
    }
    return at + (size_t)n;
}

static size_t
append_text(char *msg, size_t at, const char *text)
{
    size_t len = strlen(text);

    if (len >= ERROR_MSG_BYTES - at) {
        memcpy(msg + at, text, ERROR_MSG_BYTES - 1 - at);
        msg[ERROR_MSG_BYTES - 1] = '\0';
        trim_cut_character(msg);
        return ERROR_MSG_BYTES - 1;
    }
    memcpy(msg + at, text, len + 1);
    return at + len;
}

err_t
error_set(struct error *e, err_t code, const char *fmt, ...)
{
    if (e != NULL) {
        /* The arguments may point into e->msg. */
        char msg[ERROR_MSG_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void)append_v(msg, 0, fmt, ap);
        va_end(ap);
        memcpy(e->msg, msg, sizeof msg);
        e->code = code;
    }
    return code;
}

err_t
error_errno(struct error *e, err_t code, int errno_value, const char *fmt, ...)
{
    if (e != NULL) {
        char msg[ERROR_MSG_BYTES];
        const char *reason = strerrordesc_np(errno_value);
        va_list ap;
        size_t at;

        va_start(ap, fmt);
        at = append_v(msg, 0, fmt, ap);
        va_end(ap);
        at = append_text(msg, at, ": ");
        (void)append_text(msg, at, reason != NULL ? reason : "unknown error");
        memcpy(e->msg, msg, sizeof msg);
        e->code = code;
    }
    return code;
}

err_t
error_wrap(struct error *e, const char *fmt, ...)
{
    char msg[ERROR_MSG_BYTES];
    va_list ap;
    size_t at;

    ASSERT(e != NULL);
    va_start(ap, fmt);
    at = append_v(msg, 0, fmt, ap);
    va_end(ap);
    at = append_text(msg, at, ": ");
    (void)append_text(msg, at, e->msg);
    memcpy(e->msg, msg, sizeof msg);
    return e->code;
}

const char *
error_name(err_t code)
{
    ASSERT((size_t)code < ARRAY_LEN(error_rows));
    return error_rows[code].name;
}

int
error_http_status(err_t code)
{
    ASSERT((size_t)code < ARRAY_LEN(error_rows));
    return error_rows[code].http_status;
}
