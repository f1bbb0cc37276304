/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

#define BUF_FIRST_BYTES 64u

void
buf_init(struct buf *b, size_t max_bytes)
{
    ASSERT(max_bytes < SIZE_MAX / 2);
    *b = (struct buf){.max = max_bytes};
}

void
buf_fini(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void
buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

void
buf_wipe(struct buf *b)
{
    if (b->data != NULL) {
        explicit_bzero(b->data, b->cap);
    }
    buf_reset(b);
}

void
buf_wipe_fini(struct buf *b)
{
    buf_wipe(b);
    buf_fini(b);
}

bool
buf_reserve(struct buf *b, size_t bytes)
{
    size_t need;
    size_t cap;

    if (b->failed || bytes > b->max - b->len) {
        b->failed = true;
        return false;
    }
    need = b->len + bytes + 1;
    if (need <= b->cap) {
        return true;
    }
    cap = b->cap < BUF_FIRST_BYTES / 2 ? BUF_FIRST_BYTES : b->cap * 2;
    if (cap > b->max + 1) {
        cap = b->max + 1;
    }
    if (cap < need) {
        cap = need;
    }
    b->data = xrealloc(b->data, cap);
    b->cap = cap;
    b->data[b->len] = '\0';
    return true;
}

void
buf_put_slow(struct buf *b, const void *p, size_t bytes)
{
    if (bytes > 0 && buf_reserve(b, bytes)) {
        memcpy(b->data + b->len, p, bytes);
        b->len += bytes;
        b->data[b->len] = '\0';
    }
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
    size_t room = b->cap - b->len;
    va_list ap;
    int n;

    if (b->failed) {
        return;
    }
    va_start(ap, fmt);
    n = vsnprintf(room == 0 ? NULL : b->data + b->len, room, fmt, ap);
    va_end(ap);
    ASSERT(n >= 0);
    if ((size_t)n >= room) {
        if (room > 0) {
            b->data[b->len] = '\0';
        }
        if (!buf_reserve(b, (size_t)n)) {
            return;
        }
        va_start(ap, fmt);
        n = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
        va_end(ap);
        ASSERT(n >= 0);
    }
    b->len += (size_t)n;
}

void
buf_i64(struct buf *b, int64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    /* Unsigned and by a detour, since the negative of INT64_MIN does not exist. */
    uint64_t u = v < 0 ? (uint64_t)(-(v + 1)) + 1 : (uint64_t)v;

    do {
        digits[--at] = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    if (v < 0) {
        digits[--at] = '-';
    }
    buf_put(b, digits + at, sizeof digits - at);
}

err_t
buf_status(const struct buf *b, struct error *e)
{
    if (b->failed) {
        return error_set(e, ERR_LIMIT, "text is longer than %zu bytes", b->max);
    }
    return ERR_OK;
}

const char *
buf_str(const struct buf *b)
{
    return b->data != NULL ? b->data : "";
}

char *
buf_take(struct buf *b)
{
    char *data = b->data != NULL ? b->data : xstrdup("");

    buf_init(b, b->max);
    return data;
}
