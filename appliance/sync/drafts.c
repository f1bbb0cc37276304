/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/drafts.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/problems_json.h"
#include "sync/inner.h"

#define PATH_DRAFT  "/peer/v1/draft"
#define PATH_ROWS   "/peer/v1/draft?content=1"
#define PATH_TAKEN  "/peer/v1/draft/taken"
#define COUNT_MAX   INT32_MAX
#define TEXT_FIELDS 6

/* ---- this node ---- */

err_t
drafts_own(struct cluster *c, bool content, json_t **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    CLEANUP(draft_list_free) struct draft_list rows = {.count = 0};
    json_t *changes;
    err_t code = content ? draft_rows_get(c->en, &rows, e) : ERR_OK;

    if (code != ERR_OK) {
        return code;
    }
    changes = draft_changes_json(v, true);
    *ret = json_pack(
        "{s:I, s:I, s:o}", "count", (json_int_t)v->entry_count, "local",
        (json_int_t)(v->entry_count - json_array_size(changes)), "changes", changes);
    if (content) {
        (void)json_object_set_new(*ret, "rows", draft_rows_json(&rows));
    }
    return ERR_OK;
}

/* ---- what another node says ---- */

static err_t
ask_draft(
    struct cluster *c, const struct member *m, const char *path, json_t **ret, struct error *e)
{
    struct member self;
    struct call call;
    err_t code;

    members_self(c->en, &self);
    call = cluster_call_of(c, m, &self);
    call.method = "GET";
    call.path = path;
    call.answer_max = SYNC_DOC_MAX;
    call.timeout_ms =
        strcmp(path, PATH_ROWS) == 0 ? c->tunables->sync_read_ms : call.timeout_ms;
    code = cluster_ask(c, &call, ret, NULL, e);
    crypt_wipe(&self, sizeof self);
    return code;
}

/* Only what is known, and texts that may be shown. */
static err_t
copy_change(const json_t *from, json_t *list, struct error *e)
{
    static const char *const keys[TEXT_FIELDS] = {"kind",   "id",     "name",
                                                  "change", "author", "at"};
    json_t *to = json_object();
    bool conflict = false;
    err_t code = ERR_OK;

    (void)json_array_append_new(list, to);
    for (size_t i = 0; i < TEXT_FIELDS && code == ERR_OK; i++) {
        const char *text = NULL;

        code = json_get_str(from, keys[i], &text, e);
        (void)json_object_set_new(to, keys[i], json_foreign_text(text));
    }
    if (code == ERR_OK) {
        code = json_get_bool(from, "conflict", &conflict, e);
    }
    (void)json_object_set_new(to, "conflict", json_boolean(conflict));
    return code;
}

static err_t
read_draft(const json_t *answer, json_t *into, struct error *e)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_t *list = json_array();
    int64_t count = 0, local = 0;
    err_t code = json_get_int(answer, "count", 0, COUNT_MAX, &count, e);

    if (code == ERR_OK) {
        code = json_get_int(answer, "local", 0, COUNT_MAX, &local, e);
    }
    for (size_t i = 0; i < json_array_size(changes) && code == ERR_OK; i++) {
        code = copy_change(json_array_get(changes, i), list, e);
    }
    if (code != ERR_OK) {
        json_decref(list);
        return code;
    }
    (void)json_object_set_new(into, "count", json_integer(count));
    (void)json_object_set_new(into, "local", json_integer(local));
    (void)json_object_set_new(into, "changes", list);
    return ERR_OK;
}

/* Who did not answer in the last round is not waited for. */
static err_t
look_at(struct cluster *c, const struct member *m, json_t *into, struct error *e)
{
    const struct peer *p;
    json_t *answer = NULL;
    bool answered;
    err_t code = ERR_UNAVAILABLE;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    answered = p != NULL && p->answered;
    (void)error_set(e, code, "%s", p != NULL ? p->failure.msg : "it was not asked yet");
    lock_give(&c->lock);
    if (answered) {
        code = ask_draft(c, m, PATH_DRAFT, &answer, e);
    }
    if (code == ERR_OK) {
        code = read_draft(answer, into, e);
    }
    json_decref(answer);
    return code;
}

static int
compare_names(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    return strcmp(x->name, y->name);
}

json_t *
drafts_json(struct cluster *c)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    char self[MEMBER_ID_BYTES];
    json_t *nodes = json_array();

    memcpy(self, list.items[list.self].id, sizeof self);
    qsort(list.items, list.count, sizeof *list.items, compare_names);
    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];
        bool is_self = strcmp(m->id, self) == 0;
        struct error error = {.code = ERR_OK};
        json_t *row;
        json_t *own = NULL;
        err_t code;

        if (m->gone) {
            continue;
        }
        row = json_pack(
            "{s:o, s:b, s:n, s:n, s:n, s:n}", "node", json_foreign_text(m->name), "self",
            is_self, "count", "local", "changes", "detail");
        if (is_self) {
            code = drafts_own(c, false, &own, &error);
            (void)json_object_update(row, own);
            json_decref(own);
        } else {
            code = look_at(c, m, row, &error);
        }
        if (code != ERR_OK) {
            (void)json_object_set_new(row, "detail", json_foreign_text(error.msg));
        }
        (void)json_array_append_new(nodes, row);
    }
    return json_pack("{s:o}", "nodes", nodes);
}

/* ---- taking one over ---- */

static err_t
fetch_rows(struct cluster *c, const struct member *m, struct draft_list *ret, struct error *e)
{
    json_t *answer = NULL;
    err_t code = ask_draft(c, m, PATH_ROWS, &answer, e);

    if (code == ERR_OK) {
        code = draft_rows_read(json_object_get(answer, "rows"), ret, e);
    }
    json_decref(answer);
    return code;
}

/* Nothing is forgotten there that is not stored here. */
static err_t
tell_taken(
    struct cluster *c, const struct member *m, const struct draft_list *rows, json_t **ret,
    struct error *e)
{
    CLEANUP(buf_fini) struct buf body;
    struct lineage_entry *taken = xcalloc(rows->count + 1, sizeof *taken);
    struct member self;
    struct call call;
    json_t *j;
    err_t code;

    for (size_t i = 0; i < rows->count; i++) {
        const struct draft_row *row = &rows->rows[i];

        taken[i].kind = row->kind;
        memcpy(taken[i].id, row->id, sizeof taken[i].id);
        taken[i].has_object = row->object != NULL;
        if (row->object != NULL) {
            taken[i].objhash = row->object->objhash;
        }
    }
    j = json_pack("{s:o}", "taken", sync_entries_json(taken, rows->count));
    buf_init(&body, SYNC_DOC_MAX);
    json_canonical(j, &body);
    json_decref(j);
    free(taken);
    members_self(c->en, &self);
    call = cluster_call_of(c, m, &self);
    call.method = "POST";
    call.path = PATH_TAKEN;
    call.body = buf_str(&body);
    call.body_len = body.len;
    call.timeout_ms = c->tunables->sync_read_ms;
    code = cluster_ask(c, &call, ret, NULL, e);
    crypt_wipe(&self, sizeof self);
    return code;
}

static json_t *
taken_json(
    struct cluster *c, const struct member *m, const struct draft_list *rows, size_t stored)
{
    struct error error = {.code = ERR_OK};
    json_t *answer = NULL;
    int64_t left = 0;
    err_t code = rows->count > 0 ? tell_taken(c, m, rows, &answer, &error) : ERR_OK;

    if (code == ERR_OK && rows->count > 0) {
        code = json_get_int(answer, "left", 0, COUNT_MAX, &left, &error);
    }
    json_decref(answer);
    return json_pack(
        "{s:o, s:I, s:I, s:o, s:o}", "node", json_foreign_text(m->name), "taken",
        (json_int_t)rows->count, "stored", (json_int_t)stored, "left",
        code == ERR_OK ? json_integer(left) : json_null(), "detail",
        code == ERR_OK ? json_null() : json_foreign_text(error.msg));
}

err_t
drafts_take(struct cluster *c, const struct drafts_taking *t, json_t **ret, struct error *e)
{
    CLEANUP(draft_list_free) struct draft_list rows = {.count = 0};
    struct member m;
    size_t stored = 0;
    err_t code = members_find(c->en, t->node, &m, e);

    if (code == ERR_OK) {
        struct error why;

        code = fetch_rows(c, &m, &rows, &why);
        if (code != ERR_OK) {
            code = error_set(e, ERR_UNAVAILABLE, "%s: %.180s", m.name, why.msg);
        }
    }
    if (code == ERR_OK) {
        code = draft_take(
            c->en,
            &(struct draft_taking){
                .rows = &rows, .overlap = t->overlap, .from = m.name, .who = t->who},
            &stored, e);
    }
    if (code == ERR_OK) {
        *ret = taken_json(c, &m, &rows, stored);
        cluster_wake(c);
    }
    crypt_wipe(&m, sizeof m);
    return code;
}
