/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "store/container.h"
#include "store/content.h"
#include "store/members.h"

static err_t
check_file(const struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query pages = {0};
    CLEANUP(query_cleanup) struct query refs = {0};
    bool broken = false;
    err_t code = query_open(s->db, "PRAGMA integrity_check", &pages, e);

    if (code == ERR_OK) {
        code = query_need(&pages, "the answer of integrity_check", e);
    }
    if (code == ERR_OK && strcmp(col_str(&pages, 0), "ok") != 0) {
        return error_set(e, ERR_CORRUPT, "%s", col_str(&pages, 0));
    }
    if (code == ERR_OK) {
        code = query_open(s->db, "PRAGMA foreign_key_check", &refs, e);
    }
    if (code == ERR_OK) {
        code = query_row(&refs, &broken, e);
    }
    if (code == ERR_OK && broken) {
        return error_set(
            e, ERR_CORRUPT, "a row of table %s refers to nothing", col_str(&refs, 0));
    }
    return code;
}

/* -- history */

static err_t
check_parents(const struct store *s, int64_t seq, const struct commit *c, struct error *e)
{
    static const char sql[] =
        "SELECT coalesce(max(l.rev), 0), coalesce(max(l.seq), 0) FROM commit_parent p "
        "JOIN commit_log l ON l.seq = p.parent_seq WHERE p.seq = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    code = query_need(&q, "the parents of a commit", e);
    if (code == ERR_OK && (col_i64(&q, 0) + 1 != c->rev || col_i64(&q, 1) >= seq)) {
        return error_set(
            e, ERR_CORRUPT, "revision %lld does not follow from its parents",
            (long long)c->rev);
    }
    return code;
}

static err_t
check_commits(const struct store *s, int64_t *io_checked, struct error *e)
{
    static const char sql[] = "SELECT " COMMIT_COLUMNS " FROM commit_log ORDER BY seq";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct commit c;
        struct hash id;
        int64_t seq;

        code = history_row(s, &q, &seq, &c, e);
        if (code != ERR_OK) {
            return code;
        }
        id = commit_compute_id(&c);
        if (!hash_equal(&id, &c.id)) {
            return error_set(
                e, ERR_CORRUPT,
                "revision %lld (row %lld): its id does not follow "
                "from its content",
                (long long)c.rev, (long long)seq);
        }
        code = check_parents(s, seq, &c, e);
        (*io_checked)++;
    }
    return code;
}

/* own: see content_fp. */
static err_t
check_index(
    const struct store *s, int64_t seq, const struct commit *c, bool own, struct error *e)
{
    struct hash fp;
    err_t code = content_fp(s, seq, own, c->schema_version, &fp, e);

    if (code == ERR_OK && !hash_equal(&fp, &c->fp)) {
        return error_set(
            e, ERR_CORRUPT, "%s of revision %lld do not give its fingerprint",
            own ? "the objects" : "the changes", (long long)c->rev);
    }
    return code;
}

static err_t
check_one_index(const struct store *s, int64_t seq, const struct commit *c, struct error *e)
{
    bool behind = false;
    err_t code = check_index(s, seq, c, true, e);

    if (code == ERR_OK) {
        code = content_is_kept(s, seq, false, &behind, e);
    }
    return code == ERR_OK && behind ? check_index(s, seq, c, false, e) : code;
}

/* The full indexes that are there, the head, and the ends of discarded branches. */
static err_t
check_indexes(const struct store *s, struct error *e)
{
    static const char sql[] =
        "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE "
        "has_full AND EXISTS (SELECT 1 FROM commit_full f WHERE f.seq = commit_log.seq) "
        "OR seq = (SELECT head_seq FROM meta) "
        "OR (kept AND seq IN (SELECT seq FROM discarded)) ORDER BY seq";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct commit c;
        int64_t seq;

        code = history_row(s, &q, &seq, &c, e);
        if (code == ERR_OK) {
            code = check_one_index(s, seq, &c, e);
        }
    }
    return code;
}

/* -- bodies */

static err_t
check_bodies(const struct store *s, int64_t *io_checked, struct error *e)
{
    static const char sql[] =
        "SELECT kind, objhash, form, data FROM body ORDER BY objhash, kind";
    CLEANUP(query_cleanup) struct query q = {0};
    char hex[SHA256_HEX + 1];
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct body_key key = {.id = hex};

        code = kind_of_row(col_str(&q, 0), &key.kind, e);
        if (code == ERR_OK) {
            code = col_hash(&q, 1, &key.objhash, e);
        }
        if (code != ERR_OK) {
            return code;
        }
        hash_hex(&key.objhash, hex);
        code = body_verify(s, &q, 2, &key, e);
        (*io_checked)++;
    }
    return code == ERR_OK ? prune_check(s, e) : code;
}

/* -- containers: their rows against what the bodies say */

static err_t
differs(const struct object *o, const char *what, struct error *e)
{
    return error_set(
        e, ERR_CORRUPT, "%s %s: the stored %s", schema_kind(o->kind)->name, o->name.s, what);
}

static bool
row_is_of(const struct query *q, const struct object *o)
{
    return strcmp(col_str(q, 0), schema_kind(o->kind)->name) == 0 &&
           strcmp(col_str(q, 1), o->id) == 0;
}

/* A table that has one row an object: kind, id, name. */
static err_t
check_names(
    const struct store *s, const char *sql, const struct snapshot *objects, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    size_t count = snapshot_count(objects);
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        const struct object *o = snapshot_at(objects, i);

        code = query_row(&q, &row, e);
        if (code == ERR_OK &&
            (!row || !row_is_of(&q, o) || strcmp(col_str(&q, 2), o->name.s) != 0)) {
            return differs(o, "name is another", e);
        }
    }
    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code == ERR_OK && row) {
        return error_set(
            e, ERR_CORRUPT, "a name is kept for %s %s, which is not there", col_str(&q, 0),
            col_str(&q, 1));
    }
    return code;
}

static err_t
check_refs_of(struct query *q, const struct object *o, struct error *e)
{
    CLEANUP(ref_list_fini) struct ref_list refs = {0};
    bool row = false;

    ref_list_of(o, &refs);
    for (size_t i = 0; i < refs.count; i++) {
        const struct ref_row *r = &refs.items[i];
        err_t code = query_row(q, &row, e);

        if (code != ERR_OK) {
            return code;
        }
        if (!row || !row_is_of(q, o) || strcmp(col_str(q, 2), r->pointer) != 0 ||
            strcmp(col_str(q, 3), schema_kind(r->kind)->name) != 0 ||
            strcmp(col_str(q, 4), r->id) != 0) {
            return differs(o, "references are others", e);
        }
    }
    return ERR_OK;
}

static err_t
check_refs(
    const struct store *s, enum scope scope, const struct snapshot *objects, struct error *e)
{
    static const char *const sql[] = PER_SCOPE(
        "SELECT kind, id, pointer, to_kind, to_id FROM ", "_ref ORDER BY kind, id, pointer");
    CLEANUP(query_cleanup) struct query q = {0};
    size_t count = snapshot_count(objects);
    bool row = false;
    err_t code = query_open(s->db, sql[scope], &q, e);

    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        code = check_refs_of(&q, snapshot_at(objects, i), e);
    }
    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code == ERR_OK && row) {
        return error_set(
            e, ERR_CORRUPT, "a reference is kept for %s %s, which has none", col_str(&q, 0),
            col_str(&q, 1));
    }
    return code;
}

static err_t
check_container(const struct store *s, enum scope scope, int64_t *io_checked, struct error *e)
{
    static const char *const object_sql[] =
        PER_SCOPE("SELECT kind, id, name FROM ", "_object ORDER BY kind, id");
    static const char *const unique_sql[] = PER_SCOPE(
        "SELECT kind, id, value FROM ", "_unique WHERE field = 'name' ORDER BY kind, id");
    CLEANUP(snapshot_cleanup) struct snapshot *objects = NULL;
    err_t code = load_container(s, scope, &objects, e);

    if (code == ERR_OK) {
        code = check_names(s, object_sql[scope], objects, e);
    }
    if (code == ERR_OK) {
        code = check_names(s, unique_sql[scope], objects, e);
    }
    if (code == ERR_OK) {
        code = check_refs(s, scope, objects, e);
    }
    if (code == ERR_OK) {
        *io_checked += (int64_t)snapshot_count(objects);
        code = load_check_fp(s, scope, objects, e);
    }
    return code;
}

static err_t
check_members(struct store *s, int64_t *io_checked, struct error *e)
{
    CLEANUP(xfree_cleanup) struct member *members = NULL;
    size_t count = 0;
    err_t code = store_members(s, &members, &count, e);

    if (code == ERR_OK && count > 0) {
        crypt_wipe(members, count * sizeof *members);
        *io_checked += (int64_t)count;
    }
    if (code == ERR_OK) {
        struct former_key former;

        code = store_former_key(s, &former, e);
        crypt_wipe(former.key, sizeof former.key);
    }
    return code;
}

err_t
store_verify(struct store *s, int64_t *ret_checked, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    int64_t checked = 0;
    err_t code;

    store_enter(s);
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = check_file(s, e);
    }
    if (code == ERR_OK) {
        code = check_commits(s, &checked, e);
    }
    if (code == ERR_OK) {
        code = check_bodies(s, &checked, e);
    }
    if (code == ERR_OK) {
        code = check_container(s, SCOPE_SHARED, &checked, e);
    }
    if (code == ERR_OK) {
        code = check_container(s, SCOPE_LOCAL, &checked, e);
    }
    if (code == ERR_OK) {
        code = check_indexes(s, e);
    }
    if (code == ERR_OK) {
        code = check_members(s, &checked, e);
    }
    if (code == ERR_OK) {
        *ret_checked = checked;
    }
    return code;
}
