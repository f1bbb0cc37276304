/* SPDX-License-Identifier: Apache-2.0 */
/* Overwrite: the way out of a split. A person says that this node's content is the right one;
 * a commit with that content and all heads as its parents says so to everybody, and what the
 * others had stays in history. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/confirm.h"
#include "engine/problems_json.h"
#include "sync/hand.h"

#define CODE_BUSY   "overwrite_in_progress"
#define AUDIT_BYTES 400
#define NAMES_BYTES 120

/* A node whose head is to be replaced. */
struct target {
    struct member member;
    struct commit head;
    bool reached, ready; /* ready: to be handed it */
    bool taken;
    struct error error;
    char code[CODE_BYTES];
    json_t *errors; /* what it says of the content, or NULL */
};

struct overwriting {
    struct cluster *c;
    const struct cluster_overwrite *q;
    struct target *targets;
    size_t count;
    struct commit own;     /* the head of this node */
    struct commit commit;  /* the one that replaces all */
    char code[CODE_BYTES]; /* of the refusal of all of it, or "": that of its error */
};

/* ---- which nodes ---- */

static bool
is_named(const struct cluster_overwrite *q, const struct member *m)
{
    for (size_t i = 0; i < q->node_count; i++) {
        if (strcmp(q->nodes[i], m->name) == 0 || strcmp(q->nodes[i], m->id) == 0) {
            return true;
        }
    }
    return q->node_count == 0;
}

/* Whether it has what this node has not. One that is ahead is overwritten only by its name:
 * this node would take over what it has. *why: why not. */
static bool
differs(const struct overwriting *o, const struct member *m, struct error *why)
{
    struct cluster *c = o->c;
    const struct peer *p;
    bool is;

    lock_take(&c->lock);
    p = cluster_peer(c, m->id);
    is = p != NULL && p->answered &&
         (p->relation == REL_DIVERGED ||
          (p->relation == REL_SELF_BEHIND && o->q->node_count > 0));
    if (p != NULL && p->answered) {
        (void)error_set(why, ERR_CONFLICT, "%s: %s", m->name, relation_text(p->relation));
    } else {
        (void)error_set(
            why, ERR_CONFLICT, "%s does not answer: %.180s", m->name,
            p != NULL ? p->failure.msg : "it was not asked yet");
    }
    lock_give(&c->lock);
    return is;
}

static err_t
check_names(const struct overwriting *o, struct error *e)
{
    err_t code = ERR_OK;

    for (size_t i = 0; i < o->q->node_count && code == ERR_OK; i++) {
        struct member m;
        struct error why;

        code = members_find(o->c->en, o->q->nodes[i], &m, e);
        if (code == ERR_OK && !differs(o, &m, &why)) {
            *e = why;
            code = why.code;
        }
        crypt_wipe(&m, sizeof m);
    }
    return code;
}

/* Of all nodes when none is named: those that diverged. */
static err_t
find_targets(struct overwriting *o, struct error *e)
{
    CLEANUP(member_list_free) struct member_list list = members_get(o->c->en);
    struct error unused;
    err_t code = check_names(o, e);

    o->targets = xcalloc(list.count + 1, sizeof *o->targets);
    for (size_t i = 0; i < list.count && code == ERR_OK; i++) {
        const struct member *m = &list.items[i];

        if (i != list.self && !m->gone && is_named(o->q, m) && differs(o, m, &unused)) {
            o->targets[o->count++].member = *m;
        }
    }
    if (code == ERR_OK && o->count > COMMIT_MAX_PARENTS - 1) {
        code = error_set(
            e, ERR_LIMIT, "at most %d nodes at once: name some", COMMIT_MAX_PARENTS - 1);
    }
    if (code == ERR_OK && o->count == 0) {
        code = error_set(e, ERR_CONFLICT, "no node that answers diverged from this one");
    }
    return code;
}

static err_t
refuse(char code_name[CODE_BYTES], const char *name, struct error *e, const char *text)
{
    (void)snprintf(code_name, CODE_BYTES, "%s", name);
    return error_set(e, ERR_CONFLICT, "%s", text);
}

/* Its commits become part of this node's history, so that they can be parents, and so that
 * nothing is lost when that node is. Whether it differs was known of its head of then. */
static err_t
fetch_head(struct overwriting *o, struct target *t, struct error *e)
{
    enum relation relation = REL_DIVERGED;
    struct hash head;
    err_t code = cluster_pull_head(o->c, &t->member, &head, e);

    if (code == ERR_OK) {
        code = sync_commit_get(o->c->en, &head, &t->head, e);
    }
    if (code == ERR_OK) {
        code = sync_relate(o->c->en, &t->head, &relation, e);
    }
    if (code == ERR_OK && relation != REL_DIVERGED &&
        (relation != REL_SELF_BEHIND || o->q->node_count == 0)) {
        code = refuse(t->code, push_verdict_name(PUSH_MOVED), e, relation_text(relation));
    }
    return code;
}

/* ---- the commit ---- */

/* Several nodes may stand at one head. */
static void
add_parent(struct commit *c, const struct commit *head)
{
    for (size_t i = 0; i < c->parent_count; i++) {
        if (hash_equal(&c->parents[i], &head->id)) {
            return;
        }
    }
    c->parents[c->parent_count++] = head->id;
    c->rev = head->rev > c->rev ? head->rev : c->rev;
}

static void
make_commit(struct overwriting *o)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(o->c->en);
    struct commit *c = &o->commit;
    struct member self;

    members_self(o->c->en, &self);
    o->own = v->head;
    *c = (struct commit){
        .rev = v->head.rev,
        .schema_version = v->head.schema_version,
        .fp = v->head.fp,
        .parents = {v->head.id},
        .parent_count = 1,
        .at_ms = clock_wall_ms(o->c->clock),
    };
    for (size_t i = 0; i < o->count; i++) {
        if (o->targets[i].reached) {
            add_parent(c, &o->targets[i].head);
        }
    }
    c->rev++;
    (void)snprintf(c->node, sizeof c->node, "%s", self.name);
    (void)snprintf(c->author, sizeof c->author, "%s", o->q->who);
    (void)snprintf(c->summary, sizeof c->summary, "replaced by overwrite from %s", self.name);
    c->id = commit_compute_id(c);
    crypt_wipe(&self, sizeof self);
}

/* ---- doing it ---- */

static err_t
hand_over(struct overwriting *o, struct target *t, bool asks)
{
    struct cluster_handing h = {
        .member = &t->member,
        .have = &t->head.id,
        .commit = &o->commit,
        .expected = &t->head.id,
        .asks = asks,
        .errors = &t->errors,
    };

    t->code[0] = '\0';
    t->error = (struct error){.code = ERR_OK};
    t->error.code = cluster_hand(o->c, &h, t->code, &t->error);
    return t->error.code;
}

/* What one node says is said of all. Of its key or its history nobody asked. */
static err_t
fail_by(struct overwriting *o, const struct target *t, struct error *e)
{
    static const err_t told[] = {ERR_CONFLICT, ERR_INVALID, ERR_LIMIT, ERR_TIMEOUT};
    err_t code = ERR_UNAVAILABLE;

    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        code = t->error.code == told[i] ? told[i] : code;
    }
    /* Without a word of the node it is this one, whose head is another now. */
    (void)snprintf(
        o->code, sizeof o->code, "%s",
        t->code[0] == '\0' && code == ERR_CONFLICT ? push_verdict_name(PUSH_MOVED) : t->code);
    return error_set(e, code, "%s: %.180s", t->member.name, t->error.msg);
}

/* Of a node that does not answer nobody knows what it would say: it is left out. */
static bool
is_refusal(const struct target *t)
{
    return t->error.code == ERR_CONFLICT || t->error.code == ERR_INVALID ||
           t->error.code == ERR_LIMIT;
}

/* Nothing is handed to anybody where one would refuse it. */
static err_t
ask_all(struct overwriting *o, struct error *e)
{
    for (size_t i = 0; i < o->count; i++) {
        struct target *t = &o->targets[i];

        t->ready = t->reached && hand_over(o, t, true) == ERR_OK;
        if (t->reached && !t->ready && is_refusal(t)) {
            return fail_by(o, t, e);
        }
    }
    return ERR_OK;
}

/* From now on this node takes no other overwrite: all were asked, and none goes first. */
static err_t
begin_handing(struct overwriting *o, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(o->c->en);
    bool gives_way;

    lock_take(&o->c->lock);
    gives_way = o->c->gives_way;
    o->c->overwriting = gives_way ? OVERWRITING_ASKS : OVERWRITING_HANDS;
    lock_give(&o->c->lock);
    if (gives_way) {
        return refuse(o->code, CODE_BUSY, e, "the overwrite from another node goes first");
    }
    return hash_equal(&v->head.id, &o->own.id)
               ? ERR_OK
               : refuse(
                     o->code, push_verdict_name(PUSH_MOVED), e,
                     "this node was changed meanwhile: overwrite once more");
}

static json_t *
target_json(const struct target *t)
{
    bool failed = t->error.code != ERR_OK;
    const char *code = t->code[0] == '\0' && failed ? error_name(t->error.code) : t->code;
    char id[SHA256_HEX + 1], fp[SHA256_HEX + 1];

    hash_hex(&t->head.id, id);
    hash_hex(&t->head.fp, fp);
    return json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:o, s:O*}", "node", t->member.name, "discarded",
        t->reached ? json_string(id) : json_null(), "discarded_name",
        t->reached ? json_sprintf("%lld@%.8s", (long long)t->head.rev, fp) : json_null(),
        "state", t->taken ? "ok" : (failed ? "failed" : "skipped"), "code", code, "detail",
        json_foreign_text(failed ? t->error.msg : ""), "errors", t->errors);
}

/* ERR_OK when one at least took it. */
static err_t
hand_to_all(struct overwriting *o, struct error *e)
{
    const struct target *failed = NULL;
    size_t taken = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct target *t = &o->targets[i];

        t->taken = t->ready && hand_over(o, t, false) == ERR_OK;
        taken += t->taken ? 1 : 0;
        if (!t->taken && (failed == NULL || (is_refusal(t) && !is_refusal(failed)))) {
            failed = t;
        }
        if (strcmp(t->code, CODE_BUSY) == 0) {
            break;
        }
    }
    if (taken > 0) {
        return ERR_OK;
    }
    ASSERT(failed != NULL);
    return fail_by(o, failed, e);
}

static size_t
fetch_all(struct overwriting *o)
{
    size_t reached = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct target *t = &o->targets[i];

        t->error.code = fetch_head(o, t, &t->error);
        t->reached = t->error.code == ERR_OK;
        reached += t->reached ? 1 : 0;
    }
    return reached;
}

static void
names_of_taken(const struct overwriting *o, char ret[NAMES_BYTES])
{
    CLEANUP(buf_fini) struct buf names;

    buf_init(&names, NAMES_BYTES);
    for (size_t i = 0; i < o->count; i++) {
        if (o->targets[i].taken) {
            buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", o->targets[i].member.name);
        }
    }
    (void)snprintf(ret, NAMES_BYTES, "%s", names.failed ? "several nodes" : buf_str(&names));
}

/* This node's own head moves only when somebody took it. */
static err_t
conclude(struct overwriting *o, struct error *e)
{
    char names[NAMES_BYTES], text[AUDIT_BYTES];
    err_t code;

    names_of_taken(o, names);
    (void)snprintf(
        text, sizeof text, "revision %lld, taken by %s", (long long)o->commit.rev, names);
    members_audit(o->c->en, o->q->who, "cluster_overwrite", text);
    code = sync_overwrite(o->c->en, &o->own, &o->commit, o->q->who, e);
    if (code == ERR_CONFLICT) {
        (void)snprintf(o->code, sizeof o->code, "%s", push_verdict_name(PUSH_MOVED));
        code = error_set(
            e, ERR_CONFLICT,
            "%s took it, but this node was changed meanwhile: overwrite once more", names);
    }
    for (size_t i = 0; i < o->count && code == ERR_OK; i++) {
        if (o->targets[i].taken) {
            cluster_note_taken(o->c, &o->targets[i].member, &o->commit);
        }
    }
    return code;
}

/* What would be handed to all goes back yet unless somebody says that it stays. Past its
 * deadline it may be that nobody goes back: then this decides. */
static err_t
check_waiting(struct engine *en, struct error *e)
{
    struct engine_waiting w;

    confirm_look(en, &w);
    return w.is && !w.going_back && !w.failed ? confirm_refuse(en, NULL, NULL, e) : ERR_OK;
}

static err_t
run(struct overwriting *o, struct error *e)
{
    err_t code = check_waiting(o->c->en, e);

    if (code == ERR_OK) {
        code = find_targets(o, e);
    }
    if (code != ERR_OK) {
        return code;
    }
    if (fetch_all(o) == 0) {
        return fail_by(o, &o->targets[0], e);
    }
    make_commit(o);
    if (o->q->plan) {
        return ERR_OK;
    }
    code = ask_all(o, e);
    if (code == ERR_OK) {
        code = begin_handing(o, e);
    }
    if (code == ERR_OK) {
        code = hand_to_all(o, e);
    }
    return code == ERR_OK ? conclude(o, e) : code;
}

static bool
begin(struct cluster *c)
{
    bool first;

    lock_take(&c->lock);
    first = c->overwriting == OVERWRITING_NOT;
    if (first) {
        c->overwriting = OVERWRITING_ASKS;
        c->gives_way = false;
    }
    lock_give(&c->lock);
    return first;
}

static void
end(struct cluster *c)
{
    lock_take(&c->lock);
    c->overwriting = OVERWRITING_NOT;
    lock_give(&c->lock);
}

err_t
cluster_overwrite(
    struct cluster *c, const struct cluster_overwrite *q, json_t **ret, struct error *e)
{
    struct overwriting o = {.c = c, .q = q};
    char id[SHA256_HEX + 1];
    json_t *nodes = json_array();
    err_t code;

    if (q->plan) {
        code = run(&o, e);
    } else if (begin(c)) {
        code = run(&o, e);
        end(c);
    } else {
        code = refuse(o.code, CODE_BUSY, e, "an overwrite from this node is under way");
    }
    for (size_t i = 0; i < o.count; i++) {
        (void)json_array_append_new(nodes, target_json(&o.targets[i]));
        json_decref(o.targets[i].errors);
    }
    hash_hex(&o.commit.id, id);
    *ret = json_pack(
        "{s:I, s:s, s:o}", "rev", (json_int_t)o.commit.rev, "commit", id, "nodes", nodes);
    if (code != ERR_OK) {
        (void)json_object_set_new(
            *ret, "code", json_string(o.code[0] != '\0' ? o.code : error_name(code)));
    }
    if (o.targets != NULL) {
        crypt_wipe(o.targets, o.count * sizeof *o.targets);
    }
    free(o.targets);
    cluster_wake(c);
    return code;
}

err_t
cluster_fetch_head(
    struct cluster *c, const char *spec, struct cluster_other *ret, struct error *e)
{
    struct member m;
    struct hash head;
    struct error why;
    err_t code = members_find(c->en, spec, &m, e);

    if (code != ERR_OK) {
        return code;
    }
    memcpy(ret->name, m.name, sizeof ret->name);
    code = cluster_check_answers(c, &m, e);
    if (code == ERR_OK && cluster_pull_head(c, &m, &head, &why) != ERR_OK) {
        code = error_set(e, ERR_UNAVAILABLE, "%s: %.180s", m.name, why.msg);
    }
    crypt_wipe(&m, sizeof m);
    return code == ERR_OK ? sync_commit_get(c->en, &head, &ret->head, e) : code;
}

bool
cluster_outranks(struct cluster *c, const char *id, bool asks)
{
    struct member self;
    bool first = false;

    members_self(c->en, &self);
    lock_take(&c->lock);
    switch (c->overwriting) {
    case OVERWRITING_NOT: break;
    case OVERWRITING_ASKS:
        first = asks && strcmp(self.id, id) < 0;
        c->gives_way = c->gives_way || !first;
        break;
    case OVERWRITING_HANDS: first = true; break;
    }
    lock_give(&c->lock);
    crypt_wipe(self.key, sizeof self.key);
    return first;
}
