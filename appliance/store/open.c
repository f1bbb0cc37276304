/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "store/inner.h"
#include "store/migrate.h"

#define PATH_MAX_BYTES ((size_t)4096)
#define NODE_ID_RANDOM 16 /* bytes */
/* The database of a first start until it is complete. */
#define NEW_NAME STORE_DB_NAME ".new"
#define ADVICE   "restore it from a backup; HAProxy keeps serving its last configuration"

/* Header of an SQLite file (https://www.sqlite.org/fileformat.html, section 1.3). */
#define HEADER_BYTES          100
#define HEADER_USER_VERSION   60
#define HEADER_APPLICATION_ID 68
static const char header_magic[16] = "SQLite format 3";

static int64_t
newest_version(void)
{
    return migrations[migration_count - 1].version;
}

static err_t
check_version(int64_t application_id, int64_t version, struct error *e)
{
    if (application_id != STORE_APPLICATION_ID || version < 1) {
        return error_set(e, ERR_CORRUPT, "it is no database of Lockstep");
    }
    if (version > newest_version()) {
        return error_set(
            e, ERR_CORRUPT,
            "a newer release wrote it (schema %lld, this release knows %lld): start that "
            "release; nothing was changed",
            (long long)version, (long long)newest_version());
    }
    return ERR_OK;
}

static int64_t
big_endian(const uint8_t *p)
{
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
}

/* A look that writes nothing, before SQLite opens the file. It is closed again first, since
 * closing it later would drop SQLite's locks. */
static err_t
check_header(int dir, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = -1;
    uint8_t h[HEADER_BYTES];
    struct stat st;
    err_t code;

    fd = openat(dir, STORE_DB_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot open it");
    }
    if (!S_ISREG(st.st_mode) || pread(fd, h, sizeof h, 0) != (ssize_t)sizeof h ||
        memcmp(h, header_magic, sizeof header_magic) != 0) {
        return error_set(e, ERR_CORRUPT, "it is no database");
    }
    code = check_version(
        big_endian(h + HEADER_APPLICATION_ID), big_endian(h + HEADER_USER_VERSION), e);
    if (code == ERR_OK && (st.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot set its mode to 0600");
    }
    return code;
}

/* As check_header, with what the write-ahead log may hold. */
static err_t
check_open_version(struct db *d, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t version = 0;
    err_t code = migrate_version(d, &version, e);

    if (code == ERR_OK) {
        code = query_open(d, "PRAGMA application_id", &q, e);
    }
    if (code == ERR_OK) {
        code = query_need(&q, "its application id", e);
    }
    return code == ERR_OK ? check_version(col_i64(&q, 0), version, e) : code;
}

/* Of what quick_check found the first: lines follow one another, and the one that leads them
 * only names the database. */
static struct text
first_damage(const char *found)
{
    const char *end = strchr(found, '\n');

    if (end != NULL && strncmp(found, "***", 3) == 0) {
        found = end + 1;
    }
    return (struct text){found, (uint32_t)strcspn(found, "\n")};
}

static err_t
check_pages(struct db *d, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    struct error why = {0};
    err_t code = query_open(d, "PRAGMA quick_check", &q, &why);

    if (code == ERR_OK) {
        code = query_need(&q, "the answer of quick_check", &why);
    }
    if (code == ERR_OK && strcmp(col_str(&q, 0), "ok") != 0) {
        struct text damage = first_damage(col_str(&q, 0));

        code = error_set(&why, ERR_CORRUPT, "%.*s", (int)damage.len, damage.s);
    }
    if (code == ERR_CORRUPT) {
        return error_set(
            e, ERR_CORRUPT,
            "it is damaged (%.70s): restore it and " KEY_NAME " from a backup and remove its "
            "-wal file; HAProxy keeps serving",
            why.msg);
    }
    return code == ERR_OK ? ERR_OK : error_set(e, code, "%s", why.msg);
}

static err_t
check_key(const struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    const uint8_t *sealed;
    size_t bytes;
    err_t code = query_open(s->db, "SELECT key_check FROM meta WHERE one = 1", &q, e);

    if (code == ERR_OK) {
        code = query_need(&q, "the row of meta", e);
    }
    if (code != ERR_OK) {
        return code;
    }
    sealed = col_blob(&q, 0, &bytes);
    return key_check(s->key, sealed, bytes, e);
}

static err_t
open_file(struct store *s, const char *data_dir, struct error *e)
{
    const struct migrate_plan plan = {migrations, migration_count, data_dir};
    CLEANUP(buf_fini) struct buf path = {.max = PATH_MAX_BYTES};
    err_t code;

    buf_printf(&path, "%s/" STORE_DB_NAME, data_dir);
    code = buf_status(&path, e);
    if (code == ERR_OK) {
        code = db_open(buf_str(&path), &s->db, e);
    }
    if (code == ERR_OK) {
        code = check_open_version(s->db, e);
    }
    if (code == ERR_OK) {
        code = check_pages(s->db, e);
    }
    if (code == ERR_OK) {
        code = check_key(s, e);
    }
    if (code == ERR_OK) {
        code = db_use(s->db, true, e);
    }
    if (code == ERR_OK) {
        code = migrate_run(s->db, &plan, e);
    }
    if (code == ERR_OK) {
        db_restrict(s->db);
    }
    return code;
}

/* -- first start */

static err_t
insert_meta(struct store *s, struct error *e)
{
    static const char sql[] =
        "INSERT INTO meta (one, head_seq, local_rev, local_schema_version, local_fp, "
        "last_generation, key_check, node_id) VALUES (1, NULL, 0, ?, ?, 0, ?, ?)";
    CLEANUP(buf_fini) struct buf sealed = {.max = 128};
    CLEANUP(buf_fini) struct buf node_id = {.max = 64};
    uint8_t random[NODE_ID_RANDOM];
    CLEANUP(query_cleanup) struct query q = {0};
    struct hash fp = snapshot_fp(s->local, SCHEMA_VERSION);
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    key_seal_check(s->key, &sealed);
    crypt_random(random, sizeof random);
    hex_put(&node_id, random, sizeof random);
    bind_i64(&q, 1, SCHEMA_VERSION);
    bind_hash(&q, 2, &fp);
    bind_blob(&q, 3, (const uint8_t *)sealed.data, sealed.len);
    bind_text(&q, 4, buf_str(&node_id));
    return query_run(&q, e);
}

static err_t
local_named(const char *node_name, struct snapshot **ret, struct error *e)
{
    CLEANUP(snapshot_cleanup) struct snapshot *initial = snapshot_initial(SCOPE_LOCAL);
    json_auto_t *patch = json_pack("{s:s}", "name", node_name);
    struct snapshot_edit *x;
    struct object *node = NULL;
    err_t code;

    if (patch == NULL) {
        return error_set(e, ERR_INVALID, "the node's name is no UTF-8");
    }
    code = object_with(snapshot_singleton(initial, K_NODE), patch, &node, e);
    if (code != ERR_OK) {
        return error_wrap(e, "node's name");
    }
    x = snapshot_edit_new(initial);
    snapshot_edit_put(x, node);
    return snapshot_seal(x, ret, e);
}

static err_t
first_commit(struct store *s, const char *node_name, struct error *e)
{
    CLEANUP(snapshot_cleanup) struct snapshot *shared = snapshot_initial(SCOPE_SHARED);
    CLEANUP(snapshot_cleanup) struct snapshot *local = NULL;
    struct commit_request q = {
        .shared_to = shared,
        .node = node_name,
        .author = "lockstepd",
        .summary = "first start",
    };
    struct commit head;
    int64_t local_rev;
    err_t code = local_named(node_name, &local, e);

    if (code == ERR_OK) {
        code = snapshot_seal(snapshot_edit_new(NULL), &s->shared, e);
    }
    if (code == ERR_OK) {
        code = snapshot_seal(snapshot_edit_new(NULL), &s->local, e);
    }
    if (code == ERR_OK) {
        code = insert_meta(s, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    q.local_to = local;
    return store_commit(s, &q, &head, &local_rev, e);
}

static void
store_fini(struct store *s)
{
    snapshot_unref(s->shared);
    snapshot_unref(s->alike);
    snapshot_unref(s->local);
    db_cleanup(&s->db);
    crypt_wipe(s->key, sizeof s->key);
    s->magic = 0;
}

/* Without a write-ahead log: closed, the database is one complete file. */
static err_t
make_file(const char *path, const char *node_name, struct store *s, struct error *e)
{
    const struct migrate_plan plan = {migrations, migration_count, NULL};
    err_t code = db_open(path, &s->db, e);

    if (code == ERR_OK) {
        code = db_use(s->db, false, e);
    }
    if (code == ERR_OK) {
        code = migrate_run(s->db, &plan, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    db_restrict(s->db);
    return first_commit(s, node_name, e);
}

/* The new database becomes the database: the last step of a first start. */
static err_t
adopt_new(int dir, struct error *e)
{
    if (renameat(dir, NEW_NAME, dir, STORE_DB_NAME) != 0 || fsync(dir) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot rename " NEW_NAME);
    }
    return ERR_OK;
}

static err_t
remove_file(int dir, const char *name, struct error *e)
{
    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT) {
        return error_errno(e, ERR_IO, errno, "cannot remove %s", name);
    }
    return ERR_OK;
}

/* Order: the database complete under another name, the key, the rename. So a key always has
 * its database, and whatever step is the last one the next start goes on from there. */
static err_t
make_first(
    int dir, const char *data_dir, const char *node_name, const struct clock *clock,
    struct error *e)
{
    CLEANUP(store_fini)
    struct store s = {.magic = STORE_MAGIC, .owner = pthread_self(), .clock = clock};
    CLEANUP(buf_fini) struct buf path = {.max = PATH_MAX_BYTES};
    err_t code;

    buf_printf(&path, "%s/" NEW_NAME, data_dir);
    code = buf_status(&path, e);
    if (code == ERR_OK) {
        code = remove_file(dir, NEW_NAME, e);
    }
    if (code == ERR_OK) {
        code = remove_file(dir, NEW_NAME "-journal", e);
    }
    if (code == ERR_OK) {
        code = file_create_at(dir, NEW_NAME, "", 0, 0600, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    crypt_random(s.key, sizeof s.key);
    code = make_file(buf_str(&path), node_name, &s, e);
    if (code != ERR_OK) {
        return code;
    }
    db_cleanup(&s.db);
    crashpoint("store_first_before_key");
    code = key_write(dir, s.key, e);
    if (code != ERR_OK) {
        return code;
    }
    crashpoint("store_first_after_key");
    return adopt_new(dir, e);
}

/* -- opening */

static err_t
missing(const char *name, const char *other, const char *data_dir, struct error *e)
{
    return error_set(
        e, ERR_CORRUPT, "%s is missing in %s, where %s is: " ADVICE, name, data_dir, other);
}

/* Sees to it that database and key are both there. */
static err_t
have_files(
    int dir, const char *data_dir, const char *node_name, const struct clock *clock,
    struct error *e)
{
    bool has_db = file_exists_at(dir, STORE_DB_NAME);
    bool has_key = file_exists_at(dir, KEY_NAME);

    if (has_db && has_key) {
        return ERR_OK;
    }
    if (has_db) {
        return missing(KEY_NAME, STORE_DB_NAME, data_dir, e);
    }
    /* SQLite would mix a log that is left over into the next database. */
    if (file_exists_at(dir, STORE_DB_NAME "-wal")) {
        return missing(STORE_DB_NAME, STORE_DB_NAME "-wal", data_dir, e);
    }
    if (!has_key) {
        return make_first(dir, data_dir, node_name, clock, e);
    }
    if (file_exists_at(dir, NEW_NAME)) {
        return adopt_new(dir, e);
    }
    return missing(STORE_DB_NAME, KEY_NAME, data_dir, e);
}

static err_t
open_existing(int dir, const char *data_dir, struct store *s, struct error *e)
{
    err_t code = check_header(dir, e);

    if (code != ERR_OK) {
        return error_wrap(e, STORE_DB_NAME " in %s", data_dir);
    }
    code = key_read(dir, s->key, e);
    if (code == ERR_OK && fchmodat(dir, KEY_NAME, 0600, 0) != 0) {
        code = error_errno(e, ERR_IO, errno, "cannot set the mode of " KEY_NAME);
    }
    if (code == ERR_OK) {
        code = open_file(s, data_dir, e);
    }
    return code != ERR_OK ? error_wrap(e, STORE_DB_NAME " in %s", data_dir) : code;
}

/* *ret takes over what opened holds. */
static void
hand_out(struct store *opened, struct store **ret)
{
    *ret = xcalloc(1, sizeof **ret);
    **ret = *opened;
    crypt_wipe(opened->key, sizeof opened->key);
}

err_t
store_open(
    const char *data_dir, const char *node_name, const struct clock *clock, struct store **ret,
    struct error *e)
{
    struct store opened = {.magic = STORE_MAGIC, .owner = pthread_self(), .clock = clock};
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code = file_mkdir_at(AT_FDCWD, data_dir, 0700, e);

    if (code == ERR_OK) {
        code = file_open_dir_at(AT_FDCWD, data_dir, &dir, e);
    }
    if (code == ERR_OK) {
        code = have_files(dir, data_dir, node_name, clock, e);
    }
    if (code == ERR_OK) {
        code = open_existing(dir, data_dir, &opened, e);
    }
    if (code != ERR_OK) {
        store_fini(&opened);
        return code;
    }
    hand_out(&opened, ret);
    return ERR_OK;
}

/* The header is not looked at first: to close that look would drop the locks of the store
 * that is open in this process. */
static err_t
open_read(int dir, const char *data_dir, struct store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {.max = PATH_MAX_BYTES};
    int64_t version = 0;
    err_t code = key_read(dir, s->key, e);

    buf_printf(&path, "%s/" STORE_DB_NAME, data_dir);
    if (code == ERR_OK) {
        code = buf_status(&path, e);
    }
    if (code == ERR_OK) {
        code = db_open(buf_str(&path), &s->db, e);
    }
    if (code == ERR_OK) {
        code = check_open_version(s->db, e);
    }
    if (code == ERR_OK) {
        code = migrate_version(s->db, &version, e);
    }
    if (code == ERR_OK && version < newest_version()) {
        return error_set(
            e, ERR_UNAVAILABLE,
            "an older release wrote it (schema %lld, this release has %lld): start lockstepd, "
            "which brings it up to date",
            (long long)version, (long long)newest_version());
    }
    if (code == ERR_OK) {
        code = check_key(s, e);
    }
    if (code == ERR_OK) {
        code = db_script(s->db, "PRAGMA query_only = ON", e);
    }
    if (code == ERR_OK) {
        db_restrict(s->db);
    }
    return code;
}

err_t
store_open_read(
    const char *data_dir, const struct clock *clock, struct store **ret, struct error *e)
{
    struct store opened = {.magic = STORE_MAGIC, .owner = pthread_self(), .clock = clock};
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code = file_open_dir_at(AT_FDCWD, data_dir, &dir, e);

    if (code == ERR_OK && !file_exists_at(dir, STORE_DB_NAME)) {
        code = error_set(e, ERR_NOT_FOUND, "there is no database in %s", data_dir);
    }
    if (code != ERR_OK) {
        return code;
    }
    code = open_read(dir, data_dir, &opened, e);
    if (code != ERR_OK) {
        store_fini(&opened);
        return error_wrap(e, STORE_DB_NAME " in %s", data_dir);
    }
    hand_out(&opened, ret);
    return ERR_OK;
}

void
store_close(struct store *s)
{
    if (s == NULL) {
        return;
    }
    store_enter(s);
    store_fini(s);
    free(s);
}
