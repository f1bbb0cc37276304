/* SPDX-License-Identifier: Apache-2.0 */
#include "http/wait.h"

#include "base/lock.h"
#include "engine/task.h"
#include "http/dispatch.h"

static void
remove_locked(struct http *h, const struct request *r)
{
    struct request **at = &h->waiting;

    while (*at != r) {
        ASSERT(*at != NULL);
        at = &(*at)->wait_next;
    }
    *at = r->wait_next;
}

/* r is gone afterwards. */
static void
complete(struct request *r, bool ended)
{
    json_t *task = task_json(engine_tasks(r->http->config.engine), r->wait_task);

    r->wait_answer(r, task != NULL ? task : json_object(), ended);
    dispatch_release(r);
}

static void
task_done(void *ctx)
{
    struct request *r = ctx;

    lock_take(&r->http->wait_lock);
    remove_locked(r->http, r);
    lock_give(&r->http->wait_lock);
    complete(r, true);
}

void
wait_for_task(struct request *r, int64_t task, wait_fn answer)
{
    struct http *h = r->http;
    int64_t answer_ms = h->config.tunables->answer_ms;

    r->wait_task = task;
    r->wait_answer = answer;
    /* Before the connection itself is over its time. */
    r->wait_until_ms = http_now_ms(h) + answer_ms - answer_ms / 5;
    dispatch_hold(r);
    lock_take(&h->wait_lock);
    r->wait_next = h->waiting;
    h->waiting = r;
    lock_give(&h->wait_lock);
    if (!task_when_done(engine_tasks(h->config.engine), task, task_done, r)) {
        task_done(r);
    }
}

/* The first wait that is to end and that its task has not called yet: taken out, or NULL. */
static struct request *
take_over(struct http *h, bool all)
{
    int64_t now_ms = http_now_ms(h);
    struct request *r;

    lock_take(&h->wait_lock);
    for (r = h->waiting; r != NULL; r = r->wait_next) {
        if ((all || now_ms >= r->wait_until_ms) &&
            task_forget(engine_tasks(h->config.engine), r->wait_task, task_done, r)) {
            remove_locked(h, r);
            break;
        }
    }
    lock_give(&h->wait_lock);
    return r;
}

void
wait_scan(struct http *h, bool all)
{
    struct request *r;

    while ((r = take_over(h, all)) != NULL) {
        complete(r, false);
    }
}
