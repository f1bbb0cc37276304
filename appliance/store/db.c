/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/arena.h"

#define DB_MAGIC   0x4c6b6462u
#define SLOT_COUNT ((size_t)128)

/* A statement prepared once; sql points to the constant it was made from. */
struct slot {
    const char *sql;
    sqlite3_stmt *stmt;
    bool busy;
};

struct db {
    unsigned magic;
    sqlite3 *handle;
    struct slot slots[SLOT_COUNT];
    size_t slot_count;
};

static bool
disk_is_full(sqlite3 *handle, int rc)
{
    int errno_value = sqlite3_system_errno(handle);

    return (rc & 0xff) == SQLITE_FULL ||
           ((rc & 0xff) == SQLITE_IOERR && (errno_value == ENOSPC || errno_value == EDQUOT));
}

static err_t
fail_handle(sqlite3 *handle, int rc, struct error *e)
{
    if (disk_is_full(handle, rc)) {
        return error_set(e, ERR_IO, "the disk is full");
    }
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(e, ERR_BUSY, "the database is in use by another program");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(e, ERR_CORRUPT, "the database is damaged: %s", sqlite3_errmsg(handle));
    case SQLITE_CONSTRAINT:
        return error_set(e, ERR_CONFLICT, "the database refuses: %s", sqlite3_errmsg(handle));
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM: return error_set(e, ERR_IO, "database: %s", sqlite3_errmsg(handle));
    default: return error_set(e, ERR_INTERNAL, "database: %s", sqlite3_errmsg(handle));
    }
}

static err_t
fail(const struct db *d, int rc, struct error *e)
{
    return fail_handle(d->handle, rc, e);
}

err_t
db_open(const char *path, struct db **ret, struct error *e)
{
    CLEANUP(db_cleanup) struct db *d = xcalloc(1, sizeof *d);
    int rc;

    d->magic = DB_MAGIC;
    rc = sqlite3_open_v2(
        path, &d->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
        NULL);
    ASSERT(d->handle != NULL);
    if (rc != SQLITE_OK) {
        return fail(d, rc, e);
    }
    ASSERT(
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) == SQLITE_OK);
    ASSERT(sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) == SQLITE_OK);
    ASSERT(sqlite3_db_config(d->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) == SQLITE_OK);
    ASSERT(sqlite3_busy_timeout(d->handle, DB_BUSY_MS) == SQLITE_OK);
    *ret = TAKE(d);
    return ERR_OK;
}

void
db_close(struct db *d)
{
    if (d == NULL) {
        return;
    }
    ASSERT(d->magic == DB_MAGIC);
    for (size_t i = 0; i < d->slot_count; i++) {
        ASSERT(!d->slots[i].busy);
        (void)sqlite3_finalize(d->slots[i].stmt);
    }
    ASSERT(sqlite3_close(d->handle) == SQLITE_OK);
    d->magic = 0;
    free(d);
}

void
db_cleanup(struct db **d)
{
    db_close(*d);
    *d = NULL;
}

err_t
db_use(struct db *d, bool wal, struct error *e)
{
    static const char settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON;"
                                   "PRAGMA secure_delete = ON;"
                                   "PRAGMA cell_size_check = ON;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA cache_size = -8192;"
                                   "PRAGMA journal_size_limit = 67108864;";
    err_t code = db_script(d, settings, e);

    ASSERT(
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL) == SQLITE_OK);
    if (code == ERR_OK && wal) {
        code = db_script(d, "PRAGMA journal_mode = WAL;", e);
    }
    return code;
}

static bool
pragma_allowed(const char *name)
{
    return strcmp(name, "quick_check") == 0 || strcmp(name, "integrity_check") == 0 ||
           strcmp(name, "foreign_key_check") == 0;
}

/* A second gate: whatever statement a fault would bring here, it cannot change the schema,
 * attach a file or switch a protection off. */
static int
authorize(
    void *ctx, int action, const char *a, const char *b, const char *database,
    const char *trigger)
{
    (void)ctx;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_TRANSACTION:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: return strncmp(a, "sqlite_", 7) == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_FUNCTION: return strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA: return pragma_allowed(a) ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}

void
db_restrict(struct db *d)
{
    ASSERT(sqlite3_set_authorizer(d->handle, authorize, NULL) == SQLITE_OK);
}

static void
stmt_cleanup(sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
    *stmt = NULL;
}

err_t
db_script(struct db *d, const char *sql, struct error *e)
{
    while (*sql != '\0') {
        CLEANUP(stmt_cleanup) sqlite3_stmt *stmt = NULL;
        const char *rest = NULL;
        int rc = sqlite3_prepare_v2(d->handle, sql, -1, &stmt, &rest);

        if (rc != SQLITE_OK) {
            return fail(d, rc, e);
        }
        /* Nothing was left but space and comments when there is no statement. */
        for (rc = SQLITE_ROW; stmt != NULL && rc == SQLITE_ROW;) {
            rc = sqlite3_step(stmt);
        }
        if (stmt != NULL && rc != SQLITE_DONE) {
            return fail(d, rc, e);
        }
        sql = rest;
    }
    return ERR_OK;
}

static err_t
run_constant(struct db *d, const char *sql, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(d, sql, &q, e);

    return code == ERR_OK ? query_run(&q, e) : code;
}

err_t
tx_begin(struct db *d, struct tx *ret, struct error *e)
{
    err_t code = run_constant(d, "BEGIN IMMEDIATE", e);

    if (code == ERR_OK) {
        ret->db = d;
    }
    return code;
}

err_t
tx_begin_read(struct db *d, struct tx *ret, struct error *e)
{
    err_t code = run_constant(d, "BEGIN", e);

    if (code == ERR_OK) {
        ret->db = d;
    }
    return code;
}

err_t
tx_commit(struct tx *t, struct error *e)
{
    err_t code;

    ASSERT(t->db != NULL);
    code = run_constant(t->db, "COMMIT", e);
    if (code == ERR_OK) {
        t->db = NULL;
    } else {
        tx_cleanup(t);
    }
    return code;
}

void
tx_cleanup(struct tx *t)
{
    struct error ignored;

    /* SQLite rolls some failures back by itself. */
    if (t->db != NULL && sqlite3_get_autocommit(t->db->handle) == 0) {
        (void)!run_constant(t->db, "ROLLBACK", &ignored);
    }
    t->db = NULL;
}

static struct slot *
slot_of(struct db *d, const char *sql)
{
    for (size_t i = 0; i < d->slot_count; i++) {
        if (d->slots[i].sql == sql) {
            return &d->slots[i];
        }
    }
    return NULL;
}

err_t
query_open(struct db *d, const char *sql, struct query *ret, struct error *e)
{
    struct slot *slot = slot_of(d, sql);

    if (slot == NULL) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v3(d->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);

        if (rc != SQLITE_OK) {
            return fail(d, rc, e);
        }
        ASSERT(d->slot_count < SLOT_COUNT);
        slot = &d->slots[d->slot_count++];
        *slot = (struct slot){sql, stmt, false};
    }
    ASSERT(!slot->busy);
    slot->busy = true;
    *ret = (struct query){d, slot->stmt, (size_t)(slot - d->slots), SQLITE_OK};
    return ERR_OK;
}

void
query_cleanup(struct query *q)
{
    if (q->stmt != NULL) {
        query_again(q);
        q->db->slots[q->slot].busy = false;
        q->stmt = NULL;
    }
}

void
query_again(struct query *q)
{
    (void)sqlite3_reset(q->stmt);
    (void)sqlite3_clear_bindings(q->stmt);
    q->bind_error = SQLITE_OK;
}

static void
bound(struct query *q, int rc)
{
    if (rc != SQLITE_OK) {
        q->bind_error = rc;
    }
}

void
bind_i64(struct query *q, int i, int64_t v)
{
    bound(q, sqlite3_bind_int64(q->stmt, i, v));
}

void
bind_text(struct query *q, int i, const char *s)
{
    bound(q, sqlite3_bind_text(q->stmt, i, s, -1, SQLITE_STATIC));
}

void
bind_blob(struct query *q, int i, const uint8_t *p, size_t bytes)
{
    bound(q, sqlite3_bind_blob64(q->stmt, i, p, bytes, SQLITE_STATIC));
}

void
bind_hash(struct query *q, int i, const struct hash *h)
{
    bind_blob(q, i, h != NULL ? h->b : NULL, h != NULL ? sizeof h->b : 0);
}

err_t
query_row(struct query *q, bool *ret_row, struct error *e)
{
    int rc;

    ASSERT(q->db != NULL);
    if (q->bind_error != SQLITE_OK) {
        return fail(q->db, q->bind_error, e);
    }
    rc = sqlite3_step(q->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return fail(q->db, rc, e);
    }
    *ret_row = rc == SQLITE_ROW;
    return ERR_OK;
}

err_t
query_run(struct query *q, struct error *e)
{
    bool row = false;
    err_t code = query_row(q, &row, e);

    ASSERT(code != ERR_OK || !row);
    return code;
}

err_t
query_need(struct query *q, const char *what, struct error *e)
{
    bool row = false;
    err_t code = query_row(q, &row, e);

    if (code == ERR_OK && !row) {
        return error_set(e, ERR_CORRUPT, "the database is damaged: %s is missing", what);
    }
    return code;
}

bool
col_null(const struct query *q, int i)
{
    return sqlite3_column_type(q->stmt, i) == SQLITE_NULL;
}

int64_t
col_i64(const struct query *q, int i)
{
    return sqlite3_column_int64(q->stmt, i);
}

const char *
col_str(const struct query *q, int i)
{
    const unsigned char *s = sqlite3_column_text(q->stmt, i);

    return s != NULL ? (const char *)s : "";
}

const uint8_t *
col_blob(const struct query *q, int i, size_t *ret_bytes)
{
    const void *p = sqlite3_column_blob(q->stmt, i);

    *ret_bytes = (size_t)sqlite3_column_bytes(q->stmt, i);
    return p;
}

err_t
col_text(const struct query *q, int i, char *ret, size_t bytes, struct error *e)
{
    const char *s = col_str(q, i);
    size_t n = strlen(s);

    if (n >= bytes || n != (size_t)sqlite3_column_bytes(q->stmt, i)) {
        return error_set(
            e, ERR_CORRUPT, "the database is damaged: the value of %s is too long",
            sqlite3_column_name(q->stmt, i));
    }
    memcpy(ret, s, n + 1);
    return ERR_OK;
}

err_t
col_hash(const struct query *q, int i, struct hash *ret, struct error *e)
{
    size_t n;
    const uint8_t *p = col_blob(q, i, &n);

    if (p == NULL || n != sizeof ret->b) {
        return error_set(
            e, ERR_CORRUPT, "the database is damaged: %s is no hash",
            sqlite3_column_name(q->stmt, i));
    }
    memcpy(ret->b, p, n);
    return ERR_OK;
}

int64_t
db_last_rowid(const struct db *d)
{
    return sqlite3_last_insert_rowid(d->handle);
}
