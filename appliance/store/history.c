/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "store/inner.h"

#define NAMED_MAX 4 /* candidates that a message names */
#define FP8       ((size_t)8)

static err_t
read_parents(const struct store *s, int64_t seq, struct commit *c, struct error *e)
{
    static const char sql[] =
        "SELECT l.id FROM commit_parent p JOIN commit_log l ON l.seq = p.parent_seq "
        "WHERE p.seq = ? ORDER BY p.position";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        if (c->parent_count == COMMIT_MAX_PARENTS) {
            return error_set(e, ERR_CORRUPT, "a stored commit has too many parents");
        }
        code = col_hash(&q, 0, &c->parents[c->parent_count++], e);
        if (code != ERR_OK) {
            return code;
        }
    }
    return code;
}

err_t
history_row(
    const struct store *s, const struct query *q, int64_t *ret_seq, struct commit *ret,
    struct error *e)
{
    struct commit c = {
        .rev = col_i64(q, 2),
        .schema_version = (int)col_i64(q, 3),
        .at_ms = col_i64(q, 8),
        .confirm_until_ms = col_i64(q, 9),
    };
    int64_t seq = col_i64(q, 0);
    err_t code = col_hash(q, 1, &c.id, e);

    if (code == ERR_OK) {
        code = col_hash(q, 4, &c.fp, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 5, c.node, sizeof c.node, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 6, c.author, sizeof c.author, e);
    }
    if (code == ERR_OK) {
        code = col_text(q, 7, c.summary, sizeof c.summary, e);
    }
    if (code == ERR_OK) {
        code = read_parents(s, seq, &c, e);
    }
    if (code == ERR_OK) {
        *ret = c;
        *ret_seq = seq;
    }
    return code;
}

err_t
history_by_seq(const struct store *s, int64_t seq, struct commit *ret, struct error *e)
{
    static const char sql[] = "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE seq = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    int64_t found;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, seq);
    code = query_need(&q, "a commit", e);
    return code == ERR_OK ? history_row(s, &q, &found, ret, e) : code;
}

err_t
history_find(const struct store *s, const struct hash *id, int64_t *ret, struct error *e)
{
    static const char sql[] = "SELECT seq FROM commit_log WHERE id = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_hash(&q, 1, id);
    code = query_row(&q, &row, e);
    if (code == ERR_OK) {
        *ret = row ? col_i64(&q, 0) : 0;
    }
    return code;
}

err_t
history_seq_of_id(const struct store *s, const struct hash *id, int64_t *ret, struct error *e)
{
    char hex[SHA256_HEX + 1];
    err_t code = history_find(s, id, ret, e);

    if (code == ERR_OK && *ret == 0) {
        hash_hex(id, hex);
        return error_set(e, ERR_NOT_FOUND, "there is no commit %s here", hex);
    }
    return code;
}

void
history_direct_kinds(char ret[DIRECT_KINDS_BYTES])
{
    size_t used = 1;

    ret[0] = ',';
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind((enum kind)k);

        if (kind->direct) {
            int n = snprintf(ret + used, DIRECT_KINDS_BYTES - used, "%s,", kind->name);

            ASSERT(n > 0 && (size_t)n < DIRECT_KINDS_BYTES - used);
            used += (size_t)n;
        }
    }
    ret[used] = '\0';
}

err_t
history_weight(const struct store *s, int64_t seq, int64_t *ret, struct error *e)
{
    static const char sql[] =
        "WITH RECURSIVE chain (seq, has_full) AS ("
        "SELECT seq, has_full FROM commit_log WHERE seq = ?1 "
        "UNION ALL "
        "SELECT p.parent_seq, c.has_full FROM chain "
        "JOIN commit_parent p ON p.seq = chain.seq AND p.position = 0 "
        "JOIN commit_log c ON c.seq = p.parent_seq WHERE NOT chain.has_full) "
        "SELECT coalesce(sum(CASE WHEN " COMMIT_IS_DRAFTED " THEN ?3 ELSE 1 END), 0) "
        "FROM chain l WHERE NOT l.has_full";
    char kinds[DIRECT_KINDS_BYTES];
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    history_direct_kinds(kinds);
    bind_i64(&q, 1, seq);
    bind_text(&q, 2, kinds);
    bind_i64(&q, 3, STORE_FULL_DIRECT);
    code = query_need(&q, "the weight of a commit", e);
    if (code == ERR_OK) {
        *ret = col_i64(&q, 0);
    }
    return code;
}

err_t
store_commits(
    struct store *s, int64_t before_rev, size_t limit, struct commit **ret, size_t *ret_count,
    struct error *e)
{
    static const char sql[] = "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE rev < ? "
                              "ORDER BY rev DESC, seq DESC";
    CLEANUP(xfree_cleanup) struct commit *found = NULL;
    CLEANUP(query_cleanup) struct query q = {0};
    size_t count = 0;
    size_t cap = 0;
    bool row = false;
    int64_t seq;
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, before_rev > 0 ? before_rev : INT64_MAX);
    while (limit > 0 && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        if (count >= limit && col_i64(&q, 2) != found[count - 1].rev) {
            break;
        }
        if (count == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            found = xrealloc(found, cap * sizeof *found);
        }
        code = history_row(s, &q, &seq, &found[count], e);
        if (code != ERR_OK) {
            return code;
        }
        count++;
    }
    if (code == ERR_OK) {
        *ret = TAKE(found);
        *ret_count = count;
    }
    return code;
}

/* "42" or "42@1a2b3c4d". */
static bool
parse_rev(const char *spec, int64_t *ret_rev, const char **ret_fp8)
{
    int64_t rev = 0;
    const char *p = spec;

    while (*p >= '0' && *p <= '9' && p - spec < 16) {
        rev = rev * 10 + (*p++ - '0');
    }
    if (p == spec || (*p != '\0' && (*p != '@' || strlen(p + 1) != FP8))) {
        return false;
    }
    *ret_rev = rev;
    *ret_fp8 = *p == '@' ? p + 1 : NULL;
    return true;
}

struct candidates {
    struct commit *first; /* NAMED_MAX of them */
    size_t count;
};

/* Two nodes that started with the same have one number and one fingerprint. */
static bool
share_fp(const struct candidates *x)
{
    for (size_t i = 0; i < x->count && i < NAMED_MAX; i++) {
        for (size_t k = 0; k < i; k++) {
            if (hash_equal(&x->first[i].fp, &x->first[k].fp)) {
                return true;
            }
        }
    }
    return false;
}

/* Each in such words that there is one of them. */
static void
name_candidates(struct buf *out, const struct candidates *x, bool by_id)
{
    char hex[SHA256_HEX + 1];

    for (size_t i = 0; i < x->count && i < NAMED_MAX; i++) {
        const struct commit *c = &x->first[i];

        buf_puts(out, i > 0 ? ", " : "");
        if (by_id) {
            hash_hex(&c->id, hex);
            buf_printf(out, "%s of %s", hex, c->node);
        } else {
            hash_hex(&c->fp, hex);
            buf_printf(out, "%lld@%.8s", (long long)c->rev, hex);
        }
    }
    buf_puts(out, x->count > NAMED_MAX ? ", ..." : "");
}

static err_t
find_rev(struct store *s, const char *spec, struct commit *ret, struct error *e)
{
    static const char sql[] =
        "SELECT " COMMIT_COLUMNS " FROM commit_log WHERE rev = ? ORDER BY seq DESC";
    CLEANUP(buf_fini) struct buf names = {.max = (size_t)2 * ERROR_MSG_BYTES};
    CLEANUP(query_cleanup) struct query q = {0};
    const char *fp8 = NULL;
    CLEANUP(xfree_cleanup) struct commit *first = xcalloc(NAMED_MAX, sizeof *first);
    struct candidates found = {first, 0};
    bool row = false;
    int64_t rev;
    int64_t seq;
    err_t code;

    if (!parse_rev(spec, &rev, &fp8)) {
        return error_set(
            e, ERR_NOT_FOUND, "\"%.80s\" names no commit: write 42, 42@1a2b3c4d or a full id",
            spec);
    }
    code = query_open(s->db, sql, &q, e);
    if (code != ERR_OK) {
        return code;
    }
    bind_i64(&q, 1, rev);
    while ((code = query_row(&q, &row, e)) == ERR_OK && row) {
        char hex[SHA256_HEX + 1];
        struct commit c;

        code = history_row(s, &q, &seq, &c, e);
        if (code != ERR_OK) {
            return code;
        }
        hash_hex(&c.fp, hex);
        if (fp8 == NULL || memcmp(hex, fp8, FP8) == 0) {
            if (found.count < NAMED_MAX) {
                first[found.count] = c;
            }
            found.count++;
        }
    }
    if (code != ERR_OK) {
        return code;
    }
    if (found.count == 0) {
        return error_set(e, ERR_NOT_FOUND, "there is no revision %s", spec);
    }
    if (found.count > 1) {
        name_candidates(&names, &found, fp8 != NULL || share_fp(&found));
        return error_set(e, ERR_CONFLICT, "%s is not unique: %s", spec, buf_str(&names));
    }
    *ret = first[0];
    return ERR_OK;
}

err_t
store_commit_find(struct store *s, const char *spec, struct commit *ret, struct error *e)
{
    struct hash id = {0};
    int64_t seq = 0;
    err_t code;

    store_enter(s);
    if (strlen(spec) != SHA256_HEX || !hash_from_hex(spec, &id)) {
        return find_rev(s, spec, ret, e);
    }
    code = history_seq_of_id(s, &id, &seq, e);
    return code == ERR_OK ? history_by_seq(s, seq, ret, e) : code;
}
