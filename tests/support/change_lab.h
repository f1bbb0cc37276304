/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on a small configuration, for unit tests: servers a and b, the monitor m, the pool p
 * with a and the monitor, the listener l, the service s. Fails the cmocka test it is used in.
 * In all JSON texts single quotes stand for double ones. */
#ifndef LOCKSTEP_SUPPORT_CHANGE_LAB_H
#define LOCKSTEP_SUPPORT_CHANGE_LAB_H

#include "base/arena.h"
#include "model/change.h"

struct change_lab {
    struct snapshot *shared, *local;
    struct snapshot_pair pair;
    struct problems p; /* of the last call */
    struct error e;
    struct change_set set; /* what the next call applies */
};

struct change_lab *change_lab_new(void);
void change_lab_free(struct change_lab *w);

/* Adds to the set; body NULL for a delete. */
void lab_op(
    struct change_lab *w, enum change_op op, enum kind kind, const char *name,
    const char *body);
/* Applies the set, which must work, empties it, and goes on from the result. */
void lab_works(struct change_lab *w);
/* It must fail, with an error that has these words, and the problems "code kind name
 * pointer", one a line. */
void lab_fails(struct change_lab *w, err_t code, const char *words, const char *problems);
const struct object *lab_find(const struct change_lab *w, enum kind kind, const char *name);

#endif
