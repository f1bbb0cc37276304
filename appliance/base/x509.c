/* SPDX-License-Identifier: Apache-2.0 */
#include "base/x509.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/crypt.h"
#include "base/pem.h"
#include "base/utf8.h"
#include "base/x509_inner.h"

#define NAME_MAX_BYTES        253
#define COMMON_NAME_MAX_BYTES 64 /* ub-common-name of RFC 5280 */
#define SERIAL_BYTES          16
#define DAYS_MAX              36500

static void
cert_cleanup(X509 **x)
{
    X509_free(*x);
    ERR_clear_error();
}

static void
key_cleanup(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
    ERR_clear_error();
}

void
x509_bio_cleanup(BIO **b)
{
    BIO_free(*b);
}

static void
names_cleanup(GENERAL_NAMES **n)
{
    GENERAL_NAMES_free(*n);
}

err_t
x509_normalize(const char *pem, size_t bytes, struct buf *out, struct error *e)
{
    struct pem p = {.out = out};
    size_t before = out->len;
    err_t code = pem_normalize(&p, pem, bytes, e);

    if (code != ERR_OK && out->data != NULL) {
        crypt_wipe(out->data + before, out->len - before);
        out->len = before;
    }
    return code;
}

/* With all of its memory, since growing would leave copies of a key behind. */
static void
init_normal(struct buf *b, size_t bytes)
{
    buf_init(b, pem_normal_max(bytes));
    ASSERT(buf_reserve(b, pem_normal_max(bytes)));
}

int
x509_no_password(char *out, int size, int writing, void *ctx)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

/* Parses all certificates; *ret_leaf is the first. */
static err_t
read_chain(
    const char *chain_pem, size_t bytes, X509 **ret_leaf, size_t *ret_count, struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    CLEANUP(cert_cleanup) X509 *leaf = NULL;
    CLEANUP(x509_bio_cleanup) BIO *bio = NULL;
    struct pem p = {.out = &text, .strict = true, .only = "CERTIFICATE"};
    err_t code;

    init_normal(&text, bytes);
    code = pem_normalize(&p, chain_pem, bytes, e);
    if (code != ERR_OK) {
        return code;
    }
    ASSERT(text.len <= INT32_MAX);
    bio = BIO_new_mem_buf(text.data, (int)text.len);
    ASSERT(bio != NULL);
    for (size_t i = 0; i < p.blocks; i++) {
        CLEANUP(cert_cleanup) X509 *x = PEM_read_bio_X509(bio, NULL, x509_no_password, NULL);

        if (x == NULL || X509_get0_pubkey(x) == NULL) {
            return error_set(e, ERR_INVALID, "certificate %zu does not parse", i + 1);
        }
        if (i == 0) {
            leaf = TAKE(x);
        }
    }
    *ret_leaf = TAKE(leaf);
    *ret_count = p.blocks;
    return ERR_OK;
}

/* Unix time of t; 0 days and seconds from the epoch when OpenSSL cannot read it. */
static bool
unix_time(const ASN1_TIME *t, int64_t *ret)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0;
    int seconds = 0;
    bool ok = epoch != NULL && ASN1_TIME_diff(&days, &seconds, epoch, t) == 1;

    ASN1_TIME_free(epoch);
    *ret = (int64_t)days * 86400 + seconds;
    return ok;
}

/* As much of s as fits, cut at a character, with '?' for what is not printable. */
static void
copy_text(char *out, size_t out_bytes, const char *s, size_t bytes)
{
    size_t at = 0;

    while (bytes > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(s, bytes, &c);
        bool plain = n > 0 && c >= 0x20 && (c < 0x7f || c > 0x9f);
        size_t need = plain ? n : 1;

        n = n == 0 ? 1 : n;
        if (need >= out_bytes - at) {
            break;
        }
        memcpy(out + at, plain ? s : "?", need);
        at += need;
        s += n;
        bytes -= n;
    }
    out[at] = '\0';
}

static void
read_subject(const X509 *x, char *out, size_t out_bytes)
{
    const X509_NAME *name = X509_get_subject_name(x);
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    unsigned char *text = NULL;
    int len;

    out[0] = '\0';
    if (at < 0) {
        return;
    }
    len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (len >= 0) {
        copy_text(out, out_bytes, (const char *)text, (size_t)len);
        OPENSSL_free(text);
    }
}

/* The text of a DNS or IP name; 0 for other kinds and for names with odd characters. */
static size_t
name_text(const GENERAL_NAME *g, char *out, size_t out_bytes)
{
    int type = 0;
    const ASN1_STRING *s = GENERAL_NAME_get0_value(g, &type);
    const unsigned char *p;
    size_t len;

    if (type != GEN_DNS && type != GEN_IPADD) {
        return 0;
    }
    p = ASN1_STRING_get0_data(s);
    len = (size_t)ASN1_STRING_length(s);
    if (type == GEN_IPADD) {
        int family = len == sizeof(struct in6_addr) ? AF_INET6 : AF_INET;

        if ((len != sizeof(struct in_addr) && len != sizeof(struct in6_addr)) ||
            inet_ntop(family, p, out, (socklen_t)out_bytes) == NULL) {
            return 0;
        }
        return strlen(out);
    }
    if (len >= out_bytes) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        if (p[i] <= ' ' || p[i] > '~') {
            return 0;
        }
    }
    memcpy(out, p, len);
    return len;
}

static void
read_names(const X509 *x, char *out, size_t out_bytes)
{
    CLEANUP(names_cleanup)
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    int count = names != NULL ? sk_GENERAL_NAME_num(names) : 0;
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        char text[NAME_MAX_BYTES + 2];
        size_t len = name_text(sk_GENERAL_NAME_value(names, i), text, sizeof text);

        if (len == 0) {
            continue;
        }
        if (at + (at > 0 ? 1 : 0) + len >= out_bytes) {
            break;
        }
        if (at > 0) {
            out[at++] = ' ';
        }
        memcpy(out + at, text, len);
        at += len;
    }
    out[at] = '\0';
}

static struct hash
hash_and_free(unsigned char *der, int len)
{
    struct hash h;

    ASSERT(der != NULL && len > 0);
    h = sha256(der, (size_t)len);
    OPENSSL_free(der);
    return h;
}

static void
read_hashes(const X509 *x, struct x509_info *out)
{
    static const char pin_prefix[] = "sha256//";
    unsigned char *der = NULL;
    int len = i2d_X509(x, &der);
    struct hash h = hash_and_free(der, len);

    hash_hex(&h, out->fingerprint_hex);
    der = NULL;
    len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    h = hash_and_free(der, len);
    memcpy(out->pin_b64, pin_prefix, sizeof pin_prefix);
    (void)EVP_EncodeBlock(
        (unsigned char *)out->pin_b64 + sizeof pin_prefix - 1, h.b, sizeof h.b);
}

err_t
x509_read(const char *chain_pem, size_t bytes, struct x509_info *ret, struct error *e)
{
    CLEANUP(cert_cleanup) X509 *leaf = NULL;
    struct x509_info info = {.chain_len = 0};
    err_t code = read_chain(chain_pem, bytes, &leaf, &info.chain_len, e);

    if (code != ERR_OK) {
        return code;
    }
    if (!unix_time(X509_get0_notBefore(leaf), &info.not_before_s) ||
        !unix_time(X509_get0_notAfter(leaf), &info.not_after_s)) {
        return error_set(e, ERR_INVALID, "certificate 1 has no readable dates");
    }
    read_hashes(leaf, &info);
    read_subject(leaf, info.subject, sizeof info.subject);
    read_names(leaf, info.names, sizeof info.names);
    *ret = info;
    return ERR_OK;
}

err_t
x509_check_key(
    const char *chain_pem, size_t chain_bytes, const char *key_pem, size_t key_bytes,
    struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf text;
    CLEANUP(cert_cleanup) X509 *leaf = NULL;
    CLEANUP(key_cleanup) EVP_PKEY *key = NULL;
    CLEANUP(x509_bio_cleanup) BIO *bio = NULL;
    struct pem p = {.out = &text, .strict = true};
    struct error reason;
    size_t count;
    err_t code;

    init_normal(&text, key_bytes);
    code = read_chain(chain_pem, chain_bytes, &leaf, &count, e);
    if (code != ERR_OK) {
        return code;
    }
    code = pem_normalize(&p, key_pem, key_bytes, &reason);
    if (code != ERR_OK) {
        return error_set(e, code, "private key: %s", reason.msg);
    }
    if (p.keys != 1) {
        return error_set(e, ERR_INVALID, "expected one private key, found %zu", p.keys);
    }
    ASSERT(text.len <= INT32_MAX);
    bio = BIO_new_mem_buf(text.data, (int)text.len);
    ASSERT(bio != NULL);
    key = PEM_read_bio_PrivateKey(bio, NULL, x509_no_password, NULL);
    if (key == NULL) {
        return error_set(e, ERR_INVALID, "private key does not parse, or is encrypted");
    }
    if (X509_check_private_key(leaf, key) != 1) {
        return error_set(e, ERR_INVALID, "private key does not belong to the certificate");
    }
    return ERR_OK;
}

/* Letters, digits, '-', '_' and '.', perhaps behind "*.": nothing that any reader of the
 * certificate could take for more than a name. */
static bool
is_dns_name(const char *name)
{
    if (strncmp(name, "*.", 2) == 0) {
        name += 2;
    }
    if (*name == '\0') {
        return false;
    }
    for (; *name != '\0'; name++) {
        bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');

        if (!letter && !(*name >= '0' && *name <= '9') && strchr("-_.", *name) == NULL) {
            return false;
        }
    }
    return true;
}

static void
add_name(GENERAL_NAMES *names, int type, const void *p, size_t bytes)
{
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *s =
        ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);

    ASSERT(g != NULL && s != NULL && ASN1_STRING_set(s, p, (int)bytes) == 1);
    GENERAL_NAME_set0_value(g, type, s);
    ASSERT(sk_GENERAL_NAME_push(names, g) > 0);
}

static err_t
add_names(X509 *x, const char *const *names, struct error *e)
{
    CLEANUP(names_cleanup) GENERAL_NAMES *list = GENERAL_NAMES_new();

    ASSERT(list != NULL);
    if (names[0] == NULL) {
        return error_set(e, ERR_INVALID, "a certificate needs a name");
    }
    for (size_t i = 0; names[i] != NULL; i++) {
        unsigned char ip[sizeof(struct in6_addr)];
        size_t len = strlen(names[i]);

        if (inet_pton(AF_INET, names[i], ip) == 1) {
            add_name(list, GEN_IPADD, ip, sizeof(struct in_addr));
        } else if (inet_pton(AF_INET6, names[i], ip) == 1) {
            add_name(list, GEN_IPADD, ip, sizeof(struct in6_addr));
        } else if (len <= NAME_MAX_BYTES && is_dns_name(names[i])) {
            add_name(list, GEN_DNS, names[i], len);
        } else {
            return error_set(
                e, ERR_INVALID,
                "name %zu of the certificate is neither a DNS name nor an IP address", i + 1);
        }
    }
    ASSERT(X509_add1_ext_i2d(x, NID_subject_alt_name, list, 0, X509V3_ADD_DEFAULT) == 1);
    return ERR_OK;
}

static void
add_usage(X509 *x)
{
    BASIC_CONSTRAINTS *basic = BASIC_CONSTRAINTS_new();
    ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
    EXTENDED_KEY_USAGE *extended = EXTENDED_KEY_USAGE_new();

    ASSERT(basic != NULL && usage != NULL && extended != NULL);
    basic->ca = 0;
    /* Bit 0 is digitalSignature; an EC key is used for nothing else in TLS. */
    ASSERT(ASN1_BIT_STRING_set_bit(usage, 0, 1) == 1);
    ASSERT(sk_ASN1_OBJECT_push(extended, OBJ_nid2obj(NID_server_auth)) > 0);
    ASSERT(X509_add1_ext_i2d(x, NID_basic_constraints, basic, 1, X509V3_ADD_DEFAULT) == 1);
    ASSERT(X509_add1_ext_i2d(x, NID_key_usage, usage, 1, X509V3_ADD_DEFAULT) == 1);
    ASSERT(X509_add1_ext_i2d(x, NID_ext_key_usage, extended, 0, X509V3_ADD_DEFAULT) == 1);
    BASIC_CONSTRAINTS_free(basic);
    ASN1_BIT_STRING_free(usage);
    EXTENDED_KEY_USAGE_free(extended);
}

static void
set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *n;

    crypt_random(bytes, sizeof bytes);
    /* Positive, and always of the same length. */
    bytes[0] = (unsigned char)((bytes[0] & 0x7fu) | 0x40u);
    n = BN_bin2bn(bytes, sizeof bytes, NULL);
    ASSERT(n != NULL && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL);
    BN_free(n);
}

static void
set_subject(X509 *x, const char *first_name)
{
    X509_NAME *name = X509_NAME_new();
    const char *common = strlen(first_name) <= COMMON_NAME_MAX_BYTES ? first_name : "Lockstep";

    ASSERT(name != NULL);
    ASSERT(
        X509_NAME_add_entry_by_NID(
            name, NID_commonName, MBSTRING_UTF8, (const unsigned char *)common, -1, -1, 0) ==
        1);
    ASSERT(X509_set_subject_name(x, name) == 1 && X509_set_issuer_name(x, name) == 1);
    X509_NAME_free(name);
}

/* An hour back, for clients whose clock is behind. */
static err_t
set_dates(X509 *x, int64_t now_s, int days, struct error *e)
{
    time_t now = (time_t)now_s;

    if (days < 1 || days > DAYS_MAX ||
        ASN1_TIME_adj(X509_getm_notBefore(x), now, 0, -3600) == NULL ||
        ASN1_TIME_adj(X509_getm_notAfter(x), now, days, 0) == NULL) {
        return error_set(e, ERR_INVALID, "certificate cannot be valid for %d days", days);
    }
    return ERR_OK;
}

static void
put_bio(BIO *bio, struct buf *out)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);

    ASSERT(len > 0);
    buf_put(out, text, (size_t)len);
}

static void
put_pem(X509 *x, const EVP_PKEY *key, struct buf *chain_pem, struct buf *key_pem)
{
    CLEANUP(x509_bio_cleanup) BIO *chain_bio = BIO_new(BIO_s_mem());
    CLEANUP(x509_bio_cleanup) BIO *key_bio = BIO_new(BIO_s_mem());

    ASSERT(chain_bio != NULL && key_bio != NULL);
    ASSERT(PEM_write_bio_X509(chain_bio, x) == 1);
    ASSERT(PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    put_bio(chain_bio, chain_pem);
    put_bio(key_bio, key_pem);
}

err_t
x509_selfsigned(
    const char *const *names, int64_t now_s, int days, struct buf *chain_pem,
    struct buf *key_pem, struct error *e)
{
    CLEANUP(cert_cleanup) X509 *x = X509_new();
    CLEANUP(key_cleanup) EVP_PKEY *key = NULL;
    err_t code;

    ASSERT(x != NULL && X509_set_version(x, X509_VERSION_3) == 1);
    code = add_names(x, names, e);
    if (code == ERR_OK) {
        code = set_dates(x, now_s, days, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    key = EVP_EC_gen("P-256");
    ASSERT(key != NULL && X509_set_pubkey(x, key) == 1);
    set_serial(x);
    set_subject(x, names[0]);
    add_usage(x);
    ASSERT(X509_sign(x, key, EVP_sha256()) > 0);
    put_pem(x, key, chain_pem, key_pem);
    code = buf_status(chain_pem, e);
    return code != ERR_OK ? code : buf_status(key_pem, e);
}

bool
x509_knows_ciphers(const char *list, bool tls13)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    int found;

    ASSERT(ctx != NULL);
    found = tls13 ? SSL_CTX_set_ciphersuites(ctx, list) : SSL_CTX_set_cipher_list(ctx, list);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return found == 1;
}

bool
x509_demand_name(void *ctx, const char *name)
{
    return X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(ctx), name, 0) == 1;
}
