/* SPDX-License-Identifier: Apache-2.0 */
#include "http/dispatch.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "http/reply.h"

/* Parsing a body takes some 10 ns a byte: longer ones are parsed by the worker pool, since
 * libmicrohttpd's threads have other connections and the engine's thread has commits. */
#define PARSE_HERE_BYTES ((size_t)64 << 10)

void
dispatch_hold(struct request *r)
{
    (void)atomic_fetch_add(&r->holds, 1);
}

void
dispatch_release(struct request *r)
{
    struct http *h = r->http;

    if (atomic_fetch_sub(&r->holds, 1) > 1) {
        return;
    }
    ASSERT(r->response != NULL);
    MHD_resume_connection(r->mhd);
    lock_take(&h->work_lock);
    h->working--;
    ASSERT(pthread_cond_broadcast(&h->work_done) == 0);
    lock_give(&h->work_lock);
}

static void
call_handler(void *ctx)
{
    struct request *r = ctx;

    r->route->handler(r);
    dispatch_release(r);
}

/* A login flood fills the worker pool with scrypt; what commits must not wait behind it, so
 * writes run on the engine's thread. The exception are administrators: their passwords are
 * hashed, and 100 ms of that would hold up the engine for everybody else. */
static enum runs
where(const struct request *r)
{
    bool admin = r->route->family == ROUTE_COLLECTION && r->hit.kind == K_ADMIN;

    return r->route->runs == RUNS_ENGINE && admin ? RUNS_WORKER : r->route->runs;
}

static void
refuse_busy(struct request *r, const struct error *e)
{
    reply_busy(r, e);
    dispatch_release(r);
}

static void
parse_then_call(void *ctx)
{
    struct request *r = ctx;
    struct error e;

    if (!request_parse_body(r)) {
        dispatch_release(r);
    } else if (where(r) == RUNS_WORKER) {
        call_handler(r);
    } else if (engine_post(r->http->config.engine, call_handler, r, &e) != ERR_OK) {
        refuse_busy(r, &e);
    }
}

/* False: the server is closing. */
static bool
suspend(struct request *r)
{
    struct http *h = r->http;
    bool open;

    lock_take(&h->work_lock);
    open = !h->closing;
    h->working += open ? 1 : 0;
    lock_give(&h->work_lock);
    if (open) {
        r->suspended = true;
        dispatch_hold(r);
        MHD_suspend_connection(r->mhd);
    }
    return open;
}

static void
post(struct request *r)
{
    struct engine *en = r->http->config.engine;
    struct error e;
    err_t code;

    if (r->json == NULL && r->body.len > PARSE_HERE_BYTES) {
        code = engine_work(en, parse_then_call, r, &e);
    } else if (where(r) == RUNS_WORKER) {
        code = engine_work(en, call_handler, r, &e);
    } else {
        code = engine_post(en, call_handler, r, &e);
    }
    if (code != ERR_OK) {
        refuse_busy(r, &e);
    }
}

void
dispatch_run(struct request *r)
{
    struct error e;

    if ((r->body.len <= PARSE_HERE_BYTES || r->route->runs == RUNS_INLINE) &&
        !request_parse_body(r)) {
        return;
    }
    if (r->route->runs == RUNS_INLINE) {
        r->route->handler(r);
        ASSERT(r->response != NULL);
    } else if (suspend(r)) {
        post(r);
    } else {
        (void)error_set(&e, ERR_UNAVAILABLE, "the daemon is stopping");
        reply_busy(r, &e);
    }
}

void
dispatch_close(struct http *h)
{
    lock_take(&h->work_lock);
    h->closing = true;
    lock_give(&h->work_lock);
}

bool
dispatch_drain(struct http *h, int64_t ms)
{
    struct timespec deadline = lock_deadline(ms);
    bool drained;

    lock_take(&h->work_lock);
    while (h->working > 0 && lock_wait(&h->work_done, &h->work_lock, &deadline)) {
    }
    drained = h->working == 0;
    lock_give(&h->work_lock);
    return drained;
}
