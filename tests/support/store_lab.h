/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of its own, and objects to put into it. What fails here aborts. */
#ifndef LOCKSTEP_SUPPORT_STORE_LAB_H
#define LOCKSTEP_SUPPORT_STORE_LAB_H

#include "store/db.h"
#include "store/store.h"

#define STORE_LAB_DIR_BYTES 64

struct store_lab {
    char parent[STORE_LAB_DIR_BYTES]; /* made by store_lab_init */
    char dir[STORE_LAB_DIR_BYTES];    /* the data directory, made by store_open */
    struct clock clock;
    int64_t now_ms;
    struct store *store;
};

void store_lab_init(struct store_lab *l); /* in memory if that is possible: no slow syncs */
void store_lab_init_in(struct store_lab *l, const char *folder);
void store_lab_open(struct store_lab *l);
void store_lab_close(struct store_lab *l);
void store_lab_reopen(struct store_lab *l);
void store_lab_fini(struct store_lab *l); /* closes and removes everything */
/* For cmocka: *state is a lab with an open store. */
int store_lab_setup(void **state);
int store_lab_teardown(void **state);
#define STORE_LAB_TEST(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, store_lab_setup, store_lab_teardown)
/* Path of a file in the data directory. */
void store_lab_path(const struct store_lab *l, const char *name, struct buf *out);
/* Another connection to the database, without the store's restrictions. */
struct db *store_lab_raw(const struct store_lab *l);
void store_lab_script(const struct store_lab *l, const char *sql);
int64_t store_lab_number(const struct store_lab *l, const char *sql);

struct snapshot *store_lab_shared(struct store_lab *l);
struct snapshot *store_lab_local(struct store_lab *l);
/* Server number n, by default named "web<n>". */
struct object *store_lab_server(unsigned n, const char *name, int port);
/* Pool number n with the given servers of now as members. */
struct object *store_lab_pool(
    unsigned n, const struct snapshot *now, const char *const *servers, size_t count);
/* A certificate with a fresh key; *key_line: a line of the key's text. */
struct object *store_lab_certificate(unsigned n, struct buf *key_line);
struct object *store_lab_admin(unsigned n); /* its password holds "SENTINEL" */
struct object *store_lab_key(unsigned n, const char *key_hash); /* 64 hex digits */
void store_lab_id(unsigned n, char ret[OBJECT_ID_BYTES]);
/* from with o put in (takes over the reference). */
struct snapshot *store_lab_with(const struct snapshot *from, struct object *o);
struct snapshot *
store_lab_without(const struct snapshot *from, enum kind kind, const char *name);
bool store_lab_equal(const struct snapshot *a, const struct snapshot *b);
/* One row into the draft. */
MUST_USE err_t
store_lab_draft_put(struct store_lab *l, const struct draft_row *row, struct error *e);
/* Commits, and aborts when it fails. */
struct commit store_lab_commit(
    struct store_lab *l, const struct snapshot *shared_to, const struct snapshot *local_to);
struct commit_request store_lab_request(
    const struct store_lab *l, const struct snapshot *shared_to,
    const struct snapshot *local_to);

#endif
