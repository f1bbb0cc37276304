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

struct try_job {
    struct request *r;
    struct snapshot *shared; /* keeps all that the rest points at */
    const struct object *pool, *monitor;
    struct trial_way way;
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

static bool
judge(const struct try_job *job, const struct trial *t, char detail[DETAIL_BYTES])
{
    const struct object *m = job->monitor;
    struct text expected = fields_text(m, F_MONITOR_EXPECT_STATUS);

    if (!t->answered) {
        (void)snprintf(detail, DETAIL_BYTES, "%s", t->why);
        return false;
    }
    if (!job->way.http) {
        (void)snprintf(detail, DETAIL_BYTES, "%s", job->way.tls ? "TLS began" : "connected");
        return true;
    }
    if (!value_status_in(expected, (unsigned)t->status)) {
        (void)snprintf(detail, DETAIL_BYTES, "HTTP %ld (expected %s)", t->status, expected.s);
        return false;
    }
    if (!body_fits(m, &t->body)) {
        (void)snprintf(
            detail, DETAIL_BYTES, "HTTP %ld, but the body does not hold what is expected",
            t->status);
        return false;
    }
    (void)snprintf(detail, DETAIL_BYTES, "HTTP %ld", t->status);
    return true;
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

/* Tries the servers, adds them to the list and returns how many passed. */
static size_t
try_servers(
    const struct try_job *job, const struct object *const *servers, size_t count, json_t *list)
{
    struct trial *trials = xcalloc(count + 1, sizeof *trials);
    size_t passed = 0;

    for (size_t i = 0; i < count; i++) {
        trials[i] = (struct trial){
            .address = fields_text(servers[i], F_SERVER_ADDRESS).s,
            .port = port_of(job, servers[i]),
            .way = &job->way,
        };
    }
    trials_run(trials, count, job->r->http->config.tunables->try_ms);
    for (size_t i = 0; i < count; i++) {
        char detail[DETAIL_BYTES];
        bool passes = judge(job, &trials[i], detail);

        passed += passes ? 1 : 0;
        (void)json_array_append_new(
            list, server_json(job, servers[i], passes ? "pass" : "fail", detail));
        buf_fini(&trials[i].body);
    }
    free(trials);
    return passed;
}

static json_t *
trial_json(const struct try_job *job)
{
    const struct object **servers = NULL;
    size_t count = find_servers(job, &servers);
    size_t tried = count < SERVERS_MAX ? count : SERVERS_MAX;
    json_t *list = json_array();
    const char *why = job->untried;
    size_t passed;

    if (why != NULL) {
        tried = 0;
    } else {
        why = arena_printf(job->r->arena, "only %d servers are tried", SERVERS_MAX);
    }
    passed = try_servers(job, servers, tried, list);
    for (size_t i = tried; i < count; i++) {
        (void)json_array_append_new(list, server_json(job, servers[i], "not_tried", why));
    }
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:o}", "pool", job->pool->name.s, "monitor", job->monitor->name.s,
        "would_pass", (json_int_t)passed, "of", (json_int_t)tried, "servers", list);
}

/* ---- where it runs ---- */

static void
run_job(void *ctx)
{
    struct try_job *job = ctx;
    struct request *r = job->r;
    json_t *trial = trial_json(job);

    /* The place is free before the client can know. */
    api_try_give_back(r);
    job->fn(r, trial, &job->ctx);
    snapshot_unref(job->shared);
    free(job);
    dispatch_release(r);
}

bool
api_try_reserve(struct request *r)
{
    struct http *h = r->http;
    struct error e;

    if (atomic_fetch_add(&h->tries, 1) < HTTP_TRIES_MAX) {
        return true;
    }
    api_try_give_back(r);
    (void)error_set(&e, ERR_BUSY, "checks of %d other pools are being tried", HTTP_TRIES_MAX);
    reply_busy(r, &e);
    return false;
}

void
api_try_give_back(struct request *r)
{
    (void)atomic_fetch_sub(&r->http->tries, 1);
}

const struct object *
api_try_monitor(const struct snapshot *shared, const struct object *pool)
{
    const struct value *ref = pool != NULL ? object_field(pool, F_POOL_MONITOR) : NULL;

    return ref == NULL || ref->is_null ? NULL
                                       : snapshot_by_id(shared, K_MONITOR, ref->u.text.s);
}

void
api_try(
    struct request *r, const struct snapshot *shared, const struct object *pool,
    api_tried_fn fn, const struct api_tried_ctx *ctx)
{
    struct try_job *job = xcalloc(1, sizeof *job);
    struct error e;
    err_t code;

    *job = (struct try_job){
        .r = r,
        .shared = snapshot_ref(shared),
        .pool = pool,
        .monitor = api_try_monitor(shared, pool),
        .fn = fn,
        .ctx = *ctx,
    };
    ASSERT(job->monitor != NULL);
    set_way(job);
    dispatch_hold(r);
    code = mailbox_post(r->http->try_box, run_job, job, &e);
    ASSERT(code == ERR_OK); /* a place is reserved */
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

    if (pool == NULL) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "the draft has no pool \"%s\"", name);
    } else if (!account_reaches(&r->grant, v, pool)) {
        reply_problem(
            r, 403, "scope", "this automation key is bound to pools that this is none of");
    } else if (api_try_monitor(v->draft.shared, pool) == NULL) {
        reply_problem(
            r, 409, error_name(ERR_CONFLICT),
            "pool \"%s\" has no check: set its field monitor first", name);
    } else if (api_try_reserve(r)) {
        api_try(r, v->draft.shared, pool, answer_trial, &none);
    }
}
