/* SPDX-License-Identifier: Apache-2.0 */
/* What a node that is to be joined looks at for the one that joins. */
#ifndef LOCKSTEP_SYNC_ADMIT_H
#define LOCKSTEP_SYNC_ADMIT_H

#include "sync/cluster.h"

#define PATH_ADMIT "/peer/v1/admit"

/* who: the record of the one that joins, with its key. *ret: {"reached", "detail", "vips":
 * [""], "binds": [{"address", "port", "vip"}]}: whether this node reaches it and why not, the
 * VIPs, and what HAProxy binds for the shared listeners. ERR_INVALID: it is no record. Waits
 * for that node; changes nothing. Worker thread. */
MUST_USE err_t
cluster_admit(struct cluster *c, const json_t *who, json_t **ret, struct error *e);

/* {record, "key"}. */
MUST_USE err_t cluster_read_member(const json_t *j, struct member *ret, struct error *e);

#endif
