/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "engine/problems_json.h"

#define EVENT_BYTES ((size_t)1 << 20)

struct event {
    int64_t seq; /* 0: empty */
    const char *topic;
    char *text; /* one line of JSON */
};

struct watcher {
    events_fn fn;
    void *ctx;
};

struct events {
    pthread_mutex_t lock;
    int64_t last;
    struct event ring[EVENTS_KEPT];
    /* Held while watchers are called, so that events_unwatch can promise that none runs. */
    pthread_mutex_t watch_lock;
    struct watcher *watchers;
    size_t watcher_count;
};

struct events *
events_new(void)
{
    struct events *ev = xcalloc(1, sizeof *ev);

    lock_init(&ev->lock);
    lock_init(&ev->watch_lock);
    return ev;
}

void
events_free(struct events *ev)
{
    if (ev == NULL) {
        return;
    }
    ASSERT(ev->watcher_count == 0);
    for (size_t i = 0; i < EVENTS_KEPT; i++) {
        free(ev->ring[i].text);
    }
    free(ev->watchers);
    (void)pthread_mutex_destroy(&ev->lock);
    (void)pthread_mutex_destroy(&ev->watch_lock);
    free(ev);
}

static void
call_watchers(struct events *ev)
{
    lock_take(&ev->watch_lock);
    for (size_t i = 0; i < ev->watcher_count; i++) {
        ev->watchers[i].fn(ev->watchers[i].ctx);
    }
    lock_give(&ev->watch_lock);
}

void
events_publish(struct events *ev, const char *topic, json_t *json)
{
    struct buf text;
    struct event *slot;
    char *former;

    buf_init(&text, EVENT_BYTES);
    (void)json_object_set_new(json, "event_at", json_time(clock_wall_ms(&clock_system)));
    json_canonical(json, &text);
    if (text.failed) {
        /* Readers see that something changed and fetch it. */
        buf_reset(&text);
        buf_puts(&text, "{}");
    }
    json_decref(json);
    lock_take(&ev->lock);
    ev->last++;
    slot = &ev->ring[ev->last % EVENTS_KEPT];
    former = slot->text;
    *slot = (struct event){ev->last, topic, buf_take(&text)};
    lock_give(&ev->lock);
    free(former);
    buf_fini(&text);
    call_watchers(ev);
}

int64_t
events_last(struct events *ev)
{
    int64_t last;

    lock_take(&ev->lock);
    last = ev->last;
    lock_give(&ev->lock);
    return last;
}

static bool
is_wanted(const char *topics, const char *topic)
{
    size_t bytes = strlen(topic);

    if (topics == NULL) {
        return true;
    }
    for (;;) {
        size_t part = strcspn(topics, ",");

        if (part == bytes && memcmp(topics, topic, bytes) == 0) {
            return true;
        }
        if (topics[part] == '\0') {
            return false;
        }
        topics += part + 1;
    }
}

static void
put_event(const struct event *event, struct buf *out)
{
    buf_puts(out, "id: ");
    buf_i64(out, event->seq);
    buf_printf(out, "\nevent: %s\ndata: ", event->topic);
    buf_puts(out, event->text);
    buf_puts(out, "\n\n");
}

bool
events_read(struct events *ev, const char *topics, int64_t *seq, struct buf *out)
{
    bool complete = true;

    lock_take(&ev->lock);
    /* A number above ours is of the daemon before this one. */
    if (*seq < 0 || *seq > ev->last || ev->last - *seq > EVENTS_KEPT) {
        complete = false;
        *seq = ev->last > EVENTS_KEPT ? ev->last - EVENTS_KEPT : 0;
    }
    while (*seq < ev->last && !out->failed) {
        const struct event *event = &ev->ring[(*seq + 1) % EVENTS_KEPT];

        ASSERT(event->seq == *seq + 1);
        if (is_wanted(topics, event->topic)) {
            /* Whole events only: what does not fit is for the next call, unless nothing is
             * in out yet and it never will fit. */
            size_t need = strlen(event->text) + strlen(event->topic) + 64;

            if (need > out->max - out->len && out->len > 0) {
                break;
            }
            put_event(event, out);
        }
        (*seq)++;
    }
    lock_give(&ev->lock);
    return complete;
}

void
events_watch(struct events *ev, events_fn fn, void *ctx)
{
    lock_take(&ev->watch_lock);
    ev->watchers = xrealloc(ev->watchers, (ev->watcher_count + 1) * sizeof *ev->watchers);
    ev->watchers[ev->watcher_count++] = (struct watcher){fn, ctx};
    lock_give(&ev->watch_lock);
}

void
events_unwatch(struct events *ev, events_fn fn, void *ctx)
{
    lock_take(&ev->watch_lock);
    for (size_t i = 0; i < ev->watcher_count; i++) {
        if (ev->watchers[i].fn == fn && ev->watchers[i].ctx == ctx) {
            ev->watchers[i] = ev->watchers[--ev->watcher_count];
            break;
        }
    }
    lock_give(&ev->watch_lock);
}
