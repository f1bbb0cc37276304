/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a server on libmicrohttpd can do: the same answer to every request. */
#ifndef LOCKSTEP_BENCH_BARE_H
#define LOCKSTEP_BENCH_BARE_H

#include "base/error.h"

struct bare;

struct bare_config {
    const char *head; /* header of an answer, whose fields it repeats */
    const char *body;
    const char *cert_pem, *key_pem; /* NULL: plain HTTP */
    int port;                       /* 0: any free one, see bare_port */
};

/* On 127.0.0.1, with the threads and the TLS priorities of lockstepd. Aborts when it cannot. */
struct bare *bare_open(const struct bare_config *config);
int bare_port(const struct bare *b);
void bare_close(struct bare *b);

#endif
