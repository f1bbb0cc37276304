/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of change_apply: change_names.c finds which object each operation means and what
 * is called how afterwards, change_apply.c makes the objects and the snapshots. */
#ifndef LOCKSTEP_MODEL_CHANGE_PARTS_H
#define LOCKSTEP_MODEL_CHANGE_PARTS_H

#include "model/change.h"

/* One object that the set touches. */
struct target {
    enum kind kind;
    char id[OBJECT_ID_BYTES];
    const struct object *base; /* NULL: the set creates it */
    const char *name;          /* afterwards; borrowed; NULL when the body has none */
    size_t op;                 /* the last operation on it */
    bool deleted;
    bool replaced;         /* an operation gave the whole object */
    json_t *body;          /* what object_parse gets */
    json_t *product;       /* read-only fields by the product, or NULL */
    bool by_product;       /* an operation of the product is among its own */
    struct object *object; /* the result */
};

struct apply {
    const struct change_set *set;
    const struct snapshot_pair *now;
    struct problems *p;
    struct error *e;
    err_t code;      /* of the first operation, in their order, that cannot be done */
    size_t fault_op; /* that operation */
    struct target *targets;
    size_t target_count;
    struct target **owner;   /* [set->count]: target of an operation */
    struct target **by_name; /* those there afterwards, by kind and name */
    size_t by_name_count;
    struct target **by_id; /* those of the present pair, by kind and id */
    size_t by_id_count;
};

/* Fills targets, owner and the two orders. Faults: a->code. */
void change_find_targets(struct apply *a);
/* The target of a present object, or NULL. */
struct target *change_target_of_id(const struct apply *a, enum kind k, const char *id);
/* Resolves names and ids as they are afterwards. */
struct object_refs change_refs_after(struct apply *a);
/* Keeps the fault of the earliest operation; reason follows kind and name. */
void change_fault(struct apply *a, size_t op, err_t code, const char *reason);

#endif
