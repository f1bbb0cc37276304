/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that differ in a field, and containers full of a hostile text. */
#ifndef LOCKSTEP_SUPPORT_VARIANT_H
#define LOCKSTEP_SUPPORT_VARIANT_H

#include "model/snapshot.h"

/* o with one field changed, as the API would change it; NULL when it is refused. */
struct object *variant_of(
    const struct snapshot_pair *pair, const struct object *o, const char *field, json_t *value);
/* The shared objects with the text wherever a field takes it, *count times in all, but for
 * names, hosts, certificates and secrets; objects that validate_all then refuses stay as they
 * were. A new snapshot. */
struct snapshot *variant_poisoned(
    const struct snapshot_pair *pair, const char *text, int64_t now_s, size_t *count);

#endif
