/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share among themselves. */
#ifndef LOCKSTEP_STORE_INNER_H
#define LOCKSTEP_STORE_INNER_H

#include <pthread.h>

#include "store/db.h"
#include "store/store.h"

#define STORE_MAGIC            0x4c6b7374u
#define STORE_APPLICATION_ID   1280004948
#define STORE_KEPT_COMMITS     200   /* newest ones whose content is kept: see prune */
#define STORE_KEPT_AMONG       10000 /* newest ones among which those are looked for */
#define STORE_KEPT_GENERATIONS 1000  /* newest rows of the table */
#define STORE_DISCARDED_MS     ((int64_t)90 * 24 * 3600 * 1000)
/* From one full index to the next: so many commits of drafted kinds, or a multiple of commits
 * that change direct kinds only, of which there are many with few rows each. */
#define STORE_FULL_EVERY  64
#define STORE_FULL_DIRECT 64 /* these weigh as one of the others */
/* Bodies of edited drafts and of local objects have no commit that would trigger a prune. */
#define STORE_PRUNE_WRITES 256

struct store {
    unsigned magic;
    pthread_t owner;
    struct db *db;
    const struct clock *clock;
    uint8_t key[SEAL_KEY_BYTES];
    struct snapshot *shared, *local; /* as stored; NULL until load_state */
    struct snapshot *alike;          /* store_alike */
    struct commit head;
    int64_t head_seq; /* of commit_log; 0 before the first commit */
    int64_t local_rev;
    int64_t since_full; /* weight of the commits since the last full index: history_weight */
    unsigned writes;    /* since the last prune */
};

/* The same statement on the tables of both containers, indexed by enum scope. */
#define PER_SCOPE(before, after)                                                               \
    {                                                                                          \
        before "shared" after, before "local" after                                            \
    }

/* Asserts that s is a store and that this is its thread. */
void store_enter(const struct store *s);
int64_t store_time(const struct store *s, int64_t at_ms); /* 0: now */

/* Kind of a row. */
MUST_USE err_t kind_of_row(const char *name, enum kind *ret, struct error *e);

/* -- body.c */
struct body_key {
    enum kind kind;
    const char *id;
    struct hash objhash;
};

/* Stores the body unless it is there. */
MUST_USE err_t body_put(struct store *s, const struct object *o, struct error *e);
/* Object from the columns form, data at col, col + 1 of a row. ERR_NOT_FOUND when they are
 * null; ERR_CORRUPT when they do not give the object that key names. */
MUST_USE err_t body_object(
    const struct store *s, const struct query *q, int col, const struct body_key *key,
    struct object **ret, struct error *e);
/* Only that the bytes have their hash; key->id is what messages call it. */
MUST_USE err_t body_verify(
    const struct store *s, const struct query *q, int col, const struct body_key *key,
    struct error *e);

/* -- load.c */
/* Fills head, revisions and snapshots of s unless they are there. */
MUST_USE err_t load_state(struct store *s, struct error *e);
MUST_USE err_t
load_container(const struct store *s, enum scope scope, struct snapshot **ret, struct error *e);
/* ERR_CORRUPT when the objects do not have the stored fingerprint of their container. */
MUST_USE err_t load_check_fp(
    const struct store *s, enum scope scope, const struct snapshot *objects, struct error *e);
/* ERR_CONFLICT when the database holds another head than s remembers. */
MUST_USE err_t load_check_head(const struct store *s, struct error *e);

/* The store holds another snapshot from now on. */
void load_replace(struct snapshot **held, const struct snapshot *by);

/* -- history.c */
#define COMMIT_COLUMNS                                                                         \
    "seq, id, rev, schema_version, fp, node, author, summary, at_ms, confirm_until_ms"
/* Commit of the current row of a query that selects COMMIT_COLUMNS first. */
MUST_USE err_t history_row(
    const struct store *s, const struct query *q, int64_t *ret_seq, struct commit *ret,
    struct error *e);
MUST_USE err_t
history_by_seq(const struct store *s, int64_t seq, struct commit *ret, struct error *e);
/* *ret: 0 when it is not stored. */
MUST_USE err_t
history_find(const struct store *s, const struct hash *id, int64_t *ret, struct error *e);
/* ERR_NOT_FOUND when it is not stored. */
MUST_USE err_t
history_seq_of_id(const struct store *s, const struct hash *id, int64_t *ret, struct error *e);
/* Of the commits from seq back to the nearest full index, without that one. */
MUST_USE err_t
history_weight(const struct store *s, int64_t seq, int64_t *ret, struct error *e);
/* The names of the direct kinds, for COMMIT_IS_DRAFTED. */
#define DIRECT_KINDS_BYTES ((size_t)256)
void history_direct_kinds(char ret[DIRECT_KINDS_BYTES]);
/* Whether the commit of the row l changes an object of a drafted kind. ?2: the direct ones. */
#define COMMIT_IS_DRAFTED                                                                      \
    "EXISTS (SELECT 1 FROM commit_entry x WHERE x.seq = l.seq "                                \
    "AND instr(?2, ',' || x.kind || ',') = 0)"

/* -- waiting.c: in the caller's transaction. */
/* The head moved: what waits then. */
MUST_USE err_t
waiting_follow(struct store *s, int64_t from_seq, int64_t to_seq, struct error *e);

/* -- prune.c: in the caller's transaction. */
/* Removes full indexes and bodies that nothing needs any more. Needed is the content of
 * - the head,
 * - the newest STORE_KEPT_COMMITS commits,
 * - as many that change an object of a drafted kind, of the newest STORE_KEPT_AMONG: commits of
 *   direct kinds alone (drain switches, keys) do not push them out,
 * - what the commit that waits for its confirmation goes back to,
 * - the ends of branches discarded less than STORE_DISCARDED_MS ago,
 * each where it is kept by now, and whatever the indexes of these are worked out from. */
MUST_USE err_t prune(struct store *s, struct error *e);
/* ERR_CORRUPT when an index or a body that a kept commit or the draft needs is not there. */
MUST_USE err_t prune_check(const struct store *s, struct error *e);

/* -- draft.c */
MUST_USE err_t draft_load(const struct store *s, struct draft_list *ret, struct error *e);
MUST_USE err_t draft_drop(struct store *s, enum kind kind, const char *id, struct error *e);

/* -- session.c */
MUST_USE err_t audit_row(
    struct store *s, int64_t at_ms, const char *author, const char *action, const char *text,
    struct error *e);

/* -- key.c: the sealing key, a file of 32 random bytes beside the database. */
#define KEY_NAME "seal.key"
MUST_USE err_t key_read(int data_dir, uint8_t ret[SEAL_KEY_BYTES], struct error *e);
MUST_USE err_t key_write(int data_dir, const uint8_t key[SEAL_KEY_BYTES], struct error *e);
/* A known text sealed with the key: shows whether a key belongs to a database. */
void key_seal_check(const uint8_t key[SEAL_KEY_BYTES], struct buf *out);
MUST_USE err_t key_check(
    const uint8_t key[SEAL_KEY_BYTES], const uint8_t *sealed, size_t bytes, struct error *e);

#endif
