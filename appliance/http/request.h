/* SPDX-License-Identifier: Apache-2.0 */
/* One request: from its request line to its answer. Belongs to one thread at a time: that of
 * its connection, or while the connection is suspended that of its handler. */
#ifndef LOCKSTEP_HTTP_REQUEST_H
#define LOCKSTEP_HTTP_REQUEST_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/header.h"
#include "http/inner.h"
#include "http/router.h"
#include "model/problems.h"

#define REQUEST_MAGIC 0x4c726571u

enum request_phase {
    REQUEST_HEAD, /* the header is complete */
    REQUEST_BODY, /* the body is coming */
    REQUEST_WORK, /* a handler has it, or has answered */
};

enum request_caller { CALLER_NOBODY, CALLER_ADMIN, CALLER_KEY, CALLER_PEER };

typedef void (*wait_fn)(struct request *r, json_t *task, bool ended);

struct request {
    unsigned magic;
    struct http *http;
    struct connection *connection;
    struct MHD_Connection *mhd;
    struct arena *arena;
    enum request_phase phase;
    const char *raw; /* the target as it was sent */
    struct target target;
    struct header header;
    struct router_hit hit;
    const struct route *route; /* NULL when the request is refused before it has one */

    enum request_caller caller;
    char *credential;       /* the cookie's value or the key; wiped at the end */
    struct session session; /* CALLER_ADMIN */
    struct key_grant grant; /* CALLER_KEY */
    struct actor actor;

    struct buf body;
    size_t body_counted; /* of http.body_bytes */
    size_t dropped;      /* bytes of a body that is refused already */
    json_t *json;        /* the body; NULL when there is none */

    struct view *view; /* see request_view */
    struct problems *problems;

    int status;   /* of the answer; 0 as long as there is none */
    size_t bytes; /* of its body, where it is not static */
    struct MHD_Response *response;
    struct shared_reply *shared; /* response belongs to it */
    struct stream *stream;       /* the answer is a stream */

    _Atomic int holds; /* dispatch.c */
    bool suspended;
    json_t *kept; /* for the handler, from one call to the next */

    struct request *wait_next; /* wait.c */
    int64_t wait_task, wait_until_ms;
    wait_fn wait_answer;
};

/* Called with the request line. */
struct request *
request_new(struct http *h, struct MHD_Connection *mhd, struct connection *c, const char *raw);
void request_free(struct request *r); /* NULL is allowed */
/* The header is complete: everything that can be refused without a body is. An answer is
 * there when it was. */
void request_begin(struct request *r, const char *method, const char *version);
/* A piece of the body. False: the connection is to be closed at once. */
bool request_take(struct request *r, const char *p, size_t bytes);
/* Whether a body was announced. */
bool request_has_body(const struct request *r);
/* Reads the body as JSON into r->json; false when it was refused. */
bool request_parse_body(struct request *r);

/* For handlers. */

/* The view at the first call; the same one from then on. Borrowed. */
const struct view *request_view(struct request *r);
/* The present view: after an edit. */
const struct view *request_fresh_view(struct request *r);
void request_drop_view(struct request *r);            /* it may be old by the next use */
struct problems *request_problems(struct request *r); /* empty at the first call */
/* A segment of the path, as "{name}". */
const char *request_segment(const struct request *r, const char *name);
const char *request_param(const struct request *r, const char *name); /* NULL: not given */
/* Parameters that are 0 or 1, absent: false. False result: refused. */
bool request_flag(struct request *r, const char *name, bool *ret);
/* Answers 422 because of a parameter, which must be "message". */
void request_refuse_param(struct request *r, const char *name, const char *message);
/* A number without sign; absent: *ret stays. False: refused. */
bool
request_number(struct request *r, const char *name, int64_t min, int64_t max, int64_t *ret);
/* Texts that end in NULL, as json_only_keys: false when the body holds another key. */
bool request_only_keys(struct request *r, const char *const *keys);

#endif
