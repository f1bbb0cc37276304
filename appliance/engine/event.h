/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, for streams: a ring of the newest events, read by sequence number. */
#ifndef LOCKSTEP_ENGINE_EVENT_H
#define LOCKSTEP_ENGINE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"

#define EVENTS_KEPT 256

struct events;

/* Topics are static words: "task", "draft", "head", "status", "server". */
struct events *events_new(void);
void events_free(struct events *ev);
/* Any thread. json, an object, is taken over and gets "event_at", when this was. */
void events_publish(struct events *ev, const char *topic, json_t *json);
int64_t events_last(struct events *ev); /* sequence number of the newest, 0 = none */

/* Appends events after *seq whose topic is in topics (comma-separated, NULL = all) in the
 * form of a server-sent event ("id: 7\nevent: task\ndata: {...}\n\n") and moves *seq.
 * False when some were missed because the ring went round: the reader fetches anew. Those that
 * are kept follow all the same, so that who starts at 0 sees what has just happened. */
bool events_read(struct events *ev, const char *topics, int64_t *seq, struct buf *out);

/* fn(ctx) after each publish, on the publisher's thread: it must be quick. */
typedef void (*events_fn)(void *ctx);
void events_watch(struct events *ev, events_fn fn, void *ctx);
/* When it returns, fn is not running and will not be called again. */
void events_unwatch(struct events *ev, events_fn fn, void *ctx);

struct engine;
struct events *engine_events(struct engine *en);

#endif
