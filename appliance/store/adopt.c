/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "store/container.h"
#include "store/content.h"
#include "store/rows.h"

#define AUDIT_MAX_BYTES ((size_t)512)

/* What one call of store_adopt does. */
struct work {
    struct delta_list shared;
    int64_t first_seq; /* commits from here on are new */
    size_t new_count;
    bool moves; /* to another head than before */
    struct commit head;
    int64_t head_seq;
    int64_t since_full;
    bool prune;
};

static void
work_fini(struct work *w)
{
    delta_list_fini(&w->shared);
}

/* -- commits */

static err_t
resolve_parents(
    const struct store *s, const struct commit *c, int64_t ret_seq[COMMIT_MAX_PARENTS],
    struct error *e)
{
    static const char sql[] = "SELECT seq, rev FROM commit_log WHERE id = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t highest = 0;
    err_t code = query_open(s->db, sql, &q, e);

    for (size_t i = 0; code == ERR_OK && i < c->parent_count; i++) {
        bool row = false;

        query_again(&q);
        bind_hash(&q, 1, &c->parents[i]);
        code = query_row(&q, &row, e);
        if (code == ERR_OK && !row) {
            return error_set(
                e, ERR_INVALID, "a parent of revision %lld is missing", (long long)c->rev);
        }
        ret_seq[i] = col_i64(&q, 0);
        highest = col_i64(&q, 1) > highest ? col_i64(&q, 1) : highest;
    }
    if (code == ERR_OK && c->rev != highest + 1) {
        return error_set(
            e, ERR_INVALID, "revision %lld does not follow from its parents",
            (long long)c->rev);
    }
    return code;
}

static err_t
put_entries(struct store *s, int64_t seq, const struct lineage_commit *c, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = rows_open_entries(s, &q, e);

    for (size_t i = 0; code == ERR_OK && i < c->entry_count; i++) {
        const struct lineage_entry *x = &c->entries[i];
        const struct schema_kind *kind = schema_kind(x->kind);
        const struct body_key key = {x->kind, x->id, x->objhash};
        uint64_t number;

        if (kind->scope != SCOPE_SHARED || !snapshot_id_key(x->kind, x->id, &number)) {
            return error_set(
                e, ERR_INVALID, "revision %lld: %s %s is no shared object",
                (long long)c->commit.rev, kind->name, x->id);
        }
        code = rows_put_entry(&q, seq, &key, x->has_object, e);
        if (code == ERR_CONFLICT) {
            return error_set(
                e, ERR_INVALID, "revision %lld: %s %s is there twice", (long long)c->commit.rev,
                kind->name, x->id);
        }
    }
    return code;
}

/* A commit whose first parent is kept is so, too, when all bodies of its changes are there. The
 * first of all commits has a full index then: its changes. */
static err_t
settle_kept(struct store *s, int64_t seq, struct error *e)
{
    static const char kept_sql[] =
        "UPDATE commit_log SET kept = 1 WHERE seq = ?1 AND NOT EXISTS ("
        "SELECT 1 FROM commit_entry x WHERE x.seq = ?1 AND x.objhash IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM body b "
        "WHERE b.objhash = x.objhash AND b.kind = x.kind)) "
        "AND NOT EXISTS (SELECT 1 FROM commit_parent p JOIN commit_log l "
        "ON l.seq = p.parent_seq WHERE p.seq = ?1 AND p.position = 0 AND NOT l.kept)";
    static const char full_sql[] =
        "INSERT INTO commit_full (seq, kind, id, objhash) "
        "SELECT x.seq, x.kind, x.id, x.objhash FROM commit_entry x JOIN commit_log l "
        "ON l.seq = x.seq WHERE l.seq = ? AND l.kept AND l.has_full AND x.objhash IS NOT NULL";
    CLEANUP(query_cleanup) struct query kept = {0};
    CLEANUP(query_cleanup) struct query full = {0};
    err_t code = query_open(s->db, kept_sql, &kept, e);

    if (code == ERR_OK) {
        bind_i64(&kept, 1, seq);
        code = query_run(&kept, e);
    }
    if (code == ERR_OK) {
        code = query_open(s->db, full_sql, &full, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&full, 1, seq);
    return query_run(&full, e);
}

static err_t
put_commit(struct store *s, const struct lineage_commit *c, struct work *w, struct error *e)
{
    int64_t parent_seq[COMMIT_MAX_PARENTS];
    const struct commit_row row = {&c->commit, parent_seq, c->commit.parent_count == 0, false};
    int64_t seq = 0;
    err_t code = history_find(s, &c->commit.id, &seq, e);

    if (code != ERR_OK || seq != 0) {
        return code;
    }
    if (c->commit.parent_count == 0 && c->entry_count == 0) {
        return error_set(e, ERR_INVALID, "a first revision holds nothing");
    }
    code = resolve_parents(s, &c->commit, parent_seq, e);
    if (code == ERR_OK) {
        code = rows_put_commit(s, &row, &seq, e);
    }
    if (code == ERR_OK) {
        code = put_entries(s, seq, c, e);
    }
    if (code == ERR_OK) {
        code = settle_kept(s, seq, e);
    }
    w->first_seq = w->new_count == 0 ? seq : w->first_seq;
    w->new_count++;
    return code;
}

/* -- head */

static err_t
find_head(const struct store *s, const struct adopt_request *r, struct work *w, struct error *e)
{
    struct hash fp;
    err_t code = history_seq_of_id(s, &r->head, &w->head_seq, e);

    if (code == ERR_OK) {
        code = history_by_seq(s, w->head_seq, &w->head, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    w->moves = w->head_seq != s->head_seq;
    fp = snapshot_fp(r->shared_to, w->head.schema_version);
    return hash_equal(&fp, &w->head.fp)
               ? ERR_OK
               : error_set(
                     e, ERR_INVALID, "the content has not the fingerprint of revision %lld",
                     (long long)w->head.rev);
}

/* Writes a full index of the head when it is due, or when nothing leads to one. */
static err_t
settle_full(struct store *s, const struct adopt_request *r, struct work *w, struct error *e)
{
    static const char sql[] = "UPDATE commit_log SET has_full = 1, kept = 1 WHERE seq = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    bool kept = false;
    err_t code = content_is_kept(s, w->head_seq, true, &kept, e);

    if (code == ERR_OK && kept) {
        code = history_weight(s, w->head_seq, &w->since_full, e);
    }
    if (code != ERR_OK ||
        (kept && w->since_full < (int64_t)STORE_FULL_EVERY * STORE_FULL_DIRECT)) {
        return code;
    }
    w->since_full = 0;
    w->prune = true;
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, w->head_seq);
    code = query_run(&q, e);
    return code == ERR_OK ? rows_put_full(s, w->head_seq, r->shared_to, e) : code;
}

static err_t
write_head(struct store *s, const struct adopt_request *r, struct work *w, struct error *e)
{
    err_t code = rows_set_head(s, w->head_seq, e);

    if (code == ERR_OK) {
        code = settle_full(s, r, w, e);
    }
    return code;
}

/* -- branches */

/* Which new commits, and whether the former head, end a branch now that the head is not on. */
static err_t
write_discarded(struct store *s, const struct work *w, struct error *e)
{
    static const char drop_sql[] =
        "DELETE FROM discarded WHERE seq = ?2 OR seq IN ("
        "SELECT parent_seq FROM commit_parent WHERE position = 0 AND seq >= ?1)";
    static const char put_sql[] =
        "INSERT INTO discarded (seq, at_ms) SELECT seq, ?4 FROM commit_log "
        "WHERE (seq >= ?1 OR seq = ?3) AND seq <> ?2 AND seq NOT IN ("
        "SELECT parent_seq FROM commit_parent WHERE position = 0 AND seq > ?3)";
    CLEANUP(query_cleanup) struct query drop = {0};
    CLEANUP(query_cleanup) struct query put = {0};
    int64_t first = w->new_count > 0 ? w->first_seq : INT64_MAX;
    err_t code = query_open(s->db, drop_sql, &drop, e);

    if (code == ERR_OK) {
        bind_i64(&drop, 1, first);
        bind_i64(&drop, 2, w->head_seq);
        code = query_run(&drop, e);
    }
    if (code == ERR_OK) {
        code = query_open(s->db, put_sql, &put, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&put, 1, first);
    bind_i64(&put, 2, w->head_seq);
    bind_i64(&put, 3, s->head_seq);
    bind_i64(&put, 4, store_time(s, 0));
    return query_run(&put, e);
}

/* Nothing leads to the content of a head that lies aside where what came before it is not kept.
 * Unless a body went meanwhile. */
static err_t
keep_beside(struct store *s, const struct adopt_request *r, struct error *e)
{
    static const char *const sql[] = {
        "UPDATE commit_log SET kept = 1, has_full = 1 WHERE seq = ?1 AND NOT EXISTS ("
        "SELECT 1 FROM commit_full f WHERE f.seq = ?1 AND NOT EXISTS (SELECT 1 FROM body b "
        "WHERE b.objhash = f.objhash AND b.kind = f.kind))",
        "DELETE FROM commit_full WHERE seq = ?1 "
        "AND EXISTS (SELECT 1 FROM commit_log WHERE seq = ?1 AND NOT kept)"};
    bool kept = false;
    int64_t seq = 0;
    err_t code = history_seq_of_id(s, &r->head, &seq, e);

    if (code == ERR_OK) {
        code = content_is_kept(s, seq, true, &kept, e);
    }
    if (code != ERR_OK || kept) {
        return code;
    }
    code = rows_put_full(s, seq, r->beside, e);
    for (size_t i = 0; i < ARRAY_LEN(sql) && code == ERR_OK; i++) {
        CLEANUP(query_cleanup) struct query q = {0};

        code = query_open(s->db, sql[i], &q, e);
        if (code == ERR_OK) {
            bind_i64(&q, 1, seq);
            code = query_run(&q, e);
        }
    }
    return code;
}

static bool
holds(const struct snapshot *s, const struct lineage_entry *x)
{
    const struct object *o = snapshot_by_id(s, x->kind, x->id);

    return o != NULL ? x->has_object && hash_equal(&o->objhash, &x->objhash) : !x->has_object;
}

/* Whether the entries lead from what was to what is: each is as it now is, and they name all
 * that differs. */
static bool
leads_to(
    const struct snapshot *from, const struct snapshot *to, const struct delta_list *differs,
    const struct lineage_entry *entries, size_t count)
{
    size_t changed = 0;

    for (size_t i = 0; i < count; i++) {
        if (!holds(to, &entries[i])) {
            return false;
        }
        changed += holds(from, &entries[i]) ? 0 : 1;
    }
    return changed == differs->count;
}

/* What changed in all from the former head to this one; nothing where first parents do not lead
 * from here to there. */
static err_t
read_forward(
    const struct store *s, const struct work *w, struct lineage_entry **ret, size_t *ret_count,
    struct error *e)
{
    static const char sql[] =
        "WITH RECURSIVE chain (seq, depth) AS (SELECT ?1, 0 UNION ALL "
        "SELECT p.parent_seq, chain.depth + 1 FROM chain JOIN commit_parent p "
        "ON p.seq = chain.seq AND p.position = 0 WHERE chain.seq > ?2) "
        "SELECT x.kind, x.id, x.objhash, min(chain.depth) FROM chain "
        "JOIN commit_entry x ON x.seq = chain.seq WHERE chain.seq > ?2 "
        "AND EXISTS (SELECT 1 FROM chain WHERE seq = ?2) GROUP BY x.kind, x.id";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, w->head_seq);
    bind_i64(&q, 2, s->head_seq);
    return lineage_entries(&q, ret, ret_count, e);
}

static err_t
wrong_changes(const struct commit *c, struct error *e)
{
    return error_set(
        e, ERR_INVALID, "the changes of revision %lld do not lead to its fingerprint",
        (long long)c->rev);
}

/* From the whole index before them. */
static err_t
check_changes(const struct store *s, int64_t seq, const struct commit *c, struct error *e)
{
    bool own = c->parent_count == 0;
    bool kept = false;
    struct hash fp;
    err_t code = content_is_kept(s, seq, own, &kept, e);

    if (code != ERR_OK || !kept) {
        return code;
    }
    code = content_fp(s, seq, own, c->schema_version, &fp, e);
    if (code == ERR_OK && !hash_equal(&fp, &c->fp)) {
        return wrong_changes(c, e);
    }
    return code;
}

/* Forward from the former head it is a matter of a few rows. */
static err_t
check_head(
    const struct store *s, const struct adopt_request *r, const struct work *w, struct error *e)
{
    CLEANUP(xfree_cleanup) struct lineage_entry *entries = NULL;
    size_t count = 0;
    err_t code = read_forward(s, w, &entries, &count, e);

    if (code != ERR_OK || count == 0) {
        return code != ERR_OK ? code : check_changes(s, w->head_seq, &w->head, e);
    }
    return leads_to(s->shared, r->shared_to, &w->shared, entries, count)
               ? ERR_OK
               : wrong_changes(&w->head, e);
}

/* The ends of branches, and first commits, which have a full index. */
static err_t
check_beside(const struct store *s, const struct work *w, struct error *e)
{
    static const char sql[] =
        "SELECT " COMMIT_COLUMNS " FROM commit_log l WHERE seq >= ? AND kept "
        "AND (seq IN (SELECT seq FROM discarded) OR NOT EXISTS ("
        "SELECT 1 FROM commit_parent p WHERE p.seq = l.seq))";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, w->new_count > 0 ? w->first_seq : INT64_MAX);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct commit c;
        int64_t seq;

        code = history_row(s, &q, &seq, &c, e);
        if (code == ERR_OK) {
            code = check_changes(s, seq, &c, e);
        }
        if (code != ERR_OK) {
            return code;
        }
    }
    return code;
}

/* -- all */

static err_t
write_audit(
    struct store *s, const struct adopt_request *r, const struct work *w, struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {.max = AUDIT_MAX_BYTES};
    char hex[SHA256_HEX + 1];

    hash_hex(&w->head.fp, hex);
    buf_printf(
        &text, "%s revision %lld@%.8s, %zu new commit%s", w->moves ? "now at" : "still at",
        (long long)w->head.rev, hex, w->new_count, PLURAL(w->new_count));
    return audit_row(s, store_time(s, 0), r->author, "adopt", buf_str(&text), e);
}

/* Bodies first: they decide which commits keep their content. */
static err_t
write_history(struct store *s, const struct adopt_request *r, struct work *w, struct error *e)
{
    err_t code = ERR_OK;

    if (r->move_head) {
        delta_list_of(s->shared, r->shared_to, &w->shared);
        code = container_write(s, SCOPE_SHARED, &w->shared, e);
    }
    for (size_t i = 0; code == ERR_OK && i < r->body_count; i++) {
        code = body_put(s, r->bodies[i], e);
    }
    for (size_t i = 0; code == ERR_OK && i < r->commits->count; i++) {
        code = put_commit(s, &r->commits->items[i], w, e);
    }
    if (code == ERR_OK && r->move_head) {
        code = find_head(s, r, w, e);
    }
    return code;
}

static err_t
write_all(struct store *s, const struct adopt_request *r, struct work *w, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    err_t code = tx_begin(s->db, &t, e);

    if (code == ERR_OK) {
        code = load_check_head(s, e);
    }
    if (code == ERR_OK) {
        code = write_history(s, r, w, e);
    }
    if (code == ERR_OK && w->moves) {
        code = write_head(s, r, w, e);
    }
    if (code == ERR_OK && w->moves) {
        code = waiting_follow(s, s->head_seq, w->head_seq, e);
    }
    if (code == ERR_OK) {
        code = write_discarded(s, w, e);
    }
    if (code == ERR_OK && r->beside != NULL) {
        code = keep_beside(s, r, e);
    }
    if (code == ERR_OK && w->moves) {
        code = check_head(s, r, w, e);
    }
    if (code == ERR_OK) {
        code = check_beside(s, w, e);
    }
    if (code != ERR_OK || r->only_check) {
        return code; /* rolled back */
    }
    code = write_audit(s, r, w, e);
    if (code == ERR_OK && w->prune) {
        code = prune(s, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    crashpoint("store_before_adopt");
    code = tx_commit(&t, e);
    crashpoint("store_after_adopt");
    return code;
}

err_t
store_adopt(
    struct store *s, const struct adopt_request *q, struct commit *ret_head, struct error *e)
{
    CLEANUP(work_fini) struct work w = {0};
    err_t code;

    store_enter(s);
    code = load_state(s, e);
    if (code != ERR_OK) {
        return code;
    }
    w.head = s->head;
    w.head_seq = s->head_seq;
    w.since_full = s->since_full;
    w.prune = s->writes >= STORE_PRUNE_WRITES;
    code = write_all(s, q, &w, e);
    if (code != ERR_OK || q->only_check) {
        *ret_head = code == ERR_OK ? s->head : *ret_head;
        return code;
    }
    if (w.moves) {
        s->head = w.head;
        s->head_seq = w.head_seq;
        s->since_full = w.since_full;
        load_replace(&s->shared, q->shared_to);
    }
    s->writes = w.prune ? 0 : s->writes + 1 + (unsigned)(w.new_count + q->body_count);
    *ret_head = s->head;
    return ERR_OK;
}
