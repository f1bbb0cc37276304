/* SPDX-License-Identifier: Apache-2.0 */
/* Preview: haproxy.cfg as it would be with one object as given. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/edit.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "routes_gen.h"

#define CFG_NAME "haproxy.cfg"
#define DIFF_MAX ((size_t)64 << 20)

/* The operation that the request means; false: refused, or *ret_any false: none. */
static bool
read_op(struct request *r, struct change *ret, bool *ret_any)
{
    static const char *const keys[] = {"kind", "name", "body", NULL};
    const char *kind = NULL;
    json_t *body = json_object_get(r->json, "body");
    struct error e;

    *ret = (struct change){.op = CHANGE_CREATE};
    if (!request_only_keys(r, keys)) {
        return false;
    }
    if (json_opt_str(r->json, "kind", &kind, &e) != ERR_OK ||
        json_opt_str(r->json, "name", &ret->name, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    *ret_any = kind != NULL;
    if (kind == NULL) {
        return true;
    }
    if (!schema_kind_by_name(kind, &ret->kind) || schema_kind(ret->kind)->direct) {
        reply_problem(r, 404, error_name(ERR_NOT_FOUND), "no kind \"%s\" is rendered", kind);
        return false;
    }
    if (body != NULL && !json_is_null(body) && !json_is_object(body)) {
        reply_problem(r, 400, error_name(ERR_SYNTAX), "\"body\" is no object");
        return false;
    }
    if (schema_kind(ret->kind)->singleton) {
        if (ret->name != NULL && strcmp(ret->name, kind) != 0) {
            reply_problem(
                r, 404, error_name(ERR_NOT_FOUND), "there is no %s \"%s\"", kind, ret->name);
            return false;
        }
        ret->name = schema_kind(ret->kind)->name;
    }
    if (json_is_object(body)) {
        ret->op = ret->name != NULL ? CHANGE_REPLACE : CHANGE_CREATE;
        ret->body = json_incref(body);
        return true;
    }
    if (ret->name == NULL) {
        reply_problem(r, 400, error_name(ERR_SYNTAX), "there is neither a name nor a body");
        return false;
    }
    ret->op = CHANGE_DELETE;
    return true;
}

/* The draft with the operation; new references. False: refused. */
static bool
make_candidate(struct request *r, struct snapshot **ret_shared, struct snapshot **ret_local)
{
    const struct view *v = request_view(r);
    struct problems *p = request_problems(r);
    struct error e = {.code = ERR_OK};
    struct change_set set;
    struct change op;
    bool any = false;
    err_t code;

    if (!read_op(r, &op, &any)) {
        return false;
    }
    if (!any) {
        *ret_shared = snapshot_ref(v->draft.shared);
        *ret_local = snapshot_ref(v->draft.local);
        return true;
    }
    change_set_init(&set);
    code = change_set_add(&set, op, &e);
    if (code == ERR_OK) {
        code = edit_try(r->http->config.engine, &set, ret_shared, ret_local, p, &e);
    }
    change_set_fini(&set);
    if (code != ERR_OK) {
        reply_error(r, &e, p);
    }
    return code == ERR_OK;
}

/* ---- lines ---- */

static json_t *
field_name(const struct line_origin *line)
{
    if (line->field < 0) {
        return json_null();
    }
    return json_string(schema_kind((enum kind)line->kind)->fields[line->field].name);
}

static json_t *
lines_json(const struct rendered *files)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < files->line_count; i++) {
        const struct line_origin *line = &files->lines[i];

        if (line->kind < 0) {
            continue;
        }
        (void)json_array_append_new(
            lines,
            json_pack(
                "{s:I, s:s, s:o, s:o, s:o}", "n", (json_int_t)i + 1, "kind",
                schema_kind((enum kind)line->kind)->name, "id",
                line->object != NULL ? json_string(line->object->id) : json_null(), "name",
                line->object != NULL ? json_string(line->object->name.s) : json_null(), "field",
                field_name(line)));
    }
    return lines;
}

/* Whether the JSON pointer of a problem leads into the field. */
static bool
pointer_names(const char *pointer, const char *field)
{
    size_t len = strlen(field);

    return pointer[0] == '/' && strncmp(pointer + 1, field, len) == 0 &&
           (pointer[len + 1] == '\0' || pointer[len + 1] == '/');
}

/* The line that a problem is about: of its field, else the first of its object, else null. */
static json_t *
line_of(const struct rendered *files, const struct problem *item)
{
    size_t found = 0;

    for (size_t i = 0; i < files->line_count; i++) {
        const struct line_origin *line = &files->lines[i];
        const struct schema_kind *kind;

        if (line->object == NULL || item->kind == NULL || item->name == NULL) {
            continue;
        }
        kind = schema_kind(line->object->kind);
        if (strcmp(kind->name, item->kind) != 0 ||
            strcmp(line->object->name.s, item->name) != 0) {
            continue;
        }
        if (line->field >= 0 && pointer_names(item->pointer, kind->fields[line->field].name)) {
            return json_integer((json_int_t)i + 1);
        }
        found = found == 0 ? i + 1 : found;
    }
    return found > 0 ? json_integer((json_int_t)found) : json_null();
}

static json_t *
messages_json(const struct rendered *files, const struct problems *p)
{
    json_t *messages = json_array();

    for (size_t i = 0; i < p->count; i++) {
        const struct problem *item = &p->items[i];

        if (strcmp(item->code, "haproxy") == 0) {
            (void)json_array_append_new(
                messages, json_pack(
                              "{s:o, s:s, s:o}", "line", line_of(files, item), "severity",
                              item->severity == SEVERITY_ERROR ? "error" : "warning", "text",
                              json_foreign_text(item->message)));
        }
    }
    return messages;
}

/* ---- added and removed ---- */

/* "@@ -12,7 +15,8 @@": 15. */
static json_int_t
hunk_start(const char *line)
{
    const char *plus = strchr(line, '+');
    json_int_t n = 0;

    for (const char *p = plus != NULL ? plus + 1 : ""; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (*p - '0');
    }
    return n;
}

static void
read_diff(const char *diff, json_t *added, json_t *removed)
{
    json_int_t line = 0;
    bool in_hunk = false;

    while (*diff != '\0') {
        size_t len = strcspn(diff, "\n");

        if (diff[0] == '@') {
            line = hunk_start(diff);
            in_hunk = true;
        } else if (in_hunk && diff[0] == '+') {
            (void)json_array_append_new(added, json_integer(line++));
        } else if (in_hunk && diff[0] == '-') {
            (void)json_array_append_new(removed, json_stringn(diff + 1, len - 1));
        } else if (in_hunk && diff[0] == ' ') {
            line++;
        }
        diff += len;
        diff += *diff == '\n' ? 1 : 0;
    }
}

/* Against the head's file; without one, nothing is said. */
static void
compare(struct request *r, const char *text, json_t *added, json_t *removed)
{
    CLEANUP(arena_cleanup) struct arena *arena = arena_new(ARENA_DEFAULT_BYTES);
    struct problems *unused = arena_alloc(arena, sizeof *unused);
    CLEANUP(xfree_cleanup) char *head = NULL;
    struct buf out;
    struct error e;

    problems_init(unused, arena);
    if (api_render_text(r, &request_view(r)->now, unused, &head, &e) != ERR_OK ||
        head == NULL) {
        return;
    }
    buf_init(&out, DIFF_MAX);
    if (diff_text(CFG_NAME, head, text, &out, &e) == ERR_OK) {
        read_diff(buf_str(&out), added, removed);
    }
    buf_fini(&out);
}

static void
reply_preview(struct request *r, const struct rendered *files, bool ok, const char *unchecked)
{
    const struct problems *p = request_problems(r);
    const char *text = buf_str(&rendered_find(files, CFG_NAME)->bytes);
    json_t *messages = messages_json(files, p);
    json_t *removed = json_array();
    json_t *added = json_array();

    compare(r, text, added, removed);
    if (unchecked != NULL) {
        (void)json_array_append_new(
            messages, json_pack(
                          "{s:n, s:s, s:o}", "line", "severity", "warning", "text",
                          json_foreign_text(unchecked)));
    }
    reply_json(
        r, 200,
        json_pack(
            "{s:o, s:o, s:o, s:o, s:{s:b, s:o}, s:o}", "text", json_foreign_text(text), "lines",
            lines_json(files), "added", added, "removed", removed, "check", "ok", ok,
            "messages", messages, "problems", problems_json(p)));
}

void
http_render_create(struct request *r)
{
    struct engine *en = r->http->config.engine;
    struct snapshot *shared = NULL;
    struct snapshot *local = NULL;
    struct problems *p = request_problems(r);
    struct rendered *files = NULL;
    struct snapshot_pair pair;
    struct error e;
    err_t code;

    if (!make_candidate(r, &shared, &local)) {
        return;
    }
    pair = (struct snapshot_pair){shared, local};
    code = api_check(r, &pair, p, &files, &e);
    if (files == NULL) {
        reply_error(r, &e, p);
    } else {
        /* A checker that cannot be reached is no reason to show nothing. */
        bool checked = code == ERR_OK || code == ERR_INVALID;

        reply_preview(r, files, code == ERR_OK && p->errors == 0, checked ? NULL : e.msg);
    }
    apply_rendered_done(en, files);
    snapshot_unref(shared);
    snapshot_unref(local);
}
