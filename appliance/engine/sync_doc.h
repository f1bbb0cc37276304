/* SPDX-License-Identifier: Apache-2.0 */
/* What one node hands to another that lacks it: commits, what they changed, objects. One JSON
 * document for a push and for a pull:
 *
 *   {"head": ID, "expected_head": ID or absent,
 *    "commits": [{"commit": {...}, "entries": [["kind", "id", "objhash" or null], ...]}, ...],
 *    "index": [["kind", "id", "objhash"], ...] or absent,
 *    "objects": [["kind", "id", {...}], ...], "more": true or absent}
 *
 * commits: parents before children. entries: against the first parent. index: all that the head
 * holds; absent where the commits lead on from what the receiver has by their first parents.
 * objects: canonical, secrets in clear; only what a commit or the index names.
 * more: a piece of a long history, the oldest commits that lack, without index and objects;
 * "head" is what it is to lead to (engine/sync_piece.h). */
#ifndef LOCKSTEP_ENGINE_SYNC_DOC_H
#define LOCKSTEP_ENGINE_SYNC_DOC_H

#include "engine/engine.h"
#include "store/lineage.h"

/* What is taken in one document: more than twice the largest piece (sync_piece_commits), and as
 * many bytes as the routes take, so that whoever sends keeps within what is read. */
#define SYNC_COMMITS_MAX   100000
#define SYNC_ENTRIES_MAX   1000000 /* of one list */
#define SYNC_DOC_MAX       ((size_t)128 << 20)
#define SYNC_HAVE_MAX      16
#define SYNC_STORED_MAX    128
#define SYNC_PIECE_ENTRIES 100000 /* a piece ends with the commit that brings more */
#define SYNC_OBJECTS_KEPT  200    /* newest commits whose objects travel along */

struct sync_doc {
    struct hash head;
    bool more; /* a piece */
    bool has_expected;
    struct hash expected;
    struct lineage commits;
    size_t *by_id; /* their positions, sorted by id; NULL: not sorted */
    bool has_index;
    struct lineage_entry *index;
    size_t index_count;
    struct object **objects;
    size_t object_count;
};

void sync_doc_free(struct sync_doc *d); /* also for CLEANUP() */

/* From outside: everything is checked by itself, and each commit's id against its fields.
 * Objects and entries of kinds that are not shared are refused. Of a head that a newer release
 * made, which is never taken over, only the commits are read. ERR_SYNTAX: form; ERR_INVALID.
 */
MUST_USE err_t sync_doc_read(const json_t *j, struct sync_doc *ret, struct error *e);
/* The rows of "entries", "index" or "missing", checked. *ret: free, also after a failure. */
MUST_USE err_t sync_entries_read(
    const json_t *rows, struct lineage_entry **ret, size_t *ret_count, struct error *e);
/* Of a kind that all nodes share, and an id of such an object. ERR_INVALID. */
MUST_USE err_t
sync_place_check(const char *kind, const char *id, enum kind *ret_kind, struct error *e);
/* An object of that place, from outside; and as JSON, secrets in clear. */
MUST_USE err_t sync_object_read(
    enum kind kind, const char *id, const json_t *content, struct object **ret,
    struct error *e);
json_t *sync_object_json(const struct object *o);
json_t *sync_entries_json(const struct lineage_entry *entries, size_t count);
json_t *sync_doc_json(const struct sync_doc *d); /* new reference */
/* The commit of that id among those of the document, or NULL. */
const struct lineage_commit *sync_doc_commit(const struct sync_doc *d, const struct hash *id);

/* What whoever has those commits lacks of this node's head, with the named objects besides
 * (those that are kept); of many commits only the next piece. Any thread. */
struct sync_wanted {
    const struct hash *have;
    size_t have_count;
    const struct hash *stored; /* it has these, too, but not their content */
    size_t stored_count;
    const struct lineage_entry *objects;
    size_t object_count;
    bool index; /* also where the commits lead on from what it has */
    /* NULL, or a commit with the content of the head, whose first parent that is: it becomes
     * the head of the document, which brings its other parents along, and the index.
     * ERR_CONFLICT: the head is another now. */
    const struct commit *on_top;
};

MUST_USE err_t sync_doc_make(
    struct engine *en, const struct sync_wanted *wanted, struct sync_doc *ret, struct error *e);

#endif
