/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of several nodes at once, whose answers are read in the order in which they come. */
#ifndef LOCKSTEP_SYNC_FAN_H
#define LOCKSTEP_SYNC_FAN_H

#include "peer/calls.h"

struct fan;

struct fan *fan_new(struct calls *calls);
/* Only when each answer has been read. NULL is allowed. */
void fan_free(struct fan *f);
/* MEMBERS_MAX times at most. who: what fan_next says whose answer it is. */
void fan_ask(struct fan *f, const struct call *call, size_t who);
/* Waits for one that was not read. ret->body is the caller's: buf_fini. False: none is left. */
bool fan_next(struct fan *f, size_t *ret_who, struct call_answer *ret);

#endif
