/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/deflate.h"
#include "store/inner.h"

#define BODY_MAX_BYTES  ((size_t)16 << 20)
#define DEFLATE_OVER    1024u /* shorter ones stay as they are */
#define FORM_DEFLATED   1
#define FORM_SEALED     2
#define PLACE_MAX_BYTES ((size_t)128)

/* What binds sealed bytes to their row. */
static void
place_of(enum kind kind, const struct hash *objhash, struct buf *out)
{
    buf_puts(out, schema_kind(kind)->name);
    buf_putc(out, '\0');
    buf_put(out, objhash->b, sizeof objhash->b);
    ASSERT(!out->failed);
}

static bool
is_there(struct store *s, const struct object *o, err_t *code, struct error *e)
{
    static const char sql[] = "SELECT 1 FROM body WHERE objhash = ? AND kind = ?";
    CLEANUP(query_cleanup) struct query q = {0};
    bool row = false;

    *code = query_open(s->db, sql, &q, e);
    if (*code != ERR_OK) {
        return false;
    }
    bind_hash(&q, 1, &o->objhash);
    bind_text(&q, 2, schema_kind(o->kind)->name);
    *code = query_row(&q, &row, e);
    return *code == ERR_OK && row;
}

static err_t
insert(
    struct store *s, const struct object *o, int form, const struct buf *bytes, struct error *e)
{
    static const char sql[] =
        "INSERT INTO body (objhash, kind, form, data) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING";
    CLEANUP(query_cleanup) struct query q = {0};
    err_t code = query_open(s->db, sql, &q, e);

    if (code != ERR_OK) {
        return code;
    }
    bind_hash(&q, 1, &o->objhash);
    bind_text(&q, 2, schema_kind(o->kind)->name);
    bind_i64(&q, 3, form);
    bind_blob(&q, 4, (const uint8_t *)bytes->data, bytes->len);
    return query_run(&q, e);
}

err_t
body_put(struct store *s, const struct object *o, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf packed = {.max = BODY_MAX_BYTES + BODY_MAX_BYTES / 8};
    CLEANUP(buf_fini) struct buf sealed = {.max = 2 * BODY_MAX_BYTES};
    CLEANUP(buf_fini) struct buf place = {.max = PLACE_MAX_BYTES};
    const struct schema_kind *kind = schema_kind(o->kind);
    bool plain = o->canonical_len <= DEFLATE_OVER && !kind->has_secret;
    err_t code = ERR_OK;
    int form = 0;

    /* To look first is worth it only where packing costs more. */
    if (!plain && (is_there(s, o, &code, e) || code != ERR_OK)) {
        return code;
    }
    if (o->canonical_len > BODY_MAX_BYTES) {
        return error_set(e, ERR_LIMIT, "%s %s is too large", kind->name, o->name.s);
    }
    if (o->canonical_len > DEFLATE_OVER) {
        deflate_put(o->canonical, o->canonical_len, &packed);
        form = packed.len < o->canonical_len ? FORM_DEFLATED : 0;
    }
    if (form == 0) {
        buf_reset(&packed);
        buf_put(&packed, o->canonical, o->canonical_len);
    }
    ASSERT(!packed.failed);
    if (!kind->has_secret) {
        return insert(s, o, form, &packed, e);
    }
    place_of(o->kind, &o->objhash, &place);
    crypt_seal(s->key, place.data, place.len, packed.data, packed.len, &sealed);
    ASSERT(!sealed.failed);
    return insert(s, o, form | FORM_SEALED, &sealed, e);
}

/* Undoes form. *ret points into data or into one of the buffers. */
static err_t
unpack(
    const struct store *s, int64_t form, const struct body_key *key, struct buf bufs[2],
    struct text *io, struct error *e)
{
    CLEANUP(buf_fini) struct buf place = {.max = PLACE_MAX_BYTES};
    err_t code = ERR_OK;

    if ((form & FORM_SEALED) != 0) {
        place_of(key->kind, &key->objhash, &place);
        if (!buf_reserve(&bufs[0], io->len)) {
            return buf_status(&bufs[0], e);
        }
        code = crypt_open(s->key, place.data, place.len, io->s, io->len, &bufs[0], e);
        *io = (struct text){buf_str(&bufs[0]), (uint32_t)bufs[0].len};
    }
    if (code == ERR_OK && (form & FORM_DEFLATED) != 0) {
        code = inflate_put(io->s, io->len, &bufs[1], e);
        *io = (struct text){buf_str(&bufs[1]), (uint32_t)bufs[1].len};
    }
    return code;
}

static void bufs_cleanup(struct buf (*bufs)[2])
{
    buf_wipe_fini(&(*bufs)[0]);
    buf_wipe_fini(&(*bufs)[1]);
}

err_t
body_verify(
    const struct store *s, const struct query *q, int col, const struct body_key *key,
    struct error *e)
{
    CLEANUP(bufs_cleanup)
    struct buf bufs[2] = {{.max = BODY_MAX_BYTES}, {.max = BODY_MAX_BYTES}};
    struct error why = {0};
    struct text bytes;
    struct hash objhash;
    size_t n;
    err_t code;

    bytes.s = (const char *)col_blob(q, col + 1, &n);
    bytes.len = (uint32_t)n;
    code = n > BODY_MAX_BYTES || bytes.s == NULL
               ? error_set(&why, ERR_CORRUPT, "the stored length is wrong")
               : unpack(s, col_i64(q, col), key, bufs, &bytes, &why);
    if (code == ERR_OK) {
        objhash = sha256(bytes.s, bytes.len);
        if (hash_equal(&objhash, &key->objhash)) {
            return ERR_OK;
        }
        error_set(&why, ERR_CORRUPT, "its hash differs");
    }
    return error_set(
        e, ERR_CORRUPT, "content of a %s, hash %s: %s", schema_kind(key->kind)->name, key->id,
        why.msg);
}

err_t
body_object(
    const struct store *s, const struct query *q, int col, const struct body_key *key,
    struct object **ret, struct error *e)
{
    CLEANUP(bufs_cleanup)
    struct buf bufs[2] = {{.max = BODY_MAX_BYTES}, {.max = BODY_MAX_BYTES}};
    const char *kind = schema_kind(key->kind)->name;
    struct object *o = NULL;
    struct error why;
    struct text bytes;
    size_t n;
    err_t code;

    if (col_null(q, col)) {
        return error_set(e, ERR_NOT_FOUND, "the content of %s %s is not kept", kind, key->id);
    }
    bytes.s = (const char *)col_blob(q, col + 1, &n);
    if (n > BODY_MAX_BYTES || bytes.s == NULL) {
        return error_set(e, ERR_CORRUPT, "%s %s: the stored length is wrong", kind, key->id);
    }
    bytes.len = (uint32_t)n;
    code = unpack(s, col_i64(q, col), key, bufs, &bytes, &why);
    if (code == ERR_OK) {
        code = object_from_canonical(key->kind, key->id, bytes.s, bytes.len, &o, &why);
        if (code != ERR_OK && schema_kind(key->kind)->has_secret) {
            /* The reason may quote a piece of what was sealed. */
            error_set(&why, code, "its form is wrong");
        }
    }
    if (code == ERR_OK && !hash_equal(&o->objhash, &key->objhash)) {
        object_unref(o);
        code = error_set(&why, ERR_CORRUPT, "its hash differs");
    }
    if (code != ERR_OK) {
        /* Whatever the reason: stored bytes that cannot be read are damage. */
        return error_set(e, ERR_CORRUPT, "stored %s %s: %s", kind, key->id, why.msg);
    }
    *ret = o;
    return ERR_OK;
}
