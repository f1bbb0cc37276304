/* SPDX-License-Identifier: Apache-2.0 */
/* Apply: from a candidate to a serving, committed revision, or back. apply_fsm.h holds the
 * table of its states. Jobs run one after another on the apply thread. */
#ifndef LOCKSTEP_ENGINE_APPLY_H
#define LOCKSTEP_ENGINE_APPLY_H

#include "engine/edit.h"
#include "engine/task.h"
#include "render/haproxy.h"

struct apply_object {
    enum kind kind;
    const char *name; /* as in the draft, or as at head */
};

/* A part of the draft: changes of these objects and those of these authors. */
struct apply_only {
    const struct apply_object *objects;
    size_t object_count;
    const char *const *authors;
    size_t author_count;
};

#define APPLY_CONFIRM_MIN_S 10
#define APPLY_CONFIRM_MAX_S 86400

struct apply_request {
    const struct actor *who;
    const char *note;              /* summary of the commit; NULL = made from the changes */
    const struct hash *base;       /* head must be this commit; NULL = whatever it is */
    const struct change_set *ops;  /* NULL: the draft; else these, on top of the head */
    const struct apply_only *only; /* of the draft; NULL: all of it */
    int64_t confirm_s; /* goes back by itself when not confirmed so soon; 0: stays */
    const char *const *skip_nodes; /* names or ids: not asked whether they accept it */
    size_t skip_count;
};

/* Queues an apply and returns its task at once (ids in task.h). What is wrong with base or
 * ops or only at that moment is returned here (ERR_CONFLICT, ERR_INVALID with problems,
 * ERR_BUSY); what shows later is in the task. ops and only are copied. An empty draft makes a
 * task that ends well with "nothing to apply". ERR_CONFLICT while a revision waits for its
 * confirmation. */
MUST_USE err_t apply_start(
    struct engine *en, const struct apply_request *q, int64_t *ret_task, struct problems *p,
    struct error *e);

/* What apply_start would refuse at this moment. */
MUST_USE err_t apply_try(
    struct engine *en, const struct apply_request *q, struct problems *p, struct error *e);

/* Full check of a candidate: validate_all, render, stage, haproxy -c mapped back, bind-test.
 * Changes nothing that serves. Blocking (worker pool). *ret: the rendered files (from a
 * pool; give back with apply_rendered_done) or NULL on ERR_INVALID before the render. */
MUST_USE err_t apply_check(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e);
/* Render only. */
MUST_USE err_t apply_render(
    struct engine *en, const struct snapshot_pair *candidate, struct problems *p,
    struct rendered **ret, struct error *e);
void apply_rendered_done(struct engine *en, struct rendered *r);

#endif
