/* SPDX-License-Identifier: Apache-2.0 */
/* One apply or reconcile while it runs, on the apply thread; only for this folder. */
#ifndef LOCKSTEP_ENGINE_APPLY_JOB_H
#define LOCKSTEP_ENGINE_APPLY_JOB_H

#include "engine/apply_fsm.h"
#include "engine/apply_only.h"
#include "engine/generation.h"
#include "engine/members.h"
#include "engine/sync_doc.h"

enum apply_mode {
    APPLY_DRAFT,
    APPLY_OPS,
    APPLY_BACK,   /* to what was before a revision that nobody confirmed */
    APPLY_ADOPT,  /* what another node committed */
    APPLY_TRIAL,  /* what another node is about to commit: loaded, not stored */
    APPLY_FOLLOW, /* reconcile: files and HAProxy follow the head; commits nothing */
};

struct apply {
    struct engine *en;
    enum apply_mode mode;
    bool has_base;
    bool anew;           /* of APPLY_FOLLOW: also what HAProxy runs already */
    bool has_only;       /* of APPLY_DRAFT: the rows of only and no others */
    int64_t task;        /* 0: nobody follows it */
    char *author, *note; /* note NULL: made from the changes */
    struct hash base;
    struct change_set ops;
    struct arena *ops_arena;
    struct only_rows only;
    int64_t confirm_s;
    struct node_id *skip; /* nodes that are not asked */
    size_t skip_count;
    struct sync_doc *adopt;   /* of APPLY_ADOPT: on top of base */
    struct hash trial;        /* of APPLY_TRIAL: id of the candidate */
    struct snapshot *adopted; /* what it makes of the shared container */

    /* While it runs. */
    struct arena *arena;
    struct problems *problems;
    char detail[ERROR_MSG_BYTES]; /* of the present step */
    struct error error;           /* the first failure */
    const char *failed_text;      /* of the edge that it took */
    const char *left;             /* what HAProxy does when the former does not serve */
    struct view *view;            /* what it started from */
    struct snapshot_pair candidate;
    struct rendered *files;
    struct hash tables; /* the nodes in them, or in older ones: members_tables */
    int64_t number;     /* its generation */
    int64_t former;     /* to go back to; 0: none */
    size_t old_workers;
    char former_digest[RENDER_DIGEST_HEX + 1];
    bool running_known;
    bool same;                 /* HAProxy runs these files already */
    bool switched;             /* current may be ours */
    bool back_failed;          /* files or HAProxy may not be as before */
    struct sync_doc *offer;    /* the candidate, for the other nodes */
    json_t *checked;           /* what the other nodes said of it; NULL: not asked */
    json_t *tried;             /* the standby that runs it, and whether it serves there */
    json_t *pushed;            /* what became of it on the other nodes */
    size_t behind;             /* of them that have not taken it */
    struct commit head;        /* what COMMIT made */
    struct commit unconfirmed; /* APPLY_BACK: the revision that waits */
    int64_t local_rev;
};

/* Queues it. Takes the job over, also on failure. ERR_BUSY, ERR_UNAVAILABLE. */
MUST_USE err_t apply_post(struct apply *a, struct error *e);

/* Runs the action of a state. On AE_FAIL *e says why. */
enum apply_event apply_act(enum apply_state state, struct apply *a, struct error *e);
/* ERR_INVALID when the change is none that can go back by itself. */
MUST_USE err_t apply_check_confirm(
    const struct snapshot_pair *before, const struct snapshot_pair *after, struct problems *p,
    struct error *e);
/* What people see of the present step. */
void apply_detail(struct apply *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* HAProxy is to run what is installed: the least disruptive way; by a reload of generation
 * number. p NULL: what HAProxy says is not kept. */
MUST_USE err_t apply_load(struct apply *a, struct error *e);
MUST_USE err_t
apply_reload(struct apply *a, int64_t number, struct problems *p, struct error *e);
/* On somebody's request: not to follow another node, nor to go back. */
bool apply_changes_content(const struct apply *a);
/* Whether other nodes have to be asked before. */
bool apply_asks_peers(const struct apply *a);
/* Whether other nodes are handed what it saved. */
bool apply_hands_on(const struct apply *a);
enum apply_event apply_peers(struct apply *a, struct error *e);
enum apply_event apply_try_standby(struct apply *a, struct error *e);
/* Nothing will be committed: the standby that tries it need not wait. */
void apply_end_trial(struct apply *a);
enum apply_event apply_push(struct apply *a, struct error *e);
/* The commit, on the engine thread. */
MUST_USE err_t apply_commit(struct apply *a, struct error *e);
MUST_USE err_t
apply_save_generation(struct apply *a, enum generation_state state, struct error *e);

/* ---- reconcile.c ---- */

/* Starts one; quiet: without a task. */
void reconcile_start(struct engine *en, bool quiet);
/* Starts one with new files though HAProxy says that it runs them; title: of its task. */
void reconcile_repair(struct engine *en, const char *title);
/* The pause after the present one; 0: the first. */
int64_t reconcile_back_off_ms(const struct tunables *t, int64_t present_ms);

enum follow_end {
    FOLLOW_FAILED,
    FOLLOW_UNSETTLED, /* HAProxy runs the head, but it is not marked as last good */
    FOLLOW_OK,
};

/* What an apply or a reconcile left: the watcher starts a reconcile when that is not all well.
 * made NULL: the head's files are as before; else they are those of this job. */
void reconcile_note(
    struct engine *en, enum follow_end end, const struct apply *made, const char *reason);
/* Whether these are the head's files. A change at once gives their generation another commit.
 */
bool reconcile_is_head(struct engine *en, const char *digest);

#endif
