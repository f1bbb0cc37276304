/* SPDX-License-Identifier: Apache-2.0 */
/* The one thread that looks at the time: a few times a second it calls back, and in between
 * it reads what clients still send on connections that were answered early. Closing such a
 * connection at once would reset it, and the client would never see the answer. */
#ifndef LOCKSTEP_HTTP_PULSE_H
#define LOCKSTEP_HTTP_PULSE_H

#include "base/error.h"

struct pulse;
typedef void (*pulse_fn)(void *ctx);

#define PULSE_MS         250
#define PULSE_LINGERS    32
#define PULSE_LINGER_MS  3000
#define PULSE_LINGER_MAX ((size_t)64 << 20) /* bytes read from one */

MUST_USE err_t pulse_open(pulse_fn fn, void *ctx, struct pulse **ret, struct error *e);
void pulse_close(struct pulse *p); /* NULL is allowed */
/* Reads and drops what comes on a copy of fd until its other end closes it. Not when there
 * are too many already. */
void pulse_linger(struct pulse *p, int fd);

#endif
