/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the engine share; only for this folder. */
#ifndef LOCKSTEP_ENGINE_INNER_H
#define LOCKSTEP_ENGINE_INNER_H

#include <stdatomic.h>

#include "base/lock.h"
#include "engine/account.h"
#include "engine/apply.h"
#include "engine/cluster_hook.h"
#include "engine/confirm.h"
#include "engine/edit_check.h"
#include "engine/event.h"
#include "engine/kept.h"
#include "engine/leads.h"
#include "engine/pages.h"
#include "engine/session.h"
#include "engine/standby.h"
#include "engine/throttle.h"
#include "helper/client.h"
#include "store/store.h"

#define ENGINE_MAGIC       0x4c656e67u
#define ENGINE_QUEUE       4096
#define ENGINE_SPARE       2  /* rendered records kept with their memory */
#define APPLY_QUEUE        16 /* applies waiting or running */
#define WORK_THREADS       4
#define WORK_QUEUE         64
#define SOCKET_AGAIN_MS    1000 /* a socket that failed is left alone for so long */
#define FOLLOW_DOWN_ROUNDS 3    /* HAProxy is started again by its supervisor first */

/* Whether files and HAProxy follow the head, and when to try next. Under engine.lock. */
struct follow {
    char digest[RENDER_DIGEST_HEX + 1]; /* of the head's files; "": not known yet */
    struct hash tables;                 /* the nodes in them: members_tables */
    int64_t tables_since_ms;            /* monotonic: these are others now; 0: they are not */
    bool ok;                            /* the last reconcile or apply left it so */
    int64_t next_ms, back_off_ms;       /* monotonic: no reconcile before; the pause until it */
    unsigned down_rounds;
};

struct operators;
struct stats_cache;
struct own_traffic;
struct members;

struct engine {
    unsigned magic;
    const struct engine_config *config;
    char *data_dir, *stage_dir, *generation_dir;
    int data_fd; /* holds the lock */
    char *admin_socket, *probe_socket, *helper_socket;
    char *placeholder_pem, *api_pem; /* the certificate of the API, or NULL */
    struct helper helper;
    struct mailbox *own_box, *apply_box, *watch_box, *confirm_box, *work_box;
    struct tasks *tasks;
    struct events *events;
    struct sessions *sessions;
    struct throttle *throttle;
    int64_t offered_ms;  /* of the newest offer to other nodes; apply's own */
    _Atomic int applies; /* waiting or running, reconciles included */
    _Atomic int64_t generation_changes;

    /* Engine thread only. */
    pthread_t own_thread;
    struct store *store;
    struct store_state live; /* what the database holds */
    struct kept kept;
    struct leads leads;

    /* Leaf lock: nothing is called with it held. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping, look_now;
    struct view *view;
    struct engine_status status;
    struct engine_status told; /* as the last event of it */
    struct follow follow;
    struct pages_state pages;
    struct standby standby;
    struct standby_cancels cancels;
    struct waiting waiting;
    struct rendered *spare[ENGINE_SPARE];
    size_t spare_count;

    pthread_mutex_t check_lock; /* one check without an apply at a time, under one number */
    int64_t check_number;
    pthread_mutex_t peer_check_lock; /* one check for another node at a time */
    pthread_mutex_t look_lock;       /* one measurement at a time */
    struct operators *operators;
    struct stats_cache *stats;
    struct own_traffic *own_traffic;
    struct members *members;
    const struct engine_cluster *cluster; /* under engine.lock */
    size_t in_cluster;                    /* calls of it under way */
    char looked_up[RENDER_DIGEST_HEX + 1];
    int64_t looked_up_change;
};

/* Runs fn on the engine thread and waits; in place when the caller is on it. */
typedef err_t (*engine_fn)(struct engine *en, void *ctx, struct error *e);
MUST_USE err_t engine_run(struct engine *en, engine_fn fn, void *ctx, struct error *e);
bool engine_on_own_thread(const struct engine *en);
/* Waits for at most ms; true when the engine stops. */
bool engine_pause(struct engine *en, int64_t ms);
void engine_wake(struct engine *en); /* the watcher looks at once */
void engine_audit(struct engine *en, const char *author, const char *action, const char *text);
bool engine_stopping(struct engine *en);

/* Of engine_set_cluster; NULL: there is none. Each that is given has to be given back. */
const struct engine_cluster *engine_cluster_take(struct engine *en);
void engine_cluster_give(struct engine *en);

/* ---- view.c: engine thread ---- */

/* Makes the view of en->live, publishes it, and tells readers of events. */
void view_publish(struct engine *en);
/* The same where it is known what the rows of the draft make of the head. */
void view_publish_draft(struct engine *en, const struct snapshot_pair *draft);
/* Whether o (may be NULL) refers to what is not in the pair. */
bool view_dangles(const struct object *o, const struct snapshot_pair *pair);

/* ---- draft.c: engine thread ---- */

/* Rows to write and rows to drop, sorted (draft_row_compare); both own their objects. */
struct draft_plan {
    struct draft_list put, drop;
    size_t put_cap, drop_cap;
    const struct snapshot_pair *shows; /* what the draft shows then; NULL: to be found out */
};

void draft_plan_fini(struct draft_plan *plan);
/* Rows that turn what the draft shows from before into after. */
void draft_plan_make(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    const struct actor *who, struct draft_plan *plan);
/* One transaction in the database, then en->live. Publishes the view. */
MUST_USE err_t draft_write(struct engine *en, const struct draft_plan *plan, struct error *e);
/* The order of rows. */
int draft_compare(enum kind a, const char *a_id, enum kind b, const char *b_id);
int draft_row_compare(const struct draft_row *a, const struct draft_row *b);
/* Drops rows whose object equals the head's. */
void draft_settle(struct engine *en);
bool draft_same(const struct object *a, const struct object *b); /* both may be NULL */

#endif
