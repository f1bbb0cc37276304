/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual addresses of the cluster. Pure. */
#ifndef LOCKSTEP_MODEL_VIP_H
#define LOCKSTEP_MODEL_VIP_H

#include "model/snapshot.h"

/* Whether a group holds this address, a literal in its normal form: then a listener may bind
 * it on a node that does not have it. */
bool vip_holds(const struct snapshot *shared, struct text address);

/* Bytes of a VIP without its prefix length. */
uint32_t vip_address_len(struct text vip);

#endif
