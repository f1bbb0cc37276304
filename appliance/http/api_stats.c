/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: what HAProxy counts, by the names of listeners, pools and servers. */
#include <stdlib.h>
#include <string.h>

#include "engine/problems_json.h"
#include "engine/stats.h"
#include "http/api.h"
#include "http/reply.h"
#include "routes_gen.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000

/* ---- rows ---- */

static json_t *
number(int64_t n)
{
    return n >= 0 ? json_integer((json_int_t)n) : json_null();
}

/* Null when HAProxy counts neither. */
static json_t *
sum(int64_t a, int64_t b)
{
    if (a < 0 || b < 0) {
        return number(a > b ? a : b);
    }
    return json_integer((json_int_t)(a <= INT64_MAX - b ? a + b : INT64_MAX));
}

static json_t *
traffic_json(const struct stat_row *r)
{
    return json_pack(
        "{s:{s:o, s:o, s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:o, s:o, s:o, "
        "s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o}, s:o, s:o, "
        "s:{s:o, s:o, s:o, s:o}}",
        "sessions", "current", number(r->scur), "max", number(r->smax), "limit",
        number(r->slim), "total", number(r->stot), "rate", "current", number(r->rate), "max",
        number(r->rate_max), "queue", "current", number(r->qcur), "max", number(r->qmax),
        "bytes_in", number(r->bin), "bytes_out", number(r->bout), "requests",
        number(r->req_tot), "responses", "1xx", number(r->hrsp_1xx), "2xx", number(r->hrsp_2xx),
        "3xx", number(r->hrsp_3xx), "4xx", number(r->hrsp_4xx), "5xx", number(r->hrsp_5xx),
        "other", number(r->hrsp_other), "errors", "request", number(r->ereq), "connection",
        number(r->econ), "response", number(r->eresp), "denied", sum(r->dreq, r->dresp),
        "retries", number(r->wretr), "redispatches", number(r->wredis), "time_ms", "queue",
        number(r->qtime), "connect", number(r->ctime), "response", number(r->rtime), "total",
        number(r->ttime));
}

/* Unix time of the last change, which HAProxy gives as seconds ago. */
static json_t *
since(const struct stats *s, const struct stat_row *r)
{
    bool known = r->lastchg >= 0 && r->lastchg < s->seen_at_ms / 1000;

    return json_time(known ? s->seen_at_ms - r->lastchg * 1000 : 0);
}

json_t *
api_server_stats(const struct stats *s, const struct stat_row *r)
{
    const struct server_line *line = server_table_find(&s->states, r->pxname, r->svname);
    const char *by = server_taken_out_by(r->status, line);

    return json_pack(
        "{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o}", "name",
        r->svname, "state", server_state_name(server_state_of(r->status)), "status", r->status,
        "taken_out_by", by, "since", since(s, r), "weight", number(r->weight),
        "configured_weight", number(line != NULL ? line->configured_weight : -1), "backup",
        r->bck >= 0 ? json_boolean(r->bck > 0) : json_null(), "check", "status",
        json_foreign_or_null(r->check_status), "code", number(r->check_code), "duration_ms",
        number(r->check_duration), "text", json_foreign_or_null(r->last_chk), "downtime_s",
        number(r->downtime), "traffic", traffic_json(r));
}

/* ---- pools ---- */

/* Rows of one pool, which stand together. */
struct pool_rows {
    const char *name;
    const struct stat_row *first, *end;
};

static int
compare_pools(const void *a, const void *b)
{
    const struct pool_rows *x = a;
    const struct pool_rows *y = b;

    return strcmp(x->name, y->name);
}

/* Sorted by name; the caller frees. */
static struct pool_rows *
collect_pools(const struct stats *s, size_t *ret_count)
{
    struct pool_rows *pools = xcalloc(s->stat.count + 1, sizeof *pools);
    size_t count = 0;

    for (size_t i = 0; i < s->stat.count; i++) {
        const struct stat_row *row = &s->stat.rows[i];
        struct pool_rows *last = count > 0 ? &pools[count - 1] : NULL;

        if ((row->type != STAT_SERVER && row->type != STAT_BACKEND) ||
            stats_is_own(row->pxname)) {
            continue;
        }
        if (last != NULL && strcmp(last->name, row->pxname) == 0) {
            last->end = row + 1;
        } else {
            pools[count++] = (struct pool_rows){row->pxname, row, row + 1};
        }
    }
    if (count > 1) {
        qsort(pools, count, sizeof *pools, compare_pools);
    }
    *ret_count = count;
    return pools;
}

/* The row of the pool itself may be one of those that could not be read. */
static json_t *
pool_json(const struct stats *s, const struct pool_rows *pool)
{
    static const struct stat_row unknown = {
#define UNKNOWN_TEXT(name)   .name = "",
#define UNKNOWN_NUMBER(name) .name = -1,
        STAT_NEEDED(UNKNOWN_TEXT) STAT_TEXTS(UNKNOWN_TEXT) STAT_NUMBERS(UNKNOWN_NUMBER)};
    const struct stat_row *own = &unknown;
    json_t *servers = json_array();
    enum server_state state;

    for (const struct stat_row *row = pool->first; row < pool->end; row++) {
        if (row->type == STAT_SERVER) {
            (void)json_array_append_new(servers, api_server_stats(s, row));
        } else if (row->type == STAT_BACKEND) {
            own = row;
        }
    }
    state = server_state_of(own->status);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", pool->name, "state",
        own != &unknown ? json_string(server_state_name(state)) : json_null(), "since",
        since(s, own), "active", number(own->act), "backup", number(own->bck), "traffic",
        traffic_json(own), "servers", servers);
}

static json_t *
pools_json(const struct stats *s, const char *after, int64_t limit, json_t **ret_next)
{
    size_t count = 0;
    struct pool_rows *pools = collect_pools(s, &count);
    json_t *list = json_array();
    size_t i = 0;

    while (after != NULL && i < count && strcmp(pools[i].name, after) <= 0) {
        i++;
    }
    for (; i < count && limit > 0; i++, limit--) {
        (void)json_array_append_new(list, pool_json(s, &pools[i]));
    }
    *ret_next = i < count && i > 0 ? json_string(pools[i - 1].name) : json_null();
    free(pools);
    return list;
}

static json_t *
listeners_json(const struct stats *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->stat.count; i++) {
        const struct stat_row *row = &s->stat.rows[i];

        if (row->type == STAT_FRONTEND && !stats_is_own(row->pxname)) {
            (void)json_array_append_new(
                list, json_pack(
                          "{s:s, s:s, s:o}", "name", row->pxname, "status", row->status,
                          "traffic", traffic_json(row)));
        }
    }
    return list;
}

/* ---- the route ---- */

/* Only names of pools go into a command. */
static bool
know_pool(struct request *r, const char *pool)
{
    if (snapshot_by_name(request_view(r)->now.shared, K_POOL, pool) != NULL) {
        return true;
    }
    reply_problem(
        r, 404, error_name(ERR_NOT_FOUND), "no pool \"%s\" is applied on this node", pool);
    return false;
}

void
http_stats_get(struct request *r)
{
    CLEANUP(stats_cleanup) struct stats *s = NULL;
    const char *pool = request_param(r, "pool");
    const char *after = request_param(r, "after");
    int64_t limit = LIMIT_DEFAULT;
    json_t *next = NULL;
    json_t *pools;
    struct error e;

    if (!request_number(r, "limit", 1, LIMIT_MAX, &limit) ||
        (pool != NULL && !know_pool(r, pool))) {
        return;
    }
    if (stats_get(r->http->config.engine, pool, &s, &e) != ERR_OK) {
        /* The head has it. */
        e.code = ERR_UNAVAILABLE;
        reply_error(r, &e, NULL);
        return;
    }
    pools = pools_json(s, after, limit, &next);
    reply_json(
        r, 200,
        json_pack(
            "{s:o, s:I, s:o, s:o, s:o}", "seen_at", json_time(s->seen_at_ms), "parse_errors",
            (json_int_t)s->parse_errors, "listeners",
            pool == NULL && after == NULL ? listeners_json(s) : json_array(), "pools", pools,
            "next", next));
}
