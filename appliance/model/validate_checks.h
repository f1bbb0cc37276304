/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of validate share: the candidate's objects by id, and one function a topic.
 * Only for validate*.c. */
#ifndef LOCKSTEP_MODEL_VALIDATE_CHECKS_H
#define LOCKSTEP_MODEL_VALIDATE_CHECKS_H

#include "model/validate.h"

/* Objects of one kind: all, in the order of snapshot_kind, or some in any order; pos below is
 * an index in it. */
struct kind_list {
    const struct object *const *items;
    size_t count;
};

/* The 16 digits of an id as they are, so that finding a reference's target does not touch the
 * target. */
struct id_slot {
    uint64_t id[2];
    uint32_t kind; /* + 1; 0: free */
    uint32_t pos;
};

struct checks {
    const struct snapshot_pair *pair;
    const struct snapshot_pair *other; /* or NULL */
    int64_t now_s;
    struct problems *p;
    struct kind_list kinds[KIND_COUNT];
    struct id_slot *slots;
    size_t slot_mask;
    uint32_t *targets; /* of every reference: position, or CHECKS_NONE (null, dangling) */
    uint32_t *first[KIND_COUNT]; /* by position: where the object's targets start; or NULL */
};

#define CHECKS_NONE UINT32_MAX

/* All checks on these objects of the pair; what they refer to must be among them. c has pair,
 * other, now_s and p set. */
void checks_run(struct checks *c, const struct kind_list kinds[KIND_COUNT]);

/* Finds the target of every reference in c->kinds, once; those that do not exist are
 * problems. */
void checks_init(struct checks *c);
void checks_fini(struct checks *c);

/* Targets of one field of an object, in order: a position, or CHECKS_NONE. */
const uint32_t *
checks_targets(const struct checks *c, enum kind kind, size_t pos, uint32_t field);
/* Where a problem is. Keeps pointer as it is: it must outlive the use. */
struct problem checks_at(const struct object *o, const char *pointer);

/* Whether a clash that was found at own is to be told at with: only own is in other too. */
bool
checks_blame_with(const struct checks *c, const struct object *own, const struct object *with);

/* Slots of an open table with room for count entries: a power of two. */
size_t checks_slots(size_t count);

static inline const struct object *
checks_object(const struct checks *c, enum kind kind, uint32_t pos)
{
    return pos == CHECKS_NONE ? NULL : c->kinds[kind].items[pos];
}

/* What a check reads of an object that it does not check stands in the tables of
 * validate_reach.c. */
void check_listeners(const struct checks *c);
void check_pools(const struct checks *c);
void check_monitors(const struct checks *c);
void check_services(const struct checks *c);
void check_conditions(const struct checks *c);
void check_rules(const struct checks *c);
void check_paths(const struct checks *c);
void check_vip_groups(const struct checks *c);
void check_certificates(const struct checks *c);
void check_webui(const struct checks *c); /* warnings only */
/* One certificate by itself: key, validity. */
void check_certificate(const struct object *o, int64_t now_s, struct problems *p);
void check_webui_certificate(const struct object *o, int64_t now_s, struct problems *p);
/* A chain and a key, in the fields of these names. */
void check_pair(
    const struct object *o, struct text chain, struct text key, int64_t now_s,
    struct problems *p);
struct x509_info;
void check_certificate_dates(
    const struct object *o, const struct x509_info *info, int64_t now_s, struct problems *p);

#endif
