/* SPDX-License-Identifier: Apache-2.0 */
#include "model/commit.h"

#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/date.h"
#include "base/json.h"
#include "base/utf8.h"

#define COMMIT_MAX_BYTES ((size_t)16384) /* texts escaped, 16 parents */
#define INT_MAX_JSON     ((int64_t)9007199254740991)
#define FP8              8

static json_t *
hex_of(const struct hash *h)
{
    char hex[SHA256_HEX + 1];

    hash_hex(h, hex);
    return json_string(hex);
}

static void
set(json_t *obj, const char *key, json_t *value)
{
    ASSERT(value != NULL && json_object_set_new(obj, key, value) == 0);
}

/* Everything but the times. */
static json_t *
common_json(const struct commit *c)
{
    json_t *j = json_object();
    json_t *parents = json_array();

    ASSERT(j != NULL && parents != NULL);
    ASSERT(c->parent_count <= COMMIT_MAX_PARENTS);
    for (size_t i = 0; i < c->parent_count; i++) {
        ASSERT(json_array_append_new(parents, hex_of(&c->parents[i])) == 0);
    }
    set(j, "rev", json_integer(c->rev));
    set(j, "fp", hex_of(&c->fp));
    set(j, "parents", parents);
    set(j, "node", json_string(c->node));
    set(j, "author", json_string(c->author));
    set(j, "summary", json_string(c->summary));
    set(j, "schema_version", json_integer(c->schema_version));
    return j;
}

void
commit_canonical(const struct commit *c, struct buf *out)
{
    json_auto_t *j = common_json(c);

    set(j, "at", json_integer(c->at_ms));
    if (c->confirm_until_ms != 0) {
        set(j, "confirm_until", json_integer(c->confirm_until_ms));
    }
    json_canonical(j, out);
}

struct hash
commit_compute_id(const struct commit *c)
{
    CLEANUP(buf_fini) struct buf b = {.max = COMMIT_MAX_BYTES};

    commit_canonical(c, &b);
    ASSERT(!b.failed);
    return sha256(b.data, b.len);
}

static json_t *
time_of(int64_t ms)
{
    char text[DATE_TEXT_BYTES];

    date_format(ms, text);
    return json_string(text);
}

json_t *
commit_to_json(const struct commit *c)
{
    json_t *j = common_json(c);
    char hex[SHA256_HEX + 1];

    hash_hex(&c->fp, hex);
    set(j, "id", hex_of(&c->id));
    set(j, "fp8", json_stringn(hex, FP8));
    set(j, "at", time_of(c->at_ms));
    if (c->confirm_until_ms != 0) {
        set(j, "confirm_until", time_of(c->confirm_until_ms));
    }
    return j;
}

static err_t
read_text(const json_t *j, const char *key, char *ret, size_t bytes, struct error *e)
{
    const char *s;
    err_t code = json_get_str(j, key, &s, e);
    size_t n;

    if (code != ERR_OK) {
        return code;
    }
    n = strlen(s);
    if (n >= bytes || utf8_has_control(s, n, "")) {
        return error_set(
            e, ERR_INVALID, "%s: at most %zu bytes, no control characters", key, bytes - 1);
    }
    memcpy(ret, s, n + 1);
    return ERR_OK;
}

static err_t
read_hash(const char *hex, const char *what, struct hash *ret, struct error *e)
{
    if (hex == NULL || strlen(hex) != SHA256_HEX || !hash_from_hex(hex, ret)) {
        return error_set(e, ERR_INVALID, "%s: 64 lower-case hex digits wanted", what);
    }
    return ERR_OK;
}

static err_t
read_parents(const json_t *j, struct commit *c, struct error *e)
{
    const json_t *list = json_object_get(j, "parents");
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > COMMIT_MAX_PARENTS) {
        return error_set(
            e, ERR_INVALID, "parents: a list of at most %d ids wanted", COMMIT_MAX_PARENTS);
    }
    if ((count == 0) != (c->rev == 1)) {
        return error_set(e, ERR_INVALID, "only the first revision has no parents");
    }
    for (size_t i = 0; i < count; i++) {
        err_t code =
            read_hash(json_string_value(json_array_get(list, i)), "parents", &c->parents[i], e);

        if (code != ERR_OK) {
            return code;
        }
        for (size_t k = 0; k < i; k++) {
            if (hash_equal(&c->parents[i], &c->parents[k])) {
                return error_set(e, ERR_INVALID, "parents: one is there twice");
            }
        }
    }
    c->parent_count = count;
    return ERR_OK;
}

static err_t
read_numbers(const json_t *j, struct commit *c, struct error *e)
{
    int64_t schema_version = 0;
    err_t code = json_get_int(j, "rev", 1, INT_MAX_JSON, &c->rev, e);

    if (code == ERR_OK) {
        code = json_get_int(j, "schema_version", 1, INT_MAX, &schema_version, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(j, "at", 0, INT_MAX_JSON, &c->at_ms, e);
    }
    if (code == ERR_OK) {
        code = json_opt_int(j, "confirm_until", 1, INT_MAX_JSON, &c->confirm_until_ms, e);
    }
    c->schema_version = (int)schema_version;
    return code;
}

static err_t
read_texts(const json_t *j, struct commit *c, struct error *e)
{
    err_t code = read_text(j, "node", c->node, sizeof c->node, e);

    if (code == ERR_OK) {
        code = read_text(j, "author", c->author, sizeof c->author, e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "summary", c->summary, sizeof c->summary, e);
    }
    return code;
}

err_t
commit_from_json(const json_t *j, struct commit *ret, struct error *e)
{
    static const char *const keys[] = {
        "at",      "author", "confirm_until",  "fp",      "id", "node",
        "parents", "rev",    "schema_version", "summary", NULL};
    struct commit c = {0};
    const char *fp = NULL;
    const char *id = NULL;
    struct hash given;
    err_t code = json_only_keys(j, keys, e);

    if (code == ERR_OK) {
        code = read_numbers(j, &c, e);
    }
    if (code == ERR_OK) {
        code = read_texts(j, &c, e);
    }
    if (code == ERR_OK) {
        code = read_parents(j, &c, e);
    }
    if (code == ERR_OK) {
        code = json_get_str(j, "fp", &fp, e);
    }
    if (code == ERR_OK) {
        code = read_hash(fp, "fp", &c.fp, e);
    }
    if (code == ERR_OK) {
        code = json_opt_str(j, "id", &id, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    c.id = commit_compute_id(&c);
    if (id != NULL) {
        code = read_hash(id, "id", &given, e);
        if (code == ERR_OK && !hash_equal(&given, &c.id)) {
            code = error_set(e, ERR_INVALID, "the id does not follow from the content");
        }
    }
    if (code == ERR_OK) {
        *ret = c;
    }
    return code;
}
