/* SPDX-License-Identifier: Apache-2.0 */
/* Trying the check of a pool against its servers before HAProxy does: see decision 0013. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/regex.h"
#include "http/api.h"
#include "http/dispatch.h"
#include "http/reply.h"
#include "peer/trial.h"
#include "render/fields.h"
#include "render/monitor.h"
#include "routes_gen.h"

#define SERVERS_MAX  64 /* of a pool; the others are not tried */
#define DETAIL_BYTES 320
#define BODIES_MS    500 /* for all that regular expressions look at */
#define TOO_MANY     "too many checks are being tried"

struct try_job {
    struct request *r;
    struct snapshot *shared; /* keeps all that the rest points at */
    const struct object *pool, *monitor;
    struct trial_way way;
    int64_t due_ms;      /* monotonic: then no server is waited for any more */
    int64_t bodies_ms;   /* monotonic: then no more bodies are looked at */
    const char *untried; /* why this check cannot be tried, or NULL */
    api_tried_fn fn;
    struct api_tried_ctx ctx;
};

/* ---- what is asked ---- */

static bool
is_tried_type(int64_t type)
{
    return type == V_MONITOR_TYPE_HTTP || type == V_MONITOR_TYPE_TCP ||
           type == V_MONITOR_TYPE_TLS;
}

static int
http_version(const struct try_job *job)
{
    const struct object *m = job->monitor;

    if (job->way.tls && fields_on(job->pool, F_POOL_TLS) &&
        fields_int(job->pool, F_POOL_ALPN) == V_POOL_ALPN_H2) {
        return 20;
    }
    return fields_text(m, F_MONITOR_HOST).len > 0 &&
                   fields_int(m, F_MONITOR_HTTP_VERSION) != V_MONITOR_HTTP_VERSION_HTTP1_0
               ? 11
               : 10;
}

static void
set_certificate(struct try_job *job)
{
    const struct value *ref = object_field(job->pool, F_POOL_CLIENT_CERTIFICATE);
    const struct object *c =
        ref->is_null ? NULL : snapshot_by_id(job->shared, K_CERTIFICATE, ref->u.text.s);

    if (c != NULL) {
        job->way.chain = fields_text(c, F_CERTIFICATE_CHAIN).s;
        job->way.key = fields_text(c, F_CERTIFICATE_KEY).s;
    }
}

/* Whether a check begins with the PROXY protocol: one of V_POOL_SEND_PROXY_... */
static int64_t
proxy_of(const struct try_job *job)
{
    int64_t of_pool = fields_int(job->pool, F_POOL_SEND_PROXY);

    if (monitor_port(job->monitor) == 0) {
        return of_pool;
    }
    if (!fields_on(job->monitor, F_MONITOR_SEND_PROXY)) {
        return V_POOL_SEND_PROXY_OFF;
    }
    return of_pool == V_POOL_SEND_PROXY_V2 ? of_pool : V_POOL_SEND_PROXY_V1;
}

/* What libcurl cannot do as HAProxy does it. */
static const char *
find_untried(const struct try_job *job, int64_t proxy)
{
    const struct object *m = job->monitor;

    if (job->r->http->config.tunables->try_ms == 0) {
        return "this node tries no checks";
    }
    if (!is_tried_type(fields_int(m, F_MONITOR_TYPE))) {
        return arena_printf(
            job->r->arena, "a check of type %s is not tried", fields_word(m, F_MONITOR_TYPE));
    }
    if (proxy == V_POOL_SEND_PROXY_V2) {
        return "a check with the PROXY protocol in version 2 is not tried";
    }
    return NULL;
}

static void
set_way(struct try_job *job)
{
    const struct object *m = job->monitor;
    const struct object *pool = job->pool;
    bool tls = monitor_uses_tls(m, pool);
    bool http = fields_int(m, F_MONITOR_TYPE) == V_MONITOR_TYPE_HTTP;
    int64_t proxy = proxy_of(job);
    struct text sni = monitor_sni(m, pool);

    job->way = (struct trial_way){
        .http = http,
        .tls = tls,
        .verify = tls && fields_on(pool, F_POOL_TLS) &&
                  fields_int(pool, F_POOL_TLS_VERIFY) != V_POOL_TLS_VERIFY_NONE,
        .proxy_header = proxy != V_POOL_SEND_PROXY_OFF,
        .wants_body = http && fields_set(m, FIELDS_BIT(F_MONITOR_BODY_MATCH)),
        .method = fields_word(m, F_MONITOR_METHOD),
        .target = fields_text(m, F_MONITOR_PATH).s,
        .host = fields_text(m, F_MONITOR_HOST).s,
        .sni = tls ? arena_memdup0(job->r->arena, sni.s, sni.len) : "",
        .name = fields_text(pool, F_POOL_VERIFYHOST).s,
        .ca = fields_text(pool, F_POOL_CA).s,
        .timeout_ms = fields_int(m, F_MONITOR_TIMEOUT_MS),
    };
    job->way.http_version = http_version(job);
    if (tls && fields_on(pool, F_POOL_TLS)) {
        set_certificate(job);
    }
    job->untried = find_untried(job, proxy);
}

/* ---- what came ---- */

static bool
body_fits(const struct object *m, const struct buf *body)
{
    int64_t match = fields_int(m, F_MONITOR_BODY_MATCH);
    struct text wanted = fields_text(m, F_MONITOR_EXPECT_BODY);

    if (match == V_MONITOR_BODY_MATCH_STRING) {
        return memmem(buf_str(body), body->len, wanted.s, wanted.len) != NULL;
    }
    return match == V_MONITOR_BODY_MATCH_NONE ||
           regex_found(wanted.s, wanted.len, buf_str(body), body->len);
}

/* Of "result". */
static const char *
judge_http(const struct try_job *job, const struct trial *t, char detail[DETAIL_BYTES])
{
    const struct object *m = job->monitor;
    struct text expected = fields_text(m, F_MONITOR_EXPECT_STATUS);

    if (!value_status_in(expected, (unsigned)t->status)) {
        (void)snprintf(detail, DETAIL_BYTES, "HTTP %ld (expected %s)", t->status, expected.s);
        return "fail";
    }
    if (fields_int(m, F_MONITOR_BODY_MATCH) == V_MONITOR_BODY_MATCH_REGEX &&
        http_now_ms(job->r->http) >= job->bodies_ms) {
        (void)snprintf(
            detail, DETAIL_BYTES,
            "HTTP %ld, but the regular expression takes too long to look at the body",
            t->status);
        return "not_tried";
    }
    if (!body_fits(m, &t->body)) {
        (void)snprintf(
            detail, DETAIL_BYTES, "HTTP %ld, but the body does not hold what is expected",
            t->status);
        return "fail";
    }
    (void)snprintf(detail, DETAIL_BYTES, "HTTP %ld", t->status);
    return "pass";
}

static const char *
judge(const struct try_job *job, const struct trial *t, char detail[DETAIL_BYTES])
{
    if (!t->answered) {
        (void)snprintf(detail, DETAIL_BYTES, "%s", t->why);
        return t->untried ? "not_tried" : "fail";
    }
    if (job->way.http) {
        return judge_http(job, t, detail);
    }
    (void)snprintf(detail, DETAIL_BYTES, "%s", job->way.tls ? "TLS began" : "connected");
    return "pass";
}

/* The servers of the pool in the arena of the request; how many there are. */
static size_t
find_servers(const struct try_job *job, const struct object ***ret)
{
    const struct value *members = object_field(job->pool, F_POOL_MEMBERS);
    size_t count = 0;

    *ret = arena_alloc(job->r->arena, (members->count + 1) * sizeof **ret);
    for (uint32_t i = 0; i < members->count; i++) {
        const struct value *member = members->u.items[i].u.items;
        const struct object *server =
            snapshot_by_id(job->shared, K_SERVER, member[F_POOL_MEMBERS_SERVER].u.text.s);

        if (server != NULL) {
            (*ret)[count++] = server;
        }
    }
    return count;
}

static int64_t
port_of(const struct try_job *job, const struct object *server)
{
    int64_t port = monitor_port(job->monitor);

    return port != 0 ? port : fields_int(server, F_SERVER_PORT);
}

static json_t *
server_json(
    const struct try_job *job, const struct object *server, const char *result,
    const char *detail)
{
    return json_pack(
        "{s:s, s:s, s:I, s:s, s:s}", "server", server->name.s, "address",
        fields_text(server, F_SERVER_ADDRESS).s, "port", (json_int_t)port_of(job, server),
        "result", result, "detail", detail);
}

struct count {
    size_t passed, tried;
};

/* Tries the servers and adds them to the list. */
static struct count
try_servers(
    struct try_job *job, const struct object *const *servers, size_t count, json_t *list)
{
    const struct http *h = job->r->http;
    struct trial *trials = xcalloc(count + 1, sizeof *trials);
    struct count sum = {0, 0};
    int64_t left_ms;

    for (size_t i = 0; i < count; i++) {
        trials[i] = (struct trial){
            .address = fields_text(servers[i], F_SERVER_ADDRESS).s,
            .port = port_of(job, servers[i]),
            .way = &job->way,
        };
    }
    left_ms = job->due_ms - http_now_ms(h);
    trials_run(h->trials, trials, count, left_ms > 0 ? left_ms : 1);
    job->bodies_ms = http_now_ms(h) + BODIES_MS;
    for (size_t i = 0; i < count; i++) {
        char detail[DETAIL_BYTES];
        const char *result = judge(job, &trials[i], detail);

        sum.passed += strcmp(result, "pass") == 0 ? 1 : 0;
        sum.tried += strcmp(result, "not_tried") != 0 ? 1 : 0;
        (void)json_array_append_new(list, server_json(job, servers[i], result, detail));
        buf_fini(&trials[i].body);
    }
    free(trials);
    return sum;
}

static json_t *
trial_json(struct try_job *job)
{
    const struct object **servers = NULL;
    size_t count = find_servers(job, &servers);
    size_t most = job->untried == NULL ? SERVERS_MAX : 0;
    size_t asked = count < most ? count : most;
    const char *why =
        job->untried != NULL
            ? job->untried
            : arena_printf(job->r->arena, "only %d servers are tried", SERVERS_MAX);
    json_t *list = json_array();
    struct count sum = {0, 0};

    if (asked > 0) {
        sum = try_servers(job, servers, asked, list);
    }
    for (size_t i = asked; i < count; i++) {
        (void)json_array_append_new(list, server_json(job, servers[i], "not_tried", why));
    }
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:o}", "pool", job->pool->name.s, "monitor", job->monitor->name.s,
        "would_pass", (json_int_t)sum.passed, "of", (json_int_t)sum.tried, "servers", list);
}

/* ---- where it runs ---- */

static bool
take_place(struct http *h)
{
    if (atomic_fetch_add(&h->tries, 1) < HTTP_TRIES_MAX) {
        return true;
    }
    (void)atomic_fetch_sub(&h->tries, 1);
    return false;
}

static void
run_job(void *ctx)
{
    struct try_job *job = ctx;
    struct request *r = job->r;
    json_t *trial;

    if (http_now_ms(r->http) >= job->due_ms) {
        job->untried = TOO_MANY;
    }
    trial = trial_json(job);
    /* The place is free before the client can know. */
    (void)atomic_fetch_sub(&r->http->tries, 1);
    job->fn(r, trial, &job->ctx);
    snapshot_unref(job->shared);
    free(job);
    dispatch_release(r);
}

const struct object *
api_try_monitor(const struct snapshot *shared, const struct object *pool)
{
    const struct value *ref = pool != NULL ? object_field(pool, F_POOL_MONITOR) : NULL;

    return ref == NULL || ref->is_null ? NULL
                                       : snapshot_by_id(shared, K_MONITOR, ref->u.text.s);
}

static struct try_job
job_of(struct request *r, const struct snapshot *shared, const struct object *pool)
{
    struct try_job job = {
        .r = r,
        .shared = snapshot_ref(shared),
        .pool = pool,
        .monitor = api_try_monitor(shared, pool),
    };

    ASSERT(job.monitor != NULL);
    set_way(&job);
    return job;
}

json_t *
api_try_too_many(struct request *r, const struct snapshot *shared, const struct object *pool)
{
    struct try_job job = job_of(r, shared, pool);
    json_t *trial;

    job.untried = TOO_MANY;
    trial = trial_json(&job);
    snapshot_unref(job.shared);
    return trial;
}

bool
api_try(
    struct request *r, const struct snapshot *shared, const struct object *pool,
    api_tried_fn fn, const struct api_tried_ctx *ctx)
{
    struct http *h = r->http;
    struct try_job job = job_of(r, shared, pool);
    struct try_job *posted;
    struct error e;
    err_t code;

    if (job.untried != NULL) {
        fn(r, trial_json(&job), ctx);
        snapshot_unref(job.shared);
        return true;
    }
    if (!take_place(h)) {
        snapshot_unref(job.shared);
        return false;
    }
    job.due_ms = http_now_ms(h) + h->config.tunables->try_ms;
    job.fn = fn;
    job.ctx = *ctx;
    posted = xcalloc(1, sizeof *posted);
    *posted = job;
    dispatch_hold(r);
    code = mailbox_post(h->try_box, run_job, posted, &e);
    ASSERT(code == ERR_OK); /* the place is in its queue */
    return true;
}

/* ---- the route ---- */

static void
answer_trial(struct request *r, json_t *trial, const struct api_tried_ctx *ctx)
{
    (void)ctx;
    reply_json(r, 200, trial);
}

void
http_pool_check(struct request *r)
{
    static const struct api_tried_ctx none = {.task = 0};
    const struct view *v = request_view(r);
    const char *name = request_segment(r, "{name}");
    const struct object *pool = snapshot_by_name(v->draft.shared, K_POOL, name);
    struct error e;

    if (pool == NULL) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "the draft has no pool \"%s\"", name);
    } else if (!account_reaches(&r->grant, v, pool)) {
        reply_problem(
            r, 403, "scope", "this automation key is bound to pools that this is none of");
    } else if (api_try_monitor(v->draft.shared, pool) == NULL) {
        reply_problem(
            r, 409, error_name(ERR_CONFLICT),
            "pool \"%s\" has no check: set its field monitor first", name);
    } else if (!api_try(r, v->draft.shared, pool, answer_trial, &none)) {
        (void)error_set(&e, ERR_BUSY, TOO_MANY ": try again");
        reply_busy(r, &e);
    }
}
