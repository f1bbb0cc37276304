/* SPDX-License-Identifier: Apache-2.0 */
/* Answers. Each of these functions makes the one answer of a request; it is sent later, by
 * the thread of the connection. */
#ifndef LOCKSTEP_HTTP_REPLY_H
#define LOCKSTEP_HTTP_REPLY_H

#include "http/request.h"

#define REPLY_BUSY_S 1 /* Retry-After when a queue is full */

void reply_json(struct request *r, int status, json_t *json); /* json is taken over */
/* Takes the bytes out of text. type: of the content. */
void reply_text(struct request *r, int status, const char *type, struct buf *text);
/* A body that lives as long as the program. */
void reply_document(struct request *r, const struct http_document *doc);
void reply_none(struct request *r, int status);

/* problem+json (RFC 9457). code: for programs. */
void reply_problem(struct request *r, int status, const char *code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The status that belongs to the code (error_http_status). problems may be NULL; then code
 * and errors come from e alone. What is our own fault is logged. */
void reply_error(struct request *r, const struct error *e, const struct problems *problems);
/* items: the list of its problems as JSON; none where it is no list. */
void reply_problem_items(
    struct request *r, int status, const char *code, const char *detail, json_t *items);
/* The status that belongs to the code of e; code: for programs. fields (taken over): what else
 * the problem has. */
void reply_refusal(struct request *r, const struct error *e, const char *code, json_t *fields);
/* 422 with the problems. */
void reply_problems(struct request *r, const struct problems *problems);
/* 503 and Retry-After. */
void reply_busy(struct request *r, const struct error *e);
/* The same of a server without an engine. */
void reply_closed(struct request *r, const struct error *why);

/* Turns the answer that was made into one for further requests: a new reference. */
struct shared_reply *reply_share(struct request *r);
/* Answers with it. */
void reply_shared(struct request *r, struct shared_reply *s);
void reply_shared_unref(struct shared_reply *s); /* NULL is allowed */

/* Adds a field to the answer that was made; not to a shared one. */
void reply_header(struct request *r, const char *name, const char *value);
void reply_retry_after(struct request *r, int64_t seconds);
/* The fields that every answer has. */
void reply_standard_headers(struct request *r, struct MHD_Response *response, const char *type);

#endif
