/* SPDX-License-Identifier: Apache-2.0 */
#include "store/lineage.h"

#include <stdlib.h>

#include "base/arena.h"
#include "store/content.h"

void
lineage_free(struct lineage *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->items[i].entries);
    }
    free(l->items);
    *l = (struct lineage){0};
}

void
lineage_cleanup(struct lineage *l)
{
    lineage_free(l);
}

/* -- one commit and another */

err_t
store_has_commit(struct store *s, const struct hash *id, bool *ret, struct error *e)
{
    int64_t seq = 0;
    err_t code;

    store_enter(s);
    code = history_find(s, id, &seq, e);
    if (code == ERR_OK) {
        *ret = seq != 0;
    }
    return code;
}

/* The parents of a revision have smaller ones: what is below that of a leads to no a. */
static err_t
leads_to(const struct store *s, int64_t a, int64_t b, bool *ret, struct error *e)
{
    static const char sql[] =
        "WITH RECURSIVE up (seq) AS (SELECT ?2 UNION "
        "SELECT p.parent_seq FROM up JOIN commit_parent p ON p.seq = up.seq "
        "JOIN commit_log l ON l.seq = p.parent_seq "
        "WHERE l.rev >= (SELECT rev FROM commit_log WHERE seq = ?1)) "
        "SELECT EXISTS (SELECT 1 FROM up WHERE seq = ?1)";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, a);
    bind_i64(&q, 2, b);
    code = query_need(&q, "whether a commit leads to another", e);
    if (code == ERR_OK) {
        *ret = col_i64(&q, 0) != 0;
    }
    return code;
}

err_t
store_is_ancestor(
    struct store *s, const struct hash *a, const struct hash *b, bool *ret, struct error *e)
{
    int64_t a_seq = 0;
    int64_t b_seq = 0;
    err_t code;

    store_enter(s);
    code = history_seq_of_id(s, a, &a_seq, e);
    if (code == ERR_OK) {
        code = history_seq_of_id(s, b, &b_seq, e);
    }
    return code == ERR_OK ? leads_to(s, a_seq, b_seq, ret, e) : code;
}

/* -- what another node lacks */

#define MARK_WANTED 1u
#define MARK_HAVE   2u

/* A walk from the newest commit to the oldest: parents have smaller seqs, so that a commit's
 * marks are complete when the walk comes to it. */
struct walk {
    uint8_t *marks; /* by seq */
    int64_t top;    /* highest seq that may be marked */
    size_t pending; /* commits ahead that are wanted and not had: zero ends the walk */
    int64_t *found; /* seqs, falling */
    size_t count, cap;
};

static void
walk_fini(struct walk *w)
{
    free(w->marks);
    free(w->found);
}

static void
mark(struct walk *w, int64_t seq, unsigned marks)
{
    uint8_t *at = &w->marks[seq];
    bool was_pending = *at == MARK_WANTED;

    *at = (uint8_t)(*at | marks);
    if (was_pending && *at != MARK_WANTED) {
        w->pending--;
    } else if (!was_pending && *at == MARK_WANTED) {
        w->pending++;
    }
}

static err_t
walk_start(
    const struct store *s, const struct lineage_request *r, struct walk *w, struct error *e)
{
    size_t count = r->head_count + r->have_count;
    CLEANUP(xfree_cleanup) int64_t *seqs = xcalloc(count + 1, sizeof *seqs);
    err_t code = ERR_OK;

    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        code = i < r->head_count ? history_seq_of_id(s, &r->heads[i], &seqs[i], e)
                                 : history_find(s, &r->have[i - r->head_count], &seqs[i], e);
        w->top = seqs[i] > w->top ? seqs[i] : w->top;
    }
    if (code != ERR_OK) {
        return code;
    }
    w->marks = xcalloc((size_t)w->top + 1, 1);
    for (size_t i = 0; i < count; i++) {
        if (seqs[i] != 0) {
            mark(w, seqs[i], i < r->head_count ? MARK_WANTED : MARK_HAVE);
        }
    }
    return ERR_OK;
}

/* q: rows of seq and parent, falling; *row: whether it stands on one. */
static err_t
mark_parents(struct walk *w, struct query *q, int64_t seq, bool *row, struct error *e)
{
    err_t code = ERR_OK;

    for (; code == ERR_OK && *row && col_i64(q, 0) >= seq; code = query_row(q, row, e)) {
        int64_t parent = col_i64(q, 1);

        if (col_i64(q, 0) > seq) {
            continue; /* of one that is not looked at */
        }
        if (parent < 1 || parent >= seq) {
            return error_set(
                e, ERR_CORRUPT, "the database is damaged: a commit comes before its parent");
        }
        mark(w, parent, w->marks[seq]);
    }
    return code;
}

static void
add_found(struct walk *w, int64_t seq)
{
    if (w->count == w->cap) {
        w->cap = w->cap == 0 ? 64 : w->cap * 2;
        w->found = xrealloc(w->found, w->cap * sizeof *w->found);
    }
    w->found[w->count++] = seq;
}

static err_t
walk_down(const struct store *s, struct walk *w, struct error *e)
{
    static const char sql[] =
        "SELECT seq, parent_seq FROM commit_parent WHERE seq <= ? ORDER BY seq DESC";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code == ERR_OK) {
        bind_i64(&q, 1, w->top);
        code = query_row(&q, &row, e);
    }
    for (int64_t seq = w->top; code == ERR_OK && w->pending > 0; seq--) {
        if (w->marks[seq] == 0) {
            continue;
        }
        if (w->marks[seq] == MARK_WANTED) {
            add_found(w, seq);
            w->pending--;
        } else {
            w->marks[seq] = MARK_HAVE;
        }
        code = mark_parents(w, &q, seq, &row, e);
    }
    return code;
}

static err_t
read_entry(const struct query *q, struct lineage_entry *ret, struct error *e)
{
    err_t code = kind_of_row(col_str(q, 0), &ret->kind, e);

    if (code == ERR_OK) {
        code = col_text(q, 1, ret->id, sizeof ret->id, e);
    }
    ret->has_object = !col_null(q, 2);
    return code == ERR_OK && ret->has_object ? col_hash(q, 2, &ret->objhash, e) : code;
}

err_t
lineage_entries(struct query *q, struct lineage_entry **ret, size_t *ret_count, struct error *e)
{
    CLEANUP(xfree_cleanup) struct lineage_entry *found = NULL;
    size_t count = 0;
    size_t cap = 0;
    bool row = false;
    err_t code;

    while ((code = query_row(q, &row, e)) == ERR_OK && row) {
        if (count == cap) {
            cap = cap == 0 ? 4 : cap * 2;
            found = xrealloc(found, cap * sizeof *found);
        }
        found[count] = (struct lineage_entry){.has_object = false};
        code = read_entry(q, &found[count++], e);
        if (code != ERR_OK) {
            return code;
        }
    }
    if (code == ERR_OK) {
        *ret = TAKE(found);
        *ret_count = count;
    }
    return code;
}

static err_t
read_commit(const struct store *s, int64_t seq, struct lineage_commit *ret, struct error *e)
{
    static const char sql[] =
        "SELECT kind, id, objhash FROM commit_entry WHERE seq = ? ORDER BY kind, id";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = history_by_seq(s, seq, &ret->commit, e);

    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    return lineage_entries(&q, &ret->entries, &ret->entry_count, e);
}

/* The oldest first, as far as a piece goes. */
static err_t
read_oldest(
    const struct store *s, const struct walk *w, const struct lineage_request *q,
    struct lineage *ret, struct error *e)
{
    bool cut = w->count > q->piece && w->count - q->piece > q->piece;
    size_t most = cut ? q->piece : w->count;
    size_t entries = 0;
    err_t code = ERR_OK;

    ret->items = xcalloc(most + 1, sizeof *ret->items);
    while (code == ERR_OK && ret->count < most && entries <= q->piece_entries) {
        struct lineage_commit *c = &ret->items[ret->count++];

        code = read_commit(s, w->found[w->count - ret->count], c, e);
        entries += c->entry_count;
    }
    return code;
}

err_t
store_lineage(
    struct store *s, const struct lineage_request *q, struct lineage *ret, bool *ret_more,
    struct error *e)
{
    CLEANUP(walk_fini) struct walk w = {0};
    struct lineage found = {0};
    CLEANUP(tx_cleanup) struct tx t = {0};
    err_t code;

    store_enter(s);
    code = tx_begin_read(s->db, &t, e);
    if (code == ERR_OK) {
        code = walk_start(s, q, &w, e);
    }
    if (code == ERR_OK) {
        code = walk_down(s, &w, e);
    }
    if (code == ERR_OK) {
        code = read_oldest(s, &w, q, &found, e);
    }
    if (code != ERR_OK) {
        lineage_free(&found);
        return code;
    }
    *ret = found;
    *ret_more = found.count < w.count;
    return ERR_OK;
}

err_t
store_ends(struct store *s, size_t max, struct hash **ret, size_t *ret_count, struct error *e)
{
    static const char sql[] = "SELECT l.id FROM discarded d JOIN commit_log l ON l.seq = d.seq "
                              "ORDER BY d.seq DESC LIMIT ?";
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(xfree_cleanup) struct hash *found = xcalloc(max + 1, sizeof *found);
    size_t count = 0;
    bool row = false;
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, (int64_t)max);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        code = col_hash(&q, 0, &found[count++], e);
        if (code != ERR_OK) {
            return code;
        }
    }
    if (code == ERR_OK) {
        *ret = TAKE(found);
        *ret_count = count;
    }
    return code;
}
