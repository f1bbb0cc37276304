/* SPDX-License-Identifier: Apache-2.0 */
#include "store/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "store/db.h"

#define PATH_MAX_BYTES ((size_t)4096)

err_t
migrate_version(struct db *d, int64_t *ret, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(d, "PRAGMA user_version", &q, e);

    if (code == ERR_OK) {
        code = query_need(&q, "its version", e);
    }
    if (code == ERR_OK) {
        *ret = col_i64(&q, 0);
    }
    return code;
}

static err_t
vacuum_into(struct db *d, const char *path, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(d, "VACUUM INTO ?", &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, path);
    return query_run(&q, e);
}

/* VACUUM INTO does not sync what it writes. */
static err_t
sync_file(int dir, const char *name, struct error *e)
{
    CLEANUP(fd_cleanup) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot sync %s", name);
    }
    return ERR_OK;
}

/* Under another name until it is complete. */
static err_t
back_up(struct db *d, const struct migrate_plan *plan, int version, struct error *e)
{
    static const char unfinished[] = "lockstep.db.before.new";
    CLEANUP(buf_fini) struct buf path = {.max = PATH_MAX_BYTES};
    CLEANUP(buf_fini) struct buf name = {.max = PATH_MAX_BYTES};
    CLEANUP(fd_cleanup) int dir = -1;
    err_t code;

    buf_printf(&path, "%s/%s", plan->data_dir, unfinished);
    buf_printf(&name, "lockstep.db.before-%04d", version);
    code = buf_status(&path, e);
    if (code == ERR_OK) {
        code = file_open_dir_at(AT_FDCWD, plan->data_dir, &dir, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (unlinkat(dir, unfinished, 0) != 0 && errno != ENOENT) {
        return error_errno(e, ERR_IO, errno, "cannot remove %s", unfinished);
    }
    /* SQLite would make the file readable by everybody; an empty one it takes as it is. */
    code = file_create_at(dir, unfinished, "", 0, 0600, e);
    if (code == ERR_OK) {
        code = vacuum_into(d, buf_str(&path), e);
    }
    if (code == ERR_OK) {
        code = sync_file(dir, unfinished, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (renameat(dir, unfinished, dir, buf_str(&name)) != 0 || fsync(dir) != 0) {
        return error_errno(e, ERR_IO, errno, "cannot rename %s", unfinished);
    }
    return ERR_OK;
}

static err_t
check_references(struct db *d, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    bool broken = false;
    err_t code = query_open(d, "PRAGMA foreign_key_check", &q, e);

    if (code == ERR_OK) {
        code = query_row(&q, &broken, e);
    }
    if (code == ERR_OK && broken) {
        return error_set(e, ERR_CORRUPT, "a row of table %s refers to nothing", col_str(&q, 0));
    }
    return code;
}

static err_t
run_one(struct db *d, const struct migration *m, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    int64_t version = 0;
    err_t code = tx_begin(d, &t, e);

    if (code == ERR_OK) {
        code = db_script(d, m->sql, e);
    }
    if (code == ERR_OK) {
        code = migrate_version(d, &version, e);
    }
    if (code == ERR_OK && version != m->version) {
        return error_set(e, ERR_INTERNAL, "it leaves version %lld behind", (long long)version);
    }
    if (code == ERR_OK) {
        code = check_references(d, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    crashpoint("migrate_before_commit");
    return tx_commit(&t, e);
}

err_t
migrate_run(struct db *d, const struct migrate_plan *plan, struct error *e)
{
    int64_t version = 0;
    err_t code = migrate_version(d, &version, e);
    bool is_new = version == 0; /* there is nothing to keep */

    for (size_t i = 0; code == ERR_OK && i < plan->count; i++) {
        const struct migration *m = &plan->list[i];

        if (m->version <= version) {
            continue;
        }
        if (!is_new) {
            code = back_up(d, plan, m->version, e);
        }
        if (code == ERR_OK) {
            code = run_one(d, m, e);
        }
        if (code != ERR_OK) {
            return error_wrap(e, "migration %04d (%s)", m->version, m->name);
        }
        version = m->version;
    }
    return code;
}
