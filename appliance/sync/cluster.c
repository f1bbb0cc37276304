/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash_json.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/facts.h"
#include "engine/task.h"
#include "sync/fanout.h"
#include "sync/hand.h"

#define PATH_BYTES 128

struct peer *
cluster_peer(struct cluster *c, const char *id)
{
    for (size_t i = 0; i < c->peer_count; i++) {
        if (strcmp(c->peers[i].id, id) == 0) {
            return &c->peers[i];
        }
    }
    return NULL;
}

/* ---- one question ---- */

struct question {
    struct cluster *c;
    char id[MEMBER_ID_BYTES];
};

static void
copy_text(char *ret, size_t bytes, const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));

    text = text != NULL ? text : "";
    (void)snprintf(ret, bytes, "%.*s", problems_cut(text, bytes - 1), text);
}

/* A newer release may have more of them. */
static const char *
known_fact(const char *text)
{
    static const enum fact facts[] = {FACT_YES, FACT_NO};

    const char *known = fact_name(FACT_UNKNOWN);

    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        known = strcmp(text, fact_name(facts[i])) == 0 ? fact_name(facts[i]) : known;
    }
    return known;
}

/* What it says of itself; running: "" where it does not know. */
static void
read_state(struct peer *p, const json_t *j)
{
    char serving[sizeof p->serving];
    struct hash unused;

    copy_text(p->release, sizeof p->release, j, "release");
    if (!member_release_valid(p->release)) {
        (void)snprintf(p->release, sizeof p->release, "unknown");
    }
    copy_text(p->running, sizeof p->running, j, "running");
    if (!hash_from_hex(p->running, &unused)) {
        p->running[0] = '\0';
    }
    copy_text(serving, sizeof serving, j, "serving");
    (void)snprintf(p->serving, sizeof p->serving, "%s", known_fact(serving));
    p->holds = json_is_true(json_object_get(j, "holds"));
}

/* What came is as untrusted as any body. */
static err_t
read_answer(struct peer *p, const json_t *j, int64_t now_ms, bool *ret_leads, struct error *e)
{
    const json_t *head = json_object_get(j, "head");
    int64_t schema = 0, time_ms = 0;
    const char *id = json_string_value(json_object_get(j, "id"));
    err_t code = json_get_int(head, "rev", 1, INT64_MAX >> 11, &p->head.rev, e);

    if (code == ERR_OK) {
        code = json_get_int(head, "schema_version", 1, 1000000, &schema, e);
    }
    if (code == ERR_OK) {
        code = json_get_int(j, "time_ms", 0, INT64_MAX >> 11, &time_ms, e);
    }
    if (code == ERR_OK) {
        code = json_get_bool(j, "leads", ret_leads, e);
    }
    if (code == ERR_OK && (id == NULL || strcmp(id, p->id) != 0)) {
        return error_set(e, ERR_DENIED, "another node answers at its address");
    }
    if (code == ERR_OK && (!hash_from_json(json_object_get(head, "id"), &p->head.id) ||
                           !hash_from_json(json_object_get(head, "fp"), &p->head.fp) ||
                           !hash_from_json(json_object_get(j, "members"), &p->members))) {
        return error_set(e, ERR_INVALID, "a hash in its answer is none");
    }
    p->head.schema_version = (int)schema;
    p->skew_ms = time_ms - now_ms;
    read_state(p, j);
    return code == ERR_OK ? cluster_hear(&p->said, j, e) : code;
}

static enum silence
silence_of(const struct call_answer *a)
{
    return a->error.code == ERR_DENIED ? PIN_DIFFERS
           : a->status == 401          ? KEY_REJECTED
                                       : UNREACHABLE;
}

/* On the thread of the calls; what needs the database is left to the round. */
static void
on_answer(void *ctx, struct call_answer *a)
{
    struct question *q = ctx;
    struct cluster *c = q->c;
    struct error error;
    struct peer *p;
    json_t *j = NULL;
    char unused[CODE_BYTES];
    err_t code = cluster_read_answer(a, &j, unused, &error);

    lock_take(&c->lock);
    p = cluster_peer(c, q->id);
    if (p != NULL) {
        struct peer next = *p;
        bool leads = false;

        if (code == ERR_OK) {
            code = read_answer(&next, j, clock_wall_ms(c->clock), &leads, &error);
        }
        if (code == ERR_OK) {
            next.leads = leads;
            next.answered = next.ever = true;
            next.answered_ms = clock_mono_ms(&clock_system);
            next.took_ms = a->took_ms;
            next.silence = ANSWERED;
            cluster_compare_running(
                &next.head.id, next.running, next.answered_ms, &next.unequal_since_ms);
            *p = next;
        } else {
            p->answered = false;
            p->silence = silence_of(a);
            p->failure = error;
            p->failure.code = code;
        }
    }
    c->waiting--;
    ASSERT(pthread_cond_broadcast(&c->changed) == 0);
    lock_give(&c->lock);
    json_decref(j);
    free(q);
}

static void
ask(struct cluster *c, const struct member *m, const struct member *self, const char *path)
{
    struct question *q = xcalloc(1, sizeof *q);
    struct call call = cluster_call_of(c, m, self);

    q->c = c;
    memcpy(q->id, m->id, sizeof q->id);
    call.method = "GET";
    call.path = path;
    calls_start(c->calls, &call, on_answer, q);
}

/* ---- a round ---- */

bool
cluster_may_ask(const struct member *m)
{
    return m->url[0] != '\0' && m->key[0] != '\0';
}

bool
cluster_is_asked(const struct member_list *list, size_t i)
{
    const struct member *m = &list->items[i];

    return i != list->self && !m->gone && cluster_may_ask(m);
}

/* The table follows the members: who left goes, who came is added. */
static void
follow_members(struct cluster *c, const struct member_list *list)
{
    struct peer *next = xcalloc(MEMBERS_MAX, sizeof *next);
    size_t count = 0;

    lock_take(&c->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct peer *known = cluster_peer(c, list->items[i].id);

        if (i == list->self || list->items[i].gone) {
            continue;
        }
        if (known != NULL) {
            next[count] = *known;
            /* What it said last was of another head of this node. */
            if (!cluster_is_asked(list, i)) {
                next[count].answered = false;
                next[count].silence = NOT_ASKED;
            }
        } else {
            memcpy(next[count].id, list->items[i].id, sizeof next[count].id);
            (void)error_set(&next[count].failure, ERR_UNAVAILABLE, "not asked yet");
        }
        count++;
    }
    memcpy(c->peers, next, sizeof c->peers);
    c->peer_count = count;
    lock_give(&c->lock);
    free(next);
}

static void
ask_all(struct cluster *c, const struct member_list *list, const struct commit *head)
{
    char path[PATH_BYTES], hex[SHA256_HEX + 1];

    hash_hex(&head->id, hex);
    (void)snprintf(path, sizeof path, "/peer/v1/health?head=%s", hex);
    for (size_t i = 0; i < list->count; i++) {
        if (cluster_is_asked(list, i)) {
            lock_take(&c->lock);
            c->waiting++;
            lock_give(&c->lock);
            ask(c, &list->items[i], &list->items[list->self], path);
        }
    }
    /* Each call has its own deadline. */
    lock_take(&c->lock);
    while (c->waiting > 0) {
        ASSERT(pthread_cond_wait(&c->changed, &c->lock) == 0);
    }
    lock_give(&c->lock);
}

/* How each answer stands to the head that they were asked about. */
static void
relate(struct cluster *c, const struct commit *head)
{
    struct peer *copy = xmalloc(sizeof c->peers);
    size_t count;

    lock_take(&c->lock);
    memcpy(copy, c->peers, sizeof c->peers);
    count = c->peer_count;
    lock_give(&c->lock);
    for (size_t i = 0; i < count; i++) {
        struct sync_view seen;
        struct relation_facts facts;
        struct peer *p;
        struct error unused;

        if (!copy[i].answered || sync_look(c->en, &copy[i].head.id, &seen, &unused) != ERR_OK) {
            continue;
        }
        facts = sync_facts(head, &copy[i].head, &seen, copy[i].leads);
        lock_take(&c->lock);
        p = cluster_peer(c, copy[i].id);
        if (p != NULL) {
            p->relation = relation_of(&facts);
            if (p->relation == REL_IN_STEP) {
                p->refused[0] = '\0';
            }
        }
        lock_give(&c->lock);
    }
    free(copy);
}

enum relation
cluster_relation(const struct peer *p, const struct commit *head)
{
    bool led = p->relation == REL_IN_STEP || p->relation == REL_SELF_BEHIND;

    if (hash_equal(&p->head.id, &head->id)) {
        return REL_IN_STEP;
    }
    return led && p->head.rev < head->rev ? REL_PEER_BEHIND : p->relation;
}

/* ---- the thread ---- */

/* What takes effect at once is handed on at once. */
static void
push_if_changed(struct cluster *c)
{
    bool push;

    lock_take(&c->lock);
    push = c->push;
    c->push = false;
    lock_give(&c->lock);
    if (push) {
        cluster_push_at_once(c);
    }
}

/* False: stops. */
static bool
pause_round(struct cluster *c)
{
    struct timespec deadline = lock_deadline(c->tunables->sync_round_ms);
    bool goes_on;

    lock_take(&c->lock);
    while (!c->stopping && !c->wake && lock_wait(&c->changed, &c->lock, &deadline)) {
    }
    c->wake = false;
    goes_on = !c->stopping;
    lock_give(&c->lock);
    return goes_on;
}

static void
look(struct cluster *c, const struct member_list *list, const struct commit *head)
{
    follow_members(c, list);
    ask_all(c, list, head);
    relate(c, head);
    c->looked_ms = clock_mono_ms(&clock_system);
}

void
cluster_look_meanwhile(struct cluster *c)
{
    /* In the simulator nothing happens meanwhile. */
    bool due = c->box != NULL &&
               clock_mono_ms(&clock_system) - c->looked_ms >= c->tunables->sync_round_ms;

    if (due) {
        CLEANUP(member_list_free) struct member_list list = members_get(c->en);
        CLEANUP(view_cleanup) struct view *v = engine_view(c->en);

        look(c, &list, &v->head);
        cluster_look_at_self(c);
    }
}

void
cluster_round(struct cluster *c)
{
    bool again;

    push_if_changed(c);
    do {
        CLEANUP(member_list_free) struct member_list list = members_get(c->en);
        CLEANUP(view_cleanup) struct view *v = engine_view(c->en);

        look(c, &list, &v->head);
        cluster_look_for_shared(c, &list, &v->head);
        cluster_end_unlocked(c);
        cluster_look_at_self(c);
        cluster_forget_refusal(c);
        cluster_exchange(c, &list);
        again = cluster_heal(c, &list);
    } while (again);
    lock_take(&c->lock);
    c->looked = true;
    lock_give(&c->lock);
}

static void
run(void *ctx)
{
    struct cluster *c = ctx;

    do {
        cluster_round(c);
    } while (pause_round(c));
}

static json_t *
push_head(void *ctx, int64_t task, const char *first)
{
    return cluster_push(ctx, task, first);
}

static void
hand_on(void *ctx)
{
    cluster_push_at_once(ctx);
}

static void
head_changed(void *ctx)
{
    struct cluster *c = ctx;

    lock_take(&c->lock);
    c->push = c->wake = true;
    ASSERT(pthread_cond_broadcast(&c->changed) == 0);
    lock_give(&c->lock);
}

err_t
cluster_make(
    struct engine *en, const struct tunables *t, const struct clock *clock,
    struct cluster **ret, struct error *e)
{
    struct cluster *c = xcalloc(1, sizeof *c);
    err_t code = calls_open(&c->calls, e);

    c->en = en;
    c->tunables = t;
    c->clock = clock;
    lock_init(&c->lock);
    lock_cond_init(&c->changed);
    if (code != ERR_OK) {
        cluster_close(c);
        return code;
    }
    c->ops = (struct engine_cluster){
        .ctx = c,
        .push = push_head,
        .hand_on = hand_on,
        .check = cluster_check,
        .trial = cluster_trial,
        .trial_end = cluster_trial_end,
        .changed = head_changed,
        .goes_back = cluster_goes_back,
    };
    engine_set_cluster(en, &c->ops);
    *ret = c;
    return ERR_OK;
}

err_t
cluster_open(
    struct engine *en, const struct tunables *t, const struct clock *clock,
    struct cluster **ret, struct error *e)
{
    struct cluster *c = NULL;
    err_t code = cluster_make(en, t, clock, &c, e);

    if (code == ERR_OK) {
        code = holding_open(&c->holding, e);
    }
    if (code == ERR_OK) {
        code = mailbox_open("sync", 1, 1, &c->box, e);
    }
    if (code == ERR_OK) {
        code = mailbox_post(c->box, run, c, e);
    }
    if (code != ERR_OK) {
        cluster_close(c);
        return code;
    }
    *ret = c;
    return ERR_OK;
}

void
cluster_stop(struct cluster *c)
{
    if (c == NULL) {
        return;
    }
    lock_take(&c->lock);
    c->stopping = true;
    ASSERT(pthread_cond_broadcast(&c->changed) == 0);
    lock_give(&c->lock);
    if (c->calls != NULL) {
        calls_stop(c->calls);
    }
}

void
cluster_close(struct cluster *c)
{
    if (c == NULL) {
        return;
    }
    cluster_stop(c);
    engine_set_cluster(c->en, NULL);
    mailbox_close(c->box);
    calls_close(c->calls);
    holding_close(c->holding);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void
cluster_wake(struct cluster *c)
{
    lock_take(&c->lock);
    c->wake = true;
    ASSERT(pthread_cond_broadcast(&c->changed) == 0);
    lock_give(&c->lock);
}

void
cluster_notice(struct cluster *c, const char *id, const struct hash *head)
{
    const struct peer *p;

    lock_take(&c->lock);
    p = cluster_peer(c, id);
    if (p != NULL && !hash_equal(&p->head.id, head)) {
        c->wake = true;
        ASSERT(pthread_cond_broadcast(&c->changed) == 0);
    }
    lock_give(&c->lock);
}
