/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash_json.h"
#include "base/json.h"
#include "engine/sync_names.h"

#define OBJECT_MAX_BYTES ((size_t)16 << 20)
#define ENTRY_FIELDS     3

void
sync_doc_free(struct sync_doc *d)
{
    for (size_t i = 0; i < d->object_count; i++) {
        object_unref(d->objects[i]);
    }
    free(d->objects);
    free(d->index);
    free(d->by_id);
    lineage_free(&d->commits);
    *d = (struct sync_doc){.has_index = false};
}

static const struct hash *
id_at(const struct sync_doc *d, size_t at)
{
    return &d->commits.items[at].commit.id;
}

static int
compare_positions(const void *a, const void *b, void *ctx)
{
    const struct sync_doc *d = ctx;
    const size_t *x = a;
    const size_t *y = b;

    return memcmp(id_at(d, *x), id_at(d, *y), sizeof(struct hash));
}

/* Documents from outside may have many commits with many parents each. */
static void
sort_commits(struct sync_doc *d)
{
    d->by_id = xcalloc(d->commits.count + 1, sizeof *d->by_id);
    for (size_t i = 0; i < d->commits.count; i++) {
        d->by_id[i] = i;
    }
    qsort_r(d->by_id, d->commits.count, sizeof *d->by_id, compare_positions, d);
}

static const struct lineage_commit *
find_sorted(const struct sync_doc *d, const struct hash *id)
{
    size_t low = 0, high = d->commits.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(id, id_at(d, d->by_id[middle]), sizeof *id);

        if (order == 0) {
            return &d->commits.items[d->by_id[middle]];
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
}

const struct lineage_commit *
sync_doc_commit(const struct sync_doc *d, const struct hash *id)
{
    if (d->by_id != NULL) {
        return find_sorted(d, id);
    }
    for (size_t i = d->commits.count; i > 0; i--) {
        if (hash_equal(id_at(d, i - 1), id)) {
            return &d->commits.items[i - 1];
        }
    }
    return NULL;
}

/* ---- reading ---- */

static err_t
read_hash(const json_t *j, const char *key, struct hash *ret, bool *ret_given, struct error *e)
{
    const char *text = NULL;
    err_t code = json_opt_str(j, key, &text, e);

    if (code == ERR_OK && text != NULL && !hash_from_hex(text, ret)) {
        code = error_set(e, ERR_INVALID, "\"%s\" is no id of a commit", key);
    }
    *ret_given = code == ERR_OK && text != NULL;
    return code;
}

err_t
sync_place_check(const char *kind, const char *id, enum kind *ret_kind, struct error *e)
{
    uint64_t unused;

    if (!schema_kind_by_name(kind, ret_kind)) {
        return error_set(e, ERR_INVALID, "there is no kind \"%.40s\"", kind);
    }
    if (schema_kind(*ret_kind)->scope != SCOPE_SHARED) {
        return error_set(e, ERR_INVALID, "%s is no kind that nodes share", kind);
    }
    if (strlen(id) >= OBJECT_ID_BYTES || !snapshot_id_key(*ret_kind, id, &unused)) {
        return error_set(e, ERR_INVALID, "\"%.40s\" is no id of a %s", id, kind);
    }
    return ERR_OK;
}

/* kind and id of a row; of the kinds only those that all nodes share. */
static err_t
read_place(const json_t *row, enum kind *ret_kind, char id[OBJECT_ID_BYTES], struct error *e)
{
    const char *kind = json_string_value(json_array_get(row, 0));
    const char *text = json_string_value(json_array_get(row, 1));
    err_t code;

    if (json_array_size(row) != ENTRY_FIELDS || kind == NULL || text == NULL) {
        return error_set(e, ERR_SYNTAX, "a row is a list of kind, id and content");
    }
    code = sync_place_check(kind, text, ret_kind, e);
    if (code == ERR_OK) {
        memcpy(id, text, strlen(text) + 1);
    }
    return code;
}

static err_t
read_entry(const json_t *row, struct lineage_entry *ret, struct error *e)
{
    const json_t *hash = json_array_get(row, 2);
    err_t code = read_place(row, &ret->kind, ret->id, e);

    if (code != ERR_OK) {
        return code;
    }
    ret->has_object = !json_is_null(hash);
    if (ret->has_object &&
        (!json_is_string(hash) || !hash_from_hex(json_string_value(hash), &ret->objhash))) {
        return error_set(e, ERR_INVALID, "the content of an entry is a hash");
    }
    return ERR_OK;
}

err_t
sync_entries_read(
    const json_t *rows, struct lineage_entry **ret, size_t *ret_count, struct error *e)
{
    size_t count = json_array_size(rows);
    err_t code = ERR_OK;

    if (!json_is_array(rows) || count > SYNC_ENTRIES_MAX) {
        return error_set(e, ERR_SYNTAX, "entries are a list");
    }
    *ret = xcalloc(count + 1, sizeof **ret);
    *ret_count = count;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = read_entry(json_array_get(rows, i), &(*ret)[i], e);
    }
    return code;
}

static err_t
read_commits(const json_t *list, struct lineage *ret, struct error *e)
{
    size_t count = json_array_size(list);
    err_t code = ERR_OK;

    if (!json_is_array(list) || count > SYNC_COMMITS_MAX) {
        return error_set(e, ERR_SYNTAX, "\"commits\" is a list");
    }
    ret->items = xcalloc(count + 1, sizeof *ret->items);
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = commit_from_json(
            json_object_get(json_array_get(list, i), "commit"),
            &ret->items[ret->count++].commit, e);
    }
    return code;
}

static err_t
read_entries(const json_t *list, struct lineage *l, struct error *e)
{
    err_t code = ERR_OK;

    for (size_t i = 0; i < l->count && code == ERR_OK; i++) {
        code = sync_entries_read(
            json_object_get(json_array_get(list, i), "entries"), &l->items[i].entries,
            &l->items[i].entry_count, e);
    }
    return code;
}

err_t
sync_object_read(
    enum kind kind, const char *id, const json_t *content, struct object **ret, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf bytes = {.max = OBJECT_MAX_BYTES};
    err_t code;

    json_canonical(content, &bytes);
    if (bytes.failed) {
        return error_set(e, ERR_LIMIT, "an object is too large");
    }
    code = object_from_canonical(kind, id, buf_str(&bytes), bytes.len, ret, e);
    /* Damaged is what a database holds; this came from outside. */
    return code == ERR_CORRUPT ? error_set(e, ERR_INVALID, "%s", e->msg) : code;
}

static err_t
read_object(const json_t *row, struct object **ret, struct error *e)
{
    char id[OBJECT_ID_BYTES];
    enum kind kind = K_POOL;
    err_t code = read_place(row, &kind, id, e);

    return code == ERR_OK ? sync_object_read(kind, id, json_array_get(row, 2), ret, e) : code;
}

static err_t
read_objects(const json_t *list, struct sync_doc *d, struct error *e)
{
    size_t count = json_array_size(list);
    err_t code = ERR_OK;

    if (!json_is_array(list) || count > SYNC_ENTRIES_MAX) {
        return error_set(e, ERR_SYNTAX, "\"objects\" is a list");
    }
    d->objects = xcalloc(count + 1, sizeof(struct object *));
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = read_object(json_array_get(list, i), &d->objects[i], e);
        d->object_count += code == ERR_OK ? 1 : 0;
    }
    return code;
}

static err_t
check_objects(const struct sync_doc *d, struct error *e)
{
    struct sync_names names = {.count = 0};
    err_t code = ERR_OK;

    if (d->object_count > 0) {
        sync_names_make(&names, d);
    }
    for (size_t i = 0; i < d->object_count && code == ERR_OK; i++) {
        const struct object *o = d->objects[i];
        struct lineage_entry x = {.kind = o->kind, .objhash = o->objhash};

        memcpy(x.id, o->id, sizeof x.id);
        if (!sync_names_have(&names, &x)) {
            code = error_set(
                e, ERR_INVALID, "%s %s came with a content that no commit names",
                schema_kind(o->kind)->name, o->name.s);
        }
    }
    free(names.items);
    return code;
}

static bool
is_of_newer_release(const struct sync_doc *d)
{
    const struct lineage_commit *head = sync_doc_commit(d, &d->head);

    return head != NULL && head->commit.schema_version > SCHEMA_VERSION;
}

static err_t
read_content(const json_t *j, struct sync_doc *d, struct error *e)
{
    const json_t *index = json_object_get(j, "index");
    err_t code = read_entries(json_object_get(j, "commits"), &d->commits, e);

    d->has_index = index != NULL;
    if (code == ERR_OK && d->has_index) {
        code = sync_entries_read(index, &d->index, &d->index_count, e);
    }
    if (code == ERR_OK) {
        code = read_objects(json_object_get(j, "objects"), d, e);
    }
    return code == ERR_OK ? check_objects(d, e) : code;
}

err_t
sync_doc_read(const json_t *j, struct sync_doc *ret, struct error *e)
{
    const json_t *more = json_object_get(j, "more");
    struct sync_doc d = {.more = json_is_true(more)};
    bool has_head = false;
    err_t code = read_hash(j, "head", &d.head, &has_head, e);

    if (code == ERR_OK && !has_head) {
        code = error_set(e, ERR_INVALID, "\"head\" is missing");
    }
    if (code == ERR_OK) {
        code = read_hash(j, "expected_head", &d.expected, &d.has_expected, e);
    }
    if (code == ERR_OK) {
        code = read_commits(json_object_get(j, "commits"), &d.commits, e);
    }
    if (code == ERR_OK) {
        sort_commits(&d);
    }
    if (code == ERR_OK && (d.more || !is_of_newer_release(&d))) {
        code = read_content(j, &d, e);
    }
    if (code == ERR_OK && d.more &&
        (d.commits.count == 0 || d.has_index || d.object_count > 0)) {
        code = error_set(e, ERR_INVALID, "a piece of a history is commits, and nothing else");
    }
    if (code != ERR_OK) {
        sync_doc_free(&d);
        return code;
    }
    *ret = d;
    return ERR_OK;
}

/* ---- writing ---- */

json_t *
sync_entries_json(const struct lineage_entry *entries, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct lineage_entry *x = &entries[i];

        (void)json_array_append_new(
            list, json_pack(
                      "[s, s, o]", schema_kind(x->kind)->name, x->id,
                      x->has_object ? hash_json(&x->objhash) : json_null()));
    }
    return list;
}

static json_t *
commit_json(const struct lineage_commit *c)
{
    CLEANUP(buf_fini) struct buf bytes;
    json_t *commit = NULL;
    struct error e;

    buf_init(&bytes, OBJECT_MAX_BYTES);
    commit_canonical(&c->commit, &bytes);
    ASSERT(json_parse(buf_str(&bytes), bytes.len, &commit, &e) == ERR_OK);
    (void)json_object_set_new(commit, "id", hash_json(&c->commit.id));
    return json_pack(
        "{s:o, s:o}", "commit", commit, "entries",
        sync_entries_json(c->entries, c->entry_count));
}

json_t *
sync_object_json(const struct object *o)
{
    json_t *content = NULL;
    struct error e;

    ASSERT(json_parse(o->canonical, o->canonical_len, &content, &e) == ERR_OK);
    return content;
}

static json_t *
object_row(const struct object *o)
{
    return json_pack("[s, s, o]", schema_kind(o->kind)->name, o->id, sync_object_json(o));
}

json_t *
sync_doc_json(const struct sync_doc *d)
{
    json_t *j = json_pack("{s:o}", "head", hash_json(&d->head));
    json_t *commits = json_array();
    json_t *objects = json_array();

    if (d->has_expected) {
        (void)json_object_set_new(j, "expected_head", hash_json(&d->expected));
    }
    if (d->more) {
        (void)json_object_set_new(j, "more", json_true());
    }
    for (size_t i = 0; i < d->commits.count; i++) {
        (void)json_array_append_new(commits, commit_json(&d->commits.items[i]));
    }
    (void)json_object_set_new(j, "commits", commits);
    if (d->has_index) {
        (void)json_object_set_new(j, "index", sync_entries_json(d->index, d->index_count));
    }
    for (size_t i = 0; i < d->object_count; i++) {
        (void)json_array_append_new(objects, object_row(d->objects[i]));
    }
    (void)json_object_set_new(j, "objects", objects);
    return j;
}
