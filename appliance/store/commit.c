/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/crashpoint.h"
#include "store/container.h"
#include "store/rows.h"

#define AUDIT_MAX_BYTES ((size_t)512)

/* What one call of store_commit is going to do. */
struct work {
    struct delta_list shared, local;
    bool new_head;
    struct commit head;
    int64_t head_seq;
    int64_t parent_seq[COMMIT_MAX_PARENTS];
    bool has_full, prune;
    int64_t since_full;
    int64_t local_rev;
    struct hash local_fp;
};

static void
work_fini(struct work *w)
{
    delta_list_fini(&w->shared);
    delta_list_fini(&w->local);
}

static err_t
set_text(char *ret, size_t bytes, const char *what, const char *s, struct error *e)
{
    size_t n = strlen(s);

    if (n >= bytes) {
        return error_set(e, ERR_INVALID, "%s is longer than %zu bytes", what, bytes - 1);
    }
    memcpy(ret, s, n + 1);
    return ERR_OK;
}

static bool
has_parent(const struct commit *c, const struct hash *id)
{
    for (size_t i = 0; i < c->parent_count; i++) {
        if (hash_equal(&c->parents[i], id)) {
            return true;
        }
    }
    return false;
}

static err_t
add_parent(const struct store *s, struct work *w, const struct hash *id, struct error *e)
{
    struct commit parent;
    int64_t seq;
    err_t code;

    if (has_parent(&w->head, id)) {
        return ERR_OK;
    }
    if (w->head.parent_count == COMMIT_MAX_PARENTS) {
        return error_set(e, ERR_LIMIT, "a commit has at most %d parents", COMMIT_MAX_PARENTS);
    }
    code = history_seq_of_id(s, id, &seq, e);
    if (code == ERR_OK) {
        code = history_by_seq(s, seq, &parent, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    w->parent_seq[w->head.parent_count] = seq;
    w->head.parents[w->head.parent_count++] = *id;
    if (parent.rev >= w->head.rev) {
        w->head.rev = parent.rev + 1;
    }
    return ERR_OK;
}

/* As history_weight counts the commit. */
static int64_t
weight_of(const struct delta_list *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct delta *d = &changes->items[i];

        if (!schema_kind((d->after != NULL ? d->after : d->before)->kind)->direct) {
            return STORE_FULL_DIRECT;
        }
    }
    return 1;
}

static err_t
plan_head(
    const struct store *s, const struct commit_request *q, struct work *w, struct error *e)
{
    struct commit *c = &w->head;
    int level = q->schema_version != 0 ? q->schema_version : SCHEMA_VERSION;
    err_t code;

    *c = (struct commit){
        .rev = 1,
        .schema_version = level,
        .fp = snapshot_fp(q->shared_to, level),
        .at_ms = store_time(s, q->at_ms),
        .confirm_until_ms = q->confirm_until_ms,
    };
    code = set_text(c->node, sizeof c->node, "node", q->node, e);
    if (code == ERR_OK) {
        code = set_text(c->author, sizeof c->author, "author", q->author, e);
    }
    if (code == ERR_OK) {
        code = set_text(c->summary, sizeof c->summary, "summary", q->summary, e);
    }
    if (code == ERR_OK && s->head_seq != 0) {
        code = add_parent(s, w, &s->head.id, e);
    }
    for (size_t i = 0; code == ERR_OK && i < q->more_parent_count; i++) {
        code = add_parent(s, w, &q->more_parents[i], e);
    }
    if (code != ERR_OK) {
        return code;
    }
    w->since_full = s->since_full + weight_of(&w->shared);
    w->has_full =
        s->head_seq == 0 || w->since_full >= (int64_t)STORE_FULL_EVERY * STORE_FULL_DIRECT;
    c->id = commit_compute_id(c);
    return ERR_OK;
}

static err_t
plan(const struct store *s, const struct commit_request *q, struct work *w, struct error *e)
{
    if (q->shared_to != NULL) {
        delta_list_of(s->shared, q->shared_to, &w->shared);
        w->new_head = w->shared.count > 0 || q->more_parent_count > 0 || q->ends_wait;
    }
    w->local_rev = s->local_rev;
    if (q->local_to != NULL) {
        delta_list_of(s->local, q->local_to, &w->local);
        w->local_fp = snapshot_fp(q->local_to, SCHEMA_VERSION);
        w->local_rev += w->local.count > 0 ? 1 : 0;
    }
    if (w->new_head) {
        err_t code = plan_head(s, q, w, e);

        if (code != ERR_OK) {
            return code;
        }
    }
    w->prune = w->has_full || s->writes >= STORE_PRUNE_WRITES;
    return ERR_OK;
}

static err_t
insert_entries(struct store *s, const struct work *w, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = rows_open_entries(s, &q, e);

    for (size_t i = 0; code == ERR_OK && i < w->shared.count; i++) {
        const struct delta *d = &w->shared.items[i];
        const struct object *o = d->after != NULL ? d->after : d->before;

        code = rows_put_entry(
            &q, w->head_seq, &(struct body_key){o->kind, o->id, o->objhash}, d->after != NULL,
            e);
    }
    return code;
}

static err_t
write_head(struct store *s, const struct commit_request *r, struct work *w, struct error *e)
{
    const struct commit_row row = {&w->head, w->parent_seq, w->has_full, true};
    err_t code = container_write(s, SCOPE_SHARED, &w->shared, e);

    if (code == ERR_OK) {
        code = rows_put_commit(s, &row, &w->head_seq, e);
    }
    if (code == ERR_OK) {
        code = insert_entries(s, w, e);
    }
    if (code == ERR_OK && w->has_full) {
        code = rows_put_full(s, w->head_seq, r->shared_to, e);
    }
    return code == ERR_OK ? rows_set_head(s, w->head_seq, e) : code;
}

static err_t
write_local(struct store *s, const struct work *w, struct error *e)
{
    static const char sql[] = "UPDATE meta SET local_rev = ?, local_fp = ?, "
                              "local_schema_version = ? WHERE one = 1";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = container_write(s, SCOPE_LOCAL, &w->local, e);

    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, w->local_rev);
    bind_hash(&q, 2, &w->local_fp);
    bind_i64(&q, 3, SCHEMA_VERSION);
    return query_run(&q, e);
}

static err_t
write_audit(
    struct store *s, const struct commit_request *r, const struct work *w, struct error *e)
{
    CLEANUP(buf_fini) struct buf text = {.max = AUDIT_MAX_BYTES};

    if (w->new_head) {
        char hex[SHA256_HEX + 1];

        hash_hex(&w->head.fp, hex);
        buf_printf(&text, "revision %lld@%.8s", (long long)w->head.rev, hex);
    }
    if (w->local_rev != s->local_rev) {
        buf_printf(
            &text, "%slocal revision %lld", text.len > 0 ? ", " : "", (long long)w->local_rev);
    }
    buf_printf(&text, "%s%s", text.len > 0 ? ": " : "", r->summary);
    return audit_row(s, store_time(s, r->at_ms), r->author, "commit", buf_str(&text), e);
}

static err_t
write_all(struct store *s, const struct commit_request *r, struct work *w, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    err_t code = tx_begin(s->db, &t, e);

    if (code == ERR_OK) {
        code = load_check_head(s, e);
    }
    if (code == ERR_OK && w->new_head) {
        code = write_head(s, r, w, e);
    }
    if (code == ERR_OK && w->local.count > 0) {
        code = write_local(s, w, e);
    }
    if (code == ERR_OK && w->new_head) {
        code = waiting_follow(s, s->head_seq, w->head_seq, e);
    }
    for (size_t i = 0; code == ERR_OK && i < r->drop_draft_count; i++) {
        code = draft_drop(s, r->drop_draft[i].kind, r->drop_draft[i].id, e);
    }
    if (code == ERR_OK) {
        code = write_audit(s, r, w, e);
    }
    if (code == ERR_OK && w->prune) {
        code = prune(s, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    crashpoint("store_before_commit");
    code = tx_commit(&t, e);
    crashpoint("store_after_commit");
    return code;
}

err_t
store_commit(
    struct store *s, const struct commit_request *q, struct commit *ret, int64_t *ret_local_rev,
    struct error *e)
{
    CLEANUP(work_fini) struct work w = {0};
    err_t code;

    store_enter(s);
    code = load_state(s, e);
    if (code == ERR_OK) {
        code = plan(s, q, &w, e);
    }
    if (code == ERR_OK) {
        code = write_all(s, q, &w, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (w.new_head) {
        s->head = w.head;
        s->head_seq = w.head_seq;
        s->since_full = w.has_full ? 0 : w.since_full;
        load_replace(&s->shared, q->shared_to);
    }
    if (w.local.count > 0) {
        s->local_rev = w.local_rev;
        load_replace(&s->local, q->local_to);
    }
    s->writes = w.prune ? 0 : s->writes + 1;
    *ret = s->head;
    *ret_local_rev = s->local_rev;
    return ERR_OK;
}
