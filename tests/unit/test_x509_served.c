/* SPDX-License-Identifier: Apache-2.0 */
/* What a TLS server of this machine would not take, though key and certificate belong together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/x509.h"

#define PEM_BYTES 65536

struct side {
    struct buf chain, key;
};

static void
side_fini(struct side *s)
{
    buf_fini(&s->chain);
    buf_fini(&s->key);
}

static void
put(BIO *bio, struct buf *out)
{
    char *text = NULL;
    long bytes = BIO_get_mem_data(bio, &text);

    buf_put(out, text, (size_t)bytes);
    BIO_free(bio);
}

/* Self-signed. */
static void
make(struct side *s, EVP_PKEY *key, const EVP_MD *md)
{
    X509 *x = X509_new();
    BIO *chain = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());

    buf_init(&s->chain, PEM_BYTES);
    buf_init(&s->key, PEM_BYTES);
    assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 7), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x), 0));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x), 86400));
    assert_int_equal(
        X509_NAME_add_entry_by_txt(
            X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"a.test", -1,
            -1, 0),
        1);
    assert_int_equal(X509_set_issuer_name(x, X509_get_subject_name(x)), 1);
    assert_int_equal(X509_set_pubkey(x, key), 1);
    assert_true(X509_sign(x, key, md) > 0);
    assert_int_equal(PEM_write_bio_X509(chain, x), 1);
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL), 1);
    put(chain, &s->chain);
    put(secret, &s->key);
    X509_free(x);
    EVP_PKEY_free(key);
}

/* says NULL: it is taken. */
static void
check(const struct side *s, const char *says)
{
    struct error e = {.msg = ""};
    err_t code;

    assert_int_equal(
        x509_check_key(s->chain.data, s->chain.len, s->key.data, s->key.len, &e), ERR_OK);
    code = x509_check_served(s->chain.data, s->chain.len, s->key.data, s->key.len, &e);
    assert_int_equal(code, says != NULL ? ERR_INVALID : ERR_OK);
    if (says != NULL && strstr(e.msg, says) == NULL) {
        fail_msg("\"%s\" is not \"%s\"", e.msg, says);
    }
}

static void
usual_keys_are_taken(void **state)
{
    CLEANUP(side_fini) struct side ec, rsa, edwards;

    (void)state;
    make(&ec, EVP_EC_gen("P-256"), EVP_sha256());
    check(&ec, NULL);
    make(&rsa, EVP_RSA_gen(2048), EVP_sha256());
    check(&rsa, NULL);
    make(&edwards, EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL);
    check(&edwards, NULL);
}

static void
a_short_key_is_refused(void **state)
{
    CLEANUP(side_fini) struct side rsa;

    (void)state;
    make(&rsa, EVP_RSA_gen(1024), EVP_sha256());
    check(&rsa, "the certificate: ee key too small");
}

static void
an_issuer_is_looked_at_too(void **state)
{
    CLEANUP(side_fini) struct side leaf, issuer, weak;

    (void)state;
    make(&leaf, EVP_EC_gen("P-256"), EVP_sha256());
    make(&issuer, EVP_RSA_gen(2048), EVP_sha256());
    make(&weak, EVP_RSA_gen(1024), EVP_sha256());
    buf_put(&leaf.chain, issuer.chain.data, issuer.chain.len);
    check(&leaf, NULL);
    buf_put(&leaf.chain, weak.chain.data, weak.chain.len);
    check(&leaf, "its issuers: ca key too small");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_keys_are_taken),
        cmocka_unit_test(a_short_key_is_refused),
        cmocka_unit_test(an_issuer_is_looked_at_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
