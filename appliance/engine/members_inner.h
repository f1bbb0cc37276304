/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about members share. On the engine's thread. */
#ifndef LOCKSTEP_ENGINE_MEMBERS_INNER_H
#define LOCKSTEP_ENGINE_MEMBERS_INNER_H

#include "engine/members.h"

/* l->count: it is not there. */
size_t members_place(const struct member_list *l, const char *id);
void members_sort(struct member_list *l); /* by id; self is found again */
/* Drops all but this node. */
void members_keep_self(struct member_list *l);
/* In the database, then in memory; takes over what next holds, also when it fails. */
MUST_USE err_t members_save(struct engine *en, struct member_list *next, struct error *e);
#endif
