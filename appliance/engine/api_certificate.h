/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate and key of the web pages and the API: <state_dir>/data/api.crt and api.key. */
#ifndef LOCKSTEP_ENGINE_API_CERTIFICATE_H
#define LOCKSTEP_ENGINE_API_CERTIFICATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

struct api_certificate_names {
    const char *node;    /* left out when it is no DNS name */
    const char *address; /* where the server listens; left out when it is a wildcard */
};

/* Reads both. ERR_NOT_FOUND: there are none; ERR_CORRUPT: one without the other, or they do
 * not belong together. PEM texts are appended; wipe key after use. */
MUST_USE err_t
api_certificate_read(const char *data_dir, struct buf *cert, struct buf *key, struct error *e);
/* The same, or makes them (0600) when they are not there: self-signed, for the names,
 * localhost and 127.0.0.1, 10 years. */
MUST_USE err_t api_certificate_load(
    const char *data_dir, const struct api_certificate_names *names, const struct clock *clock,
    struct buf *cert, struct buf *key, struct error *e);

#endif
