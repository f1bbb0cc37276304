/* SPDX-License-Identifier: Apache-2.0 */
/* Administrators, sessions and automation keys of this node. */
#ifndef LOCKSTEP_ENGINE_ACCOUNT_H
#define LOCKSTEP_ENGINE_ACCOUNT_H

#include "base/arena.h"
#include "engine/engine.h"

/* True once an administrator exists. While none does, <state_dir>/data/setup-token (0600)
 * holds the one-time token; it is removed with the first administrator. */
bool account_configured(struct engine *en);

/* Makes the first administrator. Worker pool (scrypt). ERR_DENIED: wrong token; ERR_CONFLICT:
 * set up already (also of two at once, one wins); ERR_INVALID with problems. */
MUST_USE err_t account_setup(
    struct engine *en, const char *token, const char *name, const char *password,
    struct problems *p, struct error *e);

struct session {
    char admin[65];
    char csrf[65];
};

/* client: address of the caller, for the throttle: after 5 failures of one (account, client
 * prefix) each further try waits 1, 2, 4 ... 60 s: ERR_BUSY with *ret_retry_s; other clients
 * are not held up, and no account is ever locked for all. A bounded table (locked entries are
 * evicted last). */
struct account_login {
    const char *name, *password, *client;
};

/* Worker pool (scrypt). ERR_DENIED, ERR_BUSY. *ret_token (appended to): the cookie. */
MUST_USE err_t account_login(
    struct engine *en, const struct account_login *login, struct buf *ret_token,
    struct session *ret, int64_t *ret_retry_s, struct error *e);
/* Any thread, no database access: sessions are cached; use renews idle time. ERR_DENIED. */
MUST_USE err_t
account_session(struct engine *en, const char *token, struct session *ret, struct error *e);
/* The same question without renewing: an open event stream must not keep a session alive. */
bool account_session_alive(struct engine *en, const char *token);
/* "Edit here anyway" for this sign-in, or no longer; and whether it is so. ERR_DENIED. */
MUST_USE err_t
account_unlock(struct engine *en, const char *token, bool unlock, struct error *e);
bool account_unlocked(struct engine *en, const char *token);
void account_lock_all(struct engine *en); /* no sign-in is unlocked any more */
MUST_USE err_t account_logout(struct engine *en, const char *token, struct error *e);

/* What an automation key allows; in the arena of account_key. */
struct key_grant {
    const char *name;
    int64_t scope;            /* V_AUTOMATION_KEY_SCOPE_* */
    const char *const *pools; /* ids; none: no limit. Of V_AUTOMATION_KEY_SCOPE_OPERATE only */
    size_t pool_count;
};

/* An automation key as sent ("lsk_<43 base64url characters>"). ERR_DENIED. Any thread. Compares
 * hashes only. */
MUST_USE err_t account_key(
    struct engine *en, const char *key, struct arena *a, struct key_grant *ret,
    struct error *e);
/* Whether the grant reaches the object that a switch is about: a server that is in no pool but
 * those of the grant (and in one of them), one of these pools, or a service of one. */
bool
account_reaches(const struct key_grant *grant, const struct view *v, const struct object *o);
/* Makes a key: its hash goes into the automation_key object by a direct edit. The key itself
 * is appended to ret_key, shown once. */
MUST_USE err_t account_key_create(
    struct engine *en, const json_t *body, const struct actor *who, struct buf *ret_key,
    struct problems *p, struct error *e);
/* ---- account_copy.c ---- */

/* An administrator as another node is to have it: {"name", "password": the hash, "note"}. The
 * caller wipes nothing: it is text of the database. Any thread. ERR_NOT_FOUND. */
MUST_USE err_t account_read(struct engine *en, const char *name, json_t **ret, struct error *e);

/* Takes such an administrator. *ret_state: "created", "replaced", or "same": nothing had to be
 * done. Sessions of one whose password is another now end. ERR_CONFLICT: there is one of that
 * name, and it is not to be replaced; ERR_INVALID, with problems where a field is at fault. */
struct account_copy {
    const json_t *admin;
    bool overwrite;
    const char *who; /* who asked for it, and where */
};

MUST_USE err_t account_take(
    struct engine *en, const struct account_copy *copy, const char **ret_state,
    struct problems *p, struct error *e);
/* Prepares the body of an admin write: checks the clear password (12-200 bytes) and replaces
 * it by its hash in place. Worker pool. After a changed password or a removed admin all
 * sessions of that admin end: edit_draft does that. */
MUST_USE err_t account_hash_password(json_t *body, struct error *e);

#endif
