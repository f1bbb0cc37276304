/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of stored bytes (zlib format, RFC 1950). */
#ifndef LOCKSTEP_BASE_DEFLATE_H
#define LOCKSTEP_BASE_DEFLATE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Appends the compressed bytes. out needs room for a little more than bytes, since how far
 * they shrink is not known before. */
void deflate_put(const void *p, size_t bytes, struct buf *out);
/* Appends the original bytes, up to out's maximum: ERR_LIMIT. ERR_CORRUPT when p is not
 * exactly one complete stream. */
MUST_USE err_t inflate_put(const void *p, size_t bytes, struct buf *out, struct error *e);

#endif
