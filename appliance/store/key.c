/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/file.h"
#include "store/inner.h"

#define CHECK_MAX_BYTES ((size_t)128)

static const char check_text[] = "lockstep";
static const char check_place[] = "meta.key_check";

err_t
key_read(int data_dir, uint8_t ret[SEAL_KEY_BYTES], struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf b = {.max = SEAL_KEY_BYTES};
    err_t code = file_read_at(data_dir, KEY_NAME, &b, e);

    if (code != ERR_OK && code != ERR_LIMIT) {
        return code;
    }
    if (code == ERR_LIMIT || b.len != SEAL_KEY_BYTES) {
        return error_set(
            e, ERR_CORRUPT,
            KEY_NAME " is damaged (it must have %d bytes): restore it from a backup; HAProxy "
                     "keeps serving its last configuration",
            SEAL_KEY_BYTES);
    }
    memcpy(ret, b.data, SEAL_KEY_BYTES);
    return ERR_OK;
}

err_t
key_write(int data_dir, const uint8_t key[SEAL_KEY_BYTES], struct error *e)
{
    return file_write_at(data_dir, KEY_NAME, key, SEAL_KEY_BYTES, 0600, e);
}

void
key_seal_check(const uint8_t key[SEAL_KEY_BYTES], struct buf *out)
{
    crypt_seal(key, check_place, sizeof check_place, check_text, sizeof check_text, out);
}

err_t
key_check(
    const uint8_t key[SEAL_KEY_BYTES], const uint8_t *sealed, size_t bytes, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {.max = CHECK_MAX_BYTES};
    struct error ignored;

    if (bytes > CHECK_MAX_BYTES ||
        crypt_open(key, check_place, sizeof check_place, sealed, bytes, &b, &ignored) !=
            ERR_OK ||
        b.len != sizeof check_text || memcmp(b.data, check_text, sizeof check_text) != 0) {
        return error_set(
            e, ERR_CORRUPT,
            KEY_NAME " does not belong to this " STORE_DB_NAME
                     ": restore both from one backup; "
                     "HAProxy keeps serving its last configuration");
    }
    return ERR_OK;
}
