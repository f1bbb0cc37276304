/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/crypt.h"
#include "base/x509.h"

#define NOW_S 1796000000

/* A certificate and its key. */
struct pair {
    struct buf chain;
    struct buf key;
};

static void
pair_fini(struct pair *p)
{
    buf_fini(&p->chain);
    buf_fini(&p->key);
}

static void
make(struct pair *p, const char *const *names)
{
    struct error e = {.msg = ""};

    buf_init(&p->chain, 65536);
    buf_init(&p->key, 65536);
    if (x509_selfsigned(names, NOW_S, 30, &p->chain, &p->key, &e) != ERR_OK) {
        fail_msg("%s", e.msg);
    }
}

static void
make_one(struct pair *p, const char *name)
{
    const char *const names[] = {name, NULL};

    make(p, names);
}

static X509 *
parsed(const struct buf *pem)
{
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->len);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    assert_non_null(x);
    return x;
}

static void
selfsigned_is_a_v3_server_certificate(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    X509 *x;
    EVP_PKEY *key;

    (void)state;
    make_one(&p, "node1.example");
    x = parsed(&p.chain);
    key = X509_get0_pubkey(x);
    assert_int_equal(X509_get_version(x), X509_VERSION_3);
    assert_int_equal(X509_verify(x, key), 1);
    assert_int_equal(EVP_PKEY_get_bits(key), 256);
    assert_int_equal(X509_get_extension_flags(x) & EXFLAG_CA, 0);
    assert_int_not_equal(X509_get_extension_flags(x) & EXFLAG_BCONS, 0);
    assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
    assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 1);
    assert_int_equal(X509_NAME_cmp(X509_get_subject_name(x), X509_get_issuer_name(x)), 0);
    X509_free(x);
    assert_memory_equal(buf_str(&p.key), "-----BEGIN PRIVATE KEY-----\n", 28);
}

static void
serial_numbers_are_long_positive_and_differ(void **state)
{
    CLEANUP(pair_fini) struct pair a;
    CLEANUP(pair_fini) struct pair b;
    X509 *x;
    X509 *y;

    (void)state;
    make_one(&a, "a");
    make_one(&b, "a");
    x = parsed(&a.chain);
    y = parsed(&b.chain);
    assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(x)), 16);
    assert_int_equal(ASN1_STRING_type(X509_get0_serialNumber(x)), V_ASN1_INTEGER);
    assert_int_not_equal(
        ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(y)), 0);
    X509_free(x);
    X509_free(y);
}

static void
names_and_addresses_go_into_the_alternative_names(void **state)
{
    static const char *const names[] = {"lb.example",  "*.apps.example", "192.0.2.7",
                                        "2001:db8::1", "_x-1.example",   NULL};
    CLEANUP(pair_fini) struct pair p;
    struct x509_info info;
    X509 *x;

    (void)state;
    make(&p, names);
    x = parsed(&p.chain);
    assert_int_equal(X509_check_host(x, "lb.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x, "one.apps.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x, "apps.example", 0, 0, NULL), 0);
    assert_int_equal(X509_check_host(x, "a.b.apps.example", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(x, "192.0.2.7", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "2001:db8::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "192.0.2.8", 0), 0);
    X509_free(x);
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &info, NULL), ERR_OK);
    assert_string_equal(info.subject, "lb.example");
    assert_string_equal(
        info.names, "lb.example *.apps.example 192.0.2.7 2001:db8::1 _x-1.example");
}

static void
rejects_what_is_not_a_name(void **state)
{
    static const char *const none[] = {NULL};
    char longest[255];
    const char *bad[] = {
        "",         "*",     "*.",      "a b",      "a,DNS:b",
        "a\nb",     "a\r",   "*.*.a",   "a*",       "x.*",
        "\xc3\xa9", "a/b",   "a@b",     "http://a", "192.0.2.7/24",
        "::1%eth0", "[::1]", "email:a", longest,
    };
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;
    struct error e;

    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *const names[] = {"good.example", bad[i], NULL};

        assert_int_equal(x509_selfsigned(names, NOW_S, 1, &chain, &key, &e), ERR_INVALID);
        assert_non_null(strstr(e.msg, "name 2 "));
    }
    assert_int_equal(x509_selfsigned(none, NOW_S, 1, &chain, &key, &e), ERR_INVALID);
    assert_int_equal(chain.len + key.len, 0);
}

static void
longest_name_is_no_common_name(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    char name[254];
    struct x509_info info;

    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    make_one(&p, name);
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &info, NULL), ERR_OK);
    assert_string_equal(info.names, name);
    assert_string_equal(info.subject, "Lockstep");
}

static void
validity_starts_an_hour_back(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    struct x509_info info;

    (void)state;
    make_one(&p, "a");
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &info, NULL), ERR_OK);
    assert_int_equal(info.not_before_s, NOW_S - 3600);
    assert_int_equal(info.not_after_s, NOW_S + 30 * 86400);
}

static void
rejects_impossible_dates(void **state)
{
    static const char *const names[] = {"a", NULL};
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;

    (void)state;
    buf_init(&chain, 65536);
    buf_init(&key, 65536);
    assert_int_equal(x509_selfsigned(names, NOW_S, 0, &chain, &key, NULL), ERR_INVALID);
    assert_int_equal(x509_selfsigned(names, NOW_S, -1, &chain, &key, NULL), ERR_INVALID);
    assert_int_equal(x509_selfsigned(names, NOW_S, 36501, &chain, &key, NULL), ERR_INVALID);
    assert_int_equal(x509_selfsigned(names, 253402300799, 30, &chain, &key, NULL), ERR_INVALID);
    assert_int_equal(x509_selfsigned(names, INT64_MAX, 30, &chain, &key, NULL), ERR_INVALID);
}

static void
small_buffers_are_a_limit(void **state)
{
    static const char *const names[] = {"a", NULL};
    CLEANUP(buf_fini) struct buf chain;
    CLEANUP(buf_fini) struct buf key;

    (void)state;
    buf_init(&chain, 100);
    buf_init(&key, 65536);
    assert_int_equal(x509_selfsigned(names, NOW_S, 1, &chain, &key, NULL), ERR_LIMIT);
    buf_init(&chain, 65536);
    buf_fini(&key);
    buf_init(&key, 100);
    assert_int_equal(x509_selfsigned(names, NOW_S, 1, &chain, &key, NULL), ERR_LIMIT);
}

static void
fingerprint_and_pin_are_those_of_the_leaf(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    struct x509_info info;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned char text[64];
    unsigned char *der = NULL;
    unsigned size = 0;
    struct hash h;
    char hex[SHA256_HEX + 1];
    X509 *x;
    int len;

    (void)state;
    make_one(&p, "a");
    x = parsed(&p.chain);
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &info, NULL), ERR_OK);
    assert_int_equal(X509_digest(x, EVP_sha256(), digest, &size), 1);
    memcpy(h.b, digest, sizeof h.b);
    hash_hex(&h, hex);
    assert_string_equal(info.fingerprint_hex, hex);
    len = i2d_PUBKEY(X509_get0_pubkey(x), &der);
    assert_true(len > 0);
    h = sha256(der, (size_t)len);
    (void)EVP_EncodeBlock(text, h.b, sizeof h.b);
    assert_memory_equal(info.pin_b64, "sha256//", 8);
    assert_string_equal(info.pin_b64 + 8, (const char *)text);
    OPENSSL_free(der);
    X509_free(x);
}

static void
chain_is_counted_and_the_leaf_is_first(void **state)
{
    CLEANUP(pair_fini) struct pair a;
    CLEANUP(pair_fini) struct pair b;
    struct x509_info info;

    (void)state;
    make_one(&a, "leaf");
    make_one(&b, "issuer");
    buf_puts(&a.chain, "\r\n\r\n");
    buf_put(&a.chain, b.chain.data, b.chain.len);
    assert_int_equal(x509_read(a.chain.data, a.chain.len, &info, NULL), ERR_OK);
    assert_int_equal(info.chain_len, 2);
    assert_string_equal(info.subject, "leaf");
    assert_int_equal(
        x509_check_key(a.chain.data, a.chain.len, a.key.data, a.key.len, NULL), ERR_OK);
    assert_int_equal(
        x509_check_key(a.chain.data, a.chain.len, b.key.data, b.key.len, NULL), ERR_INVALID);
}

static void
crlf_and_blank_lines_do_not_matter(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    CLEANUP(buf_fini) struct buf crlf;
    CLEANUP(buf_fini) struct buf normal;
    struct x509_info a;
    struct x509_info b;

    (void)state;
    make_one(&p, "a");
    buf_init(&crlf, 65536);
    buf_init(&normal, 65536);
    for (size_t i = 0; i < p.chain.len; i++) {
        buf_puts(&crlf, p.chain.data[i] == '\n' ? "\r\n\r\n" : "");
        if (p.chain.data[i] != '\n') {
            buf_putc(&crlf, p.chain.data[i]);
        }
    }
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &a, NULL), ERR_OK);
    assert_int_equal(x509_read(crlf.data, crlf.len, &b, NULL), ERR_OK);
    assert_string_equal(a.fingerprint_hex, b.fingerprint_hex);
    assert_int_equal(x509_normalize(crlf.data, crlf.len, &normal, NULL), ERR_OK);
    assert_string_equal(buf_str(&normal), buf_str(&p.chain));
}

static void
read_refuses(const char *before, const struct buf *pem, const char *after, const char *reason)
{
    CLEANUP(buf_fini) struct buf b;
    struct x509_info info = {.chain_len = 77};
    struct error e = {.msg = ""};

    buf_init(&b, 65536);
    buf_puts(&b, before);
    buf_puts(&b, buf_str(pem));
    buf_puts(&b, after);
    assert_int_equal(x509_read(b.data, b.len, &info, &e), ERR_INVALID);
    assert_int_equal(info.chain_len, 77);
    if (strstr(e.msg, reason) == NULL) {
        fail_msg("wanted \"%s\", got \"%s\"", reason, e.msg);
    }
}

static void
read_refuses_what_is_not_a_chain(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    struct buf none;

    (void)state;
    buf_init(&none, 10);
    make_one(&p, "a");
    read_refuses("subject=a\n", &p.chain, "", "text outside the PEM blocks");
    read_refuses("", &p.chain, "x\n", "text outside the PEM blocks");
    read_refuses("", &p.chain, buf_str(&p.key), "block 2 is PRIVATE KEY, not CERTIFICATE");
    read_refuses("", &p.key, "", "block 1 is PRIVATE KEY, not CERTIFICATE");
    read_refuses(
        "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n", &none, "",
        "certificate 1 does not parse");
    read_refuses(
        "", &p.chain, "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n",
        "certificate 2 does not parse");
    read_refuses("\n", &none, "", "no PEM block");
}

static err_t
check(const struct buf *chain, const char *key, size_t bytes, struct error *e)
{
    return x509_check_key(chain->data, chain->len, key, bytes, e);
}

static void
key_of_another_certificate_is_refused(void **state)
{
    CLEANUP(pair_fini) struct pair a;
    CLEANUP(pair_fini) struct pair b;
    struct error e;

    (void)state;
    make_one(&a, "a");
    make_one(&b, "a");
    assert_int_equal(check(&a.chain, a.key.data, a.key.len, &e), ERR_OK);
    assert_int_equal(check(&a.chain, b.key.data, b.key.len, &e), ERR_INVALID);
    assert_string_equal(e.msg, "private key does not belong to the certificate");
}

/* The key again, in another form. */
static void
convert_key(const struct buf *key, bool encrypt, struct buf *out)
{
    BIO *in = BIO_new_mem_buf(key->data, (int)key->len);
    BIO *bio = BIO_new(BIO_s_mem());
    EVP_PKEY *k = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    char *text = NULL;
    long len;

    assert_non_null(k);
    if (encrypt) {
        assert_int_equal(
            PEM_write_bio_PKCS8PrivateKey(bio, k, EVP_aes_128_cbc(), "pass", 4, NULL, NULL), 1);
    } else {
        assert_int_equal(
            PEM_write_bio_PrivateKey_traditional(bio, k, NULL, NULL, 0, NULL, NULL), 1);
    }
    len = BIO_get_mem_data(bio, &text);
    buf_put(out, text, (size_t)len);
    EVP_PKEY_free(k);
    BIO_free(bio);
    BIO_free(in);
}

static void
traditional_key_with_parameters_is_accepted(void **state)
{
    CLEANUP(pair_fini) struct pair p;
    CLEANUP(buf_fini) struct buf key;

    (void)state;
    make_one(&p, "a");
    buf_init(&key, 65536);
    buf_puts(
        &key, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"
              "-----END EC PARAMETERS-----\n");
    convert_key(&p.key, false, &key);
    assert_non_null(strstr(buf_str(&key), "BEGIN EC PRIVATE KEY"));
    assert_int_equal(check(&p.chain, key.data, key.len, NULL), ERR_OK);
}

static void
unusable_keys_are_refused(void **state)
{
    static const char broken[] =
        "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n";
    static const char cut[] = "-----BEGIN PRIVATE KEY-----\nQUJD\n";
    CLEANUP(pair_fini) struct pair p;
    CLEANUP(buf_fini) struct buf key;
    struct error e;

    (void)state;
    make_one(&p, "a");
    buf_init(&key, 65536);
    convert_key(&p.key, true, &key);
    assert_int_equal(check(&p.chain, key.data, key.len, &e), ERR_INVALID);
    assert_string_equal(e.msg, "private key does not parse, or is encrypted");
    assert_int_equal(check(&p.chain, broken, sizeof broken - 1, &e), ERR_INVALID);
    assert_int_equal(check(&p.chain, cut, sizeof cut - 1, &e), ERR_INVALID);
    assert_string_equal(e.msg, "private key: PEM block 1 has no end");
    assert_int_equal(check(&p.chain, "", 0, &e), ERR_INVALID);
    assert_string_equal(e.msg, "private key: no PEM block");
    assert_int_equal(check(&p.chain, p.chain.data, p.chain.len, &e), ERR_INVALID);
    assert_string_equal(e.msg, "expected one private key, found 0");
    buf_reset(&key);
    buf_puts(&key, p.key.data);
    buf_puts(&key, p.key.data);
    assert_int_equal(check(&p.chain, key.data, key.len, &e), ERR_INVALID);
    assert_string_equal(e.msg, "expected one private key, found 2");
    assert_int_equal(
        x509_check_key(p.key.data, p.key.len, p.key.data, p.key.len, &e), ERR_INVALID);
}

static void
names_are_cut_at_a_name(void **state)
{
    const char *names[101];
    char text[100][32];
    CLEANUP(pair_fini) struct pair p;
    struct x509_info info;

    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(text[i], sizeof text[i], "%03d.host.example", i);
        names[i] = text[i];
    }
    names[100] = NULL;
    make(&p, names);
    assert_int_equal(x509_read(p.chain.data, p.chain.len, &info, NULL), ERR_OK);
    /* 60 names of 16 characters and a space each are 1020 bytes; one more does not fit. */
    assert_int_equal(strlen(info.names), 60 * 17 - 1);
    assert_string_equal(info.names + (size_t)59 * 17, "059.host.example");
}

static void
add_dns(GENERAL_NAMES *names, const char *text, int len, int type)
{
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_IA5STRING *s = ASN1_IA5STRING_new();

    assert_int_equal(ASN1_STRING_set(s, text, len), 1);
    GENERAL_NAME_set0_value(g, type, s);
    (void)sk_GENERAL_NAME_push(names, g);
}

/* A certificate that we would not make: odd subject, odd alternative names. */
static void
make_odd(struct buf *out, const char *common_name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    X509_NAME *subject = X509_NAME_new();
    BIO *bio = BIO_new(BIO_s_mem());
    X509 *x = X509_new();
    char *text = NULL;
    long len;

    if (common_name != NULL) {
        assert_int_equal(
            X509_NAME_add_entry_by_txt(
                subject, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0),
            1);
    }
    add_dns(names, "a\0b", 3, GEN_DNS);
    add_dns(names, "x y", 3, GEN_DNS);
    add_dns(names, "mail@example", 12, GEN_EMAIL);
    add_dns(names, "", 0, GEN_DNS);
    add_dns(names, "good.example", 12, GEN_DNS);
    assert_int_equal(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0), 1);
    (void)X509_set_subject_name(x, subject);
    (void)X509_set_issuer_name(x, subject);
    (void)ASN1_TIME_set_string(X509_getm_notBefore(x), "19500101000000Z");
    (void)ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z");
    (void)X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(bio, x), 1);
    len = BIO_get_mem_data(bio, &text);
    buf_put(out, text, (size_t)len);
    GENERAL_NAMES_free(names);
    X509_NAME_free(subject);
    X509_free(x);
    EVP_PKEY_free(key);
    BIO_free(bio);
}

static void
foreign_names_are_made_harmless(void **state)
{
    CLEANUP(buf_fini) struct buf pem;
    struct x509_info info;

    (void)state;
    buf_init(&pem, 65536);
    make_odd(&pem, "a\nb\x1b[2J \xc3\xa9");
    assert_int_equal(x509_read(pem.data, pem.len, &info, NULL), ERR_OK);
    assert_string_equal(info.subject, "a?b?[2J \xc3\xa9");
    assert_string_equal(info.names, "good.example");
    assert_int_equal(info.not_before_s, -631152000);
    assert_int_equal(info.not_after_s, 253402300799);
    buf_reset(&pem);
    make_odd(&pem, NULL);
    assert_int_equal(x509_read(pem.data, pem.len, &info, NULL), ERR_OK);
    assert_string_equal(info.subject, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selfsigned_is_a_v3_server_certificate),
        cmocka_unit_test(serial_numbers_are_long_positive_and_differ),
        cmocka_unit_test(names_and_addresses_go_into_the_alternative_names),
        cmocka_unit_test(rejects_what_is_not_a_name),
        cmocka_unit_test(longest_name_is_no_common_name),
        cmocka_unit_test(validity_starts_an_hour_back),
        cmocka_unit_test(rejects_impossible_dates),
        cmocka_unit_test(small_buffers_are_a_limit),
        cmocka_unit_test(fingerprint_and_pin_are_those_of_the_leaf),
        cmocka_unit_test(chain_is_counted_and_the_leaf_is_first),
        cmocka_unit_test(crlf_and_blank_lines_do_not_matter),
        cmocka_unit_test(read_refuses_what_is_not_a_chain),
        cmocka_unit_test(key_of_another_certificate_is_refused),
        cmocka_unit_test(traditional_key_with_parameters_is_accepted),
        cmocka_unit_test(unusable_keys_are_refused),
        cmocka_unit_test(names_are_cut_at_a_name),
        cmocka_unit_test(foreign_names_are_made_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
