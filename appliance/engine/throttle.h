/* SPDX-License-Identifier: Apache-2.0 */
/* Slows down guessing of passwords: per account and client, never for an account as a whole. */
#ifndef LOCKSTEP_ENGINE_THROTTLE_H
#define LOCKSTEP_ENGINE_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define THROTTLE_ENTRIES  4096
#define THROTTLE_FREE     5  /* failures before the first wait */
#define THROTTLE_MAX_S    60 /* longest wait */
#define THROTTLE_FORGET_S 3600

struct throttle;

struct throttle *throttle_new(const struct clock *clock);
void throttle_free(struct throttle *t);

/* A try of account from client (an address as text; of IPv6 the /64 counts). True: go on; the
 * try counts as failed until throttle_clear, so that many at once are no way around. False:
 * wait *ret_retry_s first. Any thread. */
bool
throttle_try(struct throttle *t, const char *account, const char *client, int64_t *ret_retry_s);
/* It was the right password. */
void throttle_clear(struct throttle *t, const char *account, const char *client);
size_t throttle_count(struct throttle *t);

#endif
