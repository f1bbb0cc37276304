/* SPDX-License-Identifier: Apache-2.0 */
/* What goes from the store of one node to that of another. What fails here aborts. */
#ifndef LOCKSTEP_SUPPORT_STORE_COPY_H
#define LOCKSTEP_SUPPORT_STORE_COPY_H

#include "store/lineage.h"
#include "tests/support/store_lab.h"

struct store_copy {
    struct lineage commits;
    struct object **bodies; /* of everything that the commits name */
    size_t body_count;
    struct commit head;
    struct snapshot *shared; /* what head holds */
};

struct commit store_copy_head(struct store_lab *l);
/* The head of from, and what to lacks of it. */
void store_copy_take(struct store_copy *c, struct store_lab *from, struct store_lab *to);
void store_copy_fini(struct store_copy *c);
/* move_head with all bodies; to be changed at will. */
struct adopt_request store_copy_request(const struct store_copy *c);
/* Takes and adopts, and aborts when it fails. Returns the head then. */
struct commit store_copy_pull(struct store_lab *to, struct store_lab *from, bool move_head);

/* Two nodes of which none knows the other: their first commits differ. */
struct store_pair {
    struct store_lab a, b;
};

void store_pair_open(struct store_pair *p);
void store_pair_fini(struct store_pair *p);

#endif
