/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the REST API, on libcurl: one blocking call at a time, one kept connection. */
#ifndef LOCKSTEP_PEER_REST_H
#define LOCKSTEP_PEER_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define REST_ANSWER_MAX_BYTES ((size_t)256 << 20)

struct rest_config {
    const char *url;    /* "https://192.0.2.1:8443", without a path */
    const char *key;    /* automation key, or NULL */
    const char *pin;    /* "sha256//...": the server's public key; NULL: the certificate
                           must verify against the machine's authorities */
    int64_t timeout_ms; /* of a whole call, name resolution included */
    bool unlock;        /* Lockstep-Unlock: no-holder with every call */
    int stop_fd;        /* rest_events ends when it is readable; 0: none */
};

struct rest;

struct rest_request {
    const char *method; /* "GET", "PATCH", ... */
    const char *path;   /* "/api/v1/servers/web1": encoded */
    const char *body;   /* JSON, or NULL */
    size_t body_len;
    const char *if_match; /* ETag with its quotes, or NULL */
    const char *cookie;   /* value of the header Cookie, or NULL */
    const char *csrf;     /* value of the header Lockstep-CSRF, or NULL */
};

struct rest_answer {
    long status;     /* HTTP status */
    struct buf body; /* the caller's: buf_init before, buf_fini after */
    char etag[80];
    char cookie[200];   /* "name=value" of the first Set-Cookie, or "" */
    long retry_after_s; /* 0: none */
};

void rest_answer_init(struct rest_answer *a);
void rest_answer_fini(struct rest_answer *a); /* also for CLEANUP() */

/* The texts of config must outlive the client. ERR_INVALID: not an http(s) URL,
 * or a pin for one without TLS. */
MUST_USE err_t rest_open(const struct rest_config *config, struct rest **ret, struct error *e);
void rest_close(struct rest *r);

/* ERR_OK for every HTTP answer, whatever its status. ERR_UNAVAILABLE: no connection, with
 * the reason; ERR_DENIED: the server's key is not the pinned one, or its certificate does
 * not verify; ERR_TIMEOUT; ERR_LIMIT. */
MUST_USE err_t rest_call(
    struct rest *r, const struct rest_request *q, struct rest_answer *ret, struct error *e);

/* Reads a stream of server-sent events from its oldest kept event on, until fn returns false
 * or stop_fd is readable (ERR_OK), the server ends it or the timeout passes. ERR_OK also for an
 * answer of status 400 or more: *ret has it. fn gets the topic of one event, its data (JSON)
 * and the length of that. */
typedef bool (*rest_event_fn)(void *ctx, const char *topic, const char *data, size_t len);
MUST_USE err_t rest_events(
    struct rest *r, const char *path, rest_event_fn fn, void *ctx, struct rest_answer *ret,
    struct error *e);

/* Percent-encodes one path segment (RFC 3986: all but unreserved). */
void rest_put_segment(struct buf *out, const char *s);

#endif
