/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster, for people and their programs. */
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "engine/edit.h"
#include "http/api.h"
#include "http/reply.h"
#include "model/diff.h"
#include "routes_gen.h"
#include "sync/cluster.h"
#include "sync/drafts.h"

void
http_cluster_get(struct request *r)
{
    reply_json(r, 200, cluster_json(r->http->config.cluster));
}

/* ---- what differs ---- */

static err_t
find_content(
    struct request *r, const struct view *v, const struct commit *head, struct snapshot **ret,
    struct error *e)
{
    if (hash_equal(&head->id, &v->head.id)) {
        *ret = snapshot_ref(v->now.shared);
        return ERR_OK;
    }
    return edit_commit_content(r->http->config.engine, &head->id, ret, e);
}

static void
reply_compared(
    struct request *r, const struct view *v, const struct cluster_other *other,
    struct snapshot *content)
{
    /* What only this node has is no difference. */
    struct snapshot_pair there = {content, v->now.local};
    json_t *objects = diff_objects(&v->now, &there);
    struct member self;

    members_self(r->http->config.engine, &self);
    reply_json(
        r, 200,
        json_pack(
            "{s:s, s:s, s:o, s:o, s:b, s:o}", "self", self.name, "node", other->name, "from",
            api_commit_name(&v->head), "to", api_commit_name(&other->head), "same",
            json_array_size(objects) == 0, "objects", objects));
    crypt_wipe(&self, sizeof self);
}

void
http_cluster_compare(struct request *r)
{
    const char *node = request_param(r, "node");
    struct cluster_other other;
    struct snapshot *content = NULL;
    const struct view *v;
    struct error e;
    err_t code;

    if (node == NULL) {
        request_refuse_param(r, "node", "Name the node to compare with: ?node=NAME.");
        return;
    }
    code = api_long_begin(r, &e);
    if (code != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    code = cluster_fetch_head(r->http->config.cluster, node, &other, &e);
    v = request_fresh_view(r);
    if (code == ERR_OK) {
        code = find_content(r, v, &other.head, &content, &e);
    }
    if (code == ERR_OK) {
        reply_compared(r, v, &other, content);
    } else {
        reply_error(r, &e, NULL);
    }
    api_long_end(r);
    snapshot_unref(content);
}

/* ---- peer keys and members ---- */

static void
reply_key(struct request *r)
{
    char print[MEMBER_PRINT_BYTES];
    struct member self;

    members_self(r->http->config.engine, &self);
    member_key_print(self.key, print);
    reply_json(
        r, 200,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:s}", "node", self.name, "id", self.id, "url", self.url,
            "key", self.key, "fingerprint", print, "pin", self.pin));
    crypt_wipe(&self, sizeof self);
}

void
http_cluster_key_get(struct request *r)
{
    reply_key(r);
}

void
http_cluster_key_create(struct request *r)
{
    struct error e;

    if (members_new_key(r->http->config.engine, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    members_audit(r->http->config.engine, r->actor.name, "cluster_key", "a new peer key");
    cluster_wake(r->http->config.cluster);
    reply_key(r);
}

/* Pasted texts come with spaces and line ends. */
static const char *
trimmed(struct request *r, const char *text)
{
    static const char space[] = " \t\r\n";
    size_t len;

    text += strspn(text, space);
    len = strlen(text);
    while (len > 0 && strchr(space, text[len - 1]) != NULL) {
        len--;
    }
    return arena_printf(r->arena, "%.*s", (int)len, text);
}

static bool
read_text(struct request *r, const char *key, const char **ret)
{
    struct error e;

    if (json_get_str(r->json, key, ret, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    *ret = trimmed(r, *ret);
    return true;
}

static bool
read_join(struct request *r, struct cluster_join *ret)
{
    /* The answer of GET /api/v1/cluster/key may be sent as it is. */
    static const char *const keys[] = {"url", "key", "pin", "node", "id", "fingerprint", NULL};

    if (!request_only_keys(r, keys) || !read_text(r, "url", &ret->url) ||
        !read_text(r, "key", &ret->key) || !read_text(r, "pin", &ret->pin) ||
        !request_flag(r, "plan", &ret->plan)) {
        return false;
    }
    if (strncasecmp(ret->url, "https://", 8) != 0 || strlen(ret->url) > 255 ||
        strcspn(ret->url + 8, "/?#@ ") != strlen(ret->url + 8)) {
        api_refuse(
            r, "/url", "pattern",
            "The address of a node is https://ADDRESS:PORT, without a path.");
        return false;
    }
    if (!member_key_valid(ret->key)) {
        api_refuse(r, "/key", "pattern", "That is no peer key.");
        return false;
    }
    if (strncmp(ret->pin, "sha256//", 8) != 0 || strlen(ret->pin) != 52) {
        api_refuse(r, "/pin", "pattern", "A public key is written sha256// and 44 characters.");
        return false;
    }
    return true;
}

static void
name_failed_check(const json_t *checks, err_t code, struct error *e)
{
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *check = json_array_get(checks, i);

        if (strcmp(json_string_value(json_object_get(check, "state")), "failed") == 0) {
            (void)error_set(
                e, code, "%s: %.110s: %.110s",
                json_string_value(json_object_get(check, "name")),
                json_string_value(json_object_get(check, "detail")),
                json_string_value(json_object_get(check, "next")));
            return;
        }
    }
}

static void
join_cluster(struct request *r)
{
    struct cluster_join j = {.plan = false};
    json_t *result = NULL;
    struct error e;
    err_t code;

    if (!read_join(r, &j)) {
        return;
    }
    code = cluster_join(r->http->config.cluster, &j, r->actor.name, &result, &e);
    if (code != ERR_OK && !(j.plan && code == ERR_CONFLICT)) {
        name_failed_check(json_object_get(result, "checks"), code, &e);
        reply_error(r, &e, NULL);
        json_decref(result);
        return;
    }
    reply_json(r, 200, result);
}

/* Keys prove that a caller was a member, not which one. */
static const char key_advice[] =
    " If you do not trust that machine any more, keep it off the network, and give each of the "
    "other nodes another peer key: lockstep peerkey --new on each. Former keys are taken for "
    "ten minutes after that.";

static void
reply_removed(struct request *r, const char *fact)
{
    json_t *j = cluster_json(r->http->config.cluster);

    (void)json_object_set_new(
        j, "notice", json_string(arena_printf(r->arena, "%s%s", fact, key_advice)));
    reply_json(r, 200, j);
}

static void
leave_cluster(struct request *r)
{
    struct error e;

    if (cluster_leave(r->http->config.cluster, r->actor.name, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_removed(
        r, "This machine has had the peer keys of the nodes that it left, and they have its "
           "own.");
}

static void
forget_node(struct request *r)
{
    static const char *const keys[] = {"node", NULL};
    const char *node;
    struct error e;

    if (!request_only_keys(r, keys) || !read_text(r, "node", &node)) {
        return;
    }
    if (cluster_forget(r->http->config.cluster, node, r->actor.name, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_removed(r, "The forgotten node is refused, but its machine has had the peer keys.");
}

/* Without a name: whose session it is, or the only one; else NULL. */
static const char *
meant_admin(struct request *r)
{
    const struct object *const *items;

    if (r->caller == CALLER_ADMIN) {
        return r->session.admin;
    }
    return snapshot_kind(request_view(r)->now.local, K_ADMIN, &items) == 1 ? items[0]->name.s
                                                                           : NULL;
}

static void
copy_admin(struct request *r)
{
    static const char *const keys[] = {"node", "admin", "overwrite", NULL};
    struct cluster_admin q = {.who = r->actor.name};
    json_t *result = NULL;
    struct error e;

    if (!request_only_keys(r, keys) || !read_text(r, "node", &q.node)) {
        return;
    }
    if (json_opt_str(r->json, "admin", &q.admin, &e) != ERR_OK ||
        json_opt_bool(r->json, "overwrite", &q.overwrite, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    q.admin = q.admin != NULL ? q.admin : meant_admin(r);
    if (q.admin == NULL) {
        api_refuse(
            r, "/admin", "required",
            "This node has several administrators, and a key is none of them: name one.");
        return;
    }
    if (cluster_copy_admin(r->http->config.cluster, &q, &result, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, result);
}

static bool
read_nodes(struct request *r, struct cluster_overwrite *ret)
{
    static const char *const keys[] = {"nodes", NULL};
    struct api_nodes nodes;

    if (!request_only_keys(r, keys) || !api_read_nodes(r, "nodes", &nodes) ||
        !request_flag(r, "plan", &ret->plan)) {
        return false;
    }
    /* Not every node because nobody was found to be named. */
    if (nodes.names != NULL && nodes.count == 0) {
        api_refuse(
            r, "/nodes", "length", "Name a node, or leave this out: then all are meant.");
        return false;
    }
    ret->nodes = nodes.names;
    ret->node_count = nodes.count;
    return true;
}

static void
overwrite_nodes(struct request *r)
{
    struct cluster_overwrite q = {.who = r->actor.name};
    json_t *result = NULL;
    struct error e;

    if (!read_nodes(r, &q)) {
        return;
    }
    if (r->actor.locked != NULL) {
        (void)error_set(&e, ERR_LOCKED, "%s", r->actor.locked);
        reply_error(r, &e, NULL);
        return;
    }
    if (cluster_overwrite(r->http->config.cluster, &q, &result, &e) == ERR_OK) {
        reply_json(r, 200, result);
        return;
    }
    reply_refusal(
        r, &e, json_string_value(json_object_get(result, "code")),
        json_pack("{s:O}", "nodes", json_object_get(result, "nodes")));
    json_decref(result);
}

/* ---- drafts ---- */

void
http_cluster_drafts(struct request *r)
{
    reply_json(r, 200, drafts_json(r->http->config.cluster));
}

static bool
read_overlap(struct request *r, enum draft_overlap *ret)
{
    static const char *const words[] = {
        [OVERLAP_REFUSE] = "refuse", [OVERLAP_THEIRS] = "theirs", [OVERLAP_OURS] = "ours"};
    const char *word = words[OVERLAP_REFUSE];
    struct error e;

    if (json_opt_str(r->json, "overlap", &word, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum draft_overlap)i;
            return true;
        }
    }
    api_refuse(r, "/overlap", "enum", "What both drafts change: refuse, theirs or ours.");
    return false;
}

static void
take_draft(struct request *r)
{
    static const char *const keys[] = {"node", "overlap", NULL};
    struct drafts_taking t = {.who = &r->actor};
    json_t *result = NULL;
    struct error e;

    if (!request_only_keys(r, keys) || !read_text(r, "node", &t.node) ||
        !read_overlap(r, &t.overlap)) {
        return;
    }
    if (r->actor.locked != NULL) {
        (void)error_set(&e, ERR_LOCKED, "%s", r->actor.locked);
        reply_error(r, &e, NULL);
        return;
    }
    if (drafts_take(r->http->config.cluster, &t, &result, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, result);
}

/* ---- what waits for other nodes ---- */

/* A node that hangs may keep it for long. */
static void
as_long_work(struct request *r, void (*handle)(struct request *r))
{
    struct error e;

    if (api_long_begin(r, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    handle(r);
    api_long_end(r);
}

void
http_cluster_join(struct request *r)
{
    as_long_work(r, join_cluster);
}

void
http_cluster_leave(struct request *r)
{
    as_long_work(r, leave_cluster);
}

void
http_cluster_forget(struct request *r)
{
    as_long_work(r, forget_node);
}

void
http_cluster_admin(struct request *r)
{
    as_long_work(r, copy_admin);
}

void
http_cluster_overwrite(struct request *r)
{
    as_long_work(r, overwrite_nodes);
}

void
http_cluster_draft_take(struct request *r)
{
    as_long_work(r, take_draft);
}
