/* SPDX-License-Identifier: Apache-2.0 */
/* What operators decide about servers (kind server_state): stored first, then put into HAProxy
 * through its admin socket, and put back whenever HAProxy is another process.
 *
 * Names in commands are those of the configuration that HAProxy has loaded, states those of
 * the head: a server that was renamed or deleted meanwhile gets no command that is meant for
 * another one. */
#ifndef LOCKSTEP_ENGINE_OPERATOR_H
#define LOCKSTEP_ENGINE_OPERATOR_H

#include "engine/edit.h"
#include "haproxy/server_states.h"

struct operators;

struct operators *operators_new(void);
void operators_free(struct operators *op);

/* ---- storing: see edit_draft for the errors ---- */

/* body: the fields state, weight and note, as the API takes them (copied), those that are not
 * there stay; NULL: back to none.
 * ERR_NOT_FOUND when the head has no server of that name. */
MUST_USE err_t operator_store(
    struct engine *en, const char *server, json_t *body, const struct actor *who,
    struct problems *p, struct error *e);
/* Engine thread: the set was committed; the watcher puts what it says about servers. */
void operator_note(struct engine *en, const struct change_set *set);

/* ---- putting: not on the engine thread, it waits for HAProxy ---- */

/* HAProxy has loaded the configuration of shared: from now on its names count. Puts every
 * state of the head, or of states where that is not NULL, and takes back what that does not
 * say. What cannot be put for want of an answer the watcher tries again; what HAProxy refuses
 * is logged. */
void
operator_put(struct engine *en, const struct snapshot *shared, const struct snapshot *states);
/* The same where HAProxy runs the files of shared already, and had what before says: where only
 * a few states differ, only these are put. */
void operator_put_changed(
    struct engine *en, const struct snapshot *before, const struct snapshot *shared);
/* The watcher's round: when the worker is a new one, or something is left to be put. */
void operator_follow(struct engine *en);

/* A pool that has the server, by its name in HAProxy. */
struct operator_pool {
    const char *pool, *server;
    int64_t weight;      /* as configured */
    const char *refused; /* what HAProxy answered instead of doing it, or NULL */
};

struct operator_pools {
    struct operator_pool *items; /* the arena's, as all texts */
    size_t count;
};

/* The pools of a server of the head; by its name there. */
void operator_find(
    struct engine *en, const char *server, struct arena *a, struct operator_pools *ret);
/* Puts the state of one server into all of them. ERR_UNAVAILABLE: HAProxy does not answer, or
 * did not a second ago; then the watcher tries again. */
MUST_USE err_t operator_put_server(
    struct engine *en, const char *server, struct arena *a, struct operator_pools *ret,
    struct error *e);

/* Whether HAProxy has what is wanted. state (may be NULL): an object of kind server_state. */
bool operator_has(const struct object *state, const struct server_line *line);

#endif
