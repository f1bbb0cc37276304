/* SPDX-License-Identifier: Apache-2.0 */
/* Sign-ins, kept over a restart. */
#ifndef LOCKSTEP_STORE_SESSIONS_H
#define LOCKSTEP_STORE_SESSIONS_H

#include "store/store.h"

struct session_row {
    struct hash token; /* SHA-256 of the cookie's value: only this is kept */
    char admin[65];
    char csrf[65];
    int64_t created_ms, used_ms; /* Unix time */
};

MUST_USE err_t store_session_put(struct store *s, const struct session_row *r, struct error *e);
MUST_USE err_t store_session_remove(struct store *s, const struct hash *token, struct error *e);
/* All sessions of an admin (NULL = all admins). */
MUST_USE err_t store_session_remove_admin(struct store *s, const char *admin, struct error *e);
MUST_USE err_t
store_sessions(struct store *s, struct session_row **ret, size_t *ret_count, struct error *e);

#endif
