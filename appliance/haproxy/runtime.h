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

/* All: ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_CONFLICT (an answer that is no success), ERR_INVALID
 * (one that was cut, or a map that is another), ERR_LIMIT. Names are those of files in
 * haproxy.cfg; servers are changed by admin_set_*. */

/* From now on until runtime_end the worker counts as being changed (base/running.h).
 * ERR_CONFLICT: it does not run the files of that digest. */
MUST_USE err_t runtime_begin(const struct runtime *r, const char *digest, struct error *e);
/* It runs the files of this digest now. */
MUST_USE err_t runtime_end(const struct runtime *r, const char *digest, struct error *e);

/* Milliseconds for the next command; ERR_TIMEOUT when none are left. */
MUST_USE err_t runtime_left(const struct runtime *r, int64_t *ret_ms, struct error *e);

/* The map holds the entries of this file, all at once; lookups see the old or the new ones. */
MUST_USE err_t runtime_map(
    const struct runtime *r, const char *name, const char *text, size_t bytes, struct error *e);
/* Certificate, chain and key, PEM. */
MUST_USE err_t runtime_certificate(
    const struct runtime *r, const char *name, const char *pem, size_t bytes, struct error *e);

#endif
