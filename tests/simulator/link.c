/* SPDX-License-Identifier: Apache-2.0 */
/* Links in memory: in place of peer/calls.c, and of the handlers of http/api_peer.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/problems_json.h"
#include "engine/standby.h"
#include "engine/sync_asked.h"
#include "engine/sync_check.h"
#include "engine/sync_parted.h"
#include "engine/sync_piece.h"
#include "peer/calls.h"
#include "sync/admit.h"
#include "tests/simulator/peers.h"
#include "tests/simulator/trace.h"

#define ANSWER_BYTES SYNC_DOC_MAX
#define CHECK_BYTES  ((size_t)4 << 20)
#define PATH_CONFIG  "/peer/v1/config"
#define PATH_READ    PATH_CONFIG "/read"
#define PATH_PARTED  PATH_CONFIG "/parted"
#define PATH_MEMBERS "/peer/v1/members"
#define PATH_CHECK   "/peer/v1/check"
#define PATH_TRIAL   "/peer/v1/trial"

struct calls {
    bool stopped;
};

struct request {
    size_t from, to;
    const struct call *call;
    json_t *body; /* or NULL */
};

struct reply {
    long status;
    json_t *json;
};

/* ---- answers ---- */

static struct reply
problem(long status, const char *code, const char *detail)
{
    return (struct reply){
        status, json_pack("{s:s, s:o}", "code", code, "detail", json_foreign_text(detail))};
}

static struct reply
error_reply(const struct error *e)
{
    int status = error_http_status(e->code);

    if (status == 500) {
        sim_fail("what a peer sends causes an answer of 500: %s", e->msg);
    }
    return problem(status, error_name(e->code), e->msg);
}

static struct reply
answer_health(const struct request *q)
{
    const struct sim_node *n = &sim.nodes[q->to];
    const char *hex = strchr(q->call->path, '=');
    struct reply r = {.status = 200};
    struct hash head;
    struct error e;
    bool has = hex != NULL && hash_from_hex(hex + 1, &head);

    trace_commits(q->to);
    if (cluster_health(n->cluster, has ? &head : NULL, &r.json, &e) != ERR_OK) {
        return error_reply(&e);
    }
    return r;
}

static struct reply
answer_members(const struct request *q)
{
    struct engine *en = sim.nodes[q->to].lab->en;
    CLEANUP(member_list_free) struct member_list list = {.items = NULL};
    struct members_taken taken = {.late = false};
    struct error e;

    if (q->body != NULL && cluster_members_take(
                               en, json_object_get(q->body, "members"), q->call->node,
                               MEMBERS_TOLD, &taken, &e) != ERR_OK) {
        return error_reply(&e);
    }
    list = members_for(en, q->call->node, taken.late);
    return (struct reply){200, json_pack("{s:o}", "members", cluster_members_json(&list))};
}

static struct reply
answer_read(const struct request *q)
{
    CLEANUP(sync_asked_free) struct sync_asked asked = {.objects = NULL};
    CLEANUP(sync_doc_free) struct sync_doc d = {.has_index = false};
    struct error e;
    err_t code = sync_asked_read(q->body, &asked, &e);

    if (code == ERR_OK) {
        code = sync_doc_make(sim.nodes[q->to].lab->en, &asked.wanted, &d, &e);
    }
    sim.pieces += code == ERR_OK && d.more ? 1 : 0;
    return code == ERR_OK ? (struct reply){200, sync_doc_json(&d)} : error_reply(&e);
}

static struct reply
answer_parted(const struct request *q)
{
    struct reply r = {.status = 200};
    struct error e;

    return sync_parted_answer(sim.nodes[q->to].lab->en, q->body, &r.json, &e) == ERR_OK
               ? r
               : error_reply(&e);
}

static struct reply
taken_reply(size_t to, const char *state)
{
    const struct commit stored = sim_head(to);
    struct engine_status s;
    char head[SHA256_HEX + 1], running[SHA256_HEX + 1];

    engine_get_status(sim.nodes[to].lab->en, &s);
    hash_hex(&stored.id, head);
    hash_hex(&s.running_commit, running);
    return (struct reply){
        200, json_pack(
                 "{s:s, s:s, s:s?}", "state", state, "head", head, "running",
                 s.running_known ? running : NULL)};
}

static struct reply
task_reply(size_t to, int64_t task)
{
    json_t *j = engine_lab_task(sim.nodes[to].lab, task);
    bool ok = strcmp(json_string_value(json_object_get(j, "state")), "ok") == 0;
    struct reply r =
        ok ? taken_reply(to, "taken")
           : problem(422, "not_taken", json_string_value(json_object_get(j, "message")));

    json_decref(j);
    return r;
}

/* What is not taken, and why. */
static struct reply
not_taken(const struct sync_result *result, const struct error *e)
{
    if (e->code == ERR_NOT_FOUND && result->missing_count > 0) {
        return (struct reply){
            200, json_pack(
                     "{s:s, s:o}", "state", "missing", "missing",
                     sync_entries_json(result->missing, result->missing_count))};
    }
    return e->code == ERR_CONFLICT && result->refusal != NULL
               ? problem(409, result->refusal, e->msg)
               : error_reply(e);
}

static struct reply
take(const struct request *q)
{
    struct engine *en = sim.nodes[q->to].lab->en;
    struct sync_origin origin = {SYNC_PUSHED, sim.nodes[q->from].name};
    struct sync_result result = {.task = 0};
    struct sync_doc d;
    struct error e;
    struct reply r;
    err_t code = sync_doc_read(q->body, &d, &e);
    bool piece = code == ERR_OK && d.more;

    origin.outranks = code == ERR_OK && sim_outranks(q->to, &d, q->call->node, d.more);
    if (piece) {
        code = sync_piece_take(en, &d, &origin, &result, &e);
        sync_doc_free(&d);
    } else if (code == ERR_OK) {
        code = sync_take(en, &d, &origin, &result, &e);
    }
    ASSERT(sem_post(&sim.race_begins) == 0);
    if (code != ERR_OK) {
        r = not_taken(&result, &e);
    } else if (result.task == 0) {
        r = taken_reply(q->to, piece ? "stored" : "same");
    } else {
        r = task_reply(q->to, result.task);
    }
    free(result.missing);
    return r;
}

/* Nobody is told of a split where there is none. */
static void
check_refusal(const struct request *q, const struct hash *own, const char *code)
{
    const char *hex = json_string_value(json_object_get(q->body, "head"));
    struct hash offered;

    if (strcmp(code, "diverged") == 0 && hex != NULL && hash_from_hex(hex, &offered) &&
        q->from < sim.count && sim_up(q->from) && sim_leads(q->from, own, &offered)) {
        sim_fail("%s refuses what follows from its head", sim.nodes[q->to].name);
    }
}

/* What is not taken leaves no trace, other than as history. */
static struct reply
answer_put(const struct request *q)
{
    CLEANUP(sim_before_end) struct sim_before before;
    bool races = !sim.calm && sim_chance(4);
    struct reply r;
    const char *state, *code;
    bool taken, stored;

    sim_before(q->to, &before);
    ASSERT(sem_init(&sim.race_begins, 0, 0) == 0);
    sim.race = races ? q->to + 1 : 0;
    r = take(q);
    races = races && sim.race == 0;
    sim.race = 0;
    ASSERT(sem_destroy(&sim.race_begins) == 0);
    state = json_string_value(json_object_get(r.json, "state"));
    code = json_string_value(json_object_get(r.json, "code"));
    taken = state != NULL && strcmp(state, "taken") == 0;
    stored = state != NULL && strcmp(state, "stored") == 0;
    sim.handed += stored ? 1 : 0;
    sim_note(
        "    %s to %s: %ld %s", sim.nodes[q->from].name, sim.nodes[q->to].name, r.status,
        state != NULL ? state : code);
    sim.taken += taken ? 1 : 0;
    sim.refused += r.status != 200 ? 1 : 0;
    sim.moved += code != NULL && strcmp(code, "moved") == 0 ? 1 : 0;
    sim.outranked += code != NULL && strcmp(code, "overwrite_in_progress") == 0 ? 1 : 0;
    if (code != NULL) {
        check_refusal(q, &before.head, code);
    }
    if (taken || races || sim.nodes[q->to].dead) {
        return r;
    }
    if (stored ? memcmp(sim_head(q->to).id.b, before.head.b, SHA256_BYTES) != 0
               : !sim_is_as_before(q->to, &before, sim.nodes[q->to].tried)) {
        sim_fail("%s refused, and is not as it was", sim.nodes[q->to].name);
    }
    return r;
}

/* Whatever it finds, it leaves no trace. */
static struct reply
answer_check(const struct request *q)
{
    CLEANUP(sim_before_end) struct sim_before before;
    const struct sim_node *n = &sim.nodes[q->to];
    struct sync_origin origin = {.how = SYNC_PUSHED, .from = sim.nodes[q->from].name};
    struct sync_checked checked = {.same = false};
    struct sync_doc d = {.has_index = false};
    struct problems problems;
    struct arena *arena = arena_new(CHECK_BYTES);
    struct error e;
    struct reply r;
    err_t code;

    sim_before(q->to, &before);
    problems_init(&problems, arena);
    code = sync_doc_read(q->body, &d, &e);
    origin.outranks = code == ERR_OK && sim_outranks(q->to, &d, q->call->node, true);
    if (code == ERR_OK) {
        code = sync_check(n->lab->en, &d, &origin, &checked, &problems, &e);
    }
    r = code != ERR_OK ? not_taken(&checked.result, &e)
                       : (struct reply){200, json_pack("{s:s}", "state", "checked")};
    sim.outranked += checked.result.refusal != NULL &&
                             strcmp(checked.result.refusal, "overwrite_in_progress") == 0
                         ? 1
                         : 0;
    sim_note("    %s checks for %s: %ld", n->name, sim.nodes[q->from].name, r.status);
    free(checked.result.missing);
    sync_doc_free(&d);
    arena_free(arena);
    if (!n->dead && !sim_is_as_before(q->to, &before, n->tried)) {
        sim_fail("%s checked, and is not as it was", n->name);
    }
    return r;
}

/* HAProxy runs it, where it serves, and nothing is stored. */
static struct reply
answer_trial(const struct request *q)
{
    CLEANUP(sim_before_end) struct sim_before before;
    struct sim_node *n = &sim.nodes[q->to];
    struct sync_origin origin = {.how = SYNC_PUSHED, .from = sim.nodes[q->from].name};
    struct sync_checked tried = {.same = false};
    struct sync_doc d = {.has_index = false};
    struct error e;
    struct reply r;
    err_t code;

    sim_before(q->to, &before);
    code = sync_doc_read(q->body, &d, &e);
    if (code == ERR_OK) {
        code = sync_trial(n->lab->en, &d, &origin, &tried, &e);
    }
    if (code != ERR_OK) {
        r = not_taken(&tried.result, &e);
    } else if (tried.same) {
        r = (struct reply){200, json_pack("{s:s}", "state", "same")};
    } else {
        r = task_reply(q->to, tried.task);
    }
    n->tried = n->tried || (r.status == 200 && !tried.same);
    sim_note("    %s tries for %s: %ld", n->name, sim.nodes[q->from].name, r.status);
    free(tried.result.missing);
    sync_doc_free(&d);
    if (!n->dead && !sim_is_as_before(q->to, &before, n->tried)) {
        sim_fail("%s tried, and is not as it was", n->name);
    }
    return r;
}

static struct reply
answer_trial_end(const struct request *q)
{
    const char *hex = strchr(q->call->path, '=');
    struct hash commit;

    if (hex == NULL || !hash_from_hex(hex + 1, &commit)) {
        return problem(422, "invalid", "no commit");
    }
    standby_cancel(sim.nodes[q->to].lab->en, &commit);
    return (struct reply){200, json_object()};
}

static struct reply
route(const struct request *q)
{
    const char *path = q->call->path, *refusal = NULL;
    struct error e;

    if (!members_is_key(sim.nodes[q->to].lab->en, q->call->key)) {
        return problem(401, "unauthorized", "another key is wanted");
    }
    if (strncmp(path, "/peer/v1/health", 15) == 0) {
        return answer_health(q);
    }
    if (strcmp(path, PATH_MEMBERS) == 0) {
        return answer_members(q);
    }
    if (strcmp(path, PATH_ADMIT) == 0) {
        return (struct reply){200, sim_admit(q->to, q->body)};
    }
    if (members_admit(sim.nodes[q->to].lab->en, q->call->node, &refusal, &e) != ERR_OK) {
        sim.barred++;
        return problem(403, refusal, e.msg);
    }
    if (strcmp(path, PATH_PARTED) == 0) {
        return answer_parted(q);
    }
    if (strncmp(path, PATH_TRIAL, strlen(PATH_TRIAL)) == 0) {
        return path[strlen(PATH_TRIAL)] == '?' ? answer_trial_end(q) : answer_trial(q);
    }
    return strcmp(path, PATH_CHECK) == 0  ? answer_check(q)
           : strcmp(path, PATH_READ) == 0 ? answer_read(q)
                                          : answer_put(q);
}

/* ---- the way ---- */

static size_t
node_of_url(const char *url)
{
    size_t i = 0;

    while (i < sim.count && strcmp(sim.nodes[i].url, url) != 0) {
        i++;
    }
    return i;
}

/* A local value is for its own node. */
static void
look_for_markers(const char *text, size_t len)
{
    if (len > 0 && memmem(text, len, SIM_MARKER, strlen(SIM_MARKER)) != NULL) {
        sim_fail("a local value left its node: %.300s", text);
    }
}

static void
record(const struct request *q)
{
    struct sim_message *m = &sim.recorded[sim.recorded_next++ % SIM_RECORDED];

    free(m->body);
    free(m->from);
    m->to = q->to;
    m->method = strcmp(q->call->method, "PUT") == 0 ? "PUT" : "POST";
    m->path = strcmp(q->call->method, "PUT") == 0 ? PATH_CONFIG : PATH_MEMBERS;
    m->body = xstrdup(q->call->body);
    m->from = xstrdup(q->call->node);
}

static bool
passes(size_t from, size_t to)
{
    return from < sim.count && to < sim.count && sim_up(from) && sim_up(to) &&
           !sim.cut[from][to] && !sim_chance(sim.lost);
}

static void
serve(struct request *q, struct call_answer *a)
{
    struct reply r;

    if (q->call->body != NULL &&
        json_parse(q->call->body, q->call->body_len, &q->body, &a->error) != ERR_OK) {
        r = problem(400, "syntax", a->error.msg);
    } else {
        r = route(q);
    }
    json_decref(q->body);
    json_canonical(r.json, &a->body);
    json_decref(r.json);
    a->status = r.status;
    look_for_markers(buf_str(&a->body), a->body.len);
    if (a->body.len > q->call->answer_max) {
        sim_fail("the answer to %s has %zu bytes", q->call->path, a->body.len);
    }
}

static void
deliver(const struct calls *all, const struct call *c, struct call_answer *a)
{
    struct request q = {sim_node_of_id(c->node), node_of_url(c->url), c, NULL};

    *a = (struct call_answer){.error = {.code = ERR_OK}};
    buf_init(&a->body, ANSWER_BYTES);
    sim.asked++;
    look_for_markers(c->body, c->body_len);
    if (strcmp(c->path, PATH_READ) == 0) {
        trace_read(q.from);
    }
    /* Each move by itself: two in a row need not follow as one. */
    sim_watch();
    sim_hook();
    if (all->stopped || !passes(q.from, q.to)) {
        (void)error_set(&a->error, ERR_UNAVAILABLE, "no connection");
        return;
    }
    if (strcmp(c->method, "PUT") == 0 ||
        (strcmp(c->method, "POST") == 0 && strcmp(c->path, PATH_MEMBERS) == 0)) {
        record(&q);
    }
    a->error = (struct error){.code = ERR_OK};
    serve(&q, a);
    sim_hook();
    if (!passes(q.to, q.from)) {
        buf_reset(&a->body);
        (void)error_set(&a->error, ERR_TIMEOUT, "no answer");
    }
}

static void
damage(char *text)
{
    text[sim_below(strlen(text))] = (char)('0' + sim_below(10));
}

/* c: only who calls, and what. With the key that is right now. */
static void
send_call(size_t to, struct call *c, const char *body)
{
    struct calls link = {.stopped = false};
    struct call_answer a;
    struct member self;

    members_self(sim.nodes[to].lab->en, &self);
    c->url = self.url;
    c->key = self.key;
    c->body = body;
    c->body_len = strlen(body);
    c->answer_max = MEMBERS_BYTES;
    deliver(&link, c, &a);
    buf_fini(&a.body);
}

void
sim_replay(bool damaged)
{
    const struct sim_message *m = &sim.recorded[sim_below(SIM_RECORDED)];
    char *body, *from;

    if (m->body == NULL || !sim_up(m->to)) {
        return;
    }
    /* It is recorded once more, maybe in its own place. */
    body = xstrdup(m->body);
    from = xstrdup(m->from);
    if (damaged && strcmp(m->path, PATH_CONFIG) == 0) {
        damage(body);
    }
    send_call(m->to, &(struct call){.node = from, .method = m->method, .path = m->path}, body);
    free(body);
    free(from);
}

void
sim_push_newer(size_t from, size_t to)
{
    CLEANUP(sync_doc_free) struct sync_doc d = {.has_index = false};
    CLEANUP(buf_fini) struct buf body;
    struct member self;
    struct commit newer;
    struct hash have = sim_head(to).id;
    struct error e;
    json_t *j;

    sim_make_newer(from, &newer);
    if (sync_doc_make(
            sim.nodes[from].lab->en,
            &(struct sync_wanted){.have = &have, .have_count = 1, .on_top = &newer}, &d,
            &e) != ERR_OK) {
        sim_fail("%s", e.msg);
    }
    buf_init(&body, ANSWER_BYTES);
    j = sync_doc_json(&d);
    json_canonical(j, &body);
    json_decref(j);
    members_self(sim.nodes[from].lab->en, &self);
    send_call(
        to, &(struct call){.node = self.id, .method = "PUT", .path = PATH_CONFIG},
        buf_str(&body));
}

/* ---- peer/calls.h ---- */

err_t
calls_open(struct calls **ret, struct error *e)
{
    (void)e;
    *ret = xcalloc(1, sizeof **ret);
    return ERR_OK;
}

void
calls_stop(struct calls *all)
{
    all->stopped = true;
}

void
calls_close(struct calls *all)
{
    free(all);
}

void
calls_start(struct calls *all, const struct call *c, call_fn fn, void *ctx)
{
    struct call_answer a;

    deliver(all, c, &a);
    fn(ctx, &a);
    buf_fini(&a.body);
}

err_t
calls_wait(struct calls *all, const struct call *c, struct call_answer *ret)
{
    deliver(all, c, ret);
    return ret->error.code;
}
