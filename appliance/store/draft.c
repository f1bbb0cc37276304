/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "store/inner.h"

void
draft_list_free(struct draft_list *d)
{
    for (size_t i = 0; i < d->count; i++) {
        object_unref(d->rows[i].object);
    }
    free(d->rows);
    *d = (struct draft_list){0};
}

/* Columns kind, id, objhash, form, data, name, author, at_ms, base. */
static err_t
read_row(const struct store *s, const struct query *q, struct draft_row *r, struct error *e)
{
    struct body_key key;
    err_t code = kind_of_row(col_str(q, 0), &r->kind, e);

    if (code == ERR_OK) {
        code = col_text(q, 1, r->id, sizeof r->id, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 5, r->name, sizeof r->name, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 6, r->author, sizeof r->author, e);
    }
    r->at_ms = col_i64(q, 7);
    r->has_base = !col_null(q, 8);
    if (code == ERR_OK && r->has_base) {
        code = col_hash(q, 8, &r->base, e);
    }
    if (code != ERR_OK || col_null(q, 2)) {
        return code;
    }
    key = (struct body_key){.kind = r->kind, .id = r->id};
    code = col_hash(q, 2, &key.objhash, e);
    return code == ERR_OK ? body_object(s, q, 3, &key, &r->object, e) : code;
}

err_t
draft_load(const struct store *s, struct draft_list *ret, struct error *e)
{
    static const char sql[] =
        "SELECT d.kind, d.id, d.objhash, b.form, b.data, d.name, d.author, "
        "d.at_ms, d.base FROM draft d LEFT JOIN body b "
        "ON b.objhash = d.objhash AND b.kind = d.kind "
        "ORDER BY d.kind, d.id";
    struct draft_list found = {0};
    CLEANUP(query_cleanup) struct query q = {0};
    size_t cap = 0;
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        if (found.count == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            found.rows = xrealloc(found.rows, cap * sizeof *found.rows);
        }
        found.rows[found.count] = (struct draft_row){0};
        code = read_row(s, &q, &found.rows[found.count++], e);
    }
    if (code == ERR_NOT_FOUND) {
        code = error_set(
            e, ERR_CORRUPT, "the database is damaged: the drafted content of %s %s is missing",
            col_str(&q, 0), col_str(&q, 5));
    }
    if (code == ERR_OK) {
        *ret = found;
    } else {
        draft_list_free(&found);
    }
    return code;
}

static err_t
upsert(struct store *s, const struct draft_row *r, struct error *e)
{
    static const char sql[] =
        "INSERT INTO draft (kind, id, name, objhash, base, author, at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET "
        "name = excluded.name, objhash = excluded.objhash, base = excluded.base, "
        "author = excluded.author, at_ms = excluded.at_ms";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, schema_kind(r->kind)->name);
    bind_text(&q, 2, r->id);
    bind_text(&q, 3, r->name);
    bind_hash(&q, 4, r->object != NULL ? &r->object->objhash : NULL);
    bind_hash(&q, 5, r->has_base ? &r->base : NULL);
    bind_text(&q, 6, r->author);
    bind_i64(&q, 7, store_time(s, r->at_ms));
    return query_run(&q, e);
}

err_t
draft_drop(struct store *s, enum kind kind, const char *id, struct error *e)
{
    static const char sql[] = "DELETE FROM draft WHERE kind = ? AND id = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_text(&q, 1, schema_kind(kind)->name);
    bind_text(&q, 2, id);
    return query_run(&q, e);
}

err_t
store_draft_clear(struct store *s, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = tx_begin(s->db, &t, e);
    if (code == ERR_OK) {
        code = query_open(s->db, "DELETE FROM draft", &q, e);
    }
    if (code == ERR_OK) {
        code = query_run(&q, e);
    }
    return code == ERR_OK ? tx_commit(&t, e) : code;
}

static err_t
put_row(struct store *s, const struct draft_row *row, struct error *e)
{
    err_t code = row->object != NULL ? body_put(s, row->object, e) : ERR_OK;

    return code == ERR_OK ? upsert(s, row, e) : code;
}

err_t
store_draft_write(
    struct store *s, const struct draft_list *put, const struct draft_list *drop,
    struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    bool prune_now;
    err_t code;

    store_enter(s);
    prune_now = s->writes >= STORE_PRUNE_WRITES;
    code = tx_begin(s->db, &t, e);
    for (size_t i = 0; code == ERR_OK && i < drop->count; i++) {
        code = draft_drop(s, drop->rows[i].kind, drop->rows[i].id, e);
    }
    for (size_t i = 0; code == ERR_OK && i < put->count; i++) {
        code = put_row(s, &put->rows[i], e);
    }
    if (code == ERR_OK && prune_now) {
        code = prune(s, e);
    }
    if (code == ERR_OK) {
        code = tx_commit(&t, e);
    }
    if (code == ERR_OK) {
        s->writes = prune_now ? 0 : s->writes + (unsigned)put->count;
    }
    return code;
}
