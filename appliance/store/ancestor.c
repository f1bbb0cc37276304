/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "store/inner.h"
#include "store/lineage.h"

/* A commit and its ancestors, the greatest (rev, id) first: a parent's revision is smaller, so
 * that what waits to be walked never comes before what was given. ?1: seq of the commit; ?2:
 * the smallest revision that counts; ?3, ?4: how many at most, and without how many. */
#define UP                                                                                     \
    "WITH RECURSIVE up (rev, id, seq) AS ("                                                    \
    "SELECT rev, id, seq FROM commit_log WHERE seq = ?1 UNION "                                \
    "SELECT l.rev, l.id, l.seq FROM up JOIN commit_parent p ON p.seq = up.seq "                \
    "JOIN commit_log l ON l.seq = p.parent_seq WHERE l.rev >= ?2 "                             \
    "ORDER BY 1 DESC, 2 DESC LIMIT ?3 OFFSET ?4) SELECT id, rev, seq FROM up"

err_t
store_ancestors(
    struct store *s, const struct hash *id, size_t skip, struct hash ret[STORE_ANCESTORS],
    size_t *ret_count, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t seq = 0;
    size_t count = 0;
    bool row = false;
    err_t code;

    store_enter(s);
    code = history_seq_of_id(s, id, &seq, e);
    if (code == ERR_OK) {
        code = query_open(s->db, UP, &q, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    bind_i64(&q, 2, 1);
    bind_i64(&q, 3, STORE_ANCESTORS);
    bind_i64(&q, 4, (int64_t)skip);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        ASSERT(count < STORE_ANCESTORS);
        code = col_hash(&q, 0, &ret[count++], e);
        if (code != ERR_OK) {
            return code;
        }
    }
    if (code == ERR_OK) {
        *ret_count = count;
    }
    return code;
}

static int
compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hash));
}

/* *ret: the smallest revision of those that are stored, or 0. */
static err_t
lowest(
    const struct store *s, const struct hash *ids, size_t count, int64_t *ret, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "SELECT rev FROM commit_log WHERE id = ?", &q, e);

    *ret = 0;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        bool row = false;

        bind_hash(&q, 1, &ids[i]);
        code = query_row(&q, &row, e);
        if (code == ERR_OK && row && (*ret == 0 || col_i64(&q, 0) < *ret)) {
            *ret = col_i64(&q, 0);
        }
        query_again(&q);
    }
    return code;
}

/* among: sorted. *ret_seq: 0 where there is none. */
static err_t
find_newest(
    const struct store *s, int64_t of, const struct hash *among, size_t count, int64_t *ret_seq,
    struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t from = 0;
    bool row = false;
    err_t code = lowest(s, among, count, &from, e);

    *ret_seq = 0;
    if (code != ERR_OK || from == 0) {
        return code;
    }
    code = query_open(s->db, UP, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, of);
    bind_i64(&q, 2, from);
    bind_i64(&q, 3, -1);
    bind_i64(&q, 4, 0);
    while (*ret_seq == 0 && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        struct hash id;

        code = col_hash(&q, 0, &id, e);
        if (code != ERR_OK) {
            return code;
        }
        if (bsearch(&id, among, count, sizeof id, compare_ids) != NULL) {
            *ret_seq = col_i64(&q, 2);
        }
    }
    return code;
}

err_t
store_newest_ancestor(
    struct store *s, const struct hash *of, const struct hash *among, size_t count,
    struct commit *ret, struct error *e)
{
    CLEANUP(xfree_cleanup) struct hash *sorted = xcalloc(count + 1, sizeof *sorted);
    int64_t seq = 0;
    int64_t found = 0;
    err_t code;

    store_enter(s);
    code = history_seq_of_id(s, of, &seq, e);
    if (code == ERR_OK && count > 0) {
        memcpy(sorted, among, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_ids);
        code = find_newest(s, seq, sorted, count, &found, e);
    }
    if (code == ERR_OK && found == 0) {
        *ret = (struct commit){.rev = 0};
    }
    return code == ERR_OK && found != 0 ? history_by_seq(s, found, ret, e) : code;
}
