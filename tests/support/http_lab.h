/* SPDX-License-Identifier: Apache-2.0 */
/* A server on an engine with a fake node below it, and a client that speaks bytes. Plain HTTP,
 * so that a test decides about every byte. Fails the test it is used in. */
#ifndef LOCKSTEP_SUPPORT_HTTP_LAB_H
#define LOCKSTEP_SUPPORT_HTTP_LAB_H

#include <jansson.h>

#include "http/server.h"
#include "tests/support/engine_lab.h"

#define HTTP_LAB_PASSWORD "correct horse battery"
#define HTTP_LAB_KEY      "key"    /* ask: with the automation key */
#define HTTP_LAB_COOKIE   "cookie" /* ask: with the session and its Lockstep-CSRF */

struct http_lab {
    struct engine_lab *engine;
    struct http *http;
    struct buf key;
    struct buf token; /* of the session of administrator maria */
    struct session session;
    char cookie_name[64];

    /* The last answer. */
    struct buf bytes;
    int status;
    const char *head; /* in bytes; ends before the body */
    const char *body;
    json_t *json; /* the body when it is JSON, else NULL */
    bool closed;  /* the server closed behind it */
};

/* With an administrator and a key. tune (may be NULL) changes the time constants. */
struct http_lab *http_lab_new(void (*tune)(struct tunables *t));
struct http_lab *http_lab_new_in(const char *folder, void (*tune)(struct tunables *t));
void http_lab_delete(struct http_lab *l);
/* For cmocka: *state is such a lab. */
int http_lab_setup(void **state);
int http_lab_teardown(void **state);
void http_lab_close_server(struct http_lab *l);

/* A connection of one's own. */
int http_lab_connect(struct http_lab *l);
void http_lab_send(int fd, const char *bytes, size_t count);
/* Reads one answer; head: to a HEAD, so without a body. False: closed before one was there. */
bool http_lab_read(struct http_lab *l, int fd, bool head);
/* Reads until the text has come; fails when the server closes before. Appends to l->bytes. */
void http_lab_read_until(struct http_lab *l, int fd, const char *text);
/* Reads to the end; how long that took. */
int64_t http_lab_read_end(struct http_lab *l, int fd);

/* One request on a new connection: bytes as they are. Returns the status, 0 without one. */
int http_lab_raw(struct http_lab *l, const char *bytes);
/* One request: line "GET /api/v1/health", credentials NULL or one of the words above, further
 * fields NULL or each with its "\r\n", body NULL or JSON with single quotes. */
int http_lab_ask(
    struct http_lab *l, const char *line, const char *with, const char *fields,
    const char *body);
/* http_lab_ask with the key, and fails the test unless the status is that. */
void http_lab_must(
    struct http_lab *l, int status, const char *line, const char *fields, const char *body);
/* Value of a field of the last answer in the lab's memory, NULL when it has none. */
const char *http_lab_field(struct http_lab *l, const char *name);
/* Text of a member of the last answer, "" when there is none. */
const char *http_lab_text(struct http_lab *l, const char *key);
/* The ETag of an object as a field "If-Match: ...\r\n". */
const char *http_lab_if_match(struct http_lab *l, const char *path);

#endif
