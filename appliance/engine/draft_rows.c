/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/draft_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"
#include "engine/inner.h"
#include "engine/problems_json.h"
#include "engine/sync_doc.h"

static bool
is_shared(enum kind kind)
{
    return schema_kind(kind)->scope == SCOPE_SHARED;
}

/* ---- what people see ---- */

static const char *
change_name(const struct draft_entry *entry)
{
    if (entry->before == NULL) {
        return "added";
    }
    return entry->after == NULL ? "removed" : "changed";
}

json_t *
draft_changes_json(const struct view *v, bool shared_only)
{
    const struct draft_entry **list = view_entries_by_name(v);
    json_t *changes = json_array();

    for (size_t i = 0; i < v->entry_count; i++) {
        const struct draft_entry *entry = list[i];

        if (shared_only && !is_shared(entry->kind)) {
            continue;
        }
        (void)json_array_append_new(
            changes,
            json_pack(
                "{s:s, s:s, s:s, s:s, s:o, s:o, s:b}", "kind", schema_kind(entry->kind)->name,
                "id", entry->id, "name", entry->name, "change", change_name(entry), "author",
                json_foreign_text(entry->author), "at", json_time(entry->at_ms), "conflict",
                entry->conflict));
    }
    free(list);
    return changes;
}

/* ---- rows, to hand on ---- */

static err_t
get_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct draft_list *ret = ctx;
    const struct draft_list *draft = &en->live.draft;

    (void)e;
    ret->rows = xcalloc(draft->count + 1, sizeof *ret->rows);
    ret->count = 0;
    for (size_t i = 0; i < draft->count; i++) {
        const struct draft_row *row = &draft->rows[i];

        if (is_shared(row->kind)) {
            struct draft_row *copy = &ret->rows[ret->count++];

            *copy = *row;
            copy->object = row->object != NULL ? object_ref(row->object) : NULL;
        }
    }
    return ERR_OK;
}

err_t
draft_rows_get(struct engine *en, struct draft_list *ret, struct error *e)
{
    *ret = (struct draft_list){.count = 0};
    return engine_run(en, get_on_engine, ret, e);
}

static json_t *
base_json(const struct draft_row *row)
{
    char hex[SHA256_HEX + 1];

    if (!row->has_base) {
        return json_null();
    }
    hash_hex(&row->base, hex);
    return json_string(hex);
}

json_t *
draft_rows_json(const struct draft_list *rows)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->count; i++) {
        const struct draft_row *row = &rows->rows[i];

        (void)json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:s, s:s, s:I, s:o, s:o}", "kind", schema_kind(row->kind)->name,
                "id", row->id, "name", row->name, "author", row->author, "at_ms",
                (json_int_t)row->at_ms, "base", base_json(row), "object",
                row->object != NULL ? sync_object_json(row->object) : json_null()));
    }
    return list;
}

/* ---- rows, as another node hands them on ---- */

static err_t
read_text(const json_t *j, const char *key, char *ret, size_t bytes, struct error *e)
{
    const char *text = NULL;
    err_t code = json_get_str(j, key, &text, e);
    size_t len = code == ERR_OK ? strlen(text) : 0;

    if (code == ERR_OK && (len >= bytes || utf8_has_control(text, len, ""))) {
        return error_set(
            e, ERR_INVALID, "%s: at most %zu bytes, no control characters", key, bytes - 1);
    }
    if (code == ERR_OK) {
        memcpy(ret, text, len + 1);
    }
    return code;
}

static err_t
read_base(const json_t *j, struct draft_row *row, struct error *e)
{
    const char *text = NULL;
    err_t code = json_opt_str(j, "base", &text, e);

    row->has_base = code == ERR_OK && text != NULL;
    if (row->has_base && !hash_from_hex(text, &row->base)) {
        return error_set(e, ERR_INVALID, "\"base\" is no hash of an object");
    }
    return code;
}

static err_t
read_row(const json_t *j, struct draft_row *row, struct error *e)
{
    static const char *const keys[] = {"kind",  "id",   "name",   "author",
                                       "at_ms", "base", "object", NULL};
    const char *kind = NULL;
    err_t code = json_only_keys(j, keys, e);

    if (code == ERR_OK) {
        code = json_get_str(j, "kind", &kind, e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "id", row->id, sizeof row->id, e);
    }
    if (code == ERR_OK) {
        code = sync_place_check(kind, row->id, &row->kind, e);
    }
    if (code == ERR_OK && schema_kind(row->kind)->direct) {
        code = error_set(e, ERR_INVALID, "%s is no kind that is drafted", kind);
    }
    if (code == ERR_OK) {
        code = read_text(j, "name", row->name, sizeof row->name, e);
    }
    if (code == ERR_OK) {
        code = read_text(j, "author", row->author, sizeof row->author, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(j, "at_ms", 0, INT64_MAX >> 11, &row->at_ms, e);
    }
    if (code == ERR_OK) {
        code = read_base(j, row, e);
    }
    if (code == ERR_OK && json_is_object(json_object_get(j, "object"))) {
        code =
            sync_object_read(row->kind, row->id, json_object_get(j, "object"), &row->object, e);
    } else if (code == ERR_OK && !json_is_null(json_object_get(j, "object"))) {
        code = error_set(e, ERR_SYNTAX, "\"object\" is an object or null");
    } else if (code == ERR_OK && schema_kind(row->kind)->singleton) {
        code = error_set(e, ERR_INVALID, "no draft deletes the %s", kind);
    }
    if (code == ERR_OK && row->object != NULL) {
        (void)snprintf(row->name, sizeof row->name, "%s", row->object->name.s);
    }
    return code;
}

static int
compare(const void *a, const void *b)
{
    return draft_row_compare(a, b);
}

err_t
draft_rows_read(const json_t *j, struct draft_list *ret, struct error *e)
{
    size_t count = json_array_size(j);
    err_t code = ERR_OK;

    *ret = (struct draft_list){.count = 0};
    if (!json_is_array(j) || count > SYNC_ENTRIES_MAX) {
        return error_set(e, ERR_SYNTAX, "the rows of a draft are a list");
    }
    ret->rows = xcalloc(count + 1, sizeof *ret->rows);
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = read_row(json_array_get(j, i), &ret->rows[ret->count++], e);
    }
    if (code == ERR_OK && count > 1) {
        qsort(ret->rows, ret->count, sizeof *ret->rows, compare);
    }
    for (size_t i = 1; i < ret->count && code == ERR_OK; i++) {
        if (compare(&ret->rows[i - 1], &ret->rows[i]) == 0) {
            code = error_set(e, ERR_INVALID, "a draft changes each object once");
        }
    }
    return code;
}
