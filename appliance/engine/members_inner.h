/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about members share. On the engine's thread. */
#ifndef LOCKSTEP_ENGINE_MEMBERS_INNER_H
#define LOCKSTEP_ENGINE_MEMBERS_INNER_H

#include "base/lock.h"
#include "engine/members.h"
#include "store/members.h"

struct members {
    pthread_mutex_t lock;
    struct member_list list;
    char url[MEMBER_URL_BYTES]; /* where the server listens */
    char former_key[MEMBER_KEY_BYTES];
    int64_t former_until_ms; /* monotonic */
};

/* l->count: it is not there. */
size_t members_place(const struct member_list *l, const char *id);
void members_sort(struct member_list *l); /* by id; self is found again */
/* Drops all but this node. */
void members_keep_self(struct member_list *l);
/* In the database, then in memory; takes over what next holds, also when it fails. */
MUST_USE err_t members_save(struct engine *en, struct member_list *next, struct error *e);
/* The same, with what the own key was; former may be NULL. */
MUST_USE err_t members_save_with(
    struct engine *en, struct member_list *next, const struct former_key *former,
    struct error *e);
/* Notes of which nodes two machines say different things of themselves. */
void members_note_twins(struct engine *en, const struct members_offer *o);
/* Whether two records of one node are of two machines. */
bool members_are_twins(const struct member *a, const struct member *b);
/* Whether this node says once more that it is the one. */
bool members_outbids_twin(const struct member *self);
void members_make_key(char ret[MEMBER_KEY_BYTES]);
/* At the start. */
MUST_USE err_t members_load_former(struct engine *en, struct error *e);
#endif
