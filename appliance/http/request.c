/* SPDX-License-Identifier: Apache-2.0 */
#include "http/request.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypt.h"
#include "base/json.h"
#include "http/auth.h"
#include "http/reply.h"
#include "http/stream.h"

/* Of a body that is refused while it comes, so much is still read: an answer can be given only
 * behind it. */
#define DROP_MAX ((size_t)64 << 20)

struct request *
request_new(struct http *h, struct MHD_Connection *mhd, struct connection *c, const char *raw)
{
    struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct request *r = arena_alloc(arena, sizeof *r);

    r->magic = REQUEST_MAGIC;
    r->http = h;
    r->mhd = mhd;
    r->connection = c;
    r->arena = arena;
    r->raw = raw != NULL ? arena_strdup(arena, raw) : "";
    buf_init(&r->body, 0);
    return r;
}

void
request_free(struct request *r)
{
    if (r == NULL) {
        return;
    }
    ASSERT(r->magic == REQUEST_MAGIC && !r->suspended);
    r->magic = 0;
    stream_detach(r);
    if (r->shared != NULL) {
        reply_shared_unref(r->shared);
    } else if (r->response != NULL) {
        MHD_destroy_response(r->response);
    }
    (void)atomic_fetch_sub(&r->http->body_bytes, r->body_counted);
    buf_wipe(&r->body);
    buf_fini(&r->body);
    json_decref(r->json);
    json_decref(r->kept);
    if (r->credential != NULL) {
        crypt_wipe(r->credential, strlen(r->credential));
    }
    crypt_wipe(&r->session, sizeof r->session);
    view_unref(r->view);
    arena_free(r->arena);
}

/* ---- the header ---- */

static enum MHD_Result
add_field(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    header_add(ctx, name, value != NULL ? value : "");
    return MHD_YES;
}

static void
refuse_method(struct request *r)
{
    char allow[ROUTER_ALLOW_BYTES];

    router_allow(r->hit.allowed, allow);
    reply_problem(r, 405, "method_not_allowed", "this path takes %s", allow);
    reply_header(r, "Allow", allow);
}

/* Sets r->route. */
static bool
find_route(struct request *r, const char *method)
{
    struct error e;
    err_t code = target_parse(r->raw, r->arena, &r->target, &e);

    if (code == ERR_OK) {
        switch (router_find(method, &r->target, &r->hit)) {
        case ROUTER_FOUND: r->route = r->hit.route; return true;
        case ROUTER_NO_METHOD: refuse_method(r); return false;
        case ROUTER_NO_PATH: (void)error_set(&e, ERR_NOT_FOUND, "there is no such path"); break;
        }
    }
    reply_error(r, &e, NULL);
    return false;
}

static bool
is_filter(const struct request *r, const char *name)
{
    const struct schema_kind *k = schema_kind(r->hit.kind);
    int i = schema_field_index(k->fields, k->field_count, name);

    return i >= 0 && k->fields[i].type != FT_RECORD && !k->fields[i].secret;
}

static bool
check_query(struct request *r)
{
    for (size_t i = 0; i < r->target.param_count; i++) {
        const char *const *known = r->route->query;

        while (*known != NULL && strcmp(*known, r->target.params[i].name) != 0) {
            known++;
        }
        if (*known == NULL && !(r->route->filters && is_filter(r, r->target.params[i].name))) {
            reply_problem(
                r, 400, "unknown_parameter", "this call has no query parameter \"%s\"",
                r->target.params[i].name);
            return false;
        }
    }
    return true;
}

static void
refuse_length(struct request *r)
{
    if (r->route->body_max == 0) {
        reply_problem(r, 413, error_name(ERR_LIMIT), "this call takes no body");
    } else {
        reply_problem(
            r, 413, error_name(ERR_LIMIT), "the body may have at most %zu bytes",
            r->route->body_max);
    }
}

static bool
check_body(struct request *r)
{
    const struct route *route = r->route;
    int64_t bytes = header_body_bytes(&r->header);

    if (bytes == 0) {
        if (route->body_max > 0 && !route->body_optional) {
            reply_problem(r, 400, error_name(ERR_SYNTAX), "the request has no body");
        }
        return r->response == NULL;
    }
    if (bytes > 0 && (uint64_t)bytes > route->body_max) {
        refuse_length(r);
        return false;
    }
    if (route->body_max > 0 && !header_is_json(&r->header, route->merge)) {
        reply_problem(
            r, 415, "unsupported_media_type", "the body must be application/json%s",
            route->merge ? " or application/merge-patch+json" : "");
        return false;
    }
    buf_init(&r->body, route->body_max);
    return true;
}

void
request_begin(struct request *r, const char *method, const char *version)
{
    struct error e;

    (void)MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, add_field, &r->header);
    if (header_check(&r->header, version, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        /* Where this message ends is not certain. */
        reply_header(r, "Connection", "close");
        return;
    }
    if (r->http->config.closed != NULL) {
        reply_closed(r, r->http->config.closed);
        return;
    }
    if (!find_route(r, method) || !auth_check(r) || !check_query(r)) {
        return;
    }
    if (r->route->if_match && r->header.if_match == NULL) {
        reply_problem(
            r, 428, "precondition_required",
            "send If-Match with the ETag of the object as you last saw it");
        return;
    }
    (void)check_body(r);
}

/* ---- the body ---- */

bool
request_has_body(const struct request *r)
{
    return r->header.transfer_encoding != NULL || header_body_bytes(&r->header) != 0;
}

bool
request_take(struct request *r, const char *p, size_t bytes)
{
    if (r->response != NULL) {
        r->dropped += bytes;
        return r->dropped <= DROP_MAX;
    }
    r->body_counted += bytes;
    if (atomic_fetch_add(&r->http->body_bytes, bytes) + bytes > HTTP_BODIES_MAX) {
        struct error e;

        (void)error_set(&e, ERR_BUSY, "too much is being sent at the moment");
        reply_busy(r, &e);
        return true;
    }
    buf_put(&r->body, p, bytes);
    if (r->body.failed) {
        refuse_length(r);
    }
    return true;
}

bool
request_parse_body(struct request *r)
{
    struct error e;

    if (r->route->body_max == 0 && r->body.len == 0) {
        return true;
    }
    if (r->body.len == 0 && r->route->body_optional) {
        r->json = json_object();
        return true;
    }
    if (json_parse(buf_str(&r->body), r->body.len, &r->json, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    if (!json_is_object(r->json)) {
        reply_problem(r, 400, error_name(ERR_SYNTAX), "the body must be a JSON object");
        return false;
    }
    return true;
}

/* ---- for handlers ---- */

const struct view *
request_view(struct request *r)
{
    if (r->view == NULL) {
        r->view = engine_view(r->http->config.engine);
    }
    return r->view;
}

void
request_drop_view(struct request *r)
{
    view_unref(r->view);
    r->view = NULL;
}

const struct view *
request_fresh_view(struct request *r)
{
    request_drop_view(r);
    return request_view(r);
}

struct problems *
request_problems(struct request *r)
{
    if (r->problems == NULL) {
        r->problems = arena_alloc(r->arena, sizeof *r->problems);
        problems_init(r->problems, r->arena);
    }
    return r->problems;
}

const char *
request_segment(const struct request *r, const char *name)
{
    const char *segment = router_segment(r->route, &r->target, name);

    ASSERT(segment != NULL);
    return segment;
}

const char *
request_param(const struct request *r, const char *name)
{
    return target_param(&r->target, name);
}

void
request_refuse_param(struct request *r, const char *name, const char *message)
{
    struct problem where = {.pointer = arena_printf(r->arena, "/%s", name)};

    problems_add(
        request_problems(r), SEVERITY_ERROR, "range", &where, "The parameter %s must be %s.",
        name, message);
    reply_problems(r, r->problems);
}

bool
request_flag(struct request *r, const char *name, bool *ret)
{
    const char *value = request_param(r, name);

    if (value != NULL && strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
        request_refuse_param(r, name, "0 or 1");
        return false;
    }
    *ret = value != NULL && value[0] == '1';
    return true;
}

bool
request_number(struct request *r, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    const char *value = request_param(r, name);
    size_t digits = value != NULL ? strspn(value, "0123456789") : 0;
    int64_t n = 0;

    if (value == NULL) {
        return true;
    }
    for (size_t i = 0; i < digits && digits <= 16; i++) {
        n = n * 10 + (value[i] - '0');
    }
    if (digits == 0 || digits > 16 || value[digits] != '\0' || n < min || n > max) {
        request_refuse_param(
            r, name,
            arena_printf(
                r->arena, "a number from %lld to %lld", (long long)min, (long long)max));
        return false;
    }
    *ret = n;
    return true;
}

bool
request_only_keys(struct request *r, const char *const *keys)
{
    struct error e;

    if (json_only_keys(r->json, keys, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    return true;
}
