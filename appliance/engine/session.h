/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory, so that a request needs no database. Known by the hash of the cookie. */
#ifndef LOCKSTEP_ENGINE_SESSION_H
#define LOCKSTEP_ENGINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/tunables.h"
#include "store/sessions.h"
#include "store/store.h"

#define SESSIONS_MAX          1024
#define SESSIONS_STORE_USE_MS 60000 /* last use is stored at most this often */

struct sessions;

struct sessions *sessions_new(const struct clock *clock, const struct tunables *tunables);
void sessions_free(struct sessions *s);

/* All functions: any thread. row is copied; one from the future (the clock was set back since)
 * counts as expired. From then on the wall clock decides nothing. */
void sessions_add(struct sessions *s, const struct session_row *row);
/* Removes one that has expired, or of too many the one not used for longest: true, and its
 * token; to be called again. */
bool sessions_drop(struct sessions *s, struct hash *ret_token);
/* False: none, or expired. *ret: a copy; its last use is now. *ret_store: that is worth to be
 * stored. */
bool sessions_use(
    struct sessions *s, const struct hash *token, struct session_row *ret, bool *ret_store);
/* Whether sessions_use would find it; renews nothing: for streams, which ask by themselves. */
bool sessions_alive(struct sessions *s, const struct hash *token);
/* "Edit here anyway": until it is taken back, signed out, or not used for unlock_idle_ms.
 * Asking renews it. False: no such session. */
bool sessions_unlock(struct sessions *s, const struct hash *token, bool unlock);
bool sessions_unlocked(struct sessions *s, const struct hash *token);
void sessions_lock_all(struct sessions *s);
void sessions_remove(struct sessions *s, const struct hash *token);
void sessions_remove_admin(struct sessions *s, const char *admin);
size_t sessions_count(struct sessions *s);

#endif
