/* SPDX-License-Identifier: Apache-2.0 */
/* A join under way. */
#ifndef LOCKSTEP_SYNC_JOINING_H
#define LOCKSTEP_SYNC_JOINING_H

#include "sync/inner.h"

struct joining {
    struct cluster *c;
    const struct cluster_join *j;
    json_t *checks, *nodes;
    json_t *health, *members; /* of the node that is asked */
    json_t *admitted; /* what it found of this one: sync/admit.h; NULL: it does not say */
    struct member target, self;
    char local[CALL_IP_BYTES], remote[CALL_IP_BYTES]; /* of the way there; "": not known */
    bool failed;
};

struct call
joining_call(struct joining *g, const struct member *m, const char *method, const char *path);
/* Fills checks, and sets failed when one of them stops the join. Waits for the other node. */
void joining_check(struct joining *g);

#endif
