/* SPDX-License-Identifier: Apache-2.0 */
/* The database of a node: one SQLite file, one connection, used from one thread (asserted).
 * Directory <state_dir>/data, mode 0700: lockstep.db (0600), seal.key (0600). */
#ifndef LOCKSTEP_STORE_STORE_H
#define LOCKSTEP_STORE_STORE_H

#include "base/clock.h"
#include "model/commit.h"
#include "model/snapshot.h"

#define STORE_DB_NAME "lockstep.db"
struct store;
/* Opens or, when the directory holds neither database nor key, makes it: first commit
 * (rev 1, "first start") with the initial shared container, initial local container whose
 * node is named node_name (ERR_INVALID when that is no name). ERR_CORRUPT: a key without a
 * database or the reverse, one of another database, a damaged database, a schema newer than
 * ours (nothing is written): never an empty database beside a key. Each migration is one
 * transaction after a backup lockstep.db.before-NNNN. Whatever writes fails with ERR_BUSY when
 * another program locks the database for 3 s, with ERR_IO on a full disk. at_ms 0: now. */
MUST_USE err_t store_open(
    const char *data_dir, const char *node_name, const struct clock *clock, struct store **ret,
    struct error *e);
/* Writes nothing. ERR_NOT_FOUND: there is none; ERR_UNAVAILABLE: an older release wrote it. */
MUST_USE err_t store_open_read(
    const char *data_dir, const struct clock *clock, struct store **ret, struct error *e);
void store_close(struct store *s);
/* Objects of shared serve again where a commit has the same; otherwise the loaded head's do. */
void store_alike(struct store *s, const struct snapshot *shared);

struct draft_row {
    enum kind kind;
    char id[OBJECT_ID_BYTES];
    struct object *object; /* the object as drafted; NULL = deleted */
    char name[65];         /* name for people, also of a deleted one */
    bool has_base;
    struct hash base; /* objhash at head when the row was first made */
    char author[COMMIT_TEXT_BYTES];
    int64_t at_ms;
};

struct draft_list {
    struct draft_row *rows;
    size_t count;
};

void draft_list_free(struct draft_list *d);

struct store_state {
    struct commit head;
    struct snapshot *shared, *local; /* the caller's references */
    int64_t local_rev;
    struct draft_list draft; /* sorted by kind's name, then id */
};

MUST_USE err_t store_load(struct store *s, struct store_state *ret, struct error *e);

/* One transaction. shared_to / local_to: NULL: no change. A changed shared container makes a
 * commit whose first parent is the head (more_parents follow; ERR_NOT_FOUND: one is not stored
 * here); a changed local container raises the local revision. What equals the present content
 * is no change unless there are more_parents, or ends_wait: a commit that changes nothing ends
 * that one waits for its confirmation. drop_draft: these rows leave the draft. An audit row is
 * written. *ret: the head then. ERR_CONFLICT when a reference leads nowhere. */
struct commit_request {
    const struct snapshot *shared_to, *local_to;
    const struct hash *more_parents;
    size_t more_parent_count;
    const char *node, *author, *summary;
    int64_t at_ms, confirm_until_ms;
    int schema_version; /* of the commit; 0: SCHEMA_VERSION */
    bool ends_wait;
    const struct draft_row *drop_draft;
    size_t drop_draft_count;
};

MUST_USE err_t store_commit(
    struct store *s, const struct commit_request *q, struct commit *ret, int64_t *ret_local_rev,
    struct error *e);
/* The commit that goes back unless it is confirmed; rev 0: none. It is the head, or all after
 * it changed at once (keys, states of servers) and nothing else: so all nodes with one head say
 * the same. */
MUST_USE err_t store_waiting(struct store *s, struct commit *ret, struct error *e);

/* One transaction: rows of drop leave, if any; rows of put replace theirs, with their base. */
MUST_USE err_t store_draft_write(
    struct store *s, const struct draft_list *put, const struct draft_list *drop,
    struct error *e);
MUST_USE err_t store_draft_clear(struct store *s, struct error *e);

/* Newest first, also of branches; before_rev 0 = from the newest. A revision that several
 * commits have is not cut in two, so that they may be more than limit. *ret is malloc'ed. */
MUST_USE err_t store_commits(
    struct store *s, int64_t before_rev, size_t limit, struct commit **ret, size_t *ret_count,
    struct error *e);
/* spec: "42", "42@1a2b3c4d", a full commit id. ERR_CONFLICT lists those of a bare rev. */
MUST_USE err_t
store_commit_find(struct store *s, const char *spec, struct commit *ret, struct error *e);
/* ERR_NOT_FOUND when its bodies are no longer kept: docs/decisions/0012 says which are. */
MUST_USE err_t store_commit_content(
    struct store *s, const struct hash *id, struct snapshot **ret, struct error *e);

/* Generations: which content HAProxy was given. */
enum generation_state {
    GENERATION_STAGED,
    GENERATION_ACTIVE,
    GENERATION_GOOD,
    GENERATION_FAILED
};

struct generation {
    int64_t number;
    char digest[17];
    struct hash commit;
    int64_t local_rev;
    char release[32];
    enum generation_state state;
    int64_t at_ms;
};

MUST_USE err_t store_generation_last(struct store *s, int64_t *ret_number, struct error *e);
/* A number that was never given before. Rows before the last good one leave, but for 1000. */
MUST_USE err_t store_generation_next(struct store *s, int64_t *ret_number, struct error *e);
MUST_USE err_t
store_generation_put(struct store *s, const struct generation *g, struct error *e);
/* Newest generation of that digest, one that failed only where it is the only one; or by number
 * when digest is NULL. ERR_NOT_FOUND. */
MUST_USE err_t store_generation_find(
    struct store *s, const char *digest, int64_t number, struct generation *ret,
    struct error *e);

/* Append-only record of what was done, by whom. text must hold no secret. */
MUST_USE err_t store_audit(
    struct store *s, int64_t at_ms, const char *author, const char *action, const char *text,
    struct error *e);

/* Recomputes the hash chain, every objhash, name, reference and sealed body, the fingerprint
 * of head and of every full index (also from the changes that lead to it), every member record.
 * Changes nothing. ERR_CORRUPT with the first difference. *ret_checked: what was seen. */
MUST_USE err_t store_verify(struct store *s, int64_t *ret_checked, struct error *e);

#endif
