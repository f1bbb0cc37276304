/* SPDX-License-Identifier: Apache-2.0 */
/* Health checks made once, by libcurl, so that people see what HAProxy will find before it
 * does. Nothing is followed: no redirect, no proxy, no cookie. */
#ifndef LOCKSTEP_PEER_TRIAL_H
#define LOCKSTEP_PEER_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define TRIAL_BODY_BYTES ((size_t)16000) /* so much of an answer is looked at */
#define TRIAL_WHY_BYTES  160

/* What several servers are asked in the same way. */
struct trial_way {
    bool http;         /* one request; else a connection is all, with tls its handshake, too */
    bool tls;          /* encrypted */
    bool verify;       /* the server's certificate, with a name when there is one */
    bool proxy_header; /* begins with the PROXY protocol, version 1 */
    bool wants_body;   /* else the answer ends with its header */
    int http_version;  /* 10, 11, or with tls 20 */
    const char *method, *target;
    const char *host;        /* Host header, "": none is sent */
    const char *sni;         /* "": no name is asked for */
    const char *name;        /* in the certificate, "": any; the sni goes before it */
    const char *ca;          /* PEM, "": the authorities that the machine trusts */
    const char *chain, *key; /* PEM: own certificate; both NULL: none */
    int64_t timeout_ms;
};

/* One server. */
struct trial {
    const char *address; /* IPv4 or IPv6 literal, or a DNS name */
    int64_t port;
    const struct trial_way *way;

    /* The result. */
    bool untried;  /* not asked, since too many names are being looked up; why says so */
    bool answered; /* connected, and with http there is a status; else why says why not */
    long status;
    struct buf body; /* at most TRIAL_BODY_BYTES */
    char why[TRIAL_WHY_BYTES];
};

/* What trials have in common. One for the program, before any thread tries something;
 * ERR_INTERNAL. */
struct trials;
MUST_USE err_t trials_open(struct trials **ret, struct error *e);
void trials_close(struct trials *all);

/* Tries all at the same time and returns when the last has its answer, at the latest max_ms
 * after the call. What to ask stands in each trial; its result is filled in, the caller frees
 * the body. */
void trials_run(struct trials *all, struct trial *trials, size_t count, int64_t max_ms);

#endif
