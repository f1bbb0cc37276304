/* SPDX-License-Identifier: Apache-2.0 */
#include "http/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "engine/event.h"
#include "http/auth.h"
#include "http/reply.h"
#include "routes_gen.h"
#include "version_gen.h"

#define STREAM_OUT_MAX ((size_t)2 << 20)
#define STREAM_KEEP    ((size_t)64 << 10) /* memory kept when all is sent */
#define STREAM_BLOCK   4096
#define STREAM_RETRY_S 5
#define SEQ_DIGITS     16

/* Used by the thread of its connection; the marked members under http.stream_lock. */
struct stream {
    struct stream *prev, *next; /* locked */
    struct request *r;
    struct hash caller;
    const char *topics; /* NULL: all */
    int64_t seq;
    struct buf out;
    size_t sent;
    int64_t ping_ms; /* locked: when the next is due */
    bool asleep;     /* locked: the connection is suspended */
    bool woken;      /* locked: something came while it was not */
};

static struct hash
caller_of(const struct request *r)
{
    return sha256(r->credential, strlen(r->credential));
}

/* ---- the list ---- */

static bool
has_room(const struct http *h, const struct hash *caller)
{
    size_t same = 0;

    for (const struct stream *s = h->streams; s != NULL; s = s->next) {
        same += hash_equal(&s->caller, caller) ? 1 : 0;
    }
    return !h->streams_closed && h->stream_count < STREAMS_MAX && same < STREAMS_MAX_CALLER;
}

static bool
list_add(struct http *h, struct stream *s)
{
    bool room;

    lock_take(&h->stream_lock);
    room = has_room(h, &s->caller);
    if (room) {
        s->next = h->streams;
        if (s->next != NULL) {
            s->next->prev = s;
        }
        h->streams = s;
        h->stream_count++;
    }
    lock_give(&h->stream_lock);
    return room;
}

static void
list_remove(struct http *h, struct stream *s)
{
    lock_take(&h->stream_lock);
    if (s->prev != NULL) {
        s->prev->next = s->next;
    } else {
        h->streams = s->next;
    }
    if (s->next != NULL) {
        s->next->prev = s->prev;
    }
    h->stream_count--;
    lock_give(&h->stream_lock);
}

static void
wake_locked(struct stream *s)
{
    if (s->asleep) {
        s->asleep = false;
        MHD_resume_connection(s->r->mhd);
    } else {
        s->woken = true;
    }
}

/* On the thread of who published an event. */
static void
wake_all(void *ctx)
{
    struct http *h = ctx;

    lock_take(&h->stream_lock);
    for (struct stream *s = h->streams; s != NULL; s = s->next) {
        wake_locked(s);
    }
    lock_give(&h->stream_lock);
}

void
streams_tick(struct http *h)
{
    int64_t now_ms = http_now_ms(h);

    lock_take(&h->stream_lock);
    for (struct stream *s = h->streams; s != NULL; s = s->next) {
        if (now_ms >= s->ping_ms) {
            wake_locked(s);
        }
    }
    lock_give(&h->stream_lock);
}

void
streams_open(struct http *h)
{
    lock_init(&h->stream_lock);
    if (h->config.closed == NULL) {
        events_watch(engine_events(h->config.engine), wake_all, h);
    }
}

void
streams_close(struct http *h)
{
    if (h->config.closed == NULL) {
        events_unwatch(engine_events(h->config.engine), wake_all, h);
    }
    lock_take(&h->stream_lock);
    h->streams_closed = true;
    lock_give(&h->stream_lock);
    wake_all(h);
}

void
streams_fini(struct http *h)
{
    ASSERT(h->streams == NULL && h->stream_count == 0);
    (void)pthread_mutex_destroy(&h->stream_lock);
}

/* ---- what is sent ---- */

static void
put_hello(struct stream *s)
{
    const struct view *v = request_view(s->r);
    const struct object *node = snapshot_singleton(v->now.local, K_NODE);

    buf_printf(
        &s->out,
        "retry: %d\nid: %lld\nevent: hello\ndata: {\"node\":\"%s\",\"seq\":%lld,"
        "\"version\":%lld,\"release\":\"%s\",\"instance\":\"%s\"}\n\n",
        STREAM_RETRY_MS, (long long)s->seq, object_text(node, F_NODE_NAME).s, (long long)s->seq,
        (long long)v->version, LOCKSTEP_VERSION, s->r->http->instance);
}

/* Adds events that came; false: there is nothing to send. */
static bool
put_events(struct stream *s)
{
    struct events *ev = engine_events(s->r->http->config.engine);
    struct buf fresh;

    if (s->seq == events_last(ev)) {
        return s->out.len > 0;
    }
    buf_init(&fresh, STREAM_OUT_MAX);
    if (!events_read(ev, s->topics, &s->seq, &fresh)) {
        buf_printf(&s->out, "id: %lld\nevent: reset\ndata: {}\n\n", (long long)s->seq);
    }
    buf_put(&s->out, fresh.data, fresh.len);
    buf_fini(&fresh);
    return s->out.len > 0;
}

/* A ping is due; false: whose stream it is may no longer read it. */
static bool
put_ping(struct stream *s)
{
    if (!auth_still_good(s->r)) {
        return false;
    }
    buf_printf(&s->out, ": ping\n\n");
    return true;
}

/* When the connection is suspended and will be resumed: true. */
static bool
fall_asleep(struct stream *s)
{
    struct http *h = s->r->http;
    bool asleep;

    lock_take(&h->stream_lock);
    asleep = !s->woken && !h->streams_closed;
    s->asleep = asleep;
    s->woken = false;
    if (asleep) {
        MHD_suspend_connection(s->r->mhd);
    }
    lock_give(&h->stream_lock);
    return asleep;
}

/* Whether a ping is due, and if so when the next is. */
static bool
ping_due(struct stream *s, bool *ret_closed)
{
    struct http *h = s->r->http;
    int64_t now_ms = http_now_ms(h);
    bool due;

    lock_take(&h->stream_lock);
    due = now_ms >= s->ping_ms;
    if (due) {
        s->ping_ms = now_ms + h->config.tunables->event_ping_ms;
    }
    *ret_closed = h->streams_closed;
    lock_give(&h->stream_lock);
    return due;
}

static void
out_empty(struct stream *s)
{
    size_t max = s->out.max;

    s->sent = 0;
    if (s->out.cap > STREAM_KEEP) {
        buf_fini(&s->out);
        buf_init(&s->out, max);
    } else {
        buf_reset(&s->out);
    }
}

/* Something is in s->out afterwards (true), or the stream is suspended, or *ret_end. */
static bool
fill(struct stream *s, bool *ret_end)
{
    for (;;) {
        if (ping_due(s, ret_end) && !*ret_end && !put_ping(s)) {
            *ret_end = true;
        }
        if (*ret_end) {
            return false;
        }
        if (put_events(s)) {
            return true;
        }
        if (fall_asleep(s)) {
            return false;
        }
    }
}

static ssize_t
read_stream(void *ctx, uint64_t pos, char *to, size_t max)
{
    struct stream *s = ctx;
    struct http *h = s->r->http;
    bool end = false;
    size_t n;

    (void)pos;
    connection_enter(&h->connections, s->r->connection, CONNECTION_STREAM, http_now_ms(h));
    if (s->sent == s->out.len) {
        out_empty(s);
        if (!fill(s, &end)) {
            return end ? MHD_CONTENT_READER_END_OF_STREAM : 0;
        }
    }
    n = s->out.len - s->sent < max ? s->out.len - s->sent : max;
    memcpy(to, s->out.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

void
stream_detach(struct request *r)
{
    if (r->stream != NULL) {
        list_remove(r->http, r->stream);
        r->stream->r = NULL;
    }
}

/* Comes after stream_detach: the request has a reference of the answer. */
static void
free_stream(void *ctx)
{
    struct stream *s = ctx;

    ASSERT(s->r == NULL);
    buf_fini(&s->out);
    free(s);
}

/* ---- the route ---- */

/* Where to go on; a number that is none means that events were missed: -1. */
static int64_t
first_seq(const struct request *r)
{
    const char *last = r->header.last_event_id;
    size_t digits = last != NULL ? strspn(last, "0123456789") : 0;
    int64_t seq = 0;

    if (last == NULL) {
        return events_last(engine_events(r->http->config.engine));
    }
    if (digits == 0 || digits > SEQ_DIGITS || last[digits] != '\0') {
        return -1;
    }
    for (size_t i = 0; i < digits; i++) {
        seq = seq * 10 + (last[i] - '0');
    }
    return seq;
}

static bool
topics_known(const char *topics)
{
    static const char *const known[] = {"task", "draft", "head", "status", "server"};

    while (*topics != '\0') {
        size_t len = strcspn(topics, ",");
        bool found = false;

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
            found = found || (strlen(known[i]) == len && memcmp(known[i], topics, len) == 0);
        }
        if (!found) {
            return false;
        }
        topics += len;
        topics += *topics == ',' ? 1 : 0;
    }
    return true;
}

void
http_event_stream(struct request *r)
{
    struct events *ev = engine_events(r->http->config.engine);
    const char *topics = request_param(r, "topics");
    struct stream *s;

    if (topics != NULL && !topics_known(topics)) {
        reply_problem(
            r, 400, "unknown_topic", "topics are task, draft, head, status and server");
        return;
    }
    s = xcalloc(1, sizeof *s);
    s->r = r;
    s->topics = topics != NULL && topics[0] != '\0' ? topics : NULL;
    s->seq = first_seq(r);
    s->ping_ms = http_now_ms(r->http) + r->http->config.tunables->event_ping_ms;
    s->caller = caller_of(r);
    buf_init(&s->out, 2 * STREAM_OUT_MAX);
    if (!list_add(r->http, s)) {
        free(s);
        reply_problem(r, 503, "limit", "too many event streams are open");
        reply_retry_after(r, STREAM_RETRY_S);
        return;
    }
    if (s->seq < 0 || s->seq > events_last(ev)) {
        s->seq = events_last(ev);
        put_hello(s);
        buf_printf(&s->out, "event: reset\ndata: {}\n\n");
    } else {
        put_hello(s);
    }
    r->stream = s;
    r->response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, free_stream);
    ASSERT(r->response != NULL);
    r->status = 200;
    reply_standard_headers(r, r->response, "text/event-stream");
    request_drop_view(r);
}
