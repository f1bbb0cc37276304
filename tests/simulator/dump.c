/* SPDX-License-Identifier: Apache-2.0 */
/* What a node holds: compared around what must leave no trace, and searched for what is another
 * node's. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/inner.h"
#include "store/inner.h"
#include "tests/simulator/sim.h"

#define PATH_BYTES 512
#define FILE_BYTES ((size_t)64 << 20)

/* What a row says of a generation that was staged, and its number, are no configuration: a
 * check that refuses is noted there. */
#define META_COLUMNS                                                                           \
    "one, head_seq, local_rev, local_schema_version, local_fp, key_check, node_id"

static const char *const tables[] = {
    "SELECT * FROM body",
    "SELECT * FROM shared_object",
    "SELECT * FROM shared_ref",
    "SELECT * FROM shared_unique",
    "SELECT * FROM local_object",
    "SELECT * FROM local_ref",
    "SELECT * FROM local_unique",
    "SELECT * FROM commit_log",
    "SELECT * FROM commit_parent",
    "SELECT * FROM commit_entry",
    "SELECT * FROM commit_full",
    "SELECT * FROM draft",
    "SELECT * FROM session",
    "SELECT * FROM audit",
    "SELECT * FROM waiting",
    "SELECT * FROM discarded",
    "SELECT * FROM member",
    "SELECT * FROM former_key",
    "SELECT " META_COLUMNS " FROM meta",
};

#define COUNT_TABLES "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
#define TABLES       (ARRAY_LEN(tables) + 1) /* generation is left out */

/* ---- every row ---- */

typedef void (*cell_fn)(void *ctx, const uint8_t *bytes, size_t count);

struct looking {
    cell_fn fn;
    void *ctx;
};

static err_t
look_at_table(struct db *db, const char *sql, const struct looking *l, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = true;
    err_t code = query_open(db, sql, &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        for (int i = 0; i < sqlite3_column_count(q.stmt); i++) {
            size_t count = 0;
            const uint8_t *bytes = col_blob(&q, i, &count);

            l->fn(l->ctx, bytes, count);
        }
    }
    return code;
}

static err_t
read_number(struct db *db, const char *sql, int64_t *ret, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(db, sql, &q, e);

    if (code == ERR_OK) {
        code = query_need(&q, sql, e);
    }
    *ret = code == ERR_OK ? col_i64(&q, 0) : 0;
    return code;
}

static err_t
look(struct db *db, cell_fn fn, void *ctx, struct error *e)
{
    struct looking l = {fn, ctx};
    int64_t count = 0;
    err_t code = read_number(db, COUNT_TABLES, &count, e);

    if (code == ERR_OK && count != (int64_t)TABLES) {
        sim_fail("the database has tables that dump.c does not look at");
    }
    for (size_t i = 0; i < ARRAY_LEN(tables) && code == ERR_OK; i++) {
        code = look_at_table(db, tables[i], &l, e);
    }
    return code;
}

/* ---- compared ---- */

static void
must(size_t i, err_t code, const struct error *e)
{
    if (code != ERR_OK) {
        sim_fail("%s: %s", sim.nodes[i].name, e->msg);
    }
}

static void
add_cell(void *ctx, const uint8_t *bytes, size_t count)
{
    sha256_add(ctx, &count, sizeof count);
    if (count > 0) {
        sha256_add(ctx, bytes, count);
    }
}

static struct hash
dump(size_t i, struct db *db)
{
    struct sha256 *h = sha256_new();
    struct error e;

    must(i, look(db, add_cell, h, &e), &e);
    return sha256_end(&h);
}

static int64_t
version_of(size_t i)
{
    struct error e;
    int64_t version = 0;

    must(i, read_number(sim.nodes[i].newest, "PRAGMA data_version", &version, &e), &e);
    return version;
}

static void
open_readers(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    char path[PATH_BYTES];
    struct error e;

    if (n->steady == NULL) {
        (void)snprintf(path, sizeof path, "%s/data/" STORE_DB_NAME, n->lab->fake.state_dir);
        must(i, db_open(path, &n->steady, &e), &e);
        must(i, db_open(path, &n->newest, &e), &e);
    }
}

void
sim_readers_close(size_t i)
{
    struct sim_node *n = &sim.nodes[i];

    db_close(TAKE(n->steady));
    db_close(TAKE(n->newest));
}

void
sim_before(size_t i, struct sim_before *ret)
{
    struct fake_facts facts = fake_look(&sim.nodes[i].lab->fake);
    int64_t unused;
    struct error e;

    open_readers(i);
    *ret = (struct sim_before){.head = sim_head(i).id, .version = version_of(i)};
    memcpy(ret->running, facts.running, sizeof ret->running);
    must(i, tx_begin_read(sim.nodes[i].steady, &ret->tx, &e), &e);
    /* Its view is that of its first statement. */
    must(i, read_number(sim.nodes[i].steady, COUNT_TABLES, &unused, &e), &e);
}

void
sim_before_end(struct sim_before *b)
{
    tx_cleanup(&b->tx);
}

bool
sim_is_as_before(size_t i, const struct sim_before *b, bool tried)
{
    struct fake_facts facts = fake_look(&sim.nodes[i].lab->fake);
    struct hash head = sim_head(i).id, before, after;

    if (!hash_equal(&head, &b->head) || (!tried && strcmp(facts.running, b->running) != 0)) {
        return false;
    }
    if (version_of(i) == b->version) {
        return true;
    }
    before = dump(i, sim.nodes[i].steady);
    after = dump(i, sim.nodes[i].newest);
    return hash_equal(&before, &after);
}

/* ---- searched ---- */

/* The node whose text is looked at. Its own marker may be there. */
static void
look_at_text(void *ctx, const uint8_t *bytes, size_t count)
{
    const struct sim_node *own = ctx;
    const uint8_t *at = bytes;
    const size_t marker = strlen(SIM_MARKER), name = strlen(own->name);

    while (count > 0 &&
           (at = memmem(at, count - (size_t)(at - bytes), SIM_MARKER, marker)) != NULL) {
        at += marker;
        /* What is left of a page that was used again may end in the middle. */
        if (count - (size_t)(at - bytes) >= name && at[0] == (uint8_t)own->name[0] &&
            at[1] >= '1' && at[1] <= '9' && memcmp(at, own->name, name) != 0) {
            sim_fail("a local value of another node is on %s", own->name);
        }
    }
}

static err_t
look_at_body(struct engine *en, const struct query *q, void *own, struct error *e)
{
    struct body_key key;
    char any[OBJECT_ID_BYTES];
    struct object *o = NULL;
    err_t code = kind_of_row(col_str(q, 1), &key.kind, e);

    object_new_id(any);
    if (code == ERR_OK) {
        key.id = schema_kind(key.kind)->singleton ? schema_kind(key.kind)->name : any;
        code = col_hash(q, 0, &key.objhash, e);
    }
    if (code == ERR_OK) {
        code = body_object(en->store, q, 2, &key, &o, e);
    }
    if (code == ERR_OK) {
        look_at_text(own, (const uint8_t *)o->canonical, o->canonical_len);
        object_unref(o);
    }
    return code;
}

/* They are compressed, and sealed where they have a secret. */
static err_t
look_at_bodies(struct engine *en, void *own, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = true;
    err_t code = query_open(en->store->db, "SELECT objhash, kind, form, data FROM body", &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        code = look_at_body(en, &q, own, e);
    }
    return code;
}

static void
look_at_file(const struct sim_node *n, const char *path)
{
    CLEANUP(buf_fini) struct buf bytes;
    struct error e;

    buf_init(&bytes, FILE_BYTES);
    if (file_read_at(AT_FDCWD, path, &bytes, &e) != ERR_OK) {
        sim_fail("%s", e.msg);
    }
    look_at_text((void *)(uintptr_t)n, (const uint8_t *)bytes.data, bytes.len);
}

static void
look_at_folder(const struct sim_node *n, const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    if (dir == NULL) {
        sim_fail("%s cannot be read", path);
    }
    while ((entry = readdir(dir)) != NULL) {
        char below[PATH_BYTES];

        (void)snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_REG) {
            look_at_file(n, below);
        } else if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            look_at_folder(n, below);
        }
    }
    (void)closedir(dir);
}

static void
look_at_answers(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    CLEANUP(buf_fini) struct buf text;
    json_t *j = cluster_json(n->cluster);

    buf_init(&text, FILE_BYTES);
    json_canonical(j, &text);
    json_decref(j);
    look_at_text(n, (const uint8_t *)text.data, text.len);
}

void
sim_look_for_strangers(size_t i)
{
    struct sim_node *n = &sim.nodes[i];
    char path[PATH_BYTES];
    struct error e;

    open_readers(i);
    must(i, look(n->newest, look_at_text, n, &e), &e);
    must(i, engine_run(n->lab->en, look_at_bodies, n, &e), &e);
    (void)snprintf(path, sizeof path, "%s", n->lab->fake.state_dir);
    look_at_folder(n, path);
    look_at_answers(i);
}
