/* SPDX-License-Identifier: Apache-2.0 */
/* Handing a new revision to the nodes that are behind, and the table of all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/facts.h"
#include "engine/problems_json.h"
#include "engine/sync_piece.h"
#include "engine/task.h"
#include "sync/fan.h"
#include "sync/hand.h"
#include "sync/refusal.h"

#define TRIES           3
#define CODE_FAR_BEHIND "far_behind"
#define ID_BYTES        9 /* of a commit, as people see it */

/* ---- one node ---- */

static err_t
read_missing(const json_t *j, struct lineage_entry **ret, size_t *ret_count)
{
    struct error unused;

    return sync_entries_read(json_object_get(j, "missing"), ret, ret_count, &unused);
}

/* A call that brings it; call->body is that of body, which is empty. */
static err_t
fill_put(
    struct cluster *c, const struct sync_doc *d, struct buf *body, struct call *call,
    struct error *e)
{
    json_t *j = sync_doc_json(d);

    json_canonical(j, body);
    json_decref(j);
    if (body->failed) {
        return error_set(e, ERR_LIMIT, "the revision is larger than one message may be");
    }
    call->method = "PUT";
    call->path = "/peer/v1/config";
    call->body = buf_str(body);
    call->body_len = body->len;
    call->timeout_ms = c->tunables->sync_call_ms;
    call->answer_max = MEMBERS_BYTES;
    return ERR_OK;
}

/* Pieces of a history are stored aside, also where the rest is only asked about. */
static err_t
put(struct cluster *c, const struct cluster_handing *h, const struct sync_doc *d, json_t **ret,
    char code_name[CODE_BYTES], struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    struct call_answer a = {.status = 0};
    struct member self;
    struct call call;
    err_t code;

    *ret = NULL;
    members_self(c->en, &self);
    call = cluster_call_of(c, h->member, &self);
    buf_init(&body, SYNC_DOC_MAX);
    code = fill_put(c, d, &body, &call, e);
    if (h->asks && !d->more) {
        call.method = "POST";
        call.path = PATH_CHECK;
        call.timeout_ms = c->tunables->sync_check_ms;
    }
    if (code == ERR_OK) {
        (void)calls_wait(c->calls, &call, &a);
        code = cluster_read_answer(&a, ret, code_name, e);
        buf_wipe_fini(&a.body);
    }
    if (code != ERR_OK && h->errors != NULL && *h->errors == NULL) {
        *h->errors = refusal_errors(h->member, *ret);
    }
    crypt_wipe(&self, sizeof self);
    return code;
}

static err_t
make_doc(
    struct cluster *c, const struct cluster_handing *h, const struct sync_wanted *wanted,
    struct sync_doc *ret, struct error *e)
{
    err_t code = sync_doc_make(c->en, wanted, ret, e);

    if (code == ERR_OK && h->expected != NULL) {
        ret->has_expected = true;
        ret->expected = *h->expected;
    }
    return code;
}

struct lacking {
    struct sync_wanted wanted;
    struct sync_ends ends; /* of the pieces that were handed on */
};

/* The pieces before the last document. Whoever is only behind fetches them: what a push hands
 * on may be refused, and leaves nothing behind then. */
static err_t
make_last(
    struct cluster *c, const struct cluster_handing *h, struct lacking *x, struct sync_doc *ret,
    char ret_code[CODE_BYTES], struct error *e)
{
    struct sync_doc d = {.more = true};
    json_t *unused = NULL;
    err_t code = ERR_OK;

    for (int i = 0; code == ERR_OK && d.more; i++) {
        x->wanted.stored = x->ends.items;
        x->wanted.stored_count = x->ends.count;
        code = i == SYNC_PIECES_MAX ? error_set(e, ERR_LIMIT, "the history does not end")
                                    : make_doc(c, h, &x->wanted, &d, e);
        if (code != ERR_OK || !d.more) {
            continue;
        }
        if (h->expected == NULL) {
            (void)snprintf(ret_code, CODE_BYTES, CODE_FAR_BEHIND);
            code = error_set(
                e, ERR_LIMIT,
                "it lacks more revisions than one message holds, and fetches them by itself");
        }
        if (code == ERR_OK) {
            code = put(c, h, &d, &unused, ret_code, e);
            json_decref(unused);
        }
        if (code == ERR_OK) {
            code = sync_ends_follow(&x->ends, &d, e);
        }
        sync_doc_free(&d);
        d.more = true;
    }
    if (code == ERR_OK) {
        *ret = d;
    }
    return code;
}

/* ERR_NOT_FOUND: nothing was handed yet. */
static err_t
understands(
    struct cluster *c, const struct cluster_handing *h, char ret_code[CODE_BYTES],
    struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    int version = v->head.schema_version;

    if (h->member->schema_version >= version) {
        return ERR_NOT_FOUND;
    }
    (void)snprintf(ret_code, CODE_BYTES, "newer_release");
    return error_set(
        e, ERR_CONFLICT,
        "it runs release %s, which does not understand this revision: it needs schema version %d",
        h->member->release, version);
}

/* That it was taken is so when the other node says what it stores and runs: both are this. */
static err_t
check_taken(
    const json_t *answer, const struct hash *head, char ret_code[CODE_BYTES], struct error *e)
{
    const char *stored = json_string_value(json_object_get(answer, "head"));
    const char *running = json_string_value(json_object_get(answer, "running"));
    char hex[SHA256_HEX + 1], of_stored[ID_BYTES], of_running[ID_BYTES];

    hash_hex(head, hex);
    if (stored != NULL && strcmp(stored, hex) == 0 && running != NULL &&
        strcmp(running, hex) == 0) {
        return ERR_OK;
    }
    (void)snprintf(ret_code, CODE_BYTES, "not_running");
    (void)snprintf(of_stored, sizeof of_stored, "%s", stored != NULL ? stored : "");
    (void)snprintf(of_running, sizeof of_running, "%s", running != NULL ? running : "");
    return error_set(
        e, ERR_UNAVAILABLE, "it was sent commit %.8s, and stores %s and runs %s", hex,
        stored != NULL ? of_stored : "nothing",
        running != NULL ? of_running : "what is not known");
}

err_t
cluster_hand(
    struct cluster *c, const struct cluster_handing *h, char ret_code[CODE_BYTES],
    struct error *e)
{
    struct lacking x = {
        .wanted = {.have = h->have, .have_count = 1, .on_top = h->commit},
    };
    struct lineage_entry *missing = NULL;
    err_t code = understands(c, h, ret_code, e);

    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND; i++) {
        struct sync_doc d;
        struct hash head;
        json_t *answer = NULL;

        code = make_last(c, h, &x, &d, ret_code, e);
        if (code != ERR_OK) {
            break;
        }
        code = put(c, h, &d, &answer, ret_code, e);
        head = d.head;
        sync_doc_free(&d);
        if (code == ERR_OK && json_object_get(answer, "missing") != NULL) {
            free(missing);
            missing = NULL;
            code = read_missing(answer, &missing, &x.wanted.object_count) == ERR_OK
                       ? error_set(e, ERR_NOT_FOUND, "it lacks more than it was sent")
                       : error_set(e, ERR_UNAVAILABLE, "its answer is not understood");
            x.wanted.objects = missing;
        } else if (code == ERR_OK && !h->asks) {
            code = check_taken(answer, &head, ret_code, e);
        }
        json_decref(answer);
    }
    free(missing);
    return code;
}

/* ---- all of them ---- */

json_t *
cluster_row(const struct member *m, const char *state, const char *code, const char *detail)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o}", "node", m->name, "state", state, "code", code, "detail",
        json_foreign_text(detail));
}

void
cluster_note_taken(struct cluster *c, const struct member *m, const struct commit *head)
{
    struct peer *p;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    if (p != NULL) {
        p->head = (struct sync_head){head->id, head->fp, head->rev, head->schema_version};
        hash_hex(&head->id, p->running);
        p->unequal_since_ms = 0;
        p->relation = REL_IN_STEP;
    }
    lock_give(&c->lock);
}

/* What is known of the node; a row that says why nothing is handed to it, or NULL. */
static json_t *
pass_over(struct cluster *c, const struct member *m, struct peer *ret)
{
    const struct peer *p;

    *ret = (struct peer){.answered = false};
    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    if (p != NULL) {
        *ret = *p;
    }
    lock_give(&c->lock);
    return ret->answered ? NULL : cluster_row(m, "skipped", "unreachable", ret->failure.msg);
}

static json_t *
note_pushed(
    struct cluster *c, const struct member *m, const struct commit *head, const char *code_name,
    const struct error *failure)
{
    bool ok = failure->code == ERR_OK;
    bool far = strcmp(code_name, CODE_FAR_BEHIND) == 0;
    /* As of a pull: who does not answer stays behind, but refuses nothing then. */
    bool silent = failure->code == ERR_UNAVAILABLE || failure->code == ERR_TIMEOUT;
    struct peer *p;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    if (p != NULL) {
        (void)snprintf(
            p->refused, sizeof p->refused, "%s", ok || far || silent ? "" : failure->msg);
    }
    lock_give(&c->lock);
    if (!ok) {
        return cluster_row(
            m, far ? "skipped" : "failed",
            code_name[0] != '\0' ? code_name : error_name(failure->code), failure->msg);
    }
    cluster_note_taken(c, m, head);
    return cluster_row(m, "ok", "", "");
}

static json_t *
push_one(struct cluster *c, const struct member *m, const struct commit *head)
{
    char code_name[CODE_BYTES] = "";
    struct error error = {.code = ERR_OK};
    json_t *errors = NULL;
    struct peer known;
    json_t *row = pass_over(c, m, &known);

    if (row != NULL) {
        return row;
    }
    error.code = cluster_hand(
        c, &(struct cluster_handing){.member = m, .have = &known.head.id, .errors = &errors},
        code_name, &error);
    row = note_pushed(c, m, head, code_name, &error);
    if (errors != NULL) {
        (void)json_object_set_new(row, "errors", errors);
    }
    return row;
}

json_t *
cluster_push(struct cluster *c, int64_t task, const char *first)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    json_t *results = json_array();

    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < list.count; i++) {
            const struct member *m = &list.items[i];
            bool is_first = first != NULL && strcmp(m->name, first) == 0;

            if (i == list.self || m->gone || is_first != (pass == 0)) {
                continue;
            }
            task_note(engine_tasks(c->en), task, "to %s", m->name);
            (void)json_array_append_new(results, push_one(c, m, &v->head));
        }
    }
    return results;
}

/* Starts to hand it what leads from its head to this one, which this node still has then. */
static void
start_hand(
    struct cluster *c, const struct member_list *list, size_t i, const struct commit *head,
    struct fan *fan)
{
    const struct member *m = &list->items[i];
    CLEANUP(buf_wipe_fini) struct buf body;
    CLEANUP(sync_doc_free) struct sync_doc d = {.has_index = false};
    char code_name[CODE_BYTES];
    struct error unused;
    struct peer known;
    struct call call = cluster_call_of(c, m, &list->items[list->self]);
    json_t *row = pass_over(c, m, &known);
    const struct cluster_handing h = {.member = m, .have = &known.head.id};
    const struct sync_wanted wanted = {h.have, 1, NULL, 0, NULL};
    bool starts = row == NULL && understands(c, &h, code_name, &unused) == ERR_NOT_FOUND &&
                  make_doc(c, &h, &wanted, &d, &unused) == ERR_OK && !d.more &&
                  hash_equal(&d.head, &head->id);

    json_decref(row);
    buf_init(&body, SYNC_DOC_MAX);
    if (starts && fill_put(c, &d, &body, &call, &unused) == ERR_OK) {
        call.timeout_ms = c->tunables->sync_read_ms; /* it has not to load anything */
        fan_ask(fan, &call, i);
    }
}

/* What else it lacks is handed to it alone. */
static void
end_hand(
    struct cluster *c, const struct member *m, const struct commit *head, struct call_answer *a)
{
    char code_name[CODE_BYTES];
    struct error e = {.code = ERR_OK};
    json_t *j = NULL;
    json_t *row;

    e.code = cluster_read_answer(a, &j, code_name, &e);
    if (e.code == ERR_OK && json_object_get(j, "missing") != NULL) {
        row = push_one(c, m, head);
    } else {
        if (e.code == ERR_OK) {
            e.code = check_taken(j, &head->id, code_name, &e);
        }
        row = note_pushed(c, m, head, code_name, &e);
    }
    json_decref(row);
    json_decref(j);
}

void
cluster_push_at_once(struct cluster *c)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    struct fan *fan = fan_new(c->calls);
    struct call_answer answer;
    size_t who;

    for (size_t i = 0; i < list.count; i++) {
        if (i != list.self && !list.items[i].gone) {
            start_hand(c, &list, i, &v->head, fan);
        }
    }
    while (fan_next(fan, &who, &answer)) {
        end_hand(c, &list.items[who], &v->head, &answer);
        buf_fini(&answer.body);
    }
    fan_free(fan);
}

/* ---- the table ---- */

static json_t *
revision_json(int64_t rev, const struct hash *id, const struct hash *fp)
{
    char hex[SHA256_HEX + 1], print[SHA256_HEX + 1];

    hash_hex(id, hex);
    hash_hex(fp, print);
    return json_pack(
        "{s:I, s:s, s:s, s:o}", "rev", (json_int_t)rev, "commit", hex, "fp", print, "name",
        json_sprintf("%lld@%.8s", (long long)rev, print));
}

static json_t *
shared_json(const struct peer *p, enum relation relation)
{
    const struct sync_head *h = &p->shared.commit;
    bool known = p->answered && relation == REL_DIVERGED && p->shared.state == SHARED_FOUND;

    return known ? revision_json(h->rev, &h->id, &h->fp) : json_null();
}

static json_t *
self_json(struct cluster *c, const struct member *m)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    struct engine_status s;
    char running[SHA256_HEX + 1];
    json_t *row;

    engine_get_status(c->en, &s);
    hash_hex(&s.running_commit, running);
    row = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:b, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
        "id", m->id, "name", m->name, "url", m->url, "release", m->release, "self", 1,
        "answers", 1, "stored", revision_json(v->head.rev, &v->head.id, &v->head.fp),
        "relation", "in_step", "shared", json_null(), "running",
        s.running_known ? json_string(running) : json_null(), "serving", fact_name(s.serving),
        "answer_ms", json_null(), "age_s", json_null(), "skew_ms", json_null(), "detail",
        json_foreign_or_null(c->refusing), "refused", json_null());
    cluster_put_generation(row, s.running_local_rev, s.running_release);
    return row;
}

static json_t *
peer_json(struct cluster *c, const struct peer *p, const struct member *m)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    enum relation relation = cluster_relation(p, &v->head);
    int64_t age_ms = clock_mono_ms(&clock_system) - p->answered_ms;
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:b, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
        "id", m->id, "name", m->name, "url", m->url, "release",
        p->ever ? p->release : m->release, "self", 0, "answers", p->answered, "stored",
        p->ever ? revision_json(p->head.rev, &p->head.id, &p->head.fp) : json_null(),
        "relation", p->answered ? relation_name(relation) : "unknown", "shared",
        shared_json(p, relation), "running",
        p->ever ? json_foreign_or_null(p->running) : json_null(), "serving",
        p->answered ? p->serving : "unknown", "answer_ms",
        p->answered ? json_integer(p->took_ms) : json_null(), "age_s",
        p->ever ? json_integer(age_ms / 1000) : json_null(), "skew_ms",
        p->answered ? json_integer(p->skew_ms) : json_null(), "detail",
        p->answered ? json_foreign_or_null(relation_text(relation))
                    : json_foreign_or_null(p->failure.msg),
        "refused", json_foreign_or_null(p->refused));

    cluster_put_generation(row, p->said.local_rev, p->said.release);
    return row;
}

static void
append_node(json_t *nodes, json_t *node, const struct member *m, json_t *holds)
{
    char print[MEMBER_PRINT_BYTES];

    member_key_print(m->key, print);
    (void)json_object_set_new(node, "key_fingerprint", json_foreign_or_null(print));
    (void)json_object_set_new(node, "holds", holds);
    (void)json_array_append_new(nodes, node);
}

/* Of the primary VIP group, where there is one. */
static json_t *
holds_json(const struct cluster_vip *vip, bool answers, bool holds)
{
    return vip->text[0] != '\0' && answers ? json_boolean(holds) : json_null();
}

static int
compare_names(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->id, y->id);
}

json_t *
cluster_json(struct cluster *c)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    json_t *nodes = json_array();
    json_t *conditions;
    struct peer none = {.answered = false};
    char message[CLUSTER_MESSAGE_BYTES];
    enum right right;
    char self[MEMBER_ID_BYTES];
    struct cluster_vip vip;

    cluster_look_at_vip(c, &vip);
    memcpy(self, list.items[list.self].id, sizeof self);
    qsort(list.items, list.count, sizeof *list.items, compare_names);
    lock_take(&c->lock);
    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];
        const struct peer *p = cluster_peer(c, m->id);

        p = p != NULL ? p : &none;
        if (strcmp(m->id, self) == 0) {
            list.self = i;
            append_node(nodes, self_json(c, m), m, holds_json(&vip, true, vip.held));
        } else if (!m->gone) {
            append_node(nodes, peer_json(c, p, m), m, holds_json(&vip, p->answered, p->holds));
        }
    }
    conditions = cluster_conditions(c, &list, &vip);
    lock_give(&c->lock);
    right = cluster_right(c, false, message);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o}", "self", list.items[list.self].name, "edit",
        right_name(right), "edit_detail",
        right == RIGHT_EDIT ? json_null() : json_foreign_text(message), "nodes", nodes,
        "conditions", conditions);
}
