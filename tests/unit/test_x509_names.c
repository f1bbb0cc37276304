/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "base/x509.h"

#define OUT_MAX_BYTES 65536
#define SAN_CASES                                                                              \
    "DNS:a.test,IP:192.0.2.1,DNS:*.B.Test,email:x@c.test,DNS:*,DNS:x*.test,DNS:*.*.test,"      \
    "DNS:_x-1.test,DNS:!a.test,DNS:a b"

/* Appends a certificate; alternatives: as openssl.cnf has them, or NULL. */
static void
make(struct buf *out, EVP_PKEY *key, const char *const *common_names, const char *alternatives)
{
    X509 *x = X509_new();
    X509_NAME *subject = X509_NAME_new();
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long len;

    assert_int_equal(
        X509_NAME_add_entry_by_txt(
            subject, "O", MBSTRING_UTF8, (const unsigned char *)"o.test", -1, -1, 0),
        1);
    for (; *common_names != NULL; common_names++) {
        assert_int_equal(
            X509_NAME_add_entry_by_txt(
                subject, "CN", MBSTRING_UTF8, (const unsigned char *)*common_names, -1, -1, 0),
            1);
    }
    assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
    if (alternatives != NULL) {
        X509_EXTENSION *first =
            X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:FALSE");
        X509_EXTENSION *second =
            X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternatives);

        assert_non_null(second);
        assert_int_equal(X509_add_ext(x, first, -1), 1);
        assert_int_equal(X509_add_ext(x, second, -1), 1);
        X509_EXTENSION_free(first);
        X509_EXTENSION_free(second);
    }
    (void)X509_set_subject_name(x, subject);
    (void)X509_gmtime_adj(X509_getm_notBefore(x), 0);
    (void)X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    (void)X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(bio, x), 1);
    len = BIO_get_mem_data(bio, &text);
    buf_put(out, text, (size_t)len);
    X509_NAME_free(subject);
    X509_free(x);
    BIO_free(bio);
}

static void
a_certificate_is_for_its_dns_names_or_else_its_common_names(void **state)
{
    static const char *const common[] = {"One.test", "My company", "*.two.test", NULL};

    static const struct {
        const char *alternatives, *wanted;
    } rows[] = {
        {SAN_CASES, "a.test *.b.test _x-1.test "},
        {"IP:192.0.2.1", "one.test *.two.test "},
        {NULL, "one.test *.two.test "},
    };

    EVP_PKEY *key = EVP_EC_gen("P-256");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_fini) struct buf pem;
        CLEANUP(buf_fini) struct buf names;

        buf_init(&pem, OUT_MAX_BYTES);
        buf_init(&names, OUT_MAX_BYTES);
        make(&pem, key, common, rows[i].alternatives);
        make(&pem, key, common, "DNS:issuer.test");
        assert_int_equal(x509_server_names(pem.data, pem.len, &names), X509_KEY_EC);
        assert_string_equal(buf_str(&names), rows[i].wanted);
    }
    EVP_PKEY_free(key);
}

static void
the_kind_of_key_is_told(void **state)
{
    static const char *const none[] = {NULL};

    static const struct {
        const char *name;
        enum x509_key wanted;
    } rows[] = {{"RSA", X509_KEY_RSA}, {"RSA-PSS", X509_KEY_OTHER}, {"EC", X509_KEY_EC}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(buf_fini) struct buf pem;
        CLEANUP(buf_fini) struct buf names;
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, rows[i].name, NULL);
        EVP_PKEY *key = NULL;

        buf_init(&pem, OUT_MAX_BYTES);
        buf_init(&names, OUT_MAX_BYTES);
        assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
        if (rows[i].wanted == X509_KEY_EC) {
            assert_int_equal(EVP_PKEY_CTX_set_group_name(ctx, "P-384"), 1);
        }
        assert_int_equal(EVP_PKEY_generate(ctx, &key), 1);
        make(&pem, key, none, "DNS:a.test");
        assert_int_equal(x509_server_names(pem.data, pem.len, &names), rows[i].wanted);
        assert_string_equal(buf_str(&names), "a.test ");
        EVP_PKEY_free(key);
        EVP_PKEY_CTX_free(ctx);
    }
}

/* Whatever it returns, nothing is read behind the end (the sanitizers look). */
static void
broken_certificates_do_no_harm(void **state)
{
    static const char *const common[] = {"one.test", NULL};
    static const char digits[] = "A/8CGiz-=\n";
    CLEANUP(buf_fini) struct buf pem;
    CLEANUP(buf_fini) struct buf names;
    EVP_PKEY *key = EVP_EC_gen("P-256");

    (void)state;
    buf_init(&pem, OUT_MAX_BYTES);
    buf_init(&names, OUT_MAX_BYTES);
    make(&pem, key, common, "DNS:a.test,DNS:b.test");
    for (size_t i = 0; i < pem.len; i++) {
        char c = pem.data[i];

        for (size_t j = 0; j < sizeof digits; j++) {
            pem.data[i] = digits[j];
            buf_reset(&names);
            (void)x509_server_names(pem.data, pem.len, &names);
            assert_true(names.len < pem.len);
        }
        pem.data[i] = c;
        (void)x509_server_names(pem.data, i, &names);
    }
    EVP_PKEY_free(key);
}

static void
names_cover_others_themselves_or_by_a_wildcard(void **state)
{
    static const struct {
        const char *names, *wanted;
        bool covered;
    } rows[] = {
        {"", "", true},
        {"a.test ", "", true},
        {"", "a.test ", false},
        {"b.test a.test ", "a.test ", true},
        {"*.x.test ", "a.x.test *.x.test ", true},
        {"*.x.test ", "b.a.x.test ", false},
        {"*.x.test ", "x.test ", false},
        {"a.test ", "a.test b.test ", false},
        {"a.testing ", "a.test ", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(x509_names_cover(rows[i].names, rows[i].wanted), rows[i].covered);
    }
}

static void
one_wildcard_covers_a_host(void **state)
{
    static const struct {
        const char *host, *wildcard;
    } rows[] = {
        {"a.x.test", "*.x.test"},
        {"*.x.test", "*.x.test"},
        {"x.test", "*.test"},
        {"test", ""},
        {"", ""},
        {".", "*."},
    };

    char long_host[400];
    char ret[X509_WILDCARD_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = x509_wildcard(rows[i].host, strlen(rows[i].host), ret);

        assert_int_equal(n, strlen(rows[i].wildcard));
        assert_memory_equal(ret, rows[i].wildcard, n);
    }
    memset(long_host, '.', sizeof long_host);
    assert_int_equal(x509_wildcard(long_host, 254, ret), 0);
    assert_int_equal(x509_wildcard(long_host, 253, ret), 254);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_for_its_dns_names_or_else_its_common_names),
        cmocka_unit_test(the_kind_of_key_is_told),
        cmocka_unit_test(broken_certificates_do_no_harm),
        cmocka_unit_test(names_cover_others_themselves_or_by_a_wildcard),
        cmocka_unit_test(one_wildcard_covers_a_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
