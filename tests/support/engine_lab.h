/* SPDX-License-Identifier: Apache-2.0 */
/* An engine with a fake node below it, and short forms of what its tests do. What fails here
 * aborts. */
#ifndef LOCKSTEP_SUPPORT_ENGINE_LAB_H
#define LOCKSTEP_SUPPORT_ENGINE_LAB_H

#include "engine/account.h"
#include "engine/apply.h"
#include "engine/event.h"
#include "tests/support/fake_node.h"

#define ENGINE_LAB_WAIT_S 120 /* only ever reached by a failure, also on a busy machine */

/* Operations on a listener that the fake answers, on servers, and on the error page. */
#define LAB_LISTENER                                                                           \
    "{'op': 'create', 'kind': 'listener', 'body': {'name': 'web', 'addresses': "               \
    "['127.0.0.1'], 'port': %d}}"
#define LAB_SERVER(name)                                                                       \
    "{'op': 'create', 'kind': 'server', 'body': {'name': '" name                               \
    "', 'address': '10.0.0.1', 'port': 8080}}"
#define LAB_TITLE(text)                                                                        \
    "{'op': 'merge', 'kind': 'haproxy', 'name': 'haproxy', 'body': {'error_title': '" text "'}}"

struct engine_lab {
    struct fake_node fake;
    struct tunables tunables;
    _Atomic int64_t mono_stands_ms; /* not 0: the monotonic clock stands there */
    struct clock clock;             /* the system's, with wall_shift_ms added to Unix time */
    _Atomic int64_t wall_shift_ms;
    int64_t seen_until_ms;       /* for a test's condition */
    struct engine_status status; /* the same */
    struct engine_config config;
    struct engine *en;
    struct arena *arena;
    struct problems problems; /* of the last call */
    struct error error;
};

/* Makes folder and fake; both are started. */
void engine_lab_init(struct engine_lab *l);
void engine_lab_init_in(struct engine_lab *l, const char *folder);
/* In another process: on the folder of a lab whose fake runs there. */
void engine_lab_join(struct engine_lab *l, const char *dir);
void engine_lab_open(struct engine_lab *l);
/* engine_lab_open, and waits until HAProxy runs the head. */
void engine_lab_start(struct engine_lab *l);
void engine_lab_close(struct engine_lab *l);
void engine_lab_fini(struct engine_lab *l); /* closes, too */

/* The same on the heap: initialised, not opened; and finished and freed. */
struct engine_lab *engine_lab_new(void);
struct engine_lab *engine_lab_new_in(const char *folder);
void engine_lab_delete(struct engine_lab *l);
/* A test of cmocka whose *state is such a lab, started. */
int engine_lab_setup(void **state);
int engine_lab_teardown(void **state);
#define ENGINE_LAB_TEST(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, engine_lab_setup, engine_lab_teardown)

/* Waits until fn(l) is true; asked after each event, and now and then. */
typedef bool (*engine_lab_fn)(struct engine_lab *l);
void engine_lab_await(struct engine_lab *l, engine_lab_fn fn);
bool engine_lab_serves_head(struct engine_lab *l); /* for engine_lab_await */

/* ops: a list as POST /changes takes it, single quotes stand for double ones. %d is the port
 * at which the fake answers. */
err_t engine_lab_edit(struct engine_lab *l, const char *ops);
err_t engine_lab_apply_ops(struct engine_lab *l, const char *ops, int64_t *ret_task);
/* The same, and its task must end well. */
void engine_lab_apply_ok(struct engine_lab *l, const char *ops);
/* Starts an apply of the draft; aborts when it cannot be started. */
int64_t engine_lab_apply(struct engine_lab *l);
/* Waits for the end; the caller owns the result. */
json_t *engine_lab_task(struct engine_lab *l, int64_t task);
/* Fails the test unless the task of an apply of the draft ends so; the message is printed. */
void engine_lab_apply_ends(struct engine_lab *l, const char *state, const char *code);
/* engine_lab_edit; fails the test when it fails. */
void engine_lab_must(struct engine_lab *l, const char *ops);
/* An apply of the draft from start to end; the caller owns the task. */
json_t *engine_lab_applied(struct engine_lab *l);
/* Fails the test unless the task ended in that state, and a step of it in that one. */
void engine_lab_ended(
    const json_t *task, const char *state, const char *step, const char *step_state);
/* State of a step of a task, "" when it was not reached. */
const char *engine_lab_step(const json_t *task, const char *name);

/* Rows of the draft in their order: "server web1, pool app!" (! = conflict). */
const char *engine_lab_draft(struct engine_lab *l);
int64_t engine_lab_rev(struct engine_lab *l);
/* At head; NULL when there is none. Valid until the next call of the lab. */
const struct object *
engine_lab_head_object(struct engine_lab *l, enum kind kind, const char *name);

#endif
