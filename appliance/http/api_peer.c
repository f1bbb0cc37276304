/* SPDX-License-Identifier: Apache-2.0 */
/* What other nodes ask and hand on. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/account.h"
#include "engine/facts.h"
#include "engine/standby.h"
#include "engine/sync_asked.h"
#include "engine/sync_check.h"
#include "engine/sync_parted.h"
#include "engine/sync_piece.h"
#include "http/api.h"
#include "http/reply.h"
#include "http/wait.h"
#include "routes_gen.h"
#include "sync/admit.h"
#include "sync/cluster.h"
#include "sync/drafts.h"

void
http_peer_health(struct request *r)
{
    const char *text = request_param(r, "head");
    struct hash head;
    json_t *j = NULL;
    struct error e;

    if (text != NULL && !hash_from_hex(text, &head)) {
        request_refuse_param(r, "head", "The id of a commit is 64 hexadecimal digits.");
        return;
    }
    if (cluster_health(r->http->config.cluster, text != NULL ? &head : NULL, &j, &e) !=
        ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (text != NULL && r->header.node_id != NULL) {
        cluster_notice(r->http->config.cluster, r->header.node_id, &head);
    }
    reply_json(r, 200, j);
}

static void
reply_members(struct request *r, bool late)
{
    CLEANUP(member_list_free)
    struct member_list list = members_for(r->http->config.engine, r->header.node_id, late);

    reply_json(r, 200, json_pack("{s:o}", "members", cluster_members_json(&list)));
}

void
http_peer_members_get(struct request *r)
{
    reply_members(r, false);
}

void
http_peer_members_create(struct request *r)
{
    struct members_taken taken;
    struct error e;

    if (cluster_members_take(
            r->http->config.engine, json_object_get(r->json, "members"), r->header.node_id,
            MEMBERS_TOLD, &taken, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    if (taken.changed) {
        cluster_wake(r->http->config.cluster);
    }
    reply_members(r, taken.late);
}

void
http_peer_admit(struct request *r)
{
    json_t *found = NULL;
    struct error e;

    if (cluster_admit(r->http->config.cluster, r->json, &found, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, found);
}

/* ---- the draft ---- */

void
http_peer_draft_get(struct request *r)
{
    json_t *draft = NULL;
    struct error e;
    bool content;

    if (!request_flag(r, "content", &content)) {
        return;
    }
    if (drafts_own(r->http->config.cluster, content, &draft, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, draft);
}

void
http_peer_draft_taken(struct request *r)
{
    struct draft_handing h = {.to = "unknown"};
    struct lineage_entry *taken = NULL;
    struct member sender = {.name = ""};
    struct error e, unused;
    size_t left = 0;
    err_t code = sync_entries_read(json_object_get(r->json, "taken"), &taken, &h.count, &e);

    if (r->header.node_id != NULL &&
        members_find(r->http->config.engine, r->header.node_id, &sender, &unused) == ERR_OK) {
        h.to = sender.name;
    }
    h.taken = taken;
    if (code == ERR_OK) {
        code = draft_hand_over(r->http->config.engine, &h, &left, &e);
    }
    crypt_wipe(sender.key, sizeof sender.key);
    free(taken);
    if (code != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, json_pack("{s:I}", "left", (json_int_t)left));
}

/* ---- administrators ---- */

#define ACTOR_BYTES 70 /* with a name of at most 64 */

/* "admin maria" or "key backup", as actors are called. */
static bool
is_actor(const char *who)
{
    static const char *const kinds[] = {"admin ", "key "};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t bytes = strlen(kinds[i]);

        if (strncmp(who, kinds[i], bytes) == 0) {
            CLEANUP(buf_fini) struct buf normal = {.max = 256};

            return strlen(who) <= ACTOR_BYTES &&
                   value_check_text(TT_NAME, who + bytes, strlen(who + bytes), &normal, NULL) ==
                       ERR_OK;
        }
    }
    return false;
}

static err_t
read_copy(struct request *r, struct account_copy *ret, struct error *e)
{
    static const char *const inner[] = {"name", "password", "note", NULL};
    const char *who = NULL;
    err_t code = json_get_bool(r->json, "overwrite", &ret->overwrite, e);

    ret->admin = json_object_get(r->json, "admin");
    if (code == ERR_OK) {
        code = json_only_keys(ret->admin, inner, e);
    }
    if (code == ERR_OK) {
        code = json_get_str(r->json, "who", &who, e);
    }
    if (code == ERR_OK && !is_actor(who)) {
        code = error_set(e, ERR_INVALID, "\"who\" is neither an administrator nor a key");
    }
    if (code == ERR_OK) {
        struct member sender = {.name = "another node"};
        struct error unused;

        if (r->header.node_id != NULL) {
            err_t known =
                members_find(r->http->config.engine, r->header.node_id, &sender, &unused);

            (void)known; /* else it has no name here */
        }
        crypt_wipe(sender.key, sizeof sender.key);
        ret->who = arena_printf(r->arena, "%s on %s", who, sender.name);
    }
    return code;
}

void
http_peer_account_create(struct request *r)
{
    static const char *const keys[] = {"admin", "overwrite", "who", NULL};
    struct account_copy copy = {.overwrite = false};
    struct problems *p = request_problems(r);
    const char *state = NULL;
    struct error e;
    err_t code;

    if (!request_only_keys(r, keys)) {
        return;
    }
    code = read_copy(r, &copy, &e);
    if (code == ERR_OK) {
        code = account_take(r->http->config.engine, &copy, &state, p, &e);
    }
    if (code != ERR_OK) {
        reply_error(r, &e, p);
        return;
    }
    reply_json(r, 200, json_pack("{s:s}", "state", state));
}

/* ---- reading ---- */

void
http_peer_config_read(struct request *r)
{
    CLEANUP(sync_asked_free) struct sync_asked asked = {.objects = NULL};
    CLEANUP(sync_doc_free) struct sync_doc d = {.has_index = false};
    struct error e;
    err_t code = sync_asked_read(r->json, &asked, &e);

    if (code == ERR_OK) {
        code = sync_doc_make(r->http->config.engine, &asked.wanted, &d, &e);
    }
    if (code != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, sync_doc_json(&d));
}

void
http_peer_config_parted(struct request *r)
{
    json_t *answer = NULL;
    struct error e;

    if (sync_parted_answer(r->http->config.engine, r->json, &answer, &e) != ERR_OK) {
        reply_error(r, &e, NULL);
        return;
    }
    reply_json(r, 200, answer);
}

/* ---- taking ---- */

static void
reply_taken(struct request *r, const char *state, json_t *missing)
{
    const struct view *v = request_fresh_view(r);
    struct engine_status s;
    char head[SHA256_HEX + 1], fp[SHA256_HEX + 1], running[SHA256_HEX + 1];

    engine_get_status(r->http->config.engine, &s);
    hash_hex(&v->head.id, head);
    hash_hex(&v->head.fp, fp);
    hash_hex(&s.running_commit, running);
    reply_json(
        r, 200,
        json_pack(
            "{s:s, s:s, s:I, s:s, s:o, s:o*}", "state", state, "head", head, "rev",
            (json_int_t)v->head.rev, "fp", fp, "running",
            s.running_known ? json_string(running) : json_null(), "missing", missing));
}

/* It was accepted, and is not taken all the same: what of it is wrong, or what this node could
 * not do. */
static void
reply_failed(struct request *r, const json_t *task)
{
    char reason[TASK_REASON_BYTES];
    const char *name;
    int status = error_http_status(sync_failure(task, &name));

    task_reason(task, reason);
    reply_problem_items(r, status, name, reason, json_object_get(task, "problems"));
    if (status == 503) {
        reply_retry_after(r, REPLY_BUSY_S);
    }
}

static void
on_task(struct request *r, json_t *task, bool ended)
{
    const char *state = json_string_value(json_object_get(task, "state"));

    if (!ended) {
        reply_problem(r, 504, "timeout", "it is not taken over yet");
    } else if (state != NULL && strcmp(state, "ok") == 0) {
        reply_taken(r, "taken", NULL);
    } else {
        reply_failed(r, task);
    }
    json_decref(task);
}

/* Who handed it over, by the name that this node knows. */
struct sender {
    struct member member;
    struct sync_origin origin;
};

static void
find_sender(struct request *r, const struct sync_doc *d, bool asks, struct sender *ret)
{
    const char *from = r->header.node_id != NULL ? r->header.node_id : "unknown";
    struct error unused;

    *ret = (struct sender){.origin = {.how = SYNC_PUSHED, .from = from}};
    if (members_find(r->http->config.engine, from, &ret->member, &unused) == ERR_OK) {
        ret->origin.from = ret->member.name;
    }
    crypt_wipe(ret->member.key, sizeof ret->member.key);
    if (d->has_expected) {
        ret->origin.outranks =
            cluster_outranks(r->http->config.cluster, ret->member.id, asks || d->more);
    }
}

/* What is not taken, and why. */
static void
reply_not_taken(
    struct request *r, const struct sync_result *result, const struct error *e,
    const struct problems *p)
{
    if (e->code == ERR_NOT_FOUND && result->missing_count > 0) {
        reply_taken(r, "missing", sync_entries_json(result->missing, result->missing_count));
    } else if (e->code == ERR_CONFLICT && result->refusal != NULL) {
        reply_problem(r, 409, result->refusal, "%s", e->msg);
    } else {
        reply_error(r, e, p);
    }
}

void
http_peer_check(struct request *r)
{
    struct problems *p = request_problems(r);
    struct sync_checked checked = {.same = false};
    struct sync_doc d = {.has_index = false};
    struct sender sender;
    struct error e = {.code = ERR_OK};
    char fp[SHA256_HEX + 1];
    err_t code = sync_doc_read(r->json, &d, &e);

    if (code == ERR_OK) {
        find_sender(r, &d, true, &sender);
        code = sync_check(r->http->config.engine, &d, &sender.origin, &checked, p, &e);
    }
    if (code == ERR_OK) {
        hash_hex(&checked.fp, fp);
        reply_json(
            r, 200,
            json_pack(
                "{s:s, s:s, s:I}", "state", checked.same ? "same" : "checked", "fp", fp,
                "local_rev", (json_int_t)checked.local_rev));
    } else {
        reply_not_taken(r, &checked.result, &e, p);
    }
    free(checked.result.missing);
    sync_doc_free(&d);
}

static void
on_trial(struct request *r, json_t *task, bool ended)
{
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *message = json_string_value(json_object_get(task, "message"));

    if (!ended) {
        reply_problem(r, 504, "timeout", "it is not seen to serve yet");
    } else if (state != NULL && strcmp(state, "ok") == 0) {
        reply_json(r, 200, json_pack("{s:s}", "state", "trial"));
    } else {
        reply_problem_items(
            r, 422, "not_serving", message != NULL ? message : "it does not serve",
            json_object_get(task, "problems"));
    }
    json_decref(task);
}

void
http_peer_trial(struct request *r)
{
    struct sync_checked tried = {.same = false};
    struct sync_doc d = {.has_index = false};
    struct sender sender;
    struct error e = {.code = ERR_OK};
    err_t code = sync_doc_read(r->json, &d, &e);

    if (code == ERR_OK) {
        find_sender(r, &d, true, &sender);
        code = sync_trial(r->http->config.engine, &d, &sender.origin, &tried, &e);
    }
    if (code != ERR_OK) {
        reply_not_taken(r, &tried.result, &e, NULL);
    } else if (tried.same) {
        reply_json(r, 200, json_pack("{s:s}", "state", "same"));
    } else {
        wait_for_task(r, tried.task, on_trial);
    }
    free(tried.result.missing);
    sync_doc_free(&d);
}

void
http_peer_trial_end(struct request *r)
{
    const char *text = request_param(r, "commit");
    struct hash commit;

    if (text == NULL || !hash_from_hex(text, &commit)) {
        request_refuse_param(r, "commit", "The id of a commit is 64 hexadecimal digits.");
        return;
    }
    standby_cancel(r->http->config.engine, &commit);
    reply_none(r, 204);
}

void
http_peer_config_replace(struct request *r)
{
    struct sync_result result = {.task = 0};
    struct sender sender;
    struct sync_doc d;
    struct error e;
    err_t code = sync_doc_read(r->json, &d, &e);
    bool piece = code == ERR_OK && d.more;

    if (code == ERR_OK) {
        find_sender(r, &d, false, &sender);
    }
    if (piece) {
        code = sync_piece_take(r->http->config.engine, &d, &sender.origin, &result, &e);
        sync_doc_free(&d);
    } else if (code == ERR_OK) {
        code = sync_take(r->http->config.engine, &d, &sender.origin, &result, &e);
    }
    if (code != ERR_OK) {
        reply_not_taken(r, &result, &e, NULL);
    } else if (piece) {
        reply_taken(r, "stored", NULL);
    } else if (result.task == 0) {
        reply_taken(r, "same", NULL);
    } else {
        wait_for_task(r, result.task, on_task);
    }
    free(result.missing);
}
