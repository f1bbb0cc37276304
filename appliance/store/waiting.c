/* SPDX-License-Identifier: Apache-2.0 */
/* The commit that goes back unless it is confirmed. */
#include "store/inner.h"

err_t
waiting_drop(struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "DELETE FROM waiting", &q, e);

    return code == ERR_OK ? query_run(&q, e) : code;
}

err_t
waiting_put(struct store *s, int64_t seq, struct error *e)
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

err_t
waiting_load(const struct store *s, struct commit *ret, struct error *e)
{
    static const char sql[] =
        "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE seq IN (SELECT seq FROM waiting)";
    CLEANUP(query_cleanup) struct query q = {0};
    bool found = false;
    int64_t seq;
    err_t code = query_open(s->db, sql, &q, e);

    if (code == ERR_OK) {
        code = query_row(&q, &found, e);
    }
    return code == ERR_OK && found ? history_row(s, &q, &seq, ret, e) : code;
}

err_t
store_wait_end(struct store *s, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    err_t code;

    store_enter(s);
    code = tx_begin(s->db, &t, e);
    if (code == ERR_OK) {
        code = waiting_drop(s, e);
    }
    return code == ERR_OK ? tx_commit(&t, e) : code;
}
