/* SPDX-License-Identifier: Apache-2.0 */
/* Which heads of other nodes lead to this node's. They are asked about every two seconds, and
 * to walk a long history takes a second; what was found out holds for ever. Engine thread. */
#ifndef LOCKSTEP_ENGINE_LEADS_H
#define LOCKSTEP_ENGINE_LEADS_H

#include "base/crypt.h"
#include "base/error.h"

#define LEADS_KEPT 64 /* as many as a cluster has nodes */

struct engine;

struct lead {
    struct hash from, to;
    bool is;
};

struct leads {
    struct lead items[LEADS_KEPT];
    size_t next; /* whose place is needed next */
};

/* Whether from, a commit that the store has, is the head or an ancestor of it. */
MUST_USE err_t
leads_to_head(struct engine *en, const struct hash *from, bool *ret, struct error *e);

#endif
