/* SPDX-License-Identifier: Apache-2.0 */
#include "store/inner.h"

/* wanted: the commits whose content is kept. ?1: how many; ?2: the direct kinds; ?3: among how
 * many. need: those, and from each the ones before it along first parents back to one with a
 * full index. base: the full indexes at the far ends; the others among need add no body that a
 * commit_entry of need does not name. */
#define NEED                                                                                   \
    "WITH RECURSIVE wanted (seq) AS ("                                                         \
    "SELECT seq FROM (SELECT seq FROM commit_log WHERE kept "                                  \
    "ORDER BY rev DESC, seq DESC LIMIT ?1) "                                                   \
    "UNION "                                                                                   \
    "SELECT seq FROM (SELECT l.seq FROM commit_log l "                                         \
    "WHERE l.rev > (SELECT max(rev) FROM commit_log) - ?3 AND l.kept "                         \
    "AND " COMMIT_IS_DRAFTED " "                                                               \
    "ORDER BY l.rev DESC, l.seq DESC LIMIT ?1) "                                               \
    "UNION "                                                                                   \
    "SELECT head_seq FROM meta "                                                               \
    "UNION "                                                                                   \
    "SELECT l.seq FROM waiting w "                                                             \
    "JOIN commit_parent p ON p.seq = w.seq AND p.position = 0 "                                \
    "JOIN commit_log l ON l.seq = p.parent_seq WHERE l.kept "                                  \
    "UNION "                                                                                   \
    "SELECT l.seq FROM discarded d JOIN commit_log l ON l.seq = d.seq WHERE l.kept), "         \
    "need (seq, has_full) AS ("                                                                \
    "SELECT l.seq, l.has_full FROM wanted JOIN commit_log l ON l.seq = wanted.seq "            \
    "UNION "                                                                                   \
    "SELECT l.seq, l.has_full FROM need "                                                      \
    "JOIN commit_parent p ON p.seq = need.seq AND p.position = 0 "                             \
    "JOIN commit_log l ON l.seq = p.parent_seq "                                               \
    "WHERE NOT need.has_full), "                                                               \
    "base (seq) AS ("                                                                          \
    "SELECT need.seq FROM need "                                                               \
    "LEFT JOIN commit_parent p ON p.seq = need.seq AND p.position = 0 "                        \
    "WHERE need.has_full AND (p.parent_seq IS NULL "                                           \
    "OR p.parent_seq NOT IN (SELECT seq FROM need))) "
#define HISTORY_HASHES                                                                         \
    "SELECT f.objhash, f.kind FROM base JOIN commit_full f ON f.seq = base.seq "               \
    "UNION ALL "                                                                               \
    "SELECT x.objhash, x.kind FROM need JOIN commit_entry x ON x.seq = need.seq "              \
    "WHERE x.objhash IS NOT NULL "                                                             \
    "UNION ALL "                                                                               \
    "SELECT objhash, kind FROM draft WHERE objhash IS NOT NULL"

/* kinds: filled, and to live as long as the query. */
static err_t
open_kept(
    const struct store *s, const char *sql, char kinds[DIRECT_KINDS_BYTES], struct query *ret,
    struct error *e)
{
    err_t code = query_open(s->db, sql, ret, e);

    if (code == ERR_OK) {
        history_direct_kinds(kinds);
        bind_i64(ret, 1, STORE_KEPT_COMMITS);
        bind_text(ret, 2, kinds);
        bind_i64(ret, 3, STORE_KEPT_AMONG);
    }
    return code;
}

static err_t
run_kept(const struct store *s, const char *sql, struct error *e)
{
    char kinds[DIRECT_KINDS_BYTES];
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = open_kept(s, sql, kinds, &q, e);

    return code == ERR_OK ? query_run(&q, e) : code;
}

static err_t
drop_discarded(const struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "DELETE FROM discarded WHERE at_ms < ?", &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, store_time(s, 0) - STORE_DISCARDED_MS);
    return query_run(&q, e);
}

err_t
prune(struct store *s, struct error *e)
{
    static const char kept_sql[] =
        NEED "UPDATE commit_log SET kept = 0 WHERE kept AND seq NOT IN (SELECT seq FROM need)";
    static const char full_sql[] =
        NEED "DELETE FROM commit_full WHERE seq IN ("
             "SELECT seq FROM commit_log WHERE has_full AND seq NOT IN (SELECT seq FROM need))";
    static const char body_sql[] = NEED "DELETE FROM body WHERE objhash NOT IN ("
                                        "SELECT objhash FROM shared_object "
                                        "UNION ALL SELECT objhash FROM local_object "
                                        "UNION ALL SELECT objhash FROM (" HISTORY_HASHES "))";
    err_t code = drop_discarded(s, e);

    if (code == ERR_OK) {
        code = run_kept(s, kept_sql, e);
    }
    if (code == ERR_OK) {
        code = run_kept(s, full_sql, e);
    }
    return code == ERR_OK ? run_kept(s, body_sql, e) : code;
}

static err_t
check_indexes(const struct store *s, struct error *e)
{
    static const char sql[] =
        NEED "SELECT l.rev FROM need JOIN commit_log l ON l.seq = need.seq WHERE need.has_full "
             "AND NOT EXISTS (SELECT 1 FROM commit_full f WHERE f.seq = need.seq) LIMIT 1";
    char kinds[DIRECT_KINDS_BYTES];
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = open_kept(s, sql, kinds, &q, e);

    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code == ERR_OK && row) {
        return error_set(
            e, ERR_CORRUPT, "the full index of revision %lld is missing",
            (long long)col_i64(&q, 0));
    }
    return code;
}

static err_t
check_bodies(const struct store *s, struct error *e)
{
    static const char sql[] = NEED "SELECT h.kind, h.objhash FROM (" HISTORY_HASHES ") h "
                                   "WHERE NOT EXISTS (SELECT 1 FROM body b "
                                   "WHERE b.objhash = h.objhash AND b.kind = h.kind) LIMIT 1";
    char kinds[DIRECT_KINDS_BYTES];
    CLEANUP(query_cleanup) struct query q = {0};
    char hex[SHA256_HEX + 1];
    struct hash objhash;
    bool row = false;
    err_t code = open_kept(s, sql, kinds, &q, e);

    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code != ERR_OK || !row) {
        return code;
    }
    code = col_hash(&q, 1, &objhash, e);
    if (code != ERR_OK) {
        return code;
    }
    hash_hex(&objhash, hex);
    return error_set(
        e, ERR_CORRUPT, "the content of a %s, hash %s, is missing", col_str(&q, 0), hex);
}

/* The head is kept, and what leads from its parent to its content only with its parent. */
static err_t
check_marks(const struct store *s, struct error *e)
{
    static const char sql[] = "SELECT l.rev FROM commit_log l "
                              "LEFT JOIN commit_parent p ON p.seq = l.seq AND p.position = 0 "
                              "LEFT JOIN commit_log b ON b.seq = p.parent_seq "
                              "WHERE (l.kept AND NOT l.has_full AND NOT coalesce(b.kept, 0)) "
                              "OR (NOT l.kept AND l.seq = (SELECT head_seq FROM meta)) LIMIT 1";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code == ERR_OK && row) {
        return error_set(
            e, ERR_CORRUPT, "what revision %lld is worked out from is not kept",
            (long long)col_i64(&q, 0));
    }
    return code;
}

err_t
prune_check(const struct store *s, struct error *e)
{
    err_t code = check_marks(s, e);

    if (code == ERR_OK) {
        code = check_indexes(s, e);
    }
    return code == ERR_OK ? check_bodies(s, e) : code;
}
