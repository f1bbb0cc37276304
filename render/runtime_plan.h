/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker that runs one set of files can be brought to another by the admin socket,
 * and how: so that the files, and what runs, agree without a reload. Pure. */
#ifndef LOCKSTEP_RENDER_RUNTIME_PLAN_H
#define LOCKSTEP_RENDER_RUNTIME_PLAN_H

#include "base/arena.h"
#include "render/haproxy.h"

/* HAProxy drops, without a word, a command that with its payload exceeds its buffer of 16,384
 * bytes: what does not fit here, whole or line by line, takes a reload. */
#define RUNTIME_PAYLOAD_BYTES 14000
/* Beyond so many changes of servers a reload is quicker. */
#define RUNTIME_SERVERS_MAX 256

enum runtime_what {
    RUNTIME_WEIGHT,
    RUNTIME_ADDRESS,
    RUNTIME_MAXCONN,
    RUNTIME_CERTIFICATE,
    RUNTIME_MAP
};

struct runtime_change {
    enum runtime_what what;
    const char *backend, *server; /* of the first three */
    int64_t number;               /* weight, port or limit */
    const char *address;          /* a literal one, without brackets */
    const struct artefact *file;  /* the new one; borrowed from the candidate */
};

struct runtime_plan {
    struct runtime_change *items; /* in the order in which they are to be made */
    size_t count, cap;
    char reload[192]; /* why only a reload does it, for people; "": the changes do */
    struct arena *texts;
};

/* May differ: comments, the digest, entries of maps, certificates of the same file name, and
 * of servers weight, limit and literal address. No content is in the reason but the first two
 * words of a line, which hold no secret. plan needs runtime_plan_fini. */
void runtime_plan_make(
    const struct rendered *running, const struct rendered *candidate,
    struct runtime_plan *plan);
void runtime_plan_fini(struct runtime_plan *plan); /* also for CLEANUP() */

#endif
