/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the running worker by the admin socket (management guide, section 9.3): each is
 * one that a reload of changed files would bring, and every answer is checked. After a failure
 * the worker may be between two states, and has to be reloaded. */
#ifndef LOCKSTEP_HAPROXY_RUNTIME_H
#define LOCKSTEP_HAPROXY_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct runtime {
    const char *socket_path;
    int64_t socket_ms; /* for one command */
    int64_t end_ms;    /* for all: monotonic */
};

/* All: ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_INVALID (an answer that is no success), ERR_LIMIT.
 * Names are those of files, backends and servers in haproxy.cfg. */

/* From now on until runtime_end the worker counts as being changed (base/running.h).
 * ERR_CONFLICT: it does not run the files of that digest. */
MUST_USE err_t runtime_begin(const struct runtime *r, const char *digest, struct error *e);
/* It runs the files of this digest now. */
MUST_USE err_t runtime_end(const struct runtime *r, const char *digest, struct error *e);

MUST_USE err_t runtime_weight(
    const struct runtime *r, const char *backend, const char *server, int64_t weight,
    struct error *e);
MUST_USE err_t runtime_maxconn(
    const struct runtime *r, const char *backend, const char *server, int64_t maxconn,
    struct error *e);

struct runtime_target {
    const char *address; /* literal, without brackets */
    int64_t port;
};

MUST_USE err_t runtime_address(
    const struct runtime *r, const char *backend, const char *server,
    const struct runtime_target *target, struct error *e);
/* The map holds the entries of this file, all at once; lookups see the old or the new ones. */
MUST_USE err_t runtime_map(
    const struct runtime *r, const char *name, const char *text, size_t bytes, struct error *e);
/* Certificate, chain and key, PEM. */
MUST_USE err_t runtime_certificate(
    const struct runtime *r, const char *name, const char *pem, size_t bytes, struct error *e);

#endif
