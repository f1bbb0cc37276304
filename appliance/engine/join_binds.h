/* SPDX-License-Identifier: Apache-2.0 */
/* What a node that joins has to be able to bind. Any thread that may wait for the helper. */
#ifndef LOCKSTEP_ENGINE_JOIN_BINDS_H
#define LOCKSTEP_ENGINE_JOIN_BINDS_H

#include "engine/engine.h"
#include "model/validate.h"

/* The port at which other nodes bring their stick tables, and what the listeners of the joined
 * configuration bind, but for what HAProxy holds here already. binds has room for one more; its
 * order is another one afterwards. *ret_count: how many were tried. ERR_INVALID names the
 * first that cannot be bound, p all. */
MUST_USE err_t join_binds_try(
    struct engine *en, struct bind *binds, size_t count, size_t *ret_count, struct problems *p,
    struct error *e);

#endif
