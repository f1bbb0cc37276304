/* SPDX-License-Identifier: Apache-2.0 */
/* Random objects made from the schema's tables; the same seed makes the same ones, but for
 * the certificates and the ids that change_apply makes. */
#ifndef LOCKSTEP_SUPPORT_GEN_H
#define LOCKSTEP_SUPPORT_GEN_H

#include "base/arena.h"
#include "model/snapshot.h"

struct gen;

struct gen *gen_new(uint64_t seed);
void gen_free(struct gen *g);
void gen_cleanup(struct gen **g); /* for CLEANUP() */

uint64_t gen_random(struct gen *g);
size_t gen_below(struct gen *g, size_t limit); /* 0 .. limit - 1 */
bool gen_chance(struct gen *g, unsigned percent);
void gen_id(struct gen *g, enum kind kind, char ret[OBJECT_ID_BYTES]);

/* A value that passes the checks of the field; references are names of objects of the pair.
 * New reference; NULL when there is nothing to refer to. */
json_t *
gen_value(struct gen *g, const struct schema_field *f, const struct snapshot_pair *pair);
/* A body for object_parse: all required fields, others at times, names never twice. NULL
 * when there is nothing to refer to. */
json_t *gen_body(struct gen *g, enum kind kind, const struct snapshot_pair *pair);
/* An object of such a body; NULL as above. Aborts when object_parse refuses it. */
struct object *gen_object(struct gen *g, enum kind kind, const struct snapshot_pair *pair);
/* Kinds in an order in which each comes behind those that it refers to. */
void gen_kinds(enum kind ret[KIND_COUNT]);

/* Both containers with about count objects; every kind that is no singleton is there when
 * count >= 10 * KIND_COUNT. The objects are right one by one, not in relation to each other
 * (ports clash, modes differ). */
void gen_pair(
    struct gen *g, size_t count, struct snapshot **ret_shared, struct snapshot **ret_local);
/* The same without the objects that validate_all refuses: ready to be rendered. */
void gen_valid_pair(
    struct gen *g, size_t count, int64_t now_s, struct snapshot **ret_shared,
    struct snapshot **ret_local);

/* Whether all is still right with o in the place of the object of the same id. */
bool gen_fits(
    const struct snapshot *shared, const struct snapshot *local, struct object *o,
    int64_t now_s);

/* Prints the problems to stderr. */
void gen_print_problems(const struct problems *p);

#endif
