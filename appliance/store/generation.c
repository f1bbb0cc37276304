/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/inner.h"

static const char *const state_names[] = {
    [GENERATION_STAGED] = "staged",
    [GENERATION_ACTIVE] = "active",
    [GENERATION_GOOD] = "good",
    [GENERATION_FAILED] = "failed",
};

/* What HAProxy runs is the newest good one, or newer. */
static err_t
forget_old(struct store *s, int64_t newest, struct error *e)
{
    static const char sql[] = "DELETE FROM generation WHERE number <= ? AND number < "
                              "(SELECT max(number) FROM generation WHERE state = 'good')";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, newest - STORE_KEPT_GENERATIONS);
    return query_run(&q, e);
}

err_t
store_generation_last(struct store *s, int64_t *ret_number, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, "SELECT last_generation FROM meta WHERE one = 1", &q, e);
    if (code == ERR_OK) {
        code = query_need(&q, "the row of meta", e);
    }
    if (code == ERR_OK) {
        *ret_number = col_i64(&q, 0);
    }
    return code;
}

err_t
store_generation_next(struct store *s, int64_t *ret_number, struct error *e)
{
    /* Counted in meta, so that the number of a generation that failed before it got a row is
     * never given again. */
    static const char sql[] = "UPDATE meta SET last_generation = last_generation + 1 "
                              "WHERE one = 1";
    static const char read_sql[] = "SELECT last_generation FROM meta WHERE one = 1";
    CLEANUP(tx_cleanup) struct tx t = {0};
    CLEANUP(query_cleanup) struct query update = {0};
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t number;
    err_t code;

    store_enter(s);
    code = tx_begin(s->db, &t, e);
    if (code == ERR_OK) {
        code = query_open(s->db, sql, &update, e);
    }
    if (code == ERR_OK) {
        code = query_run(&update, e);
    }
    if (code == ERR_OK) {
        code = query_open(s->db, read_sql, &q, e);
    }
    if (code == ERR_OK) {
        code = query_need(&q, "the row of meta", e);
    }
    if (code != ERR_OK) {
        return code;
    }
    number = col_i64(&q, 0);
    query_again(&q);
    code = forget_old(s, number, e);
    if (code == ERR_OK) {
        code = tx_commit(&t, e);
    }
    if (code == ERR_OK) {
        *ret_number = number;
    }
    return code;
}

err_t
store_generation_put(struct store *s, const struct generation *g, struct error *e)
{
    static const char sql[] =
        "INSERT INTO generation (number, digest, commit_id, local_rev, release, state, at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET "
        "digest = excluded.digest, commit_id = excluded.commit_id, "
        "local_rev = excluded.local_rev, release = excluded.release, "
        "state = excluded.state, at_ms = excluded.at_ms";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, g->number);
    bind_text(&q, 2, g->digest);
    bind_hash(&q, 3, &g->commit);
    bind_i64(&q, 4, g->local_rev);
    bind_text(&q, 5, g->release);
    bind_text(&q, 6, state_names[g->state]);
    bind_i64(&q, 7, store_time(s, g->at_ms));
    return query_run(&q, e);
}

static err_t
state_of(const char *name, enum generation_state *ret, struct error *e)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++) {
        if (strcmp(state_names[i], name) == 0) {
            *ret = (enum generation_state)i;
            return ERR_OK;
        }
    }
    return error_set(e, ERR_CORRUPT, "no state of a generation is called %s", name);
}

static err_t
read_row(const struct query *q, struct generation *ret, struct error *e)
{
    struct generation g = {
        .number = col_i64(q, 0), .local_rev = col_i64(q, 3), .at_ms = col_i64(q, 6)};
    err_t code = col_text(q, 1, g.digest, sizeof g.digest, e);

    if (code == ERR_OK) {
        code = col_hash(q, 2, &g.commit, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 4, g.release, sizeof g.release, e);
    }
    if (code == ERR_OK) {
        code = state_of(col_str(q, 5), &g.state, e);
    }
    if (code == ERR_OK) {
        *ret = g;
    }
    return code;
}

err_t
store_generation_find(
    struct store *s, const char *digest, int64_t number, struct generation *ret,
    struct error *e)
{
    static const char by_digest[] =
        "SELECT number, digest, commit_id, local_rev, release, state, at_ms FROM generation "
        "WHERE digest = ? ORDER BY state = 'failed', number DESC LIMIT 1";
    static const char by_number[] =
        "SELECT number, digest, commit_id, local_rev, release, state, at_ms FROM generation "
        "WHERE number = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code;

    store_enter(s);
    code = query_open(s->db, digest != NULL ? by_digest : by_number, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    if (digest != NULL) {
        bind_text(&q, 1, digest);
    } else {
        bind_i64(&q, 1, number);
    }
    code = query_row(&q, &row, e);
    if (code != ERR_OK) {
        return code;
    }
    if (!row) {
        return digest != NULL
                   ? error_set(e, ERR_NOT_FOUND, "no generation has the digest %s", digest)
                   : error_set(
                         e, ERR_NOT_FOUND, "there is no generation %lld", (long long)number);
    }
    return read_row(&q, ret, e);
}
