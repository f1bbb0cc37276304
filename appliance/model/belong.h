/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are part of another one: those of kinds with a reference whose "on_delete" is
 * "cascade". Such an object has the name of the other and goes with it. It is of a direct
 * kind, so no draft holds it: it follows when the draft is looked at and when it is applied.
 * Pure. */
#ifndef LOCKSTEP_MODEL_BELONG_H
#define LOCKSTEP_MODEL_BELONG_H

#include "model/snapshot.h"

/* Removes those whose other object is not in the pair, and renames those whose other object
 * has another name. Either snapshot may be NULL; one in which nothing changes stays as it
 * is, the other one is replaced. ERR_CONFLICT when two would have one name: then pair is as
 * before. */
MUST_USE err_t belong_settle(struct snapshot_pair *pair, struct error *e);

/* Puts into *io (replaced) the parts that from has of objects which are in *io but not in
 * present: they come back with them. Those in *io are settled. */
MUST_USE err_t belong_return(
    const struct snapshot *present, const struct snapshot *from, const struct snapshot **io,
    struct error *e);

#endif
