/* SPDX-License-Identifier: Apache-2.0 */
/* What a new worker is to know of the servers: from what the running one says of them to a
 * server state file of HAProxy (format 1; configuration manual, "server-state-file"). Pure. */
#ifndef LOCKSTEP_HELPER_STATE_FILTER_H
#define LOCKSTEP_HELPER_STATE_FILTER_H

#include "base/buf.h"
#include "base/error.h"
#include "base/running.h"
#include "haproxy/span.h"
#include "helper/renames.h"

/* 200,000 servers. */
#define STATE_MAX_BYTES ((size_t)32 << 20)

/* shown: the answer to "show servers state"; config: the haproxy.cfg that is to be loaded;
 * renames: what shown calls otherwise than config does. Appends a whole file to out, in the
 * names of config. A server keeps its health, what an operator did to it and, when its DNS name
 * is the same, the address found for that; address, port, TLS and checks are those of config. A
 * server that config does not check is up. With as_started the running worker still has the
 * configuration that it was started with: then a weight that differs is an operator's, and
 * stays when config has the weight of then. Otherwise all weights are config's.
 * Left out: servers that config has not, those that no check has reached yet (a worker takes
 * such a one out at its first failure, but one that a file calls up only after "fall" of
 * them), and lines of another form. ERR_INVALID: shown is no such answer, or it was cut; config
 * cannot be read. ERR_LIMIT. */
MUST_USE err_t state_filter(
    struct span shown, struct span config, const struct renames *renames, bool as_started,
    struct buf *out, struct error *e);

#endif
