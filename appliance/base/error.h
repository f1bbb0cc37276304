/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and the error record that a caller keeps on its stack. */
#ifndef LOCKSTEP_BASE_ERROR_H
#define LOCKSTEP_BASE_ERROR_H

#include "base/attr.h"

/* X(code, name, default HTTP status) */
#define ERR_LIST(X)                                                                            \
    X(OK, ok, 200)                                                                             \
    X(INVALID, invalid, 422)                                                                   \
    X(SYNTAX, syntax, 400)                                                                     \
    X(NOT_FOUND, not_found, 404)                                                               \
    X(CONFLICT, conflict, 409)                                                                 \
    X(STALE, stale, 412)                                                                       \
    X(LOCKED, locked, 423)                                                                     \
    X(DENIED, denied, 403)                                                                     \
    X(LIMIT, limit, 413)                                                                       \
    X(BUSY, busy, 503)                                                                         \
    X(TIMEOUT, timeout, 504)                                                                   \
    X(UNAVAILABLE, unavailable, 503)                                                           \
    X(IO, io, 503)                                                                             \
    X(CORRUPT, corrupt, 500)                                                                   \
    X(INTERNAL, internal, 500)

#define ERR_ENUM(code, name, status) ERR_##code,

typedef enum { ERR_LIST(ERR_ENUM) } err_t;

#undef ERR_ENUM

#define ERROR_MSG_BYTES 240

/* Filled once by the function that fails; no heap. msg is UTF-8, cut at a character. */
struct error {
    err_t code;
    char msg[ERROR_MSG_BYTES];
};

/* Sets *e (e may be NULL) and returns code, so that "return error_set(...)" works. */
err_t error_set(struct error *e, err_t code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* As error_set, and appends ": " and the text of errno_value. */
err_t error_errno(struct error *e, err_t code, int errno_value, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Prefixes the message with "context: "; the code stays. Returns e->code. */
err_t error_wrap(struct error *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Machine-readable name of a code, as "not_found". */
const char *error_name(err_t code);
int error_http_status(err_t code);

#endif
