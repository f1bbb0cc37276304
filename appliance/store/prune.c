/* SPDX-License-Identifier: Apache-2.0 */
#include "store/inner.h"

/* wanted: the commits whose content is kept. ?1: how many; ?2: the direct kinds; ?3: among how
 * many. What lies before the oldest full index is gone already: a former release counted every
 * commit. need: those, and from each the ones before it along first parents back to one with a
 * full index. base: the full indexes at the far ends; the others among need add no body that a
 * commit_entry of need does not name. */
#define NEED                                                                                   \
    "WITH RECURSIVE wanted (seq) AS ("                                                         \
    "SELECT seq FROM (SELECT seq FROM commit_log ORDER BY rev DESC, seq DESC LIMIT ?1) "       \
    "UNION "                                                                                   \
    "SELECT seq FROM (SELECT l.seq FROM commit_log l "                                         \
    "WHERE l.rev > (SELECT max(rev) FROM commit_log) - ?3 "                                    \
    "AND l.seq >= (SELECT min(seq) FROM commit_full) AND " COMMIT_IS_DRAFTED " "               \
    "ORDER BY l.rev DESC, l.seq DESC LIMIT ?1) "                                               \
    "UNION "                                                                                   \
    "SELECT p.parent_seq FROM waiting w "                                                      \
    "JOIN commit_parent p ON p.seq = w.seq AND p.position = 0), "                              \
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

err_t
prune(struct store *s, struct error *e)
{
    static const char full_sql[] =
        NEED "DELETE FROM commit_full WHERE seq IN ("
             "SELECT seq FROM commit_log WHERE has_full AND seq NOT IN (SELECT seq FROM need))";
    static const char body_sql[] = NEED "DELETE FROM body WHERE objhash NOT IN ("
                                        "SELECT objhash FROM shared_object "
                                        "UNION ALL SELECT objhash FROM local_object "
                                        "UNION ALL SELECT objhash FROM (" HISTORY_HASHES "))";
    err_t code = run_kept(s, full_sql, e);

    return code == ERR_OK ? run_kept(s, body_sql, e) : code;
}

static err_t
check_indexes(const struct store *s, struct error *e)
{
    static const char sql[] =
        NEED "SELECT l.rev FROM base JOIN commit_log l ON l.seq = base.seq "
             "WHERE NOT EXISTS (SELECT 1 FROM commit_full f WHERE f.seq = base.seq) LIMIT 1";
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

err_t
prune_check(const struct store *s, struct error *e)
{
    err_t code = check_indexes(s, e);

    return code == ERR_OK ? check_bodies(s, e) : code;
}
