/* SPDX-License-Identifier: Apache-2.0 */
/* Chain and key as a TLS server takes them: what HAProxy 2.6 calls, in its order. */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/x509.h"
#include "base/x509_inner.h"

struct served {
    SSL_CTX *ctx;
    EVP_PKEY *key;
    X509 *leaf;
    STACK_OF(X509) * issuers;
};

static void
served_cleanup(struct served *s)
{
    SSL_CTX_free(s->ctx);
    EVP_PKEY_free(s->key);
    X509_free(s->leaf);
    sk_X509_pop_free(s->issuers, X509_free);
    ERR_clear_error();
}

static err_t
refused(const char *what, struct error *e)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    return error_set(e, ERR_INVALID, "%s: %s", what, reason != NULL ? reason : "no reason");
}

static err_t
read_chain(const char *pem, size_t bytes, struct served *ret, struct error *e)
{
    CLEANUP(x509_bio_cleanup) BIO *bio = BIO_new_mem_buf(pem, (int)bytes);
    X509 *x;

    ASSERT(bio != NULL);
    ret->leaf = PEM_read_bio_X509(bio, NULL, x509_no_password, NULL);
    if (ret->leaf == NULL) {
        return refused("the certificate", e);
    }
    while ((x = PEM_read_bio_X509(bio, NULL, x509_no_password, NULL)) != NULL) {
        ASSERT(sk_X509_push(ret->issuers, x) > 0);
    }
    return ERR_OK;
}

static err_t
read_key(const char *pem, size_t bytes, struct served *ret, struct error *e)
{
    CLEANUP(x509_bio_cleanup) BIO *bio = BIO_new_mem_buf(pem, (int)bytes);

    ASSERT(bio != NULL);
    ret->key = PEM_read_bio_PrivateKey(bio, NULL, x509_no_password, NULL);
    return ret->key != NULL ? ERR_OK : refused("the private key", e);
}

err_t
x509_check_served(
    const char *chain_pem, size_t chain_bytes, const char *key_pem, size_t key_bytes,
    struct error *e)
{
    CLEANUP(served_cleanup)
    struct served s = {.ctx = SSL_CTX_new(TLS_server_method()), .issuers = sk_X509_new_null()};
    err_t code;

    ASSERT(s.ctx != NULL && s.issuers != NULL);
    ASSERT(chain_bytes <= INT32_MAX && key_bytes <= INT32_MAX);
    code = read_chain(chain_pem, chain_bytes, &s, e);
    if (code == ERR_OK) {
        code = read_key(key_pem, key_bytes, &s, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    ERR_clear_error();
    if (SSL_CTX_use_PrivateKey(s.ctx, s.key) != 1) {
        return refused("the private key", e);
    }
    if (SSL_CTX_use_certificate(s.ctx, s.leaf) != 1) {
        return refused("the certificate", e);
    }
    if (SSL_CTX_set1_chain(s.ctx, s.issuers) != 1) {
        return refused("a certificate of its issuers", e);
    }
    return SSL_CTX_check_private_key(s.ctx) == 1 ? ERR_OK : refused("the private key", e);
}
