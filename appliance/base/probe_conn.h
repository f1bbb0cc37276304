/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that ends at a point in time, for base/probe.c. Nothing raises SIGPIPE. */
#ifndef LOCKSTEP_BASE_PROBE_CONN_H
#define LOCKSTEP_BASE_PROBE_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct conn {
    int fd;              /* -1: none yet; the caller closes it */
    int64_t end_ms;      /* monotonic: ERR_TIMEOUT from then on */
    const char *address; /* also for messages */
    const char *source;  /* literal; NULL: any */
};

MUST_USE err_t
conn_connect_inet(struct conn *c, const char *address, int port, struct error *e);
MUST_USE err_t conn_connect_unix(struct conn *c, const char *path, struct error *e);
MUST_USE err_t
conn_wait(const struct conn *c, short events, short *ret_revents, struct error *e);
MUST_USE err_t
conn_send_all(const struct conn *c, const char *p, size_t bytes, struct error *e);
/* *ret_bytes 0: the other side closed. */
MUST_USE err_t
conn_receive(const struct conn *c, char *p, size_t bytes, size_t *ret_bytes, struct error *e);
/* ERR_UNAVAILABLE, with what was being done; or because it was closed. */
err_t conn_failed(const struct conn *c, int errno_value, const char *doing, struct error *e);
err_t conn_closed(const struct conn *c, struct error *e);

#endif
