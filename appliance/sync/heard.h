/* SPDX-License-Identifier: Apache-2.0 */
/* What this node has heard from another one. */
#ifndef LOCKSTEP_SYNC_HEARD_H
#define LOCKSTEP_SYNC_HEARD_H

#include "sync/cluster.h"
#include "sync/condition.h"

#define DETAIL_BYTES        240
#define NODE_RUNNING_DIGITS 65
#define SAID_TEXT_BYTES     100

/* What a node says of itself for the conditions (sync/condition.h) and for the table. */
struct said {
    int64_t local_rev; /* of the generation that HAProxy runs there */
    char release[32];  /* whose program made that; "": neither is known */
    bool held;
    bool lost;       /* its own pages are not reached: where they are is for itself only */
    int64_t drafted; /* objects */
    char author[SAID_TEXT_BYTES];
    char refusing[SAID_TEXT_BYTES]; /* why it does not take over what is newer, or "" */
};

/* What another node said last, and what this one makes of it. */
struct peer {
    char id[MEMBER_ID_BYTES];
    bool answered;        /* in the last round that asked it */
    bool ever;            /* since this daemon started */
    enum silence silence; /* ANSWERED where answered is true */
    struct error failure; /* why it did not */
    int64_t answered_ms;  /* monotonic, of the last answer */
    int64_t took_ms;      /* of the last answer */
    struct sync_head head;
    bool leads; /* this node's head is an ancestor of that one, or the same */
    enum relation relation;
    struct last_shared shared; /* when diverged; of other heads when they moved since */
    char release[32];
    char running[NODE_RUNNING_DIGITS]; /* id of the commit that HAProxy runs there; "" */
    char serving[8];
    bool holds;                 /* the primary VIP group */
    int64_t skew_ms;            /* of its clock to this one's */
    struct hash members;        /* digest */
    char refused[DETAIL_BYTES]; /* why it does not take what was handed to it, or "" */
    struct said said;
    int64_t unequal_since_ms; /* monotonic: its head and running differ; 0: they do not */
};

/* What HAProxy of a node runs, besides the commit: "running_local_rev" and "running_release",
 * null where release is "". */
void cluster_put_generation(json_t *to, int64_t local_rev, const char *release);

#endif
