/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

/* PIPE_BUF: longer writes to a pipe could be mixed with those of other processes. */
#define LINE_BYTES    4096u
#define MESSAGE_BYTES 4096u
#define ESCAPED_BYTES 4u

static const char *log_program = "lockstep";
static enum log_level log_threshold = LOG_LEVEL_INFO;

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

struct line {
    size_t len;
    char text[LINE_BYTES];
};

void
log_open(const char *program, enum log_level level)
{
    log_program = program;
    log_threshold = level;
}

static void
put_escaped(struct line *l, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    l->text[l->len++] = '\\';
    l->text[l->len++] = 'x';
    l->text[l->len++] = hex[c >> 4];
    l->text[l->len++] = hex[c & 15u];
}

/* Stops in front of the first character that would not leave room for the line end. */
static void
put_text(struct line *l, const char *s, size_t bytes)
{
    while (bytes > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(s, bytes, &c);
        bool plain = n > 0 && c >= 0x20 && (c < 0x7f || c > 0x9f);
        size_t need;

        if (n == 0) {
            n = 1;
        }
        need = plain ? n : n * ESCAPED_BYTES;
        if (need > LINE_BYTES - 1 - l->len) {
            return;
        }
        if (plain) {
            memcpy(l->text + l->len, s, n);
            l->len += n;
        } else {
            for (size_t i = 0; i < n; i++) {
                put_escaped(l, (unsigned char)s[i]);
            }
        }
        s += n;
        bytes -= n;
    }
}

static void
write_line(const struct line *l)
{
    ssize_t n;

    do {
        n = write(STDERR_FILENO, l->text, l->len);
    } while (n < 0 && errno == EINTR);
}

static void log_v(enum log_level level, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

static void
log_v(enum log_level level, const char *fmt, va_list ap)
{
    int saved_errno = errno;
    char message[MESSAGE_BYTES];
    struct line l;
    int n;

    if (level > log_threshold) {
        return;
    }
    n = vsnprintf(message, sizeof message, fmt, ap);
    if (n < 0) {
        n = 0;
    } else if ((size_t)n >= sizeof message) {
        n = (int)sizeof message - 1;
    }
    l.len = 0;
    put_text(&l, log_program, strlen(log_program));
    put_text(&l, ": ", 2);
    put_text(&l, level_names[level], strlen(level_names[level]));
    put_text(&l, ": ", 2);
    put_text(&l, message, (size_t)n);
    l.text[l.len++] = '\n';
    write_line(&l);
    errno = saved_errno;
}

void
log_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_v(LOG_LEVEL_ERROR, fmt, ap);
    va_end(ap);
}

void
log_warning(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_v(LOG_LEVEL_WARNING, fmt, ap);
    va_end(ap);
}

void
log_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_v(LOG_LEVEL_INFO, fmt, ap);
    va_end(ap);
}

void
log_debug(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_v(LOG_LEVEL_DEBUG, fmt, ap);
    va_end(ap);
}
