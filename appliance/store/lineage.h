/* SPDX-License-Identifier: Apache-2.0 */
/* Commits as they go from node to node: what one node has and another lacks, and taking it
 * over. A node keeps every commit it ever had; its head may leave a branch, which then lies
 * aside. */
#ifndef LOCKSTEP_STORE_LINEAGE_H
#define LOCKSTEP_STORE_LINEAGE_H

#include "store/store.h"

struct lineage_entry {
    enum kind kind;
    char id[OBJECT_ID_BYTES];
    bool has_object; /* false: deleted */
    struct hash objhash;
};

struct lineage_commit {
    struct commit commit;
    struct lineage_entry *entries; /* what it changed against its first parent */
    size_t entry_count;
};

struct lineage {
    struct lineage_commit *items; /* parents before their children */
    size_t count;
};

void lineage_free(struct lineage *l);
void lineage_cleanup(struct lineage *l); /* for CLEANUP() */

MUST_USE err_t
store_has_commit(struct store *s, const struct hash *id, bool *ret, struct error *e);
/* Whether a is b or an ancestor of it. ERR_NOT_FOUND: one of them is not stored. Its cost grows
 * with the commits between their revisions. */
MUST_USE err_t store_is_ancestor(
    struct store *s, const struct hash *a, const struct hash *b, bool *ret, struct error *e);

/* The commit itself and its ancestors, the greatest (rev, id) first, without the skip first of
 * them. *ret_count: up to STORE_ANCESTORS; fewer when there are no more. ERR_NOT_FOUND. */
#define STORE_ANCESTORS ((size_t)1000)
MUST_USE err_t store_ancestors(
    struct store *s, const struct hash *id, size_t skip, struct hash ret[STORE_ANCESTORS],
    size_t *ret_count, struct error *e);
/* The one with the greatest (rev, id) of among that is of, or an ancestor of it; rev 0: there
 * is none. What of among is not stored is passed over. ERR_NOT_FOUND: of is not stored. */
MUST_USE err_t store_newest_ancestor(
    struct store *s, const struct hash *of, const struct hash *among, size_t count,
    struct commit *ret, struct error *e);

/* heads and their ancestors, but those that are among have or ancestors of one of have; what of
 * have is not stored is passed over. Where they are more than twice piece, or changed more than
 * piece_entries objects in all, only the oldest of them, but one at least, and *ret_more says
 * so: no more than piece of them, and none after the one whose changes are too many.
 * ERR_NOT_FOUND: one of heads is not stored. */
struct lineage_request {
    const struct hash *heads;
    size_t head_count;
    const struct hash *have;
    size_t have_count;
    size_t piece, piece_entries;
};

MUST_USE err_t store_lineage(
    struct store *s, const struct lineage_request *q, struct lineage *ret, bool *ret_more,
    struct error *e);
/* The newest ends of branches that the head is not on, at most max of them: all that came
 * without it becoming the head is one of these or an ancestor of one. *ret is malloc'ed. */
MUST_USE err_t
store_ends(struct store *s, size_t max, struct hash **ret, size_t *ret_count, struct error *e);
/* Everything that a commit holds, sorted by kind's name and id; *ret is malloc'ed.
 * ERR_NOT_FOUND when its content is no longer kept. */
MUST_USE err_t store_index(
    struct store *s, const struct hash *id, struct lineage_entry **ret, size_t *ret_count,
    struct error *e);
/* The object of each entry, NULL where the entry has none or its body is not kept. *ret: a
 * malloc'ed array of count, with the caller's references. */
MUST_USE err_t store_objects(
    struct store *s, const struct lineage_entry *wanted, size_t count, struct object ***ret,
    struct error *e);

/* Takes over what another node has. One transaction, with an audit row.
 * commits: parents before their children; one that is stored already is passed over. Their ids
 * were checked against their fields by the caller. ERR_INVALID: a parent is neither stored nor
 * before it, rev is not the highest parent's + 1 (1 without parents), the changes name an
 * object twice or no shared one, or do not lead to the fingerprint (looked at for the new head
 * and the ends of branches, as far as the content they start from is kept). bodies: objects to
 * keep besides those of shared_to, so that the commits in between and beside keep their
 * content. move_head: head, which is stored or among commits (else ERR_NOT_FOUND), becomes the
 * head, and shared_to the shared container: ERR_INVALID when it has not the head's fingerprint,
 * ERR_CONFLICT when a reference leads nowhere. The former head stays, as the end of a discarded
 * branch where no commit follows it as its first parent. What
 * waits for a confirmation then is as store_waiting says. The draft stays as it is.
 * Else only history changes: a branch that lies aside. *ret_head: the head then.
 * only_check: nothing is written, whatever the outcome; references alone are not looked at. */
struct adopt_request {
    const struct lineage *commits;
    struct object *const *bodies;
    size_t body_count;
    bool move_head;
    struct hash head;
    const struct snapshot *shared_to;
    const char *author; /* of the audit row: "node proxy2" */
    bool only_check;
    const struct snapshot
        *beside; /* without move_head: the content of head, to be kept; NULL */
};

MUST_USE err_t store_adopt(
    struct store *s, const struct adopt_request *q, struct commit *ret_head, struct error *e);

#endif
