/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers share: JSON of common things, and what several routes do. */
#ifndef LOCKSTEP_HTTP_API_H
#define LOCKSTEP_HTTP_API_H

#include "engine/apply.h"
#include "engine/stats.h"
#include "http/request.h"
#include "model/publish.h"

/* ---- api_json.c ---- */

const char *api_node_name(const struct view *v);
json_t *api_draft(const struct view *v);
/* "42@1a2b3c4d" */
json_t *api_commit_name(const struct commit *c);
/* The words of "effect" that occur in an array of object diffs, each once. */
json_t *api_effects(const json_t *objects);
bool api_has_effect(const json_t *diff, const char *word);
/* A commit id in a body; false: refused. Absent or null: *ret_given false. */
bool api_read_hash(struct request *r, const char *key, struct hash *ret, bool *ret_given);

/* A list of ids or names of nodes. Absent or null: names is NULL. False: refused. */
struct api_nodes {
    const char **names;
    size_t count;
};

bool api_read_nodes(struct request *r, const char *key, struct api_nodes *ret);
/* The text "note" of a body: at most 200 bytes, or NULL. False: refused. */
bool api_read_note(struct request *r, const char **ret);
/* The number "confirm" of a body, in seconds; absent or null: 0. False: refused. */
bool api_read_confirm(struct request *r, int64_t *ret_s);

/* Of a request that edits the draft, or with "apply" applies at once. */
struct api_apply_choice {
    bool apply, wait;
    const char *note;
    int64_t confirm_s;
};

/* False: refused, as a note or confirm is that no apply would take. */
bool api_read_apply(struct request *r, struct api_apply_choice *ret);
/* Answers 422 at a place of the body. */
void api_refuse(struct request *r, const char *pointer, const char *code, const char *message);

/* The pair in which objects of a kind are read: what is never drafted, at the head. */
const struct snapshot_pair *api_pair(const struct view *v, enum kind kind);

/* ---- api_idle.c ---- */

/* {"count", "first": [{"pool", "reason"}]}: stored pools that nobody is sent to a server of. */
json_t *api_idle_pools(const struct view *v);

/* ---- api_stats.c ---- */

/* A component ServerStats of the row of a server. */
json_t *api_server_stats(const struct stats *s, const struct stat_row *r);

/* ---- api_apply.c ---- */

/* False: refused. */
bool api_apply_start(struct request *r, const struct apply_request *q, int64_t *ret_task);
/* Answers with the task, or with the object r->kept whose "task" it becomes: 202, or with wait
 * when it has ended, 200. */
void api_apply_answer(struct request *r, int64_t task, bool wait);

/* ---- api_publish.c ---- */

struct publish_tools api_publish_tools(struct request *r);
/* A plan is made outside the engine's thread: each operation then carries the hash of the
 * object that it changes, so that what the plan found must still be so when it is done. */
void api_expect_present(struct change_set *set, const struct snapshot_pair *base);
/* Whether something changed since the view of the request was taken. */
bool api_has_moved(struct request *r);

/* ---- api_try.c ---- */

/* The check of a pool (may be NULL), or NULL. */
const struct object *api_try_monitor(const struct snapshot *shared, const struct object *pool);

struct api_tried_ctx {
    int64_t task; /* 0: none */
    bool wait;
};

/* Answers the request; takes the component CheckTrial over. */
typedef void (*api_tried_fn)(struct request *r, json_t *trial, const struct api_tried_ctx *ctx);
/* Tries the check of a pool that has one on a thread of its own, for try_ms at most from now
 * on, then calls fn there; calls it at once where this check cannot be tried. False: too many
 * are being tried, and fn is not called. shared: holds the pool. */
bool api_try(
    struct request *r, const struct snapshot *shared, const struct object *pool,
    api_tried_fn fn, const struct api_tried_ctx *ctx);
/* The CheckTrial that says so. */
json_t *
api_try_too_many(struct request *r, const struct snapshot *shared, const struct object *pool);

/* ---- api_diff.c ---- */

/* Files of a pair: haproxy.cfg of it as text, NULL when it cannot be rendered; then why is in
 * problems. The caller frees. ERR_INVALID is no failure here. */
MUST_USE err_t api_render_text(
    struct request *r, const struct snapshot_pair *pair, struct problems *p, char **ret,
    struct error *e);
/* Around work that takes seconds, or waits for the helper: at most half of the workers do it,
 * the others are left to those who sign in or drain a server. ERR_BUSY: no more now. */
MUST_USE err_t api_long_begin(struct request *r, struct error *e);
void api_long_end(struct request *r);
/* apply_check, as long work. */
MUST_USE err_t api_check(
    struct request *r, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e);
/* {"objects", "haproxy_cfg", "problems", "effect"} of two pairs. */
MUST_USE err_t api_diff(
    struct request *r, const struct snapshot_pair *before, const struct snapshot_pair *after,
    json_t **ret, struct error *e);
/* Adds "sessions" to the diff of what an apply would change: what a reload would meet. */
void api_diff_sessions(struct request *r, json_t *diff);

#endif
