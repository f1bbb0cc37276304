/* SPDX-License-Identifier: Apache-2.0 */
/* What one node alone may have: its name, its addresses. A VIP is no address of a node. Any
 * thread. */
#ifndef LOCKSTEP_ENGINE_MEMBERS_CLASH_H
#define LOCKSTEP_ENGINE_MEMBERS_CLASH_H

#include "engine/engine.h"

/* Of what differs between the two: a name or URL of this node that another member has, and
 * addresses of nodes that are VIPs. What was there before is not refused: else nothing else
 * could be changed until it is mended. ERR_INVALID. */
MUST_USE err_t members_check_own(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    struct problems *p, struct error *e);

#endif
