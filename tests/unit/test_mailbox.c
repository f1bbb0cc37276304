/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mailbox.h"
#include "tests/support/self.h"

/* A gate that jobs wait at, so that the queue is in a known state. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;
    bool open;
};

static void
gate_init(struct gate *g)
{
    memset(g, 0, sizeof *g);
    assert_int_equal(pthread_mutex_init(&g->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&g->changed, NULL), 0);
}

static void
gate_pass(void *ctx)
{
    struct gate *g = ctx;

    (void)pthread_mutex_lock(&g->lock);
    g->waiting++;
    (void)pthread_cond_broadcast(&g->changed);
    while (!g->open) {
        (void)pthread_cond_wait(&g->changed, &g->lock);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

static void
gate_await(struct gate *g, int waiting)
{
    (void)pthread_mutex_lock(&g->lock);
    while (g->waiting < waiting) {
        (void)pthread_cond_wait(&g->changed, &g->lock);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

static void
gate_open(struct gate *g)
{
    (void)pthread_mutex_lock(&g->lock);
    g->open = true;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
}

static void
gate_fini(struct gate *g)
{
    (void)pthread_cond_destroy(&g->changed);
    (void)pthread_mutex_destroy(&g->lock);
}

static struct mailbox *
opened(int threads, size_t max_queued)
{
    struct mailbox *m = NULL;

    assert_int_equal(mailbox_open("test", threads, max_queued, &m, NULL), ERR_OK);
    return m;
}

struct record {
    int order[1000];
    int count;
};

struct item {
    struct record *record;
    int number;
};

static void
record_number(void *ctx)
{
    struct item *i = ctx;

    i->record->order[i->record->count++] = i->number;
}

static void
runs_jobs_in_order_of_arrival(void **state)
{
    static struct item items[1000];
    static struct record r;
    struct mailbox *m = opened(1, 1000);

    (void)state;
    r.count = 0;
    for (int i = 0; i < 1000; i++) {
        items[i] = (struct item){&r, i};
        assert_int_equal(mailbox_post(m, record_number, &items[i], NULL), ERR_OK);
    }
    mailbox_close(m);
    assert_int_equal(r.count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(r.order[i], i);
    }
}

static void
full_queue_is_busy_and_recovers(void **state)
{
    struct mailbox *m = opened(1, 2);
    struct record r = {.count = 0};
    struct item items[4] = {{&r, 0}, {&r, 1}, {&r, 2}, {&r, 3}};
    struct gate g;
    struct error e;

    (void)state;
    gate_init(&g);
    assert_int_equal(mailbox_post(m, gate_pass, &g, NULL), ERR_OK);
    gate_await(&g, 1);
    assert_int_equal(mailbox_post(m, record_number, &items[0], &e), ERR_OK);
    assert_int_equal(mailbox_post(m, record_number, &items[1], &e), ERR_OK);
    assert_int_equal(mailbox_post(m, record_number, &items[2], &e), ERR_BUSY);
    assert_string_equal(e.msg, "test has 2 jobs waiting");
    assert_int_equal(mailbox_call(m, record_number, &items[2], &e), ERR_BUSY);
    gate_open(&g);
    while (mailbox_call(m, record_number, &items[3], &e) == ERR_BUSY) {
    }
    mailbox_close(m);
    assert_int_equal(r.count, 3);
    assert_int_equal(r.order[2], 3);
    gate_fini(&g);
}

static void
call_returns_after_the_job(void **state)
{
    struct mailbox *m = opened(1, 1);
    struct record r = {.count = 0};
    struct item item = {&r, 5};

    (void)state;
    for (int i = 0; i < 500; i++) {
        assert_int_equal(mailbox_call(m, record_number, &item, NULL), ERR_OK);
        assert_int_equal(r.count, i + 1);
    }
    mailbox_close(m);
}

static void
several_threads_run_at_once(void **state)
{
    struct mailbox *m = opened(3, 3);
    struct gate g;

    (void)state;
    gate_init(&g);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mailbox_post(m, gate_pass, &g, NULL), ERR_OK);
    }
    gate_await(&g, 3);
    gate_open(&g);
    mailbox_close(m);
    gate_fini(&g);
}

static void
stopped_mailbox_refuses_new_and_runs_queued_jobs(void **state)
{
    struct mailbox *m = opened(1, 10);
    struct record r = {.count = 0};
    struct item item = {&r, 1};
    struct gate g;
    struct error e;

    (void)state;
    gate_init(&g);
    assert_int_equal(mailbox_post(m, gate_pass, &g, NULL), ERR_OK);
    gate_await(&g, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mailbox_post(m, record_number, &item, NULL), ERR_OK);
    }
    mailbox_stop(m);
    mailbox_stop(m);
    assert_int_equal(mailbox_post(m, record_number, &item, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.msg, "test is stopping");
    assert_int_equal(mailbox_call(m, record_number, &item, &e), ERR_UNAVAILABLE);
    gate_open(&g);
    mailbox_close(m);
    assert_int_equal(r.count, 5);
    gate_fini(&g);
}

static void
closing_nothing_is_allowed(void **state)
{
    (void)state;
    mailbox_stop(NULL);
    mailbox_close(NULL);
}

struct thread_facts {
    sigset_t mask;
    char name[16];
};

static void
look_at_thread(void *ctx)
{
    struct thread_facts *f = ctx;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &f->mask);
    (void)pthread_getname_np(pthread_self(), f->name, sizeof f->name);
}

static void
threads_are_named_and_block_signals(void **state)
{
    struct mailbox *m = NULL;
    struct thread_facts f;
    sigset_t own;

    (void)state;
    assert_int_equal(mailbox_open("fifteen-letters", 1, 1, &m, NULL), ERR_OK);
    assert_int_equal(mailbox_call(m, look_at_thread, &f, NULL), ERR_OK);
    assert_string_equal(f.name, "fifteen-letters");
    assert_true(sigismember(&f.mask, SIGTERM));
    assert_true(sigismember(&f.mask, SIGCHLD));
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &own), 0);
    assert_false(sigismember(&own, SIGTERM));
    mailbox_close(m);
}

struct relay {
    struct mailbox *to;
    struct item item;
    err_t code;
};

static void
relay_job(void *ctx)
{
    struct relay *r = ctx;

    r->code = mailbox_call(r->to, record_number, &r->item, NULL);
}

static void
a_job_may_call_another_mailbox(void **state)
{
    struct mailbox *a = opened(1, 1);
    struct mailbox *b = opened(1, 1);
    struct record rec = {.count = 0};
    struct relay r = {.to = b, .item = {&rec, 9}};

    (void)state;
    assert_int_equal(mailbox_call(a, relay_job, &r, NULL), ERR_OK);
    assert_int_equal(r.code, ERR_OK);
    assert_int_equal(rec.count, 1);
    mailbox_close(a);
    mailbox_close(b);
}

#define POSTERS 4
#define POSTS   5000

struct poster {
    struct mailbox *m;
    int64_t *sum;
};

static void
add_one(void *ctx)
{
    int64_t *sum = ctx;

    (*sum)++;
}

static void *
post_many(void *ctx)
{
    struct poster *p = ctx;

    for (int i = 0; i < POSTS; i++) {
        while (mailbox_call(p->m, add_one, p->sum, NULL) != ERR_OK) {
        }
    }
    return NULL;
}

static void
one_thread_serialises_many_callers(void **state)
{
    struct mailbox *m = opened(1, 2);
    int64_t sum = 0;
    struct poster p = {m, &sum};
    pthread_t threads[POSTERS];

    (void)state;
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &p), 0);
    }
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    mailbox_close(m);
    assert_int_equal(sum, (int64_t)POSTERS * POSTS);
}

static void
calling_the_own_mailbox_aborts(void **state)
{
    (void)state;
    self_aborts("child", "mailbox_of_thread != m");
}

static int
child(void)
{
    struct mailbox *m = NULL;
    struct relay r = {.to = NULL};

    if (mailbox_open("test", 1, 4, &m, NULL) != ERR_OK) {
        return 0;
    }
    r.to = m;
    return mailbox_call(m, relay_job, &r, NULL) == ERR_OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_jobs_in_order_of_arrival),
        cmocka_unit_test(full_queue_is_busy_and_recovers),
        cmocka_unit_test(call_returns_after_the_job),
        cmocka_unit_test(several_threads_run_at_once),
        cmocka_unit_test(stopped_mailbox_refuses_new_and_runs_queued_jobs),
        cmocka_unit_test(closing_nothing_is_allowed),
        cmocka_unit_test(threads_are_named_and_block_signals),
        cmocka_unit_test(a_job_may_call_another_mailbox),
        cmocka_unit_test(one_thread_serialises_many_callers),
        cmocka_unit_test(calling_the_own_mailbox_aborts),
    };

    (void)argv;
    return argc > 1 ? child() : cmocka_run_group_tests(tests, NULL, NULL);
}
