/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates (RFC 5280) in PEM: making self-signed ones, reading, checking against a key. */
#ifndef LOCKSTEP_BASE_X509_H
#define LOCKSTEP_BASE_X509_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Self-signed P-256 certificate for DNS names and IP addresses (each into the SAN; a "*."
 * name is a DNS name), valid from an hour before now_s for days. names ends with NULL. PEM
 * texts are appended; wipe key_pem after use. ERR_INVALID when names is empty or one is
 * neither or longer than 253. */
MUST_USE err_t x509_selfsigned(
    const char *const *names, int64_t now_s, int days, struct buf *chain_pem,
    struct buf *key_pem, struct error *e);

struct x509_info {
    int64_t not_before_s; /* Unix time */
    int64_t not_after_s;
    char fingerprint_hex[65]; /* SHA-256 of the DER form of the leaf */
    char pin_b64[56];         /* "sha256//..." of the SPKI, as CURLOPT_PINNEDPUBLICKEY */
    char subject[128];        /* leaf's common name, cut */
    size_t chain_len;         /* certificates in the chain, leaf first */
    char names[1024];         /* SAN DNS and IP names, space separated, cut at a name */
};

/* Reads a PEM chain, leaf first. ERR_INVALID says which certificate does not parse. Text
 * outside the PEM blocks is refused. */
MUST_USE err_t
x509_read(const char *chain_pem, size_t bytes, struct x509_info *ret, struct error *e);
/* Checks that the unencrypted private key belongs to the leaf. ERR_INVALID. */
MUST_USE err_t x509_check_key(
    const char *chain_pem, size_t chain_bytes, const char *key_pem, size_t key_bytes,
    struct error *e);
/* Loads them as HAProxy does for a listener with TLS, under this machine's settings of OpenSSL.
 * ERR_INVALID with OpenSSL's reason. */
MUST_USE err_t x509_check_served(
    const char *chain_pem, size_t chain_bytes, const char *key_pem, size_t key_bytes,
    struct error *e);
/* Normal form of PEM text: LF line ends, no blank lines, no text outside blocks, final LF
 * (an empty line ends a payload on HAProxy's admin socket). ERR_INVALID on a broken block. */
MUST_USE err_t x509_normalize(const char *pem, size_t bytes, struct buf *out, struct error *e);

/* Whether this machine's OpenSSL, which HAProxy has too, knows a list of ciphers for TLS 1.2
 * and older, or with tls13 of cipher suites. */
bool x509_knows_ciphers(const char *list, bool tls13);

enum x509_key { X509_KEY_OTHER, X509_KEY_RSA, X509_KEY_EC };

/* Appends the names that the leaf is for, in lower case and each with a space behind: the DNS
 * names of its SAN or, where it has none, its common names. Leaves out what is no DNS name,
 * perhaps behind "*.". Quick: some microseconds. Returns the kind of its key; of a chain that
 * x509_read refuses, anything. */
enum x509_key x509_server_names(const char *chain_pem, size_t bytes, struct buf *out);
/* The other name that covers a host, beside the host itself: a wildcard stands for exactly one
 * label, the first. Returns its length; 0: there is none. */
#define X509_WILDCARD_BYTES 256
size_t x509_wildcard(const char *host, size_t bytes, char ret[X509_WILDCARD_BYTES]);
/* Whether a certificate for names is for each of wanted, itself or by a wildcard of one label;
 * both as x509_server_names makes them. */
bool x509_names_cover(const char *names, const char *wanted);

/* Demands that whoever is connected to has a certificate for a DNS name. ctx: an SSL_CTX of
 * OpenSSL, as other libraries hand it to a callback. */
bool x509_demand_name(void *ctx, const char *name);

#endif
