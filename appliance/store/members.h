/* SPDX-License-Identifier: Apache-2.0 */
/* Who belongs to the cluster: this node's own id, and the member records that it holds. */
#ifndef LOCKSTEP_STORE_MEMBERS_H
#define LOCKSTEP_STORE_MEMBERS_H

#include "model/member.h"
#include "store/store.h"

/* Random, made at the first start, never changed. */
MUST_USE err_t store_node_id(struct store *s, char ret[MEMBER_ID_BYTES], struct error *e);
/* Sorted by id, tombstones too, with their keys; *ret is malloc'ed, to be wiped after use, and
 * NULL when there are none. The key of this node's own record is what its peers present. */
MUST_USE err_t
store_members(struct store *s, struct member **ret, size_t *ret_count, struct error *e);
/* One transaction: the list takes the place of what was stored. Keys are stored sealed. */
MUST_USE err_t
store_member_put(struct store *s, const struct member *list, size_t count, struct error *e);

/* What the own peer key was before it was replaced. */
struct former_key {
    char key[MEMBER_KEY_BYTES]; /* "": there is none */
    int64_t until_ms;           /* wall clock */
};

/* As store_member_put, and in the same transaction what the own key was; "" drops it. */
MUST_USE err_t store_member_rekey(
    struct store *s, const struct member *list, size_t count, const struct former_key *former,
    struct error *e);
MUST_USE err_t store_former_key(struct store *s, struct former_key *ret, struct error *e);

#endif
