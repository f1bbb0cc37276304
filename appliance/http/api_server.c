/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a server: what an operator decided, and what HAProxy says. */
#include <string.h>

#include "engine/operator.h"
#include "engine/problems_json.h"
#include "engine/stats.h"
#include "http/api.h"
#include "http/reply.h"
#include "routes_gen.h"

/* What is found out while an answer is made. */
struct answer {
    struct request *r;
    const struct object *state; /* stored, or NULL */
    bool unknown, other;
    const char *reason;
};

static json_t *
stored_json(const struct answer *a)
{
    const struct schema_kind *k = schema_kind(K_SERVER_STATE);
    const struct schema_field *f = &k->fields[F_SERVER_STATE_STATE];
    bool set = a->state != NULL;
    int64_t state = set ? object_int(a->state, F_SERVER_STATE_STATE) : f->default_int;
    int64_t weight = set ? object_int(a->state, F_SERVER_STATE_WEIGHT)
                         : k->fields[F_SERVER_STATE_WEIGHT].default_int;

    return json_pack(
        "{s:b, s:s, s:I, s:s}", "set", set, "state", f->values[state], "weight",
        (json_int_t)weight, "note", set ? object_text(a->state, F_SERVER_STATE_NOTE).s : "");
}

static const struct stat_row *
row_of(const struct stats *s, const struct operator_pool *at)
{
    for (size_t i = 0; i < s->stat.count; i++) {
        const struct stat_row *row = &s->stat.rows[i];

        if (row->type == STAT_SERVER && strcmp(row->svname, at->server) == 0) {
            return row;
        }
    }
    return NULL;
}

/* The first reason is told. */
static void
note_reason(struct answer *a, const char *reason)
{
    a->reason = a->reason != NULL ? a->reason : arena_strdup(a->r->arena, reason);
}

static json_t *
pool_json(struct answer *a, const struct operator_pool *at)
{
    CLEANUP(stats_cleanup) struct stats *s = NULL;
    const struct server_line *line = NULL;
    const struct stat_row *row = NULL;
    struct error e;

    if (stats_get(a->r->http->config.engine, at->pool, &s, &e) == ERR_OK) {
        row = row_of(s, at);
        line = server_table_find(&s->states, at->pool, at->server);
    } else {
        note_reason(a, e.msg);
    }
    a->unknown = a->unknown || line == NULL;
    a->other = a->other || (line != NULL && !operator_has(a->state, line));
    if (at->refused != NULL) {
        note_reason(a, at->refused);
    }
    return json_pack(
        "{s:s, s:o, s:s?, s:o}", "pool", at->pool, "seen_at",
        json_time(s != NULL ? s->seen_at_ms : 0), "refused", at->refused, "server",
        row != NULL ? api_server_stats(s, row) : json_null());
}

static void
answer(
    struct request *r, const char *server, const struct operator_pools *pools,
    const char *reason)
{
    const struct view *v = request_fresh_view(r);
    struct answer a = {.r = r, .reason = reason};
    json_t *list = json_array();
    const char *running = "yes";

    a.state = snapshot_by_name(v->now.shared, K_SERVER_STATE, server);
    for (size_t i = 0; i < pools->count; i++) {
        (void)json_array_append_new(list, pool_json(&a, &pools->items[i]));
    }
    if (pools->count == 0) {
        note_reason(&a, "it is in no pool that HAProxy runs");
    }
    if (a.other || pools->count == 0) {
        running = "no";
    } else if (a.unknown) {
        running = "unknown";
    }
    reply_json(
        r, 200,
        json_pack(
            "{s:s, s:o, s:s, s:s?, s:o}", "server", server, "stored", stored_json(&a),
            "running", running, "reason", a.reason, "pools", list));
}

void
http_operator_get(struct request *r)
{
    const char *server = request_segment(r, "{name}");
    struct operator_pools pools;

    if (snapshot_by_name(request_view(r)->now.shared, K_SERVER, server) == NULL) {
        reply_problem(
            r, 404, error_name(ERR_NOT_FOUND), "no server \"%s\" is applied on this node",
            server);
        return;
    }
    operator_find(r->http->config.engine, server, r->arena, &pools);
    answer(r, server, &pools, NULL);
}

/* body NULL: back to none. */
static void
change(struct request *r, json_t *body)
{
    struct engine *en = r->http->config.engine;
    const char *server = request_segment(r, "{name}");
    struct problems *p = request_problems(r);
    struct operator_pools pools = {.items = NULL};
    struct error e = {.code = ERR_OK};

    if (operator_store(en, server, body, &r->actor, p, &e) != ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    if (operator_put_server(en, server, r->arena, &pools, &e) == ERR_OK) {
        answer(r, server, &pools, NULL);
        return;
    }
    if (pools.items == NULL) {
        operator_find(en, server, r->arena, &pools);
    }
    answer(
        r, server, &pools,
        arena_printf(r->arena, "stored, but HAProxy does not answer: %s", e.msg));
}

void
http_operator_put(struct request *r)
{
    static const char *const keys[] = {"state", "weight", "note", NULL};

    if (request_only_keys(r, keys)) {
        change(r, r->json);
    }
}

void
http_operator_delete(struct request *r)
{
    change(r, NULL);
}
