/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef LOCKSTEP_SYNC_INNER_H
#define LOCKSTEP_SYNC_INNER_H

#include "base/lock.h"
#include "base/mailbox.h"
#include "base/tunables.h"
#include "engine/cluster_hook.h"
#include "keepalived/holding.h"
#include "sync/cluster.h"
#include "sync/heard.h"

#define SMALL_ANSWER_BYTES ((size_t)4 << 10) /* health: under 1 KiB is promised */
#define MEMBERS_BYTES      ((size_t)1 << 20)

#define PATH_CHECK   "/peer/v1/check"
#define FAILED_PULLS 8

/* A head that could not be taken over. */
struct failed_pull {
    struct hash head; /* zero: none */
    int64_t after_ms; /* monotonic: it is not tried before */
    int64_t pause_ms;
};

struct cluster {
    struct engine *en;
    const struct tunables *tunables;
    const struct clock *clock;
    struct calls *calls;
    struct holding *holding;
    struct engine_cluster ops;
    struct mailbox *box;

    pthread_mutex_t lock; /* before those of the engine, never after */
    pthread_cond_t changed;
    bool stopping, wake;
    bool push; /* the head moved without an apply */

    /* An overwrite from this node: first it asks, then it hands over. */
    enum overwrite_step { OVERWRITING_NOT, OVERWRITING_ASKS, OVERWRITING_HANDS } overwriting;

    bool gives_way; /* another one goes first: this one does not hand over */
    bool looked;    /* a round has ended: what is newer was taken over, as far as it could be */
    size_t waiting; /* for answers of this round */
    struct peer peers[MEMBERS_MAX];
    size_t peer_count;
    char refusing[DETAIL_BYTES]; /* why this node does not take over what is newer, or "" */
    int64_t unequal_since_ms;    /* of this node, as of a peer */
    int64_t unheld_since_ms; /* monotonic: not exactly one node holds the VIP; 0: one does */

    /* The thread's own. */
    struct failed_pull failed[FAILED_PULLS]; /* the newest ones */
    size_t failed_next;                      /* the one whose place is needed next */
    int64_t looked_ms;                       /* monotonic: the nodes were asked last */
};

/* cluster_open without its thread, which does one round after another. The simulator of
 * tests/simulator calls them itself. */
MUST_USE err_t cluster_make(
    struct engine *en, const struct tunables *t, const struct clock *clock,
    struct cluster **ret, struct error *e);
void cluster_round(struct cluster *c);
/* Asks the nodes once more where a round takes longer than rounds should: what this node says
 * of them stays fresh. On the thread of the rounds. */
void cluster_look_meanwhile(struct cluster *c);

/* A call of a member, filled but for method, path, body. */
struct call
cluster_call_of(const struct cluster *c, const struct member *m, const struct member *self);
/* Waits for the answer and reads it as JSON. ERR_UNAVAILABLE and the like of calls.h; for an
 * answer of 400 and more the error that fits, with its detail, and *ret_code (16 bytes at
 * least, may be NULL) its code. */
#define CODE_BYTES 40
MUST_USE err_t cluster_ask(
    struct cluster *c, const struct call *call, json_t **ret, char ret_code[CODE_BYTES],
    struct error *e);
/* What cluster_ask says of an answer. *ret also where it is no success, or NULL. */
MUST_USE err_t cluster_read_answer(
    struct call_answer *a, json_t **ret, char ret_code[CODE_BYTES], struct error *e);
/* Under the lock. NULL: it was not asked yet. */
struct peer *cluster_peer(struct cluster *c, const char *id);

/* How it stands to this head, which may have moved since the round that asked it: a head moves
 * to what has it in its history. */
enum relation cluster_relation(const struct peer *p, const struct commit *head);

/* Whether address and key of the node are known. */
bool cluster_may_ask(const struct member *m);
/* Whether it answered in the last round what this release understands: nobody waits long for
 * what is known. ERR_UNAVAILABLE, ERR_CONFLICT. */
MUST_USE err_t
cluster_check_answers(struct cluster *c, const struct member *m, struct error *e);
/* Whether it is called in each round. */
bool cluster_is_asked(const struct member_list *list, size_t i);
/* With each that answered and knows other members, or other keys of them, than this node. */
void cluster_exchange(struct cluster *c, const struct member_list *list);

/* Goes on looking for what this node, with that head, and each node that diverged shared last.
 * Once for two heads; one page of their history a round. */
void cluster_look_for_shared(
    struct cluster *c, const struct member_list *list, const struct commit *head);
/* Of struct engine_cluster. Two nodes that do it all the same make the same content. */
enum back_by cluster_goes_back(void *ctx, const char *node, int64_t late_ms);

/* ---- conditions ---- */

/* Adds to a health answer what a struct said holds. */
void cluster_say(struct cluster *c, const struct view *v, json_t *health);
/* From another node, so checked. */
MUST_USE err_t cluster_hear(struct said *ret, const json_t *health, struct error *e);
/* Notes in *since_ms (0: they do not) since when they differ. */
void cluster_compare_running(
    const struct hash *head, const char *running, int64_t now_ms, int64_t *since_ms);
/* The same of this node, and of who holds the VIP. Once a round. */
void cluster_look_at_self(struct cluster *c);
/* A sign-in is unlocked for as long as nobody holds the VIP, and not when that happens again.
 * Once a round. */
void cluster_end_unlocked(struct cluster *c);

/* As conditions_json. Under the lock. */
json_t *cluster_conditions(
    struct cluster *c, const struct member_list *list, const struct cluster_vip *vip);

#endif
