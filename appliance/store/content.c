/* SPDX-License-Identifier: Apache-2.0 */
#include "store/content.h"

#include <stdlib.h>

#include "base/arena.h"

/* The commits from ?1 back along first parents to the one with a full index, with their
 * distance. ?2 = 0: the full index of ?1 itself does not count. */
#define CHAIN                                                                                  \
    "WITH RECURSIVE chain (seq, depth, has_full) AS ("                                         \
    "SELECT seq, 0, has_full AND ?2 FROM commit_log WHERE seq = ?1 "                           \
    "UNION ALL "                                                                               \
    "SELECT l.seq, chain.depth + 1, l.has_full FROM chain "                                    \
    "JOIN commit_parent p ON p.seq = chain.seq AND p.position = 0 "                            \
    "JOIN commit_log l ON l.seq = p.parent_seq "                                               \
    "WHERE NOT chain.has_full) "
/* Of the changes to one object the nearest one holds; min() picks its row. */
#define INDEX                                                                                  \
    "(SELECT kind, id, objhash, min(depth) FROM ("                                             \
    "SELECT f.kind, f.id, f.objhash, chain.depth FROM chain "                                  \
    "JOIN commit_full f ON f.seq = chain.seq WHERE chain.has_full "                            \
    "UNION ALL "                                                                               \
    "SELECT x.kind, x.id, x.objhash, chain.depth FROM chain "                                  \
    "JOIN commit_entry x ON x.seq = chain.seq WHERE NOT chain.has_full"                        \
    ") GROUP BY kind, id) i "

err_t
content_is_kept(const struct store *s, int64_t seq, bool own, bool *ret, struct error *e)
{
    static const char own_sql[] = "SELECT kept FROM commit_log WHERE seq = ?";
    static const char behind_sql[] =
        "SELECT EXISTS (SELECT 1 FROM commit_parent p JOIN commit_log l "
        "ON l.seq = p.parent_seq WHERE p.seq = ? AND p.position = 0 AND l.kept)";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, own ? own_sql : behind_sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    code = query_need(&q, "a commit", e);
    if (code == ERR_OK) {
        *ret = col_i64(&q, 0) != 0;
    }
    return code;
}

static void
add_line(
    struct sha256 *sha, const struct query *q, struct buf *line, const struct hash *objhash)
{
    char hex[SHA256_HEX + 1];

    hash_hex(objhash, hex);
    buf_reset(line);
    buf_printf(line, "%s %s %s\n", col_str(q, 0), col_str(q, 1), hex);
    sha256_add(sha, line->data, line->len);
}

static void
sha_cleanup(struct sha256 **h)
{
    if (*h != NULL) {
        (void)sha256_end(h);
    }
}

err_t
content_fp(
    const struct store *s, int64_t seq, bool own, int schema_version, struct hash *ret,
    struct error *e)
{
    static const char sql[] = CHAIN "SELECT i.kind, i.id, i.objhash FROM " INDEX
                                    "WHERE i.objhash IS NOT NULL ORDER BY i.kind, i.id";
    CLEANUP(sha_cleanup) struct sha256 *sha = sha256_new();
    CLEANUP(buf_fini) struct buf line = {.max = 1024};
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    bind_i64(&q, 2, own ? 1 : 0);
    buf_printf(&line, "%d\n", schema_version);
    sha256_add(sha, line.data, line.len);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct hash objhash;

        code = col_hash(&q, 2, &objhash, e);
        if (code != ERR_OK) {
            return code;
        }
        add_line(sha, &q, &line, &objhash);
    }
    if (code == ERR_OK) {
        *ret = sha256_end(&sha);
    }
    return code;
}

/* The object that the head holds serves again where it is the same; else it is made from the
 * columns form, data at col, col + 1. */
static err_t
take_object(
    const struct store *s, const struct query *q, int col, const struct body_key *key,
    struct object **ret, struct error *e)
{
    const struct snapshot *alike = s->alike != NULL ? s->alike : s->shared;
    const struct object *held = NULL;

    if (alike != NULL) {
        held = snapshot_by_id(alike, key->kind, key->id);
    }
    if (held != NULL && hash_equal(&held->objhash, &key->objhash)) {
        *ret = object_ref(held);
        return ERR_OK;
    }
    return body_object(s, q, col, key, ret, e);
}

static err_t
put_object(
    const struct store *s, const struct query *q, struct snapshot_edit *x, struct error *e)
{
    struct body_key key = {.id = col_str(q, 1)};
    struct object *o = NULL;
    err_t code = kind_of_row(col_str(q, 0), &key.kind, e);

    if (code == ERR_OK) {
        code = col_hash(q, 2, &key.objhash, e);
    }
    if (code == ERR_OK) {
        code = take_object(s, q, 3, &key, &o, e);
    }
    if (code == ERR_OK) {
        snapshot_edit_put(x, o);
    }
    return code;
}

static err_t
read_content(
    const struct store *s, int64_t seq, int64_t rev, struct snapshot **ret, struct error *e)
{
    static const char sql[] =
        CHAIN "SELECT i.kind, i.id, i.objhash, b.form, b.data FROM " INDEX
              "LEFT JOIN body b ON b.objhash = i.objhash AND b.kind = i.kind "
              "WHERE i.objhash IS NOT NULL ORDER BY i.kind, i.id";
    CLEANUP(snapshot_edit_cleanup) struct snapshot_edit *x = snapshot_edit_new(NULL);
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    bind_i64(&q, 2, 1);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        code = put_object(s, &q, x, e);
        if (code != ERR_OK) {
            return error_wrap(e, "revision %lld", (long long)rev);
        }
    }
    return code == ERR_OK ? snapshot_seal(TAKE(x), ret, e) : code;
}

void
store_alike(struct store *s, const struct snapshot *shared)
{
    store_enter(s);
    snapshot_unref(s->alike);
    s->alike = snapshot_ref(shared);
}

/* Of a commit whose content is kept; else ERR_NOT_FOUND. */
static err_t
find_kept(
    const struct store *s, const struct hash *id, int64_t *ret_seq, struct commit *ret,
    struct error *e)
{
    bool kept = false;
    err_t code = history_seq_of_id(s, id, ret_seq, e);

    if (code == ERR_OK) {
        code = history_by_seq(s, *ret_seq, ret, e);
    }
    if (code == ERR_OK) {
        code = content_is_kept(s, *ret_seq, true, &kept, e);
    }
    if (code == ERR_OK && !kept) {
        return error_set(
            e, ERR_NOT_FOUND, "the content of revision %lld is no longer kept",
            (long long)ret->rev);
    }
    return code;
}

err_t
store_commit_content(
    struct store *s, const struct hash *id, struct snapshot **ret, struct error *e)
{
    CLEANUP(snapshot_cleanup) struct snapshot *found = NULL;
    CLEANUP(tx_cleanup) struct tx t = {0};
    struct commit c = {0};
    struct hash fp;
    int64_t seq = 0;
    err_t code;

    store_enter(s);
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = find_kept(s, id, &seq, &c, e);
    }
    if (code == ERR_OK) {
        code = read_content(s, seq, c.rev, &found, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    fp = snapshot_fp(found, c.schema_version);
    if (!hash_equal(&fp, &c.fp)) {
        return error_set(
            e, ERR_CORRUPT,
            "the database is damaged: the content of revision %lld differs from its fingerprint",
            (long long)c.rev);
    }
    *ret = TAKE(found);
    return ERR_OK;
}

err_t
store_index(
    struct store *s, const struct hash *id, struct lineage_entry **ret, size_t *ret_count,
    struct error *e)
{
    static const char sql[] = CHAIN "SELECT i.kind, i.id, i.objhash FROM " INDEX
                                    "WHERE i.objhash IS NOT NULL ORDER BY i.kind, i.id";
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(tx_cleanup) struct tx t = {0};
    struct commit c;
    int64_t seq = 0;
    err_t code;

    store_enter(s);
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = find_kept(s, id, &seq, &c, e);
    }
    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    bind_i64(&q, 2, 1);
    return lineage_entries(&q, ret, ret_count, e);
}

static err_t
find_object(
    const struct store *s, struct query *q, const struct lineage_entry *x, struct object **ret,
    struct error *e)
{
    const struct body_key key = {.kind = x->kind, .id = x->id, .objhash = x->objhash};
    bool row = false;
    err_t code;

    query_again(q);
    bind_hash(q, 1, &key.objhash);
    bind_text(q, 2, schema_kind(key.kind)->name);
    code = query_row(q, &row, e);
    return code == ERR_OK && row ? take_object(s, q, 0, &key, ret, e) : code;
}

err_t
store_objects(
    struct store *s, const struct lineage_entry *wanted, size_t count, struct object ***ret,
    struct error *e)
{
    static const char sql[] = "SELECT form, data FROM body WHERE objhash = ? AND kind = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(tx_cleanup) struct tx t = {0};
    struct object **found = xcalloc(count + 1, sizeof(struct object *));
    err_t code;

    store_enter(s);
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        if (wanted[i].has_object) {
            code = find_object(s, &q, &wanted[i], &found[i], e);
        }
    }
    if (code == ERR_OK) {
        *ret = found;
        return ERR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        object_unref(found[i]);
    }
    free(found);
    return code;
}
