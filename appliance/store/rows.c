/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rows.h"

static err_t
put_log(struct store *s, const struct commit_row *r, int64_t *ret_seq, struct error *e)
{
    static const char sql[] =
        "INSERT INTO commit_log (id, rev, schema_version, fp, node, author, "
        "summary, at_ms, confirm_until_ms, has_full, kept) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    const struct commit *c = r->commit;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_hash(&q, 1, &c->id);
    bind_i64(&q, 2, c->rev);
    bind_i64(&q, 3, c->schema_version);
    bind_hash(&q, 4, &c->fp);
    bind_text(&q, 5, c->node);
    bind_text(&q, 6, c->author);
    bind_text(&q, 7, c->summary);
    bind_i64(&q, 8, c->at_ms);
    bind_i64(&q, 9, c->confirm_until_ms);
    bind_i64(&q, 10, r->has_full ? 1 : 0);
    bind_i64(&q, 11, r->kept ? 1 : 0);
    code = query_run(&q, e);
    if (code == ERR_OK) {
        *ret_seq = db_last_rowid(s->db);
    }
    return code;
}

err_t
rows_put_commit(struct store *s, const struct commit_row *r, int64_t *ret_seq, struct error *e)
{
    static const char sql[] =
        "INSERT INTO commit_parent (seq, position, parent_seq) VALUES (?, ?, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t seq = 0;
    err_t code = put_log(s, r, &seq, e);

    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    for (size_t i = 0; code == ERR_OK && i < r->commit->parent_count; i++) {
        query_again(&q);
        bind_i64(&q, 1, seq);
        bind_i64(&q, 2, (int64_t)i);
        bind_i64(&q, 3, r->parent_seq[i]);
        code = query_run(&q, e);
    }
    if (code == ERR_OK) {
        *ret_seq = seq;
    }
    return code;
}

err_t
rows_open_entries(struct store *s, struct query *ret, struct error *e)
{
    return query_open(
        s->db, "INSERT INTO commit_entry (seq, kind, id, objhash) VALUES (?, ?, ?, ?)", ret, e);
}

err_t
rows_put_entry(
    struct query *q, int64_t seq, const struct body_key *key, bool has_object, struct error *e)
{
    query_again(q);
    bind_i64(q, 1, seq);
    bind_text(q, 2, schema_kind(key->kind)->name);
    bind_text(q, 3, key->id);
    bind_hash(q, 4, has_object ? &key->objhash : NULL);
    return query_run(q, e);
}

err_t
rows_put_full(struct store *s, int64_t seq, const struct snapshot *shared, struct error *e)
{
    static const char sql[] =
        "INSERT INTO commit_full (seq, kind, id, objhash) VALUES (?, ?, ?, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    size_t count = snapshot_count(shared);
    err_t code = query_open(s->db, sql, &q, e);

    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        const struct object *o = snapshot_at(shared, i);

        code = rows_put_entry(&q, seq, &(struct body_key){o->kind, o->id, o->objhash}, true, e);
    }
    return code;
}

err_t
rows_set_head(struct store *s, int64_t seq, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "UPDATE meta SET head_seq = ? WHERE one = 1", &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    return query_run(&q, e);
}
