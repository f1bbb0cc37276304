/* SPDX-License-Identifier: Apache-2.0 */
/* Small objects and snapshots for unit tests. Fails the cmocka test it is used in. */
#ifndef LOCKSTEP_SUPPORT_SNAPSHOT_LAB_H
#define LOCKSTEP_SUPPORT_SNAPSHOT_LAB_H

#include "model/snapshot.h"

struct object *lab_server_port(const char *id, const char *name, unsigned port);
struct object *lab_server(unsigned id, const char *name);
struct object *lab_monitor(unsigned id, const char *name);
/* Seals x, which must work. */
struct snapshot *lab_seal(struct snapshot_edit *x);
/* Servers a (id 2) and b (id 1) and the monitor a (id 1). */
struct snapshot *lab_small(void);
/* Everything that must hold inside of a snapshot. */
void lab_check_snapshot(const struct snapshot *s);

#endif
