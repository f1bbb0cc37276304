/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no checker of its own: files that differ from accepted ones in weights of servers
 * only. HAProxy takes each number from 0 to WEIGHT_MAX there, whatever else is configured
 * (configuration manual, 5.2, "weight"). */
#ifndef LOCKSTEP_HELPER_WEIGHTS_H
#define LOCKSTEP_HELPER_WEIGHTS_H

#include <stdbool.h>

#include "haproxy/span.h"
#include "helper/staged.h"

#define WEIGHT_MAX 256 /* of a server */

/* Two haproxy.cfg, both accepted by refuse_config: the same lines, but for
 * - the decimal number in "server NAME ADDRESS weight N" (without needless zeros, the rest of
 *   the line the same), which must differ in one line at least;
 * - the digest in the line "description "lockstep DIGEST"" of the section "global". */
bool weights_config(struct span before, struct span after);
/* Two RUNNING_MAP: each has the one entry with a digest, and nothing else. No line but those
 * with the converter "map", which takes any text, may name this file (refuse_config). */
bool weights_running(struct span before, struct span after);
/* Two directories: haproxy.cfg differs as above, RUNNING_MAP at most so, all other files are
 * the same. after: what is in after_fd. */
MUST_USE err_t weights_only(
    const struct staged *after, int before_fd, int after_fd, bool *ret, struct error *e);

#endif
