/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/engine_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/lock.h"

#define ASK_MS    20
#define OPS_BYTES ((size_t)1 << 20)

/* ---- life ---- */

static int64_t
mono(void *ctx)
{
    const struct engine_lab *l = ctx;

    return l->mono_stands_ms != 0 ? l->mono_stands_ms : clock_mono_ms(&clock_system);
}

static int64_t
wall(void *ctx)
{
    const struct engine_lab *l = ctx;

    return clock_wall_ms(&clock_system) + l->wall_shift_ms;
}

static void
prepare(struct engine_lab *l)
{
    tunables_default(&l->tunables);
    l->tunables.verify_ms = 300;
    l->tunables.socket_ms = 2000;
    l->tunables.status_round_ms = 50;
    l->tunables.follow_first_ms = 20;
    l->tunables.helper_wait_ms = 0;
    l->tunables.try_ms = 0; /* the servers of these tests are nobody's */
    l->clock = (struct clock){mono, wall, l};
    l->config = (struct engine_config){
        .state_dir = l->fake.state_dir,
        .run_dir = l->fake.run_dir,
        .socket_group = "haproxy",
        .node_name = "proxy1",
        .tunables = &l->tunables,
        .clock = &l->clock,
    };
    l->arena = arena_new(ARENA_DEFAULT_BYTES);
}

void
engine_lab_init(struct engine_lab *l)
{
    engine_lab_init_in(l, FAKE_FOLDER);
}

void
engine_lab_init_in(struct engine_lab *l, const char *folder)
{
    *l = (struct engine_lab){.en = NULL};
    fake_init(&l->fake, folder);
    fake_start(&l->fake);
    prepare(l);
}

void
engine_lab_join(struct engine_lab *l, const char *dir)
{
    *l = (struct engine_lab){.en = NULL};
    fake_paths(&l->fake, dir);
    prepare(l);
}

void
engine_lab_open(struct engine_lab *l)
{
    if (engine_open(&l->config, &l->en, &l->error) != ERR_OK) {
        (void)fprintf(stderr, "engine_open: %s\n", l->error.msg);
        abort();
    }
}

void
engine_lab_start(struct engine_lab *l)
{
    engine_lab_open(l);
    engine_lab_await(l, engine_lab_serves_head);
}

void
engine_lab_close(struct engine_lab *l)
{
    engine_close(l->en);
    l->en = NULL;
}

void
engine_lab_fini(struct engine_lab *l)
{
    engine_lab_close(l);
    fake_stop(&l->fake);
    fake_fini(&l->fake);
    arena_free(l->arena);
}

struct engine_lab *
engine_lab_new(void)
{
    return engine_lab_new_in(FAKE_FOLDER);
}

struct engine_lab *
engine_lab_new_in(const char *folder)
{
    struct engine_lab *l = xcalloc(1, sizeof *l);

    engine_lab_init_in(l, folder);
    return l;
}

void
engine_lab_delete(struct engine_lab *l)
{
    engine_lab_fini(l);
    free(l);
}

int
engine_lab_setup(void **state)
{
    struct engine_lab *l = engine_lab_new();

    engine_lab_start(l);
    *state = l;
    return 0;
}

int
engine_lab_teardown(void **state)
{
    engine_lab_delete(*state);
    return 0;
}

/* ---- waiting ---- */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool called;
};

static void
wake(void *ctx)
{
    struct waiting *w = ctx;

    lock_take(&w->lock);
    w->called = true;
    (void)pthread_cond_signal(&w->changed);
    lock_give(&w->lock);
}

static void
waiting_init(struct waiting *w)
{
    w->called = false;
    ASSERT(pthread_mutex_init(&w->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&w->changed, NULL) == 0);
}

static struct timespec
after_ms(int64_t ms)
{
    struct timespec ts;

    ASSERT(clock_gettime(CLOCK_REALTIME, &ts) == 0);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

/* True when it was called before the deadline. */
static bool
wait_for_call(struct waiting *w, const struct timespec *deadline)
{
    bool called;

    lock_take(&w->lock);
    while (!w->called && pthread_cond_timedwait(&w->changed, &w->lock, deadline) == 0) {
    }
    called = w->called;
    w->called = false;
    lock_give(&w->lock);
    return called;
}

NORETURN static void
in_vain(void)
{
    (void)fprintf(stderr, "waited for %d s in vain\n", ENGINE_LAB_WAIT_S);
    abort();
}

void
engine_lab_await(struct engine_lab *l, engine_lab_fn fn)
{
    int64_t end_ms = clock_mono_ms(&clock_system) + (int64_t)ENGINE_LAB_WAIT_S * 1000;
    struct waiting w;

    waiting_init(&w);
    events_watch(engine_events(l->en), wake, &w);
    while (!fn(l)) {
        struct timespec until = after_ms(ASK_MS);

        if (!wait_for_call(&w, &until) && clock_mono_ms(&clock_system) > end_ms) {
            in_vain();
        }
    }
    events_unwatch(engine_events(l->en), wake, &w);
}

bool
engine_lab_serves_head(struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);
    struct engine_status s;

    engine_get_status(l->en, &s);
    return s.started && s.running_known && s.serving == FACT_YES &&
           hash_equal(&s.running_commit, &v->head.id) && s.running_local_rev == v->local_rev;
}

json_t *
engine_lab_task(struct engine_lab *l, int64_t task)
{
    struct timespec until = after_ms((int64_t)ENGINE_LAB_WAIT_S * 1000);
    struct waiting w;

    waiting_init(&w);
    ASSERT(task_when_done(engine_tasks(l->en), task, wake, &w));
    if (!wait_for_call(&w, &until)) {
        in_vain();
    }
    return task_json(engine_tasks(l->en), task);
}

/* ---- changes ---- */

static struct problems *
fresh_problems(struct engine_lab *l)
{
    problems_init(&l->problems, l->arena);
    l->error = (struct error){.code = ERR_OK};
    return &l->problems;
}

static json_t *
parse_ops(struct engine_lab *l, const char *ops)
{
    struct buf text;
    json_t *v = NULL;

    buf_init(&text, OPS_BYTES);
    for (const char *p = ops; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 'd') {
            buf_i64(&text, l->fake.port);
            p++;
        } else {
            buf_putc(&text, *p == '\'' ? '"' : *p);
        }
    }
    if (json_parse(buf_str(&text), text.len, &v, &l->error) != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", buf_str(&text), l->error.msg);
        abort();
    }
    buf_fini(&text);
    return v;
}

static err_t
parse_set(struct engine_lab *l, const char *ops, struct change_set *set)
{
    struct problems *p = fresh_problems(l);
    json_t *v = parse_ops(l, ops);

    change_set_init(set);
    change_set_parse(set, v, l->arena, p);
    json_decref(v);
    return p->errors > 0 ? error_set(&l->error, ERR_INVALID, "%s", p->items[0].message)
                         : ERR_OK;
}

err_t
engine_lab_edit(struct engine_lab *l, const char *ops)
{
    static const struct actor who = {"admin maria"};
    struct change_set set;
    err_t code = parse_set(l, ops, &set);

    if (code == ERR_OK) {
        code = edit_draft(l->en, &set, &who, &l->problems, &l->error);
    }
    change_set_fini(&set);
    return code;
}

err_t
engine_lab_apply_ops(struct engine_lab *l, const char *ops, int64_t *ret_task)
{
    static const struct actor who = {"key deploy"};
    struct change_set set;
    err_t code = parse_set(l, ops, &set);

    if (code == ERR_OK) {
        code = apply_start(
            l->en, &(struct apply_request){.who = &who, .ops = &set}, ret_task, &l->problems,
            &l->error);
    }
    change_set_fini(&set);
    return code;
}

int64_t
engine_lab_apply(struct engine_lab *l)
{
    static const struct actor who = {"admin maria"};
    int64_t task = 0;

    if (apply_start(
            l->en, &(struct apply_request){.who = &who}, &task, fresh_problems(l), &l->error) !=
        ERR_OK) {
        (void)fprintf(stderr, "apply_start: %s\n", l->error.msg);
        abort();
    }
    return task;
}

void
engine_lab_apply_ends(struct engine_lab *l, const char *state, const char *code)
{
    json_t *task = engine_lab_task(l, engine_lab_apply(l));

    print_message("%s\n", json_string_value(json_object_get(task, "message")));
    assert_string_equal(json_string_value(json_object_get(task, "state")), state);
    assert_string_equal(json_string_value(json_object_get(task, "code")), code);
    json_decref(task);
}

void
engine_lab_must(struct engine_lab *l, const char *ops)
{
    if (engine_lab_edit(l, ops) != ERR_OK) {
        fail_msg("%s: %s", ops, l->error.msg);
    }
}

void
engine_lab_apply_ok(struct engine_lab *l, const char *ops)
{
    int64_t task = 0;
    json_t *v;

    if (engine_lab_apply_ops(l, ops, &task) != ERR_OK) {
        fail_msg("%s: %s", ops, l->error.msg);
    }
    v = engine_lab_task(l, task);
    assert_string_equal(json_string_value(json_object_get(v, "state")), "ok");
    json_decref(v);
}

json_t *
engine_lab_applied(struct engine_lab *l)
{
    return engine_lab_task(l, engine_lab_apply(l));
}

void
engine_lab_ended(
    const json_t *task, const char *state, const char *step, const char *step_state)
{
    print_message("%s\n", json_string_value(json_object_get(task, "message")));
    assert_string_equal(json_string_value(json_object_get(task, "state")), state);
    assert_string_equal(engine_lab_step(task, step), step_state);
}

const char *
engine_lab_step(const json_t *task, const char *name)
{
    const json_t *steps = json_object_get(task, "steps");
    const json_t *step;
    size_t i;

    json_array_foreach(steps, i, step)
    {
        if (strcmp(json_string_value(json_object_get(step, "name")), name) == 0) {
            return json_string_value(json_object_get(step, "state"));
        }
    }
    return "";
}

/* ---- looking ---- */

const char *
engine_lab_draft(struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);
    const struct draft_entry **list = view_entries_by_name(v);
    char *text = arena_strdup(l->arena, "");

    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = list[i];

        text = arena_printf(
            l->arena, "%s%s%s %s%s", text, i > 0 ? ", " : "", schema_kind(entry->kind)->name,
            entry->name, entry->conflict ? "!" : "");
    }
    free(list);
    return text;
}

int64_t
engine_lab_rev(struct engine_lab *l)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return v->head.rev;
}

const struct object *
engine_lab_head_object(struct engine_lab *l, enum kind kind, const char *name)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(l->en);

    return snapshot_by_name(snapshot_of(&v->now, kind), kind, name);
}
