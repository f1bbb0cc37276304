/* SPDX-License-Identifier: Apache-2.0 */
#include "base/deflate.h"

#include <limits.h>
#define ZLIB_CONST
#include <zlib.h>

#define CHUNK_BYTES ((size_t)16384)

void
deflate_put(const void *p, size_t bytes, struct buf *out)
{
    uLong bound;
    uLongf written;

    ASSERT(bytes <= INT_MAX);
    bound = compressBound((uLong)bytes);
    if (!buf_reserve(out, bound)) {
        return;
    }
    written = (uLongf)bound;
    ASSERT(compress2((Bytef *)out->data + out->len, &written, p, (uLong)bytes, 6) == Z_OK);
    out->len += written;
    out->data[out->len] = '\0';
}

static void
stream_cleanup(z_stream *z)
{
    (void)inflateEnd(z);
}

err_t
inflate_put(const void *p, size_t bytes, struct buf *out, struct error *e)
{
    CLEANUP(stream_cleanup) z_stream z = {.zalloc = Z_NULL};
    int rc = Z_OK;

    ASSERT(bytes <= INT_MAX);
    ASSERT(inflateInit(&z) == Z_OK);
    z.next_in = p;
    z.avail_in = (uInt)bytes;
    while (rc == Z_OK) {
        size_t room = out->max - out->len;
        size_t want = room < CHUNK_BYTES ? room : CHUNK_BYTES;
        /* At the maximum inflate may still have its trailer to read. A byte beyond goes where
         * the final NUL will be. */
        size_t offered = want < room ? want : want + 1;
        size_t made;

        if (!buf_reserve(out, want)) {
            return buf_status(out, e);
        }
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)offered;
        rc = inflate(&z, Z_NO_FLUSH);
        made = offered - z.avail_out;
        if (made > want) {
            out->data[out->len] = '\0';
            out->failed = true;
            return buf_status(out, e);
        }
        out->len += made;
        out->data[out->len] = '\0';
    }
    if (rc != Z_STREAM_END || z.avail_in != 0) {
        return error_set(e, ERR_CORRUPT, "compressed bytes are damaged");
    }
    return ERR_OK;
}
