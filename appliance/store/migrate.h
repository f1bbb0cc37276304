/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the database, forward only. */
#ifndef LOCKSTEP_STORE_MIGRATE_H
#define LOCKSTEP_STORE_MIGRATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct db;

/* sql ends with its own "PRAGMA user_version". */
struct migration {
    int version; /* 1, 2, ... without a gap */
    const char *name;
    const char *sql;
};

/* Generated from the files of migrations/. */
extern const struct migration migrations[];
extern const size_t migration_count;

/* A list of migrations and the directory of the database. */
struct migrate_plan {
    const struct migration *list;
    size_t count;
    const char *data_dir;
};

MUST_USE err_t migrate_version(struct db *d, int64_t *ret, struct error *e);
/* Brings d to the newest version, one transaction a migration. Before each, unless the
 * database is empty, a copy lockstep.db.before-NNNN (NNNN: the version that follows) is made.
 * ERR_CORRUPT when references are broken afterwards: then that migration has not happened. */
MUST_USE err_t migrate_run(struct db *d, const struct migrate_plan *plan, struct error *e);

#endif
