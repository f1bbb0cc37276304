/* SPDX-License-Identifier: Apache-2.0 */
/* A walk through the DER form (X.690) instead of a parse: a render reads thousands of
 * certificates, and OpenSSL decodes the key of each. */
#include <string.h>

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/arena.h"
#include "base/x509.h"

#define NAME_MAX_BYTES 253

#define BLOCK_BEGIN "-----BEGIN CERTIFICATE-----\n"
#define BLOCK_END   "\n-----END"

/* Identifier octets. */
#define DER_SEQUENCE   0x30
#define DER_SET        0x31
#define DER_OID        0x06
#define DER_OCTETS     0x04
#define DER_VERSION    0xa0 /* [0] of TBSCertificate */
#define DER_EXTENSIONS 0xa3 /* [3] of TBSCertificate */
#define DER_DNS_NAME   0x82 /* [2] of GeneralName */

struct der {
    const unsigned char *p;
    size_t n;
};

/* Takes the next value off the front; 0: there is none. */
static int
take(struct der *from, struct der *ret)
{
    const unsigned char *p = from->p;
    long length = 0;
    int tag = 0;
    int class = 0;
    int first;

    if (from->n == 0 || ((unsigned)ASN1_get_object(&p, &length, &tag, &class, (long)from->n) &
                         0x81u) != 0) { /* broken, or of no definite length */
        return 0;
    }
    first = from->p[0];
    *ret = (struct der){p, (size_t)length};
    from->n -= (size_t)(p + length - from->p);
    from->p = p + length;
    return first;
}

static bool
take_one(struct der *from, int wanted, struct der *ret)
{
    return take(from, ret) == wanted;
}

static bool
is_oid(struct der oid, const char *bytes)
{
    return oid.n == strlen(bytes) && memcmp(oid.p, bytes, oid.n) == 0;
}

/* Nothing but letters, digits, '-', '_' and '.', perhaps behind "*.". */
static bool
is_dns_name(struct der name)
{
    size_t at = name.n > 2 && name.p[0] == '*' && name.p[1] == '.' ? 2 : 0;

    if (name.n == 0 || name.n > NAME_MAX_BYTES) {
        return false;
    }
    for (; at < name.n; at++) {
        unsigned char c = name.p[at];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

static void
put_name(struct buf *out, struct der name)
{
    if (!is_dns_name(name)) {
        return;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = (char)name.p[i];

        buf_putc(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    buf_putc(out, ' ');
}

/* SEQUENCE of { OID, BOOLEAN?, OCTET STRING }; of the alternative names, those of the DNS. */
static void
put_alternatives(struct buf *out, struct der extensions)
{
    struct der list;
    struct der extension;
    struct der oid;
    struct der value;
    struct der names;
    int tag = 0;

    if (!take_one(&extensions, DER_SEQUENCE, &list)) {
        return;
    }
    while (take_one(&list, DER_SEQUENCE, &extension) && take_one(&extension, DER_OID, &oid)) {
        if (!is_oid(oid, "\x55\x1d\x11")) { /* 2.5.29.17 */
            continue;
        }
        while ((tag = take(&extension, &value)) != 0 && tag != DER_OCTETS) {
        }
        if (tag == 0 || !take_one(&value, DER_SEQUENCE, &names)) {
            return;
        }
        while ((tag = take(&names, &value)) != 0) {
            if (tag == DER_DNS_NAME) {
                put_name(out, value);
            }
        }
        return;
    }
}

/* SEQUENCE of SET of { OID, text }. */
static void
put_common_names(struct buf *out, struct der subject)
{
    struct der set;
    struct der pair;
    struct der oid;
    struct der value;

    while (take_one(&subject, DER_SET, &set)) {
        while (take_one(&set, DER_SEQUENCE, &pair)) {
            if (take_one(&pair, DER_OID, &oid) && is_oid(oid, "\x55\x04\x03") && /* 2.5.4.3 */
                take(&pair, &value) != 0) {
                put_name(out, value);
            }
        }
    }
}

static enum x509_key
read_key(struct der spki)
{
    struct der algorithm;
    struct der oid;

    if (!take_one(&spki, DER_SEQUENCE, &algorithm) || !take_one(&algorithm, DER_OID, &oid)) {
        return X509_KEY_OTHER;
    }
    if (is_oid(oid, "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")) { /* 1.2.840.113549.1.1.1 */
        return X509_KEY_RSA;
    }
    return is_oid(oid, "\x2a\x86\x48\xce\x3d\x02\x01") ? X509_KEY_EC : X509_KEY_OTHER;
}

static enum x509_key
read_certificate(struct der all, struct buf *out)
{
    size_t before = out->len;
    struct der certificate;
    struct der tbs;
    struct der field;
    struct der subject;
    struct der spki;
    int tag;

    if (!take_one(&all, DER_SEQUENCE, &certificate) ||
        !take_one(&certificate, DER_SEQUENCE, &tbs)) {
        return X509_KEY_OTHER;
    }
    tag = take(&tbs, &field);
    if (tag == DER_VERSION) {
        tag = take(&tbs, &field);
    }
    /* That was the serial number; behind it signature, issuer and validity. */
    for (int i = 0; tag != 0 && i < 3; i++) {
        tag = take(&tbs, &field);
    }
    if (tag == 0 || !take_one(&tbs, DER_SEQUENCE, &subject) ||
        !take_one(&tbs, DER_SEQUENCE, &spki)) {
        return X509_KEY_OTHER;
    }
    while ((tag = take(&tbs, &field)) != 0 && tag != DER_EXTENSIONS) {
    }
    if (tag != 0) {
        put_alternatives(out, field);
    }
    if (out->len == before) {
        put_common_names(out, subject);
    }
    return read_key(spki);
}

static void
base64_cleanup(EVP_ENCODE_CTX **c)
{
    EVP_ENCODE_CTX_free(*c);
}

/* The first certificate of a PEM text; false: it has none. */
static bool
decode_leaf(const char *pem, size_t bytes, unsigned char **ret, size_t *ret_bytes)
{
    CLEANUP(base64_cleanup) EVP_ENCODE_CTX *base64 = EVP_ENCODE_CTX_new();
    const char *begin = memmem(pem, bytes, BLOCK_BEGIN, sizeof BLOCK_BEGIN - 1);
    const char *end;
    int got = 0;
    int rest = 0;

    ASSERT(base64 != NULL);
    if (begin == NULL) {
        return false;
    }
    begin += sizeof BLOCK_BEGIN - 1;
    end = memmem(begin, bytes - (size_t)(begin - pem), BLOCK_END, sizeof BLOCK_END - 1);
    if (end == NULL || end - begin > INT32_MAX) {
        return false;
    }
    *ret = xmalloc((size_t)(end - begin) + 1);
    EVP_DecodeInit(base64);
    if (EVP_DecodeUpdate(base64, *ret, &got, (const unsigned char *)begin, (int)(end - begin)) <
            0 ||
        EVP_DecodeFinal(base64, *ret + got, &rest) != 1) {
        return false;
    }
    *ret_bytes = (size_t)got + (size_t)rest;
    return true;
}

enum x509_key
x509_server_names(const char *chain_pem, size_t bytes, struct buf *out)
{
    CLEANUP(xfree_cleanup) unsigned char *der = NULL;
    enum x509_key key = X509_KEY_OTHER;
    size_t der_bytes = 0;

    if (decode_leaf(chain_pem, bytes, &der, &der_bytes)) {
        key = read_certificate((struct der){der, der_bytes}, out);
    }
    ERR_clear_error();
    return key;
}

size_t
x509_wildcard(const char *host, size_t bytes, char ret[X509_WILDCARD_BYTES])
{
    const char *dot = memchr(host, '.', bytes);
    size_t tail = dot != NULL ? bytes - (size_t)(dot - host) : 0;

    if (tail == 0 || tail > NAME_MAX_BYTES) {
        return 0;
    }
    ret[0] = '*';
    memcpy(ret + 1, dot, tail);
    ret[tail + 1] = '\0';
    return tail + 1;
}

/* Whether it is one of the words of names. */
static bool
has_name(const char *names, const char *name, size_t bytes)
{
    for (const char *at = names; *at != '\0'; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");

        if (n == bytes && memcmp(at, name, n) == 0) {
            return true;
        }
        at += n;
    }
    return false;
}

bool
x509_names_cover(const char *names, const char *wanted)
{
    for (const char *at = wanted; *at != '\0'; at += strspn(at, " ")) {
        char wildcard[X509_WILDCARD_BYTES];
        size_t n = strcspn(at, " ");
        size_t w = x509_wildcard(at, n, wildcard);

        if (!has_name(names, at, n) && (w == 0 || !has_name(names, wildcard, w))) {
            return false;
        }
        at += n;
    }
    return true;
}
