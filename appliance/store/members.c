/* SPDX-License-Identifier: Apache-2.0 */
#include "store/members.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "store/inner.h"

#define RECORD_MAX_BYTES ((size_t)4096)
#define SEALED_MAX_BYTES ((size_t)256)

static const char key_place[] = "member.peer_key ";
static const char former_place[] = "former_key.peer_key ";

err_t
store_node_id(struct store *s, char ret[MEMBER_ID_BYTES], struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code;

    store_enter(s);
    code = query_open(s->db, "SELECT node_id FROM meta WHERE one = 1", &q, e);
    if (code == ERR_OK) {
        code = query_need(&q, "the row of meta", e);
    }
    return code == ERR_OK ? col_text(&q, 0, ret, MEMBER_ID_BYTES, e) : code;
}

/* What binds a sealed key to its row. */
static void
place_of(const char *id, struct buf *out)
{
    buf_puts(out, key_place);
    buf_puts(out, id);
    ASSERT(!out->failed);
}

static err_t
open_key(const struct store *s, const struct query *q, struct member *m, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf key = {.max = MEMBER_KEY_BYTES - 1};
    CLEANUP(buf_fini) struct buf place = {.max = 128};
    const uint8_t *sealed;
    size_t bytes;
    err_t code;

    if (col_null(q, 4)) {
        return ERR_OK;
    }
    sealed = col_blob(q, 4, &bytes);
    place_of(m->id, &place);
    code = crypt_open(s->key, place.data, place.len, sealed, bytes, &key, e);
    if (code == ERR_OK) {
        memcpy(m->key, buf_str(&key), key.len + 1);
    }
    return code;
}

/* Columns id, seq, gone, record, peer_key. */
static err_t
read_row(const struct store *s, const struct query *q, struct member *m, struct error *e)
{
    json_auto_t *j = NULL;
    const char *record = col_str(q, 3);
    err_t code = json_parse(record, strlen(record), &j, e);

    if (code == ERR_OK) {
        code = member_from_json(j, m, e);
    }
    if (code == ERR_OK && (strcmp(m->id, col_str(q, 0)) != 0 || m->seq != col_i64(q, 1) ||
                           m->gone != (col_i64(q, 2) != 0))) {
        code = error_set(e, ERR_CORRUPT, "its record is of another");
    }
    return code == ERR_OK ? open_key(s, q, m, e) : code;
}

err_t
store_members(struct store *s, struct member **ret, size_t *ret_count, struct error *e)
{
    static const char sql[] =
        "SELECT id, seq, gone, record, peer_key, (SELECT count(*) FROM member) "
        "FROM member ORDER BY id";
    CLEANUP(xfree_cleanup) struct member *found = NULL;
    CLEANUP(query_cleanup) struct query q = {0};
    struct error why = {0};
    size_t count = 0;
    bool row = false;
    err_t code;

    store_enter(s);
    code = query_open(s->db, sql, &q, e);
    while (code == ERR_OK && (code = query_row(&q, &row, e)) == ERR_OK && row) {
        if (found == NULL) { /* to grow would leave copies of keys behind */
            found = xcalloc((size_t)col_i64(&q, 5), sizeof *found);
        }
        if (read_row(s, &q, &found[count++], &why) != ERR_OK) {
            code = error_set(
                e, ERR_CORRUPT, "the database is damaged: member %s: %s", col_str(&q, 0),
                why.msg);
        }
    }
    if (code == ERR_OK) {
        *ret = TAKE(found);
        *ret_count = count;
    } else if (found != NULL) {
        crypt_wipe(found, count * sizeof *found);
    }
    return code;
}

static err_t
put_row(struct store *s, struct query *q, const struct member *m, struct error *e)
{
    CLEANUP(buf_fini) struct buf record = {.max = RECORD_MAX_BYTES};
    CLEANUP(buf_fini) struct buf sealed = {.max = SEALED_MAX_BYTES};
    CLEANUP(buf_fini) struct buf place = {.max = 128};
    json_auto_t *j = member_to_json(m);

    json_canonical(j, &record);
    place_of(m->id, &place);
    if (*m->key != '\0') {
        crypt_seal(s->key, place.data, place.len, m->key, strlen(m->key), &sealed);
    }
    ASSERT(!record.failed && !sealed.failed);
    query_again(q);
    bind_text(q, 1, m->id);
    bind_i64(q, 2, m->seq);
    bind_i64(q, 3, m->gone ? 1 : 0);
    bind_text(q, 4, buf_str(&record));
    bind_blob(q, 5, (const uint8_t *)sealed.data, sealed.len);
    bind_i64(q, 6, store_time(s, 0));
    return query_run(q, e);
}

/* ---- the former key ---- */

/* The time is sealed with the key: neither can be changed alone. */
static void
former_place_of(int64_t until_ms, struct buf *out)
{
    buf_printf(out, "%s%lld", former_place, (long long)until_ms);
    ASSERT(!out->failed);
}

err_t
store_former_key(struct store *s, struct former_key *ret, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(buf_wipe_fini) struct buf key = {.max = MEMBER_KEY_BYTES - 1};
    CLEANUP(buf_fini) struct buf place = {.max = 128};
    struct error why;
    const uint8_t *sealed;
    size_t bytes;
    bool row = false;
    err_t code;

    *ret = (struct former_key){.key = ""};
    store_enter(s);
    code = query_open(s->db, "SELECT peer_key, until_ms FROM former_key", &q, e);
    if (code == ERR_OK) {
        code = query_row(&q, &row, e);
    }
    if (code != ERR_OK || !row) {
        return code;
    }
    sealed = col_blob(&q, 0, &bytes);
    former_place_of(col_i64(&q, 1), &place);
    if (crypt_open(s->key, place.data, place.len, sealed, bytes, &key, &why) != ERR_OK) {
        return error_set(
            e, ERR_CORRUPT, "the database is damaged: the former peer key: %s", why.msg);
    }
    ret->until_ms = col_i64(&q, 1);
    memcpy(ret->key, buf_str(&key), key.len + 1);
    return ERR_OK;
}

static err_t
drop_former(struct store *s, struct error *e)
{
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, "DELETE FROM former_key", &q, e);

    return code == ERR_OK ? query_run(&q, e) : code;
}

static err_t
put_former(struct store *s, const struct former_key *former, struct error *e)
{
    static const char sql[] = "INSERT INTO former_key (one, peer_key, until_ms) "
                              "VALUES (1, ?, ?)";
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(buf_fini) struct buf sealed = {.max = SEALED_MAX_BYTES};
    CLEANUP(buf_fini) struct buf place = {.max = 128};
    err_t code = drop_former(s, e);

    if (code == ERR_OK && former->key[0] != '\0') {
        code = query_open(s->db, sql, &q, e);
    }
    if (code != ERR_OK || former->key[0] == '\0') {
        return code;
    }
    former_place_of(former->until_ms, &place);
    crypt_seal(s->key, place.data, place.len, former->key, strlen(former->key), &sealed);
    ASSERT(!sealed.failed);
    bind_blob(&q, 1, (const uint8_t *)sealed.data, sealed.len);
    bind_i64(&q, 2, former->until_ms);
    return query_run(&q, e);
}

/* ---- all of it ---- */

err_t
store_member_put(struct store *s, const struct member *list, size_t count, struct error *e)
{
    return store_member_rekey(s, list, count, NULL, e);
}

err_t
store_member_rekey(
    struct store *s, const struct member *list, size_t count, const struct former_key *former,
    struct error *e)
{
    static const char sql[] =
        "INSERT INTO member (id, seq, gone, record, peer_key, at_ms) VALUES (?, ?, ?, ?, ?, ?)";
    CLEANUP(tx_cleanup) struct tx t = {0};
    CLEANUP(query_cleanup) struct query q = {0};
    CLEANUP(query_cleanup) struct query drop = {0};
    err_t code;

    store_enter(s);
    code = tx_begin(s->db, &t, e);
    if (code == ERR_OK) {
        code = query_open(s->db, "DELETE FROM member", &drop, e);
    }
    if (code == ERR_OK) {
        code = query_run(&drop, e);
    }
    if (code == ERR_OK) {
        code = query_open(s->db, sql, &q, e);
    }
    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        code = put_row(s, &q, &list[i], e);
    }
    if (code == ERR_OK && former != NULL) {
        code = put_former(s, former, e);
    }
    return code == ERR_OK ? tx_commit(&t, e) : code;
}
