/* SPDX-License-Identifier: Apache-2.0 */
/* Who may edit what all nodes share: as a table over facts. Pure. */
#ifndef LOCKSTEP_SYNC_RIGHT_H
#define LOCKSTEP_SYNC_RIGHT_H

#include <stdbool.h>

struct right_facts {
    bool peers;       /* there are other nodes */
    bool configured;  /* a VIP group */
    bool self_holds;  /* the primary one */
    bool other_holds; /* a node that answers does */
    bool unlocked;    /* whoever asks said "edit here anyway" */
};

enum right {
    RIGHT_EDIT,
    RIGHT_ELSEWHERE, /* another node holds the VIP: edit there */
    RIGHT_LOCKED,    /* nobody reachable holds it: only after "edit here anyway" */
};

enum right right_of(const struct right_facts *f);
const char *right_name(enum right right); /* "here", "elsewhere", "locked" */

#endif
