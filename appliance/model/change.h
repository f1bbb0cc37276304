/* SPDX-License-Identifier: Apache-2.0 */
/* A list of operations on objects, applied to a pair of snapshots as a whole. Pure. */
#ifndef LOCKSTEP_MODEL_CHANGE_H
#define LOCKSTEP_MODEL_CHANGE_H

#include "model/snapshot.h"

#define CHANGE_MAX_OPS 100000

enum change_op { CHANGE_CREATE, CHANGE_REPLACE, CHANGE_MERGE, CHANGE_DELETE };

struct change {
    enum change_op op;
    enum kind kind;
    const char *name;            /* present name of the object; NULL: in body, or a singleton */
    json_t *body;                /* owned by the set; NULL for delete */
    const struct hash *if_match; /* expected objhash, or NULL */
    bool by_product; /* the body may give read-only fields (never set for the API) */
};

struct change_set {
    struct change *items;
    size_t count, cap;
};

void change_set_init(struct change_set *c);
void change_set_fini(struct change_set *c);
/* Takes over the reference of body; name and if_match must outlive the set. ERR_LIMIT. */
MUST_USE err_t change_set_add(struct change_set *c, struct change op, struct error *e);
/* From the API: [{"op": "create"|"replace"|"merge"|"delete", "kind", "name", "body",
 * "if_match"}]. Problems carry the pointer "/ops/3/...". */
void change_set_parse(
    struct change_set *c, const json_t *ops, struct arena *arena, struct problems *p);

/* Applies all or nothing. References may point to objects created in the same set,
 * whatever their order. Names mean objects of the pair or, where it has none of that name,
 * those created before in the set; operations on one object add up in their order. Only the
 * names that result must be unique, so that two objects may swap theirs and a deleted one
 * be created anew. A merge is RFC 7396 on the form of the API; null clears a secret.
 *
 * On problems both results stay untouched; else each is a reference, to the very snapshot
 * in now when nothing in it changed. err: ERR_OK; ERR_INVALID (problems say what);
 * ERR_NOT_FOUND; ERR_CONFLICT (problems "exists", "in_use"; a singleton created or deleted);
 * ERR_STALE (if_match). The error names the operation's object. */
MUST_USE err_t change_apply(
    const struct change_set *c, const struct snapshot_pair *now, struct snapshot **ret_shared,
    struct snapshot **ret_local, struct problems *p, struct error *e);

#endif
