/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crypt.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/arena.h"

#define NONCE_BYTES    12
#define TAG_BYTES      16
#define SEAL_MAX_BYTES ((size_t)1 << 30)

#define SCRYPT_LOG_N      15
#define SCRYPT_R          8
#define SCRYPT_P          1
#define SCRYPT_SALT_BYTES 16
#define SCRYPT_SALT_MIN   8
#define SCRYPT_SALT_MAX   64
#define SCRYPT_HASH_BYTES 32
#define SCRYPT_MEM_BYTES  ((uint64_t)64 << 20)

struct sha256 {
    EVP_MD_CTX *ctx;
};

static pthread_once_t fetch_once = PTHREAD_ONCE_INIT;
static EVP_MD *md_sha256;
static EVP_CIPHER *cipher_gcm;
static EVP_KDF *kdf_scrypt;

/* Fetching by name takes locks and look-ups that cost more than hashing a small object. */
static void
fetch_all(void)
{
    md_sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    cipher_gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    kdf_scrypt = EVP_KDF_fetch(NULL, "SCRYPT", NULL);
    ASSERT(md_sha256 != NULL && cipher_gcm != NULL && kdf_scrypt != NULL);
}

static void
need_algorithms(void)
{
    ASSERT(pthread_once(&fetch_once, fetch_all) == 0);
}

struct sha256 *
sha256_new(void)
{
    struct sha256 *h = xcalloc(1, sizeof *h);

    need_algorithms();
    h->ctx = EVP_MD_CTX_new();
    ASSERT(h->ctx != NULL && EVP_DigestInit_ex2(h->ctx, md_sha256, NULL) == 1);
    return h;
}

void
sha256_add(struct sha256 *h, const void *p, size_t bytes)
{
    ASSERT(EVP_DigestUpdate(h->ctx, p, bytes) == 1);
}

struct hash
sha256_end(struct sha256 **h)
{
    struct hash out;

    ASSERT(EVP_DigestFinal_ex((*h)->ctx, out.b, NULL) == 1);
    EVP_MD_CTX_free((*h)->ctx);
    free(*h);
    *h = NULL;
    return out;
}

struct hash
sha256(const void *p, size_t bytes)
{
    struct hash out;

    need_algorithms();
    ASSERT(EVP_Digest(p, bytes, out.b, NULL, md_sha256, NULL) == 1);
    return out;
}

bool
hash_equal(const struct hash *a, const struct hash *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static const char hex_digits[] = "0123456789abcdef";

void
hash_hex(const struct hash *h, char *out)
{
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        *out++ = hex_digits[h->b[i] >> 4];
        *out++ = hex_digits[h->b[i] & 15u];
    }
    *out = '\0';
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

bool
hash_from_hex(const char *hex, struct hash *ret)
{
    struct hash out = {{0}};

    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = hex_value(hex[2 * i]);
        int low = high < 0 ? -1 : hex_value(hex[2 * i + 1]);

        if (low < 0) {
            return false;
        }
        out.b[i] = (uint8_t)(high * 16 + low);
    }
    if (hex[SHA256_HEX] != '\0') {
        return false;
    }
    *ret = out;
    return true;
}

void
hex_put(struct buf *out, const void *p, size_t bytes)
{
    const uint8_t *u = p;

    for (size_t i = 0; i < bytes; i++) {
        char pair[2] = {hex_digits[u[i] >> 4], hex_digits[u[i] & 15u]};

        buf_put(out, pair, sizeof pair);
    }
}

void
crypt_random(void *p, size_t bytes)
{
    uint8_t *at = p;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);

        ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
        }
    }
}

bool
crypt_equal(const void *a, const void *b, size_t bytes)
{
    return CRYPTO_memcmp(a, b, bytes) == 0;
}

void
crypt_wipe(void *p, size_t bytes)
{
    OPENSSL_cleanse(p, bytes);
}

static const char base64url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void
base64url_put(struct buf *out, const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t v = (uint32_t)p[i] << 16;
        char quad[4];

        v |= left > 1 ? (uint32_t)p[i + 1] << 8 : 0;
        v |= left > 2 ? (uint32_t)p[i + 2] : 0;
        for (size_t k = 0; k < 4; k++) {
            quad[k] = base64url_digits[v >> (18 - 6 * k) & 63u];
        }
        buf_put(out, quad, left < 3 ? left + 1 : 4);
    }
}

/* Strict: no padding, no other characters, no set bits behind the last byte. */
static bool
base64url_get(const char *s, size_t len, uint8_t *out, size_t max, size_t *ret_bytes)
{
    size_t bytes = len / 4 * 3 + (len % 4 == 0 ? 0 : len % 4 - 1);
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t at = 0;

    if (len % 4 == 1 || bytes > max) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        const char *digit = s[i] == '\0' ? NULL : strchr(base64url_digits, s[i]);

        if (digit == NULL) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(digit - base64url_digits);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[at++] = (uint8_t)(bits >> bit_count);
            bits &= (1u << bit_count) - 1;
        }
    }
    *ret_bytes = at;
    return bits == 0;
}

void
crypt_token(struct buf *out, size_t bytes)
{
    uint8_t random[64];

    ASSERT(bytes <= sizeof random);
    crypt_random(random, bytes);
    base64url_put(out, random, bytes);
    crypt_wipe(random, sizeof random);
}

static void
ctx_cleanup(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}

static EVP_CIPHER_CTX *
gcm_start(
    const uint8_t *key, const uint8_t *nonce, const void *aad, size_t aad_bytes, bool encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n;

    need_algorithms();
    ASSERT(ctx != NULL && aad_bytes <= SEAL_MAX_BYTES);
    ASSERT(EVP_CipherInit_ex2(ctx, cipher_gcm, key, nonce, encrypt ? 1 : 0, NULL) == 1);
    ASSERT(aad_bytes == 0 || EVP_CipherUpdate(ctx, NULL, &n, aad, (int)aad_bytes) == 1);
    return ctx;
}

void
crypt_seal(
    const uint8_t key[SEAL_KEY_BYTES], const void *aad, size_t aad_bytes, const void *plain,
    size_t plain_bytes, struct buf *out)
{
    CLEANUP(ctx_cleanup) EVP_CIPHER_CTX *ctx = NULL;
    size_t bytes = NONCE_BYTES + plain_bytes + TAG_BYTES;
    uint8_t *at;
    int n = 0;

    ASSERT(plain_bytes <= SEAL_MAX_BYTES);
    if (!buf_reserve(out, bytes)) {
        return;
    }
    at = (uint8_t *)out->data + out->len;
    crypt_random(at, NONCE_BYTES);
    ctx = gcm_start(key, at, aad, aad_bytes, true);
    at += NONCE_BYTES;
    ASSERT(plain_bytes == 0 || EVP_EncryptUpdate(ctx, at, &n, plain, (int)plain_bytes) == 1);
    at += plain_bytes;
    ASSERT(EVP_EncryptFinal_ex(ctx, at, &n) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, at) == 1);
    out->len += bytes;
    out->data[out->len] = '\0';
}

err_t
crypt_open(
    const uint8_t key[SEAL_KEY_BYTES], const void *aad, size_t aad_bytes, const void *sealed,
    size_t sealed_bytes, struct buf *out, struct error *e)
{
    CLEANUP(ctx_cleanup) EVP_CIPHER_CTX *ctx = NULL;
    const uint8_t *nonce = sealed;
    const uint8_t *cipher;
    uint8_t tag[TAG_BYTES];
    size_t bytes;
    uint8_t *at;
    int n = 0;

    if (sealed_bytes < NONCE_BYTES + TAG_BYTES || sealed_bytes > SEAL_MAX_BYTES) {
        return error_set(
            e, ERR_CORRUPT, "sealed text of %zu bytes cannot be opened", sealed_bytes);
    }
    bytes = sealed_bytes - NONCE_BYTES - TAG_BYTES;
    if (!buf_reserve(out, bytes)) {
        return buf_status(out, e);
    }
    cipher = nonce + NONCE_BYTES;
    memcpy(tag, cipher + bytes, TAG_BYTES);
    at = (uint8_t *)out->data + out->len;
    ctx = gcm_start(key, nonce, aad, aad_bytes, false);
    ASSERT(bytes == 0 || EVP_DecryptUpdate(ctx, at, &n, cipher, (int)bytes) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1);
    if (EVP_DecryptFinal_ex(ctx, at + bytes, &n) != 1) {
        crypt_wipe(at, bytes);
        out->data[out->len] = '\0';
        return error_set(e, ERR_CORRUPT, "sealed text does not fit its key or its place");
    }
    out->len += bytes;
    out->data[out->len] = '\0';
    return ERR_OK;
}

/* OpenSSL takes the inputs of a key derivation as pointers to non-const. */
union input {
    const void *in;
    void *out;
};

struct scrypt_cost {
    uint64_t log_n;
    uint64_t r;
    uint64_t p;
};

static void
scrypt(
    const char *password, const uint8_t *salt, size_t salt_bytes,
    const struct scrypt_cost *cost, uint8_t *out)
{
    EVP_KDF_CTX *ctx;
    uint64_t n = (uint64_t)1 << cost->log_n;
    uint64_t r = cost->r;
    uint64_t p = cost->p;
    uint64_t mem = SCRYPT_MEM_BYTES;

    union input pass = {.in = password};
    union input salted = {.in = salt};
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, pass.out, strlen(password)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salted.out, salt_bytes),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_R, &r),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_P, &p),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &mem),
        OSSL_PARAM_construct_end(),
    };

    need_algorithms();
    ctx = EVP_KDF_CTX_new(kdf_scrypt);
    ASSERT(ctx != NULL && EVP_KDF_derive(ctx, out, SCRYPT_HASH_BYTES, params) == 1);
    EVP_KDF_CTX_free(ctx);
}

static const struct scrypt_cost usual_cost = {SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P};

void
crypt_password_hash(const char *password, struct buf *out)
{
    uint8_t salt[SCRYPT_SALT_BYTES];
    uint8_t hash[SCRYPT_HASH_BYTES];

    crypt_random(salt, sizeof salt);
    scrypt(password, salt, sizeof salt, &usual_cost, hash);
    buf_printf(out, "scrypt$%d$%d$%d$", SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P);
    base64url_put(out, salt, sizeof salt);
    buf_putc(out, '$');
    base64url_put(out, hash, sizeof hash);
    crypt_wipe(hash, sizeof hash);
}

/* A decimal number from 1 to max, without leading zeros, and the '$' behind it. */
static bool
cost_get(const char **at, uint64_t max, uint64_t *ret)
{
    const char *p = *at;
    uint64_t v = 0;

    if (*p == '0') {
        return false;
    }
    while (*p >= '0' && *p <= '9' && v <= max) {
        v = v * 10 + (uint64_t)(*p - '0');
        p++;
    }
    if (p == *at || *p != '$' || v > max) {
        return false;
    }
    *at = p + 1;
    *ret = v;
    return true;
}

struct scrypt_text {
    struct scrypt_cost cost;
    uint8_t salt[SCRYPT_SALT_MAX];
    size_t salt_bytes;
    uint8_t hash[SCRYPT_HASH_BYTES];
};

static bool
scrypt_read(const char *text, struct scrypt_text *ret)
{
    static const char prefix[] = "scrypt$";
    const char *dollar;
    size_t hash_bytes;

    if (strncmp(text, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    text += sizeof prefix - 1;
    if (!cost_get(&text, SCRYPT_LOG_N, &ret->cost.log_n) ||
        !cost_get(&text, SCRYPT_R, &ret->cost.r) || !cost_get(&text, SCRYPT_P, &ret->cost.p)) {
        return false;
    }
    dollar = strchr(text, '$');
    return dollar != NULL &&
           base64url_get(
               text, (size_t)(dollar - text), ret->salt, sizeof ret->salt, &ret->salt_bytes) &&
           ret->salt_bytes >= SCRYPT_SALT_MIN &&
           base64url_get(
               dollar + 1, strlen(dollar + 1), ret->hash, sizeof ret->hash, &hash_bytes) &&
           hash_bytes == sizeof ret->hash;
}

bool
crypt_password_is_hash(const char *text)
{
    struct scrypt_text t;
    bool is = scrypt_read(text, &t) && t.cost.log_n == SCRYPT_LOG_N && t.cost.r == SCRYPT_R &&
              t.cost.p == SCRYPT_P;

    crypt_wipe(&t, sizeof t);
    return is;
}

bool
crypt_password_check(const char *password, const char *text)
{
    static const uint8_t no_salt[SCRYPT_SALT_BYTES];
    struct scrypt_text t;
    uint8_t got[SCRYPT_HASH_BYTES];
    bool equal;

    if (text == NULL) {
        scrypt(password, no_salt, sizeof no_salt, &usual_cost, got);
        crypt_wipe(got, sizeof got);
        return false;
    }
    if (!scrypt_read(text, &t)) {
        return false;
    }
    scrypt(password, t.salt, t.salt_bytes, &t.cost, got);
    equal = crypt_equal(got, t.hash, sizeof got);
    crypt_wipe(got, sizeof got);
    return equal;
}
