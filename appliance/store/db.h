/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite as the store uses it: one connection, prepared statements kept by their text,
 * errors as err_t. SQL is always a string constant. */
#ifndef LOCKSTEP_STORE_DB_H
#define LOCKSTEP_STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crypt.h"
#include "base/error.h"

#define DB_BUSY_MS 3000

struct db;
struct sqlite3_stmt;

/* Opens an existing file, which may be empty. Nothing is written, also not at close, until
 * db_use. ERR_CORRUPT when it is no database. */
MUST_USE err_t db_open(const char *path, struct db **ret, struct error *e);
void db_close(struct db *d); /* NULL is allowed */
void db_cleanup(struct db **d);
/* Durable writes and foreign keys from now on; wal: with a write-ahead log. */
MUST_USE err_t db_use(struct db *d, bool wal, struct error *e);
/* From now on only statements on rows: no DDL, no ATTACH, no PRAGMA but the checks. */
void db_restrict(struct db *d);
/* Runs statements one after another; rows are ignored. For migrations. */
MUST_USE err_t db_script(struct db *d, const char *sql, struct error *e);

/* A transaction; rolled back at the end of its scope unless committed. */
struct tx {
    struct db *db;
};

MUST_USE err_t tx_begin(struct db *d, struct tx *ret, struct error *e);
/* A steady view for reading. */
MUST_USE err_t tx_begin_read(struct db *d, struct tx *ret, struct error *e);
/* On failure everything is rolled back. */
MUST_USE err_t tx_commit(struct tx *t, struct error *e);
void tx_cleanup(struct tx *t);

/* A statement in use. Parameters count from 1, columns from 0. Bound texts and blobs are not
 * copied: they must live until the last query_row. */
struct query {
    struct db *db;
    struct sqlite3_stmt *stmt;
    size_t slot;
    int bind_error; /* SQLite's code; told by query_row */
};

MUST_USE err_t query_open(struct db *d, const char *sql, struct query *ret, struct error *e);
void query_cleanup(struct query *q);
/* To run it once more, with other parameters. */
void query_again(struct query *q);
void bind_i64(struct query *q, int i, int64_t v);
void bind_text(struct query *q, int i, const char *s);                  /* NULL: null */
void bind_blob(struct query *q, int i, const uint8_t *p, size_t bytes); /* NULL: null */
void bind_hash(struct query *q, int i, const struct hash *h);           /* NULL: null */
MUST_USE err_t query_row(struct query *q, bool *ret_row, struct error *e);
/* For statements without rows. */
MUST_USE err_t query_run(struct query *q, struct error *e);
/* As query_row, and ERR_CORRUPT when there is none: what names the missing thing. */
MUST_USE err_t query_need(struct query *q, const char *what, struct error *e);

bool col_null(const struct query *q, int i);
int64_t col_i64(const struct query *q, int i);
const char *col_str(const struct query *q, int i); /* "" for null; until the next row */
const uint8_t *col_blob(const struct query *q, int i, size_t *ret_bytes);
/* Copies; ERR_CORRUPT when it does not fit (bytes counts the NUL). */
MUST_USE err_t col_text(const struct query *q, int i, char *ret, size_t bytes, struct error *e);
MUST_USE err_t col_hash(const struct query *q, int i, struct hash *ret, struct error *e);

int64_t db_last_rowid(const struct db *d);

#endif
