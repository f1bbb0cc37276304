/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of the helper: one connection at a time, each with deadlines. */
#ifndef LOCKSTEP_HELPER_SERVER_H
#define LOCKSTEP_HELPER_SERVER_H

#include <stddef.h>

#include "helper/context.h"

/* Reads one request and writes one answer line; never fails: what is wrong with the request
 * is told to the caller, who may also be gone. */
struct buf;
void
helper_answer(struct helper_context *c, const char *request, size_t bytes, struct buf *answer);

/* Listens on <run_dir>/helper.sock (owner root, group as this process, mode 0660), until
 * signal_fd (a signalfd) is readable. Only uid 0 and c->uid are heard. The socket is removed
 * at the end. ERR_IO. */
MUST_USE err_t helper_serve(struct helper_context *c, int signal_fd, struct error *e);

#endif
