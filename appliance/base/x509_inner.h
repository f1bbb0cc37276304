/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about certificates share. */
#ifndef LOCKSTEP_BASE_X509_INNER_H
#define LOCKSTEP_BASE_X509_INNER_H

#include <openssl/bio.h>

void x509_bio_cleanup(BIO **b); /* for CLEANUP() */
/* In place of a prompt on the terminal: what is encrypted is refused. */
int x509_no_password(char *out, int size, int writing, void *ctx);

#endif
