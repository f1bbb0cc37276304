/* SPDX-License-Identifier: Apache-2.0 */
/* History. */
#include <stdlib.h>

#include "base/json.h"
#include "engine/confirm.h"
#include "engine/edit.h"
#include "engine/problems_json.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "routes_gen.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000
#define REV_MAX       INT64_C(9007199254740991)

/* Pages are cut between revisions: after a fork a revision has several commits, and the next
 * page begins below it. */
static size_t
page_end(const struct commit *commits, size_t count, size_t limit)
{
    size_t end = limit;

    while (end > 0 && commits[end - 1].rev == commits[end].rev) {
        end--;
    }
    for (end = end > 0 ? end : 1; end < count && commits[end].rev == commits[end - 1].rev;) {
        end++;
    }
    return end;
}

void
http_commit_list(struct request *r)
{
    int64_t limit = LIMIT_DEFAULT;
    int64_t before = 0;
    struct commit *commits = NULL;
    json_t *next = NULL;
    json_t *items;
    size_t count = 0;
    struct error e;

    if (!request_number(r, "limit", 1, LIMIT_MAX, &limit) ||
        !request_number(r, "before", 1, REV_MAX, &before)) {
        return;
    }
    if (edit_commits(r->http->config.engine, before, (size_t)limit + 1, &commits, &count, &e) !=
        ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (count > (size_t)limit) {
        count = page_end(commits, count, (size_t)limit);
        /* Below the first revision there is none. */
        next = commits[count - 1].rev > 1 ? json_integer((json_int_t)commits[count - 1].rev)
                                          : NULL;
    }
    items = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(items, commit_to_json(&commits[i]));
    }
    free(commits);
    reply_json(
        r, 200,
        json_pack("{s:o, s:o}", "items", items, "next", next != NULL ? next : json_null()));
}

static bool
find_commit(struct request *r, const char *spec, struct commit *ret)
{
    struct error e;

    if (edit_commit_find(r->http->config.engine, spec, ret, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    return true;
}

void
http_commit_get(struct request *r)
{
    struct commit c;

    if (find_commit(r, request_segment(r, "{rev}"), &c)) {
        reply_json(r, 200, commit_to_json(&c));
    }
}

/* ---- what a commit changed ---- */

struct side {
    struct snapshot *content;
    json_t *name; /* for the answer */
};

static bool
load_side(struct request *r, const struct hash *id, struct side *ret)
{
    struct error e;

    if (edit_commit_content(r->http->config.engine, id, &ret->content, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    return true;
}

/* The commit's first parent; before the first commit there was nothing but defaults. */
static bool
load_parent(struct request *r, const struct commit *c, struct side *ret)
{
    struct commit parent;
    char hex[SHA256_HEX + 1];

    if (c->parent_count == 0) {
        ret->content = snapshot_initial(SCOPE_SHARED);
        ret->name = json_string("0");
        return true;
    }
    hash_hex(&c->parents[0], hex);
    if (!find_commit(r, hex, &parent) || !load_side(r, &parent.id, ret)) {
        return false;
    }
    ret->name = api_commit_name(&parent);
    return true;
}

/* from and to of the request; false: refused. */
static bool
load_sides(struct request *r, struct side *from, struct side *to)
{
    const char *other = request_param(r, "to");
    struct side *of_commit = other != NULL ? from : to;
    struct commit c;
    struct commit second;

    if (!find_commit(r, request_segment(r, "{rev}"), &c) || !load_side(r, &c.id, of_commit)) {
        return false;
    }
    of_commit->name = api_commit_name(&c);
    if (other == NULL) {
        return load_parent(r, &c, from);
    }
    if (!find_commit(r, other, &second) || !load_side(r, &second.id, to)) {
        return false;
    }
    to->name = api_commit_name(&second);
    return true;
}

void
http_commit_diff(struct request *r)
{
    const struct view *v = request_view(r);
    struct side from = {NULL, NULL};
    struct side to = {NULL, NULL};
    json_t *diff = NULL;
    struct error e;

    if (api_long_begin(r, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (load_sides(r, &from, &to)) {
        /* What only this node has is in no commit: it stands still. */
        struct snapshot_pair before = {from.content, v->now.local};
        struct snapshot_pair after = {to.content, v->now.local};

        if (api_diff(r, &before, &after, &diff, &e) == ERR_OK) {
            (void)json_object_set(diff, "from", from.name);
            (void)json_object_set(diff, "to", to.name);
            reply_json(r, 200, diff);
        } else {
            reply_error(r, &e, NULL);
        }
    }
    api_long_end(r);
    snapshot_unref(from.content);
    snapshot_unref(to.content);
    json_decref(from.name);
    json_decref(to.name);
}

/* The draft was empty: what is in it now is what the restore changed. */
static json_t *
restored_json(struct request *r, const struct view *v)
{
    return json_pack(
        "{s:o, s:o, s:n}", "objects", diff_objects(&v->now, &v->draft), "problems",
        problems_json(request_problems(r)), "task");
}

/* Nothing but what was restored is applied, though others may draft until the apply begins. */
static void
apply_restored(struct request *r, const struct apply_request *asked, bool wait)
{
    const struct view *v = request_fresh_view(r);
    struct apply_request q = *asked;
    struct apply_only only = {.authors = &r->actor.name, .author_count = 1};
    struct change_set nothing;
    int64_t task = 0;

    change_set_init(&nothing);
    if (v->entry_count > 0) {
        q.only = &only;
    } else {
        q.ops = &nothing;
    }
    r->kept = restored_json(r, v);
    if (api_apply_start(r, &q, &task)) {
        api_apply_answer(r, task, wait);
    }
}

void
http_commit_restore(struct request *r)
{
    static const char *const keys[] = {"apply", "note", "confirm", "old_certificates", NULL};
    struct apply_request q = {.who = &r->actor};
    struct api_apply_choice choice;
    struct problems *p = request_problems(r);
    bool old = false;
    struct error e = {.code = ERR_OK};

    if (!request_only_keys(r, keys) || !api_read_apply(r, &choice)) {
        return;
    }
    if (json_opt_bool(r->json, "old_certificates", &old, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    /* The draft is not touched for an apply that cannot be. */
    if (choice.apply && confirm_refuse(r->http->config.engine, NULL, NULL, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (edit_restore(
            r->http->config.engine, request_segment(r, "{rev}"), old, &r->actor, p, &e) !=
        ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    q.note = choice.note;
    q.confirm_s = choice.confirm_s;
    if (choice.apply) {
        apply_restored(r, &q, choice.wait);
    } else {
        reply_json(r, 200, restored_json(r, request_fresh_view(r)));
    }
}
