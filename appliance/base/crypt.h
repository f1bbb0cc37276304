/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes, random numbers, sealing, passwords; on OpenSSL 3. */
#ifndef LOCKSTEP_BASE_CRYPT_H
#define LOCKSTEP_BASE_CRYPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define SHA256_BYTES   32
#define SHA256_HEX     64
#define SEAL_KEY_BYTES 32

struct hash {
    uint8_t b[SHA256_BYTES];
};

struct sha256; /* running hash */

struct hash sha256(const void *p, size_t bytes);
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *p, size_t bytes);
struct hash sha256_end(struct sha256 **h); /* frees the state */

bool hash_equal(const struct hash *a, const struct hash *b);
/* Lower-case hex; out has SHA256_HEX + 1 bytes. */
void hash_hex(const struct hash *h, char *out);
MUST_USE bool hash_from_hex(const char *hex, struct hash *ret);
void hex_put(struct buf *out, const void *p, size_t bytes);

/* From the kernel, getrandom(2): at a rare call that is 20 us faster than OpenSSL's generator.
 * Waits until the kernel has entropy, at boot. */
void crypt_random(void *p, size_t bytes);
/* bytes random bytes as base64url without padding (RFC 4648 section 5), appended. */
void crypt_token(struct buf *out, size_t bytes);
bool crypt_equal(const void *a, const void *b, size_t bytes); /* constant time */
void crypt_wipe(void *p, size_t bytes);

/* AES-256-GCM: output = 12-byte nonce, ciphertext, 16-byte tag. aad binds it to its place.
 * crypt_open: ERR_CORRUPT when key, aad or bytes do not fit. */
void crypt_seal(
    const uint8_t key[SEAL_KEY_BYTES], const void *aad, size_t aad_bytes, const void *plain,
    size_t plain_bytes, struct buf *out);
MUST_USE err_t crypt_open(
    const uint8_t key[SEAL_KEY_BYTES], const void *aad, size_t aad_bytes, const void *sealed,
    size_t sealed_bytes, struct buf *out, struct error *e);

/* scrypt (RFC 7914; N = 2^15, r = 8, p = 1: 32 MiB, some 50-100 ms). The text form is
 * "scrypt$15$8$1$SALT$HASH" (base64url). crypt_password_check is constant time in the hash
 * and refuses cost parameters above these. text NULL: false, after as long as with one. */
void crypt_password_hash(const char *password, struct buf *out);
bool crypt_password_check(const char *password, const char *text);
/* Whether crypt_password_hash can have made it. */
bool crypt_password_is_hash(const char *text);

#endif
