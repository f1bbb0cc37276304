/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/inner.h"

void
store_enter(const struct store *s)
{
    ASSERT(s != NULL && s->magic == STORE_MAGIC);
    ASSERT(pthread_equal(s->owner, pthread_self()));
}

int64_t
store_time(const struct store *s, int64_t at_ms)
{
    return at_ms != 0 ? at_ms : clock_wall_ms(s->clock);
}

err_t
kind_of_row(const char *name, enum kind *ret, struct error *e)
{
    if (!schema_kind_by_name(name, ret)) {
        return error_set(e, ERR_CORRUPT, "the database is damaged: no kind is called %s", name);
    }
    return ERR_OK;
}

/* Object of a row kind, id, objhash, form, data. *io_kind: kind of the row before, since
 * rows of one kind follow each other. */
static err_t
row_object(
    const struct store *s, const struct query *q, enum kind *io_kind, struct object **ret,
    struct error *e)
{
    struct body_key key = {.id = col_str(q, 1)};
    const char *name = col_str(q, 0);
    err_t code = ERR_OK;

    if (strcmp(schema_kind(*io_kind)->name, name) != 0) {
        code = kind_of_row(name, io_kind, e);
    }
    key.kind = *io_kind;
    if (code == ERR_OK) {
        code = col_hash(q, 2, &key.objhash, e);
    }
    return code == ERR_OK ? body_object(s, q, 3, &key, ret, e) : code;
}

err_t
load_container(const struct store *s, enum scope scope, struct snapshot **ret, struct error *e)
{
    static const char *const sql[] = PER_SCOPE(
        "SELECT o.kind, o.id, o.objhash, b.form, b.data FROM ",
        "_object o LEFT JOIN body b ON b.objhash = o.objhash AND b.kind = o.kind "
        "ORDER BY o.kind, o.id");
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(snapshot_edit_cleanup) struct snapshot_edit *x = snapshot_edit_new(NULL);
    enum kind kind = (enum kind)0;
    bool row = false;
    err_t code = query_open(s->db, sql[scope], &q, e);

    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct object *o = NULL;

        code = row_object(s, &q, &kind, &o, e);
        if (code == ERR_OK) {
            snapshot_edit_put(x, o);
        }
    }
    if (code == ERR_NOT_FOUND) {
        return error_set(
            e, ERR_CORRUPT, "the database is damaged: the content of %s %s is missing",
            col_str(&q, 0), col_str(&q, 1));
    }
    return code == ERR_OK ? snapshot_seal(TAKE(x), ret, e) : code;
}

/* One row of meta. */
struct state_row {
    int64_t head_seq, local_rev, local_schema_version;
    struct hash local_fp;
};

static err_t
read_meta(const struct store *s, struct state_row *ret, struct error *e)
{
    static const char sql[] = "SELECT head_seq, local_rev, local_schema_version, local_fp "
                              "FROM meta WHERE one = 1";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code == ERR_OK) {
        code = query_need(&q, "the row of meta", e);
    }
    if (code == ERR_OK) {
        ret->head_seq = col_i64(&q, 0);
        ret->local_rev = col_i64(&q, 1);
        ret->local_schema_version = col_i64(&q, 2);
        code = col_hash(&q, 3, &ret->local_fp, e);
    }
    return code;
}

void
load_replace(struct snapshot **held, const struct snapshot *by)
{
    struct snapshot *old = *held;

    *held = snapshot_ref(by);
    snapshot_unref(old);
}

err_t
load_check_head(const struct store *s, struct error *e)
{
    struct state_row row;
    err_t code = read_meta(s, &row, e);

    if (code == ERR_OK && (row.head_seq != s->head_seq || row.local_rev != s->local_rev)) {
        return error_set(
            e, ERR_CONFLICT,
            "another program changed the database; restart lockstepd to go on from there");
    }
    return code;
}

err_t
load_check_fp(
    const struct store *s, enum scope scope, const struct snapshot *objects, struct error *e)
{
    struct state_row row;
    struct commit head;
    struct hash fp;
    err_t code = read_meta(s, &row, e);

    if (code == ERR_OK && scope == SCOPE_LOCAL) {
        fp = snapshot_fp(objects, (int)row.local_schema_version);
        return hash_equal(&fp, &row.local_fp)
                   ? ERR_OK
                   : error_set(
                         e, ERR_CORRUPT,
                         "the database is damaged: the local objects are not those last committed");
    }
    if (code == ERR_OK) {
        code = history_by_seq(s, row.head_seq, &head, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    fp = snapshot_fp(objects, head.schema_version);
    return hash_equal(&fp, &head.fp)
               ? ERR_OK
               : error_set(
                     e, ERR_CORRUPT,
                     "the database is damaged: the shared objects are not those of the head commit");
}

err_t
load_state(struct store *s, struct error *e)
{
    CLEANUP(tx_cleanup) struct tx t = {0};
    CLEANUP(snapshot_cleanup) struct snapshot *shared = NULL;
    CLEANUP(snapshot_cleanup) struct snapshot *local = NULL;
    struct state_row row = {0};
    struct commit head = {0};
    int64_t since_full = 0;
    err_t code;

    if (s->shared != NULL) {
        return ERR_OK;
    }
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = read_meta(s, &row, e);
    }
    if (code == ERR_OK) {
        code = history_by_seq(s, row.head_seq, &head, e);
    }
    if (code == ERR_OK) {
        code = load_container(s, SCOPE_SHARED, &shared, e);
    }
    if (code == ERR_OK) {
        code = load_check_fp(s, SCOPE_SHARED, shared, e);
    }
    if (code == ERR_OK) {
        code = load_container(s, SCOPE_LOCAL, &local, e);
    }
    if (code == ERR_OK) {
        code = load_check_fp(s, SCOPE_LOCAL, local, e);
    }
    if (code == ERR_OK) {
        code = history_weight(s, row.head_seq, &since_full, e);
    }
    if (code == ERR_OK) {
        s->shared = TAKE(shared);
        s->local = TAKE(local);
        s->head = head;
        s->head_seq = row.head_seq;
        s->local_rev = row.local_rev;
        s->since_full = since_full;
    }
    return code;
}

/* Singletons that came with a later release than wrote the database. */
static err_t
complete_local(struct store *s, struct error *e)
{
    CLEANUP(snapshot_cleanup) struct snapshot *local = NULL;
    struct snapshot_edit *x = snapshot_edit_new(s->local);
    struct commit_request q = {.author = "lockstepd", .summary = "new in this release"};
    struct commit head;
    int64_t local_rev;
    bool missing = false;
    err_t code;

    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);

        if (kind->singleton && kind->scope == SCOPE_LOCAL &&
            snapshot_singleton(s->local, (enum kind)k) == NULL) {
            snapshot_edit_put(x, object_singleton((enum kind)k));
            missing = true;
        }
    }
    if (!missing) {
        snapshot_edit_free(x);
        return ERR_OK;
    }
    code = snapshot_seal(x, &local, e);
    if (code != ERR_OK) {
        return code;
    }
    q.local_to = local;
    return store_commit(s, &q, &head, &local_rev, e);
}

err_t
store_load(struct store *s, struct store_state *ret, struct error *e)
{
    struct draft_list draft = {0};
    err_t code;

    store_enter(s);
    code = load_state(s, e);
    if (code == ERR_OK) {
        code = complete_local(s, e);
    }
    if (code == ERR_OK) {
        code = draft_load(s, &draft, e);
    }
    if (code == ERR_OK) {
        *ret = (struct store_state){
            .head = s->head,
            .shared = snapshot_ref(s->shared),
            .local = snapshot_ref(s->local),
            .local_rev = s->local_rev,
            .draft = draft,
        };
    }
    return code;
}
