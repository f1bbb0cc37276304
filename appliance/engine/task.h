/* SPDX-License-Identifier: Apache-2.0 */
/* Long work that people can follow: tasks with steps. The newest 50 are kept in memory. */
#ifndef LOCKSTEP_ENGINE_TASK_H
#define LOCKSTEP_ENGINE_TASK_H

#include <stdbool.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/error.h"
#include "model/problems.h"

struct tasks;
struct events;

#define TASK_KEPT         50
#define TASK_REASON_BYTES 600

enum task_state { TASK_WAITING, TASK_RUNNING, TASK_OK, TASK_FAILED };

struct tasks *tasks_new(const struct clock *clock, struct events *events);
void tasks_free(struct tasks *t);

/* kind, title: copied. Returns the id, which no task had before, also before a restart. All
 * functions: any thread. Every change is published as an event of topic "task". An id that is
 * not known (0, or of a task that is no longer kept) is ignored. */
int64_t task_begin(struct tasks *t, const char *kind, const char *title, const char *author);
/* Of work that failed a moment ago and is tried again by itself: it is told of, and listed,
 * only when it ends well. The one before it is forgotten. */
int64_t
task_begin_again(struct tasks *t, const char *kind, const char *title, const char *author);
/* Starts a step; the step before is ended as ok. */
void task_step(struct tasks *t, int64_t id, const char *name, const char *title);
/* Text of the present step ("haproxy -c passed, 0 warnings"). */
void task_note(struct tasks *t, int64_t id, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Ends the present step before its time: its own end need not be that of the task. */
void task_step_end(struct tasks *t, int64_t id, enum task_state state);
/* Ends the task and its present step; well when code is ERR_OK. message: what people read;
 * problems may be NULL; result (may be NULL): taken over, e.g. {"rev", "commit"}. */
void task_end(
    struct tasks *t, int64_t id, err_t code, const char *message,
    const struct problems *problems, json_t *result);

/* {"id", "kind", "title", "author", "state", "at", "ended", "code", "message", "steps":
 * [{"name", "title", "state", "ms", "text"}], "problems", "result"}. NULL: no such task. */
json_t *task_json(struct tasks *t, int64_t id);
/* Why a task failed, of its JSON, after the object that its first error is about: "listener
 * web: an address cannot be used". Foreign text. */
void task_reason(const json_t *task, char out[TASK_REASON_BYTES]);
/* The code of one that failed. */
err_t task_code(const json_t *task);
/* What follows "there is no task ID" when task_json finds none. */
const char *task_missing(struct tasks *t, int64_t id);
json_t *tasks_json(struct tasks *t); /* newest first */

/* Calls fn(ctx) once when the task has ended (at once when it has). False: no such task. */
typedef void (*task_done_fn)(void *ctx);
bool task_when_done(struct tasks *t, int64_t id, task_done_fn fn, void *ctx);
/* Takes a registered fn back; false when it was or is being called. */
bool task_forget(struct tasks *t, int64_t id, task_done_fn fn, void *ctx);

struct engine;
struct tasks *engine_tasks(struct engine *en);

#endif
