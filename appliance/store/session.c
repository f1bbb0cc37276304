/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/arena.h"
#include "store/inner.h"
#include "store/sessions.h"

/* A single statement is a transaction of its own. */
err_t
store_session_put(struct store *s, const struct session_row *r, struct error *e)
{
    static const char sql[] =
        "INSERT INTO session (token, admin, csrf, created_ms, used_ms) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (token) DO UPDATE SET admin = excluded.admin, csrf = excluded.csrf, "
        "created_ms = excluded.created_ms, used_ms = excluded.used_ms";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_hash(&q, 1, &r->token);
    bind_text(&q, 2, r->admin);
    bind_text(&q, 3, r->csrf);
    bind_i64(&q, 4, r->created_ms);
    bind_i64(&q, 5, r->used_ms);
    return query_run(&q, e);
}

err_t
store_session_remove(struct store *s, const struct hash *token, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, "DELETE FROM session WHERE token = ?", &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_hash(&q, 1, token);
    return query_run(&q, e);
}

err_t
store_session_remove_admin(struct store *s, const char *admin, struct error *e)
{
    static const char sql[] = "DELETE FROM session WHERE ?1 IS NULL OR admin = ?1";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, admin);
    return query_run(&q, e);
}

static err_t
read_row(const struct query *q, struct session_row *r, struct error *e)
{
    err_t code = col_hash(q, 0, &r->token, e);

    if (code == ERR_OK) {
        code = col_text(q, 1, r->admin, sizeof r->admin, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 2, r->csrf, sizeof r->csrf, e);
    }
    r->created_ms = col_i64(q, 3);
    r->used_ms = col_i64(q, 4);
    return code;
}

err_t
store_sessions(struct store *s, struct session_row **ret, size_t *ret_count, struct error *e)
{
    static const char sql[] =
        "SELECT token, admin, csrf, created_ms, used_ms FROM session ORDER BY created_ms, token";
    CLEANUP(xfree_cleanup) struct session_row *found = NULL;
    CLEANUP(query_cleanup) struct query q = {0};
    size_t count = 0;
    size_t cap = 0;
    bool row = false;
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        if (count == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            found = xrealloc(found, cap * sizeof *found);
        }
        code = read_row(&q, &found[count++], e);
    }
    if (code == ERR_OK) {
        *ret = TAKE(found);
        *ret_count = count;
    }
    return code;
}

err_t
audit_row(
    struct store *s, int64_t at_ms, const char *author, const char *action, const char *text,
    struct error *e)
{
    static const char sql[] =
        "INSERT INTO audit (at_ms, author, action, text) VALUES (?, ?, ?, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, at_ms);
    bind_text(&q, 2, author);
    bind_text(&q, 3, action);
    bind_text(&q, 4, text);
    return query_run(&q, e);
}

err_t
store_audit(
    struct store *s, int64_t at_ms, const char *author, const char *action, const char *text,
    struct error *e)
{
    store_enter(s);
    return audit_row(s, store_time(s, at_ms), author, action, text, e);
}
