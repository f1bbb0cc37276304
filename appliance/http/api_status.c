/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the daemon lives, what the node stores, runs and serves, and its documents. */
#include <string.h>

#include "base/lock.h"
#include "engine/edit.h"
#include "engine/facts.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "routes_gen.h"
#include "version_gen.h"

#define WORD_BYTES      16
#define SERVERS_KEPT_MS 60000

/* One word, for programs that look at nothing else. */
static void
reply_word(struct request *r, bool yes, const char *word)
{
    struct buf text;

    buf_init(&text, WORD_BYTES);
    buf_puts(&text, word);
    reply_text(r, yes ? 200 : 503, "text/plain", &text);
    buf_fini(&text);
}

/* What was seen counts for two rounds and the time that one look may take. */
static bool
is_healthy(const struct request *r, const struct engine_status *s)
{
    const struct tunables *t = r->http->config.tunables;
    int64_t age_ms = clock_mono_ms(&clock_system) - s->measured_mono_ms;

    return s->up == FACT_YES && s->serving == FACT_YES &&
           age_ms <= 2 * t->status_round_ms + t->socket_ms;
}

void
http_health_get(struct request *r)
{
    struct engine_status s;
    bool yes;

    engine_get_status(r->http->config.engine, &s);
    yes = is_healthy(r, &s);
    reply_word(r, yes, yes ? "up\n" : "down\n");
}

void
http_ready_get(struct request *r)
{
    struct engine_status s;
    bool yes;

    engine_get_status(r->http->config.engine, &s);
    yes = s.started && is_healthy(r, &s);
    reply_word(r, yes, yes ? "ready\n" : s.started ? "down\n" : "starting\n");
}

/* Old counts are none. */
static json_t *
servers_json(const struct engine_servers *s, int64_t now_ms)
{
    if (s->seen_at_ms == 0 || now_ms - s->seen_at_ms > SERVERS_KEPT_MS) {
        return json_null();
    }
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:o}", "up", (json_int_t)s->up, "down", (json_int_t)s->down,
        "maint", (json_int_t)s->maint, "no_address", (json_int_t)s->no_address, "seen_at",
        json_time(s->seen_at_ms));
}

static json_t *
draft_json(const struct view *v)
{
    json_int_t conflicts = 0;

    for (size_t i = 0; i < v->entry_count; i++) {
        conflicts += v->entries[i].conflict ? 1 : 0;
    }
    return json_pack("{s:I, s:I}", "count", (json_int_t)v->entry_count, "conflicts", conflicts);
}

static json_t *
seconds_or_null(int64_t s)
{
    return s >= 0 ? json_integer(s) : json_null();
}

static void
make_status(struct request *r, const struct engine_status *s)
{
    const struct view *v = request_view(r);
    json_t *rest = json_pack(
        "{s:s, s:s, s:i, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "node", api_node_name(v),
        "release", LOCKSTEP_VERSION, "schema_version", SCHEMA_VERSION, "head",
        commit_to_json(&v->head), "local_rev", (json_int_t)v->local_rev, "draft", draft_json(v),
        "servers", servers_json(&s->servers, clock_wall_ms(&clock_system)), "confirm",
        engine_waiting_json(&s->waiting), "age_s", seconds_or_null(s->age_s), "silent_s",
        seconds_or_null(s->silent_s), "idle_pools", api_idle_pools(v));
    json_t *all = facts_json(s);

    (void)json_object_update(all, rest);
    json_decref(rest);
    reply_json(r, 200, all);
}

static bool
same_numbers(const struct engine_status *a, const struct engine_status *b)
{
    return a->started == b->started && a->up == b->up && a->serving == b->serving &&
           a->haproxy_pid == b->haproxy_pid && a->uptime_s == b->uptime_s &&
           a->connections == b->connections && a->max_connections == b->max_connections &&
           a->running_known == b->running_known && a->running_rev == b->running_rev &&
           a->running_local_rev == b->running_local_rev && a->age_s == b->age_s &&
           a->silent_s == b->silent_s && a->serving_at_ms == b->serving_at_ms &&
           a->seen_at_ms == b->seen_at_ms && a->old_workers == b->old_workers &&
           a->servers.seen_at_ms == b->servers.seen_at_ms;
}

static bool
same_waiting(const struct engine_waiting *a, const struct engine_waiting *b)
{
    return a->is == b->is && hash_equal(&a->commit, &b->commit) && a->left_s == b->left_s &&
           a->going_back == b->going_back && a->failed == b->failed &&
           a->retry_at_ms == b->retry_at_ms;
}

static bool
same_status(const struct engine_status *a, const struct engine_status *b)
{
    return same_numbers(a, b) && same_waiting(&a->waiting, &b->waiting) &&
           hash_equal(&a->running_commit, &b->running_commit) &&
           strcmp(a->haproxy_version, b->haproxy_version) == 0 &&
           strcmp(a->running_digest, b->running_digest) == 0 &&
           strcmp(a->up_detail, b->up_detail) == 0 &&
           strcmp(a->serving_detail, b->serving_detail) == 0 &&
           strcmp(a->reason, b->reason) == 0;
}

/* Asked again and again by every page and monitor, and the same for a second or two. */
void
http_status_get(struct request *r)
{
    struct http *h = r->http;
    struct shared_reply *made;
    struct engine_status s;
    bool hit;

    engine_get_status(h->config.engine, &s);
    lock_take(&h->status_lock);
    made = h->status_reply;
    hit = made != NULL && made->version == request_view(r)->version &&
          same_status(&made->status, &s);
    if (hit) {
        reply_shared(r, made);
    }
    lock_give(&h->status_lock);
    if (hit) {
        return;
    }
    make_status(r, &s);
    made = reply_share(r);
    made->version = request_view(r)->version;
    made->status = s;
    lock_take(&h->status_lock);
    reply_shared_unref(h->status_reply);
    h->status_reply = made;
    lock_give(&h->status_lock);
}

void
http_schema_get(struct request *r)
{
    reply_document(r, &r->http->schema);
}

void
http_openapi_get(struct request *r)
{
    reply_document(r, &r->http->openapi);
}

void
http_verify_get(struct request *r)
{
    int64_t checked = 0;
    struct error e;
    err_t code = api_long_begin(r, &e);

    if (code == ERR_OK) {
        code = edit_verify(r->http->config.engine, &checked, &e);
        api_long_end(r);
    }
    if (code != ERR_OK) {
        /* Before the first apply there are no files to compare. */
        e.code = e.code == ERR_NOT_FOUND ? ERR_UNAVAILABLE : e.code;
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, json_pack("{s:b, s:I}", "ok", 1, "checked", (json_int_t)checked));
}
