/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "engine/event.h"
#include "engine/problems_json.h"

#define STEPS_MAX  64
#define TEXT_BYTES 4096
/* Numbers go on from tenths of a second since 2026: more than were given before, and short. */
#define NUMBERS_FROM_MS INT64_C(1767225600000)
#define NUMBER_MS       100

struct step {
    char *name;
    char *title;
    char *text; /* NULL: none */
    enum task_state state;
    int64_t from_ms; /* monotonic */
    int64_t ms;
};

struct waiter {
    task_done_fn fn;
    void *ctx;
};

struct task {
    int64_t id;
    bool again; /* of a repetition: see task_begin_again */
    char *kind;
    char *title;
    char *author;
    enum task_state state;
    int64_t at_ms; /* Unix time */
    int64_t ended_ms;
    err_t code;
    char *message;
    struct step steps[STEPS_MAX];
    size_t step_count;
    json_t *problems;
    json_t *result;
    struct waiter *waiters;
    size_t waiter_count;
};

struct tasks {
    pthread_mutex_t lock;
    const struct clock *clock;
    struct events *events;
    int64_t start_id; /* lower ones were given before the start */
    int64_t last_id;
    struct task **items; /* oldest first */
    size_t count;
};

static const char *const state_names[] = {
    [TASK_WAITING] = "waiting",
    [TASK_RUNNING] = "running",
    [TASK_OK] = "ok",
    [TASK_FAILED] = "failed",
};

static void
task_free(struct task *task)
{
    for (size_t i = 0; i < task->step_count; i++) {
        free(task->steps[i].name);
        free(task->steps[i].title);
        free(task->steps[i].text);
    }
    free(task->kind);
    free(task->title);
    free(task->author);
    free(task->message);
    json_decref(task->problems);
    json_decref(task->result);
    free(task->waiters);
    free(task);
}

struct tasks *
tasks_new(const struct clock *clock, struct events *events)
{
    struct tasks *t = xcalloc(1, sizeof *t);

    lock_init(&t->lock);
    t->clock = clock;
    t->events = events;
    if (clock_wall_ms(clock) > NUMBERS_FROM_MS) {
        t->start_id = (clock_wall_ms(clock) - NUMBERS_FROM_MS) / NUMBER_MS;
    }
    t->last_id = t->start_id;
    return t;
}

void
tasks_free(struct tasks *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->count; i++) {
        task_free(t->items[i]);
    }
    free(t->items);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

static bool
has_ended(const struct task *task)
{
    return task->state == TASK_OK || task->state == TASK_FAILED;
}

static struct task *
find(const struct tasks *t, int64_t id)
{
    for (size_t i = t->count; i > 0; i--) {
        if (t->items[i - 1]->id == id) {
            return t->items[i - 1];
        }
    }
    return NULL;
}

static json_t *
steps_json(const struct tasks *t, const struct task *task)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < task->step_count; i++) {
        const struct step *s = &task->steps[i];
        int64_t ms = s->ms;

        if (s->state == TASK_RUNNING) {
            ms = clock_mono_ms(t->clock) - s->from_ms;
        }
        (void)json_array_append_new(
            steps, json_pack(
                       "{s:s, s:o, s:s, s:I, s:o}", "name", s->name, "title",
                       json_foreign_text(s->title), "state", state_names[s->state], "ms",
                       (json_int_t)ms, "text", json_foreign_text(s->text)));
    }
    return steps;
}

/* With copies of its own: several threads may hold what it returns. */
static json_t *
to_json(const struct tasks *t, const struct task *task)
{
    bool ended = has_ended(task);

    return json_pack(
        "{s:I, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o?, s:o?}", "id",
        (json_int_t)task->id, "kind", task->kind, "title", json_foreign_text(task->title),
        "author", json_foreign_text(task->author), "state", state_names[task->state], "at",
        json_time(task->at_ms), "ended", json_time(task->ended_ms), "code",
        ended ? json_string(error_name(task->code)) : json_null(), "message",
        json_foreign_text(task->message), "steps", steps_json(t, task), "problems",
        json_deep_copy(task->problems), "result", json_deep_copy(task->result));
}

static bool
is_told(const struct task *task)
{
    return !task->again || task->state == TASK_OK;
}

/* Gives the lock back, so that the order of events is that of the changes only per caller. */
static void
give_and_publish(struct tasks *t, const struct task *task)
{
    json_t *json = is_told(task) ? to_json(t, task) : NULL;

    lock_give(&t->lock);
    if (json != NULL) {
        events_publish(t->events, "task", json);
    }
}

static void
drop(struct tasks *t, size_t i)
{
    task_free(t->items[i]);
    t->count--;
    for (; i < t->count; i++) {
        t->items[i] = t->items[i + 1];
    }
}

/* Those that repeat each other do not push others out. */
static void
drop_untold(struct tasks *t)
{
    for (size_t i = t->count; i > 0; i--) {
        if (t->items[i - 1]->state == TASK_FAILED && !is_told(t->items[i - 1])) {
            drop(t, i - 1);
        }
    }
}

/* Room for one more: the oldest ended one goes. Those that have not ended are few: the queue
 * of applies is bounded. */
static void
make_room(struct tasks *t)
{
    size_t i = 0;

    while (i < t->count && !has_ended(t->items[i])) {
        i++;
    }
    if (t->count >= TASK_KEPT && i < t->count) {
        drop(t, i);
    }
    t->items = xrealloc(t->items, (t->count + 1) * sizeof(struct task *));
}

static int64_t
begin(struct tasks *t, const char *kind, const char *title, const char *author, bool again)
{
    struct task *task = xcalloc(1, sizeof *task);
    int64_t id;

    task->again = again;
    task->kind = xstrdup(kind);
    task->title = xstrdup(title);
    task->author = xstrdup(author);
    task->state = TASK_WAITING;
    task->at_ms = clock_wall_ms(t->clock);
    lock_take(&t->lock);
    if (again) {
        drop_untold(t);
    }
    make_room(t);
    id = ++t->last_id;
    task->id = id;
    t->items[t->count++] = task;
    give_and_publish(t, task);
    return id;
}

int64_t
task_begin(struct tasks *t, const char *kind, const char *title, const char *author)
{
    return begin(t, kind, title, author, false);
}

int64_t
task_begin_again(struct tasks *t, const char *kind, const char *title, const char *author)
{
    return begin(t, kind, title, author, true);
}

static struct step *
present_step(struct task *task)
{
    return task->step_count > 0 ? &task->steps[task->step_count - 1] : NULL;
}

static void
end_step(const struct tasks *t, struct task *task, enum task_state state)
{
    struct step *s = present_step(task);

    if (s != NULL && s->state == TASK_RUNNING) {
        s->state = state;
        s->ms = clock_mono_ms(t->clock) - s->from_ms;
    }
}

void
task_step(struct tasks *t, int64_t id, const char *name, const char *title)
{
    struct task *task;

    lock_take(&t->lock);
    task = find(t, id);
    if (task == NULL || has_ended(task) || task->step_count == STEPS_MAX) {
        lock_give(&t->lock);
        return;
    }
    end_step(t, task, TASK_OK);
    task->state = TASK_RUNNING;
    task->steps[task->step_count++] = (struct step){
        .name = xstrdup(name),
        .title = xstrdup(title),
        .state = TASK_RUNNING,
        .from_ms = clock_mono_ms(t->clock),
    };
    give_and_publish(t, task);
}

void
task_note(struct tasks *t, int64_t id, const char *fmt, ...)
{
    char line[TEXT_BYTES];
    struct task *task;
    struct step *s;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    lock_take(&t->lock);
    task = find(t, id);
    s = task != NULL && !has_ended(task) ? present_step(task) : NULL;
    if (s == NULL) {
        lock_give(&t->lock);
        return;
    }
    free(s->text);
    s->text = xstrdup(line);
    give_and_publish(t, task);
}

void
task_step_end(struct tasks *t, int64_t id, enum task_state state)
{
    struct task *task;

    lock_take(&t->lock);
    task = find(t, id);
    if (task == NULL || has_ended(task)) {
        lock_give(&t->lock);
        return;
    }
    end_step(t, task, state);
    give_and_publish(t, task);
}

void
task_end(
    struct tasks *t, int64_t id, err_t code, const char *message,
    const struct problems *problems, json_t *result)
{
    struct waiter *waiters;
    size_t waiter_count;
    enum task_state state = code == ERR_OK ? TASK_OK : TASK_FAILED;
    struct task *task;

    lock_take(&t->lock);
    task = find(t, id);
    if (task == NULL || has_ended(task)) {
        lock_give(&t->lock);
        json_decref(result);
        return;
    }
    end_step(t, task, state);
    task->state = state;
    task->code = code;
    task->message = xstrdup(message);
    task->problems = problems != NULL && problems->count > 0 ? problems_json(problems) : NULL;
    task->result = result;
    task->ended_ms = clock_wall_ms(t->clock);
    waiters = TAKE(task->waiters);
    waiter_count = task->waiter_count;
    task->waiter_count = 0;
    give_and_publish(t, task);
    for (size_t i = 0; i < waiter_count; i++) {
        waiters[i].fn(waiters[i].ctx);
    }
    free(waiters);
}

json_t *
task_json(struct tasks *t, int64_t id)
{
    const struct task *task;
    json_t *json;

    lock_take(&t->lock);
    task = find(t, id);
    json = task != NULL ? to_json(t, task) : NULL;
    lock_give(&t->lock);
    return json;
}

static const json_t *
first_error(const json_t *problems)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *at = json_array_get(problems, i);
        const char *severity = json_string_value(json_object_get(at, "severity"));

        if (severity != NULL && strcmp(severity, "error") == 0) {
            return at;
        }
    }
    return NULL;
}

void
task_reason(const json_t *task, char out[TASK_REASON_BYTES])
{
    const json_t *first = first_error(json_object_get(task, "problems"));
    const char *kind = json_string_value(json_object_get(first, "kind"));
    const char *name = json_string_value(json_object_get(first, "name"));
    const char *message = json_string_value(json_object_get(task, "message"));
    bool named = kind != NULL && name != NULL;

    (void)snprintf(
        out, TASK_REASON_BYTES, "%s%s%s%s%s", named ? kind : "", named ? " " : "",
        named ? name : "", named ? ": " : "", message != NULL ? message : "it failed");
}

err_t
task_code(const json_t *task)
{
    const char *name = json_string_value(json_object_get(task, "code"));
    err_t code = ERR_INTERNAL;

    for (err_t c = ERR_OK; name != NULL && c < ERR_INTERNAL; c++) {
        code = strcmp(error_name(c), name) == 0 ? c : code;
    }
    return code;
}

const char *
task_missing(struct tasks *t, int64_t id)
{
    int64_t last;

    lock_take(&t->lock);
    last = t->last_id;
    lock_give(&t->lock);
    if (id <= t->start_id) {
        return " (the node was restarted since; see status and history)";
    }
    return id <= last ? " any more (see status and history)" : "";
}

json_t *
tasks_json(struct tasks *t)
{
    json_t *list = json_array();

    lock_take(&t->lock);
    for (size_t i = t->count; i > 0; i--) {
        if (is_told(t->items[i - 1])) {
            (void)json_array_append_new(list, to_json(t, t->items[i - 1]));
        }
    }
    lock_give(&t->lock);
    return list;
}

bool
task_when_done(struct tasks *t, int64_t id, task_done_fn fn, void *ctx)
{
    struct task *task;
    bool known;
    bool ended;

    lock_take(&t->lock);
    task = find(t, id);
    known = task != NULL;
    ended = known && has_ended(task);
    if (known && !ended) {
        task->waiters =
            xrealloc(task->waiters, (task->waiter_count + 1) * sizeof *task->waiters);
        task->waiters[task->waiter_count++] = (struct waiter){fn, ctx};
    }
    lock_give(&t->lock);
    if (ended) {
        fn(ctx);
    }
    return known;
}

bool
task_forget(struct tasks *t, int64_t id, task_done_fn fn, void *ctx)
{
    struct task *task;
    bool found = false;

    lock_take(&t->lock);
    task = find(t, id);
    for (size_t i = 0; task != NULL && i < task->waiter_count && !found; i++) {
        if (task->waiters[i].fn == fn && task->waiters[i].ctx == ctx) {
            task->waiters[i] = task->waiters[--task->waiter_count];
            found = true;
        }
    }
    lock_give(&t->lock);
    return found;
}
