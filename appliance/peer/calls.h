/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of other nodes, on libcurl: any number at once on one thread, connections are kept.
 * A node is known by its pinned public key: nothing else of its certificate is looked at. */
#ifndef LOCKSTEP_PEER_CALLS_H
#define LOCKSTEP_PEER_CALLS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CALL_IP_BYTES 46

struct calls;

/* All texts are copied. */
struct call {
    const char *url;  /* "https://192.0.2.1:8443", without a path */
    const char *key;  /* the called node's peer key */
    const char *pin;  /* "sha256//...", as CURLOPT_PINNEDPUBLICKEY takes it */
    const char *node; /* id of this node: header Lockstep-Node-Id */
    const char *method, *path;
    const char *body; /* JSON, or NULL */
    size_t body_len;
    int64_t timeout_ms; /* of the whole call, name resolution included */
    int64_t dead_ms;    /* until a connection counts as cut on which nothing is acknowledged */
    size_t answer_max;  /* bytes */
};

struct call_answer {
    /* ERR_OK for every HTTP answer. ERR_UNAVAILABLE: no connection, with the reason;
     * ERR_DENIED: another public key than the pinned one; ERR_TIMEOUT; ERR_LIMIT. */
    struct error error;
    long status;     /* HTTP status */
    struct buf body; /* of fn: only while it runs */
    int64_t took_ms;
    char local[CALL_IP_BYTES], remote[CALL_IP_BYTES]; /* of its connection; "": not known */
};

/* On the thread of the calls: must not block. */
typedef void (*call_fn)(void *ctx, struct call_answer *a);

MUST_USE err_t calls_open(struct calls **ret, struct error *e);
/* Ends calls that are under way: their fn gets ERR_UNAVAILABLE, as that of any later one does,
 * on the thread that makes it. */
void calls_stop(struct calls *all);
/* Stops. NULL is allowed. */
void calls_close(struct calls *all);
/* fn is called once, also when the call cannot be made. */
void calls_start(struct calls *all, const struct call *c, call_fn fn, void *ctx);
/* The same, and waits. Not from fn. ret->body is the caller's: buf_fini. Returns
 * ret->error.code. */
err_t calls_wait(struct calls *all, const struct call *c, struct call_answer *ret);

#endif
