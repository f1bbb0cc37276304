/* SPDX-License-Identifier: Apache-2.0 */
#include "http/reply.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/problems_json.h"

#define REPLY_MAX_BYTES ((size_t)256 << 20)
#define TYPE_JSON       "application/json"
#define TYPE_PROBLEM    "application/problem+json"
#define FIRST_BYTES     2048 /* most answers are smaller */

static const struct {
    const char *name, *value;
} standard_fields[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
     "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
     "frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types svelte-trusted-html"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"},
    {"Cache-Control", "no-store"},
};

static void
add(struct MHD_Response *response, const char *name, const char *value)
{
    /* Fails only for a value that no field may have, which none of ours is, or without
     * memory. */
    ASSERT(MHD_add_response_header(response, name, value) == MHD_YES);
}

/* NULL: the server is closed, and the name is not known. */
static const char *
node_name(struct request *r)
{
    if (r->http->config.closed != NULL) {
        return NULL;
    }
    return object_text(snapshot_singleton(request_view(r)->now.local, K_NODE), F_NODE_NAME).s;
}

void
reply_standard_headers(struct request *r, struct MHD_Response *response, const char *type)
{
    const char *node = node_name(r);

    for (size_t i = 0; i < ARRAY_LEN(standard_fields); i++) {
        add(response, standard_fields[i].name, standard_fields[i].value);
    }
    if (r->http->tls) {
        add(response, "Strict-Transport-Security", "max-age=31536000");
    }
    if (r->caller != CALLER_NOBODY) {
        add(response, "Vary", "Authorization, Cookie");
    }
    if (type != NULL) {
        add(response, "Content-Type", type);
    }
    if (node != NULL) {
        add(response, "Lockstep-Node", node);
    }
}

/* A second answer would be a handler's mistake. */
static void
finish(struct request *r, int status, const char *type, struct MHD_Response *response)
{
    ASSERT(r->response == NULL && response != NULL);
    r->status = status;
    r->response = response;
    reply_standard_headers(r, response, type);
}

void
reply_text(struct request *r, int status, const char *type, struct buf *text)
{
    size_t bytes = text->len;
    char *data = buf_take(text);

    r->bytes = bytes;
    finish(
        r, status, type, MHD_create_response_from_buffer(bytes, data, MHD_RESPMEM_MUST_FREE));
}

static bool
dump(json_t *json, struct buf *text)
{
    buf_init(text, REPLY_MAX_BYTES);
    ASSERT(buf_reserve(text, FIRST_BYTES));
    json_canonical(json, text);
    json_decref(json);
    return !text->failed;
}

static const char *
title_of(int status)
{
    const char *title = MHD_get_reason_phrase_for((unsigned)status);

    return title != NULL ? title : "Error";
}

static json_t *
problem_json(struct request *r, int status, const char *code, const char *detail)
{
    return json_pack(
        "{s:s, s:s, s:i, s:s, s:o, s:s*}", "type", "about:blank", "title", title_of(status),
        "status", status, "code", code, "detail", json_foreign_text(detail), "node",
        node_name(r));
}

static void
put_json(struct request *r, int status, const char *type, json_t *json)
{
    struct buf text;

    if (!dump(json, &text)) {
        buf_fini(&text);
        status = 503;
        type = TYPE_PROBLEM;
        json = problem_json(r, status, error_name(ERR_LIMIT), "the answer is too large");
        ASSERT(dump(json, &text));
    }
    reply_text(r, status, type, &text);
    buf_fini(&text);
}

void
reply_json(struct request *r, int status, json_t *json)
{
    put_json(r, status, TYPE_JSON, json);
}

void
reply_none(struct request *r, int status)
{
    finish(r, status, NULL, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
}

void
reply_header(struct request *r, const char *name, const char *value)
{
    ASSERT(r->response != NULL && r->shared == NULL);
    add(r->response, name, value);
}

void
reply_retry_after(struct request *r, int64_t seconds)
{
    reply_header(r, "Retry-After", arena_printf(r->arena, "%lld", (long long)seconds));
}

void
reply_problem(struct request *r, int status, const char *code, const char *fmt, ...)
{
    struct error e; /* for its bounded text */
    char detail[ERROR_MSG_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    (void)error_set(&e, ERR_INTERNAL, "%s", detail);
    put_json(r, status, TYPE_PROBLEM, problem_json(r, status, code, e.msg));
    if (status == 401) {
        reply_header(r, "WWW-Authenticate", "Bearer realm=\"lockstep\"");
    }
}

static const struct problem *
first_error(const struct problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].severity == SEVERITY_ERROR) {
            return &p->items[i];
        }
    }
    return NULL;
}

static void
put_problems(
    struct request *r, int status, const char *code, const char *detail,
    const struct problems *p)
{
    json_t *json = problem_json(r, status, code, detail);

    ASSERT(json_object_set_new(json, "errors", problems_json(p)) == 0);
    if (p->dropped > 0) {
        ASSERT(json_object_set_new(json, "dropped", json_integer((json_int_t)p->dropped)) == 0);
    }
    put_json(r, status, TYPE_PROBLEM, json);
}

void
reply_problem_items(
    struct request *r, int status, const char *code, const char *detail, json_t *items)
{
    json_t *json = problem_json(r, status, code, detail);

    if (json_is_array(items)) {
        ASSERT(json_object_set(json, "errors", items) == 0);
    }
    put_json(r, status, TYPE_PROBLEM, json);
}

void
reply_refusal(struct request *r, const struct error *e, const char *code, json_t *fields)
{
    int status = error_http_status(e->code);
    json_t *json = problem_json(r, status, code, e->msg);

    ASSERT(json_object_update(json, fields) == 0);
    json_decref(fields);
    put_json(r, status, TYPE_PROBLEM, json);
    if (status == 503) {
        reply_retry_after(r, REPLY_BUSY_S);
    }
}

void
reply_problems(struct request *r, const struct problems *problems)
{
    const struct problem *first = first_error(problems);

    ASSERT(first != NULL);
    put_problems(r, 422, error_name(ERR_INVALID), first->message, problems);
}

void
reply_error(struct request *r, const struct error *e, const struct problems *problems)
{
    const struct problem *first = problems != NULL ? first_error(problems) : NULL;
    int status = error_http_status(e->code);
    const char *code = error_name(e->code);
    const char *detail = e->msg;

    if (status == 500) {
        log_error("%s: %s", r->route != NULL ? r->route->operation : "request", e->msg);
    }
    if (first != NULL) {
        code = e->code == ERR_CONFLICT ? first->code : code;
        detail = detail[0] != '\0' ? detail : first->message;
        put_problems(r, status, code, detail, problems);
    } else {
        put_json(r, status, TYPE_PROBLEM, problem_json(r, status, code, detail));
    }
    if (status == 503) {
        reply_retry_after(r, REPLY_BUSY_S);
    }
}

void
reply_busy(struct request *r, const struct error *e)
{
    reply_problem(r, 503, error_name(ERR_BUSY), "%s", e->msg);
    reply_retry_after(r, REPLY_BUSY_S);
}

void
reply_closed(struct request *r, const struct error *why)
{
    reply_problem(r, 503, error_name(why->code), "lockstepd cannot work: %s", why->msg);
    reply_retry_after(r, HTTP_CLOSED_S);
}

struct shared_reply *
reply_share(struct request *r)
{
    struct shared_reply *s = xcalloc(1, sizeof *s);

    ASSERT(r->response != NULL && r->shared == NULL && r->status == 200);
    s->response = r->response;
    atomic_init(&s->refs, 2);
    r->shared = s;
    return s;
}

void
reply_shared(struct request *r, struct shared_reply *s)
{
    ASSERT(r->response == NULL);
    (void)atomic_fetch_add(&s->refs, 1);
    r->shared = s;
    r->response = s->response;
    r->status = 200;
}

void
reply_shared_unref(struct shared_reply *s)
{
    if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        MHD_destroy_response(s->response);
        free(s);
    }
}

void
reply_document(struct request *r, const struct http_document *doc)
{
    /* libmicrohttpd takes bytes that it will not change without const. */
    union {
        const char *in;
        char *out;
    } u = {.in = doc->text};

    if (header_none_match_has(&r->header, doc->etag)) {
        reply_none(r, 304);
    } else {
        finish(
            r, 200, TYPE_JSON,
            MHD_create_response_from_buffer(doc->bytes, u.out, MHD_RESPMEM_PERSISTENT));
    }
    reply_header(r, "ETag", doc->etag);
}
