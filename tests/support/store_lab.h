/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of its own, and objects to put into it. What fails here aborts. */
#ifndef LOCKSTEP_SUPPORT_STORE_LAB_H
#define LOCKSTEP_SUPPORT_STORE_LAB_H

#include "store/db.h"
#include "store/store.h"

#define LAB_DIR_BYTES 64

struct lab {
    char parent[LAB_DIR_BYTES]; /* made by lab_init */
    char dir[LAB_DIR_BYTES];    /* the data directory, made by store_open */
    struct clock clock;
    int64_t now_ms;
    struct store *store;
};

void lab_init(struct lab *l);
void lab_open(struct lab *l);
void lab_close(struct lab *l);
void lab_reopen(struct lab *l);
void lab_fini(struct lab *l); /* closes and removes everything */
/* Path of a file in the data directory. */
void lab_path(const struct lab *l, const char *name, struct buf *out);
/* Another connection to the database, without the store's restrictions. */
struct db *lab_raw(const struct lab *l);
void lab_script(const struct lab *l, const char *sql);
int64_t lab_number(const struct lab *l, const char *sql);

struct snapshot *lab_shared(struct lab *l);
struct snapshot *lab_local(struct lab *l);
/* Server number n, by default named "web<n>". */
struct object *lab_server(unsigned n, const char *name, int port);
/* Pool number n with the given servers of now as members. */
struct object *
lab_pool(unsigned n, const struct snapshot *now, const char *const *servers, size_t count);
/* A certificate with a fresh key; *key_line: a line of the key's text. */
struct object *lab_certificate(unsigned n, struct buf *key_line);
struct object *lab_admin(unsigned n);                     /* its password holds "SENTINEL" */
struct object *lab_key(unsigned n, const char *key_hash); /* 64 hex digits */
void lab_id(unsigned n, char ret[OBJECT_ID_BYTES]);
/* from with o put in (takes over the reference). */
struct snapshot *lab_with(const struct snapshot *from, struct object *o);
struct snapshot *lab_without(const struct snapshot *from, enum kind kind, const char *name);
bool lab_equal(const struct snapshot *a, const struct snapshot *b);
/* Commits, and aborts when it fails. */
struct commit
lab_commit(struct lab *l, const struct snapshot *shared_to, const struct snapshot *local_to);
struct commit_request lab_request(
    const struct lab *l, const struct snapshot *shared_to, const struct snapshot *local_to);

#endif
