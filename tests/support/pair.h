/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration in a test: both snapshots, and the problems of the last check. */
#ifndef LOCKSTEP_SUPPORT_PAIR_H
#define LOCKSTEP_SUPPORT_PAIR_H

#include "base/arena.h"
#include "model/change.h"

struct pair {
    struct snapshot_pair objects;
    struct snapshot *shared;
    struct snapshot *local;
    struct arena *arena;
    struct problems problems;
};

/* JSON of a test: single quotes stand for double ones. Aborts on what is no JSON. */
json_t *pair_json(const char *text);
/* A list of shared objects, each with "kind", in quotes as above; NULL: none. Aborts, saying
 * why, when one is refused. */
void pair_init(struct pair *x, const char *objects);
void pair_init_json(struct pair *x, const json_t *objects);
void pair_fini(struct pair *x);
/* Empties the list of problems. */
struct problems *pair_clear(struct pair *x);
/* Removes an object whoever refers to it; it must be there. */
void pair_remove(struct pair *x, enum kind kind, const char *name);
/* Sets fields past all checks: patch in quotes as above, references as ids. */
void pair_set(struct pair *x, enum kind kind, const char *name, const char *patch);
/* Applies operations; aborts, saying why, when that fails. */
void pair_apply(struct pair *x, const struct change_set *set);
const struct object *pair_find(const struct pair *x, enum kind kind, const char *name);
/* The first problem of that code, or NULL. */
const struct problem *pair_problem(const struct pair *x, const char *code);
/* Codes of all problems in their order, with a space between them. In the arena. */
const char *pair_codes(const struct pair *x);

#endif
