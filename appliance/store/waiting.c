/* SPDX-License-Identifier: Apache-2.0 */
/* The commit that goes back unless it is confirmed: it follows from the lineage of the head. */
#include "store/inner.h"

static err_t
drop(struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "DELETE FROM waiting", &q, e);

    return code == ERR_OK ? query_run(&q, e) : code;
}

static err_t
put(struct store *s, int64_t seq, struct error *e)
{
    static const char sql[] = "INSERT OR REPLACE INTO waiting (one, seq) VALUES (1, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    return query_run(&q, e);
}

/* What a commit does to what waited before it. */
struct link {
    bool waits;   /* it has to be confirmed itself */
    bool goes_on; /* it changes at once, and nothing else: what waited before it still does */
    int64_t parent_seq;
};

static err_t
read_link(const struct store *s, int64_t seq, struct link *ret, struct error *e)
{
    static const char sql[] =
        "SELECT l.confirm_until_ms > 0, "
        "EXISTS (SELECT 1 FROM commit_entry x WHERE x.seq = l.seq) AND NOT " COMMIT_IS_DRAFTED
        " AND (SELECT count(*) FROM commit_parent p WHERE p.seq = l.seq) = 1, "
        "(SELECT p.parent_seq FROM commit_parent p WHERE p.seq = l.seq AND p.position = 0) "
        "FROM commit_log l WHERE l.seq = ?1";
    char kinds[DIRECT_KINDS_BYTES];
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    history_direct_kinds(kinds);
    bind_i64(&q, 1, seq);
    bind_text(&q, 2, kinds);
    code = query_need(&q, "a commit", e);
    if (code == ERR_OK) {
        *ret = (struct link){col_i64(&q, 0) != 0, col_i64(&q, 1) != 0, col_i64(&q, 2)};
    }
    return code;
}

err_t
waiting_follow(struct store *s, int64_t from_seq, int64_t to_seq, struct error *e)
{
    for (int64_t seq = to_seq; seq != from_seq;) {
        struct link link;
        err_t code = read_link(s, seq, &link, e);

        if (code != ERR_OK) {
            return code;
        }
        if (link.waits) {
            return put(s, seq, e);
        }
        if (!link.goes_on) {
            return drop(s, e);
        }
        seq = link.parent_seq;
    }
    return ERR_OK;
}

err_t
store_waiting(struct store *s, struct commit *ret, struct error *e)
{
    static const char sql[] =
        "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE seq IN (SELECT seq FROM waiting)";
    CLEANUP(query_cleanup) struct query q = {0};
    bool found = false;
    int64_t seq;
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code == ERR_OK) {
        code = query_row(&q, &found, e);
    }
    if (code == ERR_OK && found) {
        code = history_row(s, &q, &seq, ret, e);
    } else if (code == ERR_OK) {
        *ret = (struct commit){.rev = 0};
    }
    return code;
}
