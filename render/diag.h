/* SPDX-License-Identifier: Apache-2.0 */
/* What "haproxy -c" printed -> problems at objects and fields. Pure. */
#ifndef LOCKSTEP_RENDER_DIAG_H
#define LOCKSTEP_RENDER_DIAG_H

#include "render/haproxy.h"

/* Lines such as "[ALERT] (123) : config : parsing [haproxy.cfg:27] : ..." and "[WARNING]",
 * each with the indented lines that follow it. Each becomes a problem (code "haproxy") of the
 * object and field that wrote line 27; lines that name no known place are kept as problems
 * without an object, never dropped, and notices and the closing summary lines are skipped.
 * Where there is no line, a certificate's file and proxy and server names in messages
 * ("backend 'app'", "'server app/app.1'") are used. ALERT and EMERG are errors; the rest,
 * what HAProxy did not mark at all included, are warnings: the exit status decides. */
void diag_haproxy(const char *output, const struct rendered *r, struct problems *p);

#endif
