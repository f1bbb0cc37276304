/* SPDX-License-Identifier: Apache-2.0 */
/* Growing byte buffer with a maximum given at init. Over the maximum the buffer is marked
 * failed, keeps what it has, ignores further appends, and buf_status says ERR_LIMIT: so a
 * long run of appends is checked once, at its end. Always NUL-terminated behind len. Growing
 * leaves copies behind: reserve before putting secrets in, and wipe after use. */
#ifndef LOCKSTEP_BASE_BUF_H
#define LOCKSTEP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

struct buf {
    char *data; /* NULL while nothing was appended; use buf_str() for a C string */
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_fini(struct buf *b);      /* also for CLEANUP(); usable again only after buf_init */
void buf_reset(struct buf *b);     /* length 0, not failed; keeps the memory */
void buf_wipe(struct buf *b);      /* overwrites the content, then as buf_reset */
void buf_wipe_fini(struct buf *b); /* buf_wipe and buf_fini; for CLEANUP() of secrets */
/* Makes room for bytes more; false over the maximum. */
MUST_USE bool buf_reserve(struct buf *b, size_t bytes);
void buf_put_slow(struct buf *b, const void *p, size_t bytes);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_i64(struct buf *b, int64_t v); /* decimal */
err_t buf_status(const struct buf *b, struct error *e);
const char *buf_str(const struct buf *b); /* "" when empty */
char *buf_take(struct buf *b);            /* moves the malloc'ed bytes out */

/* A call of memcpy costs more than the copy of a word of a few characters, which a render of
 * 9,000 services puts 300,000 times: it is 6 % faster with this. */
static inline void
buf_copy(char *to, const char *from, size_t bytes)
{
    uint64_t ends[2];
    uint32_t halves[2];

    if (__builtin_constant_p(bytes) || bytes < 4 || bytes > 16) {
        memcpy(to, from, bytes);
    } else if (bytes < 8) {
        memcpy(&halves[0], from, 4);
        memcpy(&halves[1], from + bytes - 4, 4);
        memcpy(to, &halves[0], 4);
        memcpy(to + bytes - 4, &halves[1], 4);
    } else {
        memcpy(&ends[0], from, 8);
        memcpy(&ends[1], from + bytes - 8, 8);
        memcpy(to, &ends[0], 8);
        memcpy(to + bytes - 8, &ends[1], 8);
    }
}

/* Appends bytes that the caller writes now, and returns where; NULL, and nothing is appended,
 * where that needs more memory. */
static inline char *
buf_extend(struct buf *b, size_t bytes)
{
    char *at;

    if (bytes >= b->cap - b->len || b->failed) {
        return NULL;
    }
    at = b->data + b->len;
    b->len += bytes;
    b->data[b->len] = '\0';
    return at;
}

static inline void
buf_put(struct buf *b, const void *p, size_t bytes)
{
    char *at = bytes > 0 ? buf_extend(b, bytes) : NULL;

    if (at != NULL) {
        buf_copy(at, p, bytes);
    } else {
        buf_put_slow(b, p, bytes);
    }
}

static inline void
buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

static inline void
buf_putc(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

#endif
