/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/apply_job.h"
#include "engine/commit.h"
#include "engine/sync_changes.h"
#include "engine/watcher.h"

/* ---- how two heads stand to each other ---- */

struct looking {
    const struct hash *other;
    struct sync_view *ret;
};

static err_t
look_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct looking *l = ctx;
    err_t code = store_has_commit(en->store, l->other, &l->ret->have, e);

    return code == ERR_OK && l->ret->have ? leads_to_head(en, l->other, &l->ret->leads, e)
                                          : code;
}

err_t
sync_look(struct engine *en, const struct hash *other, struct sync_view *ret, struct error *e)
{
    struct looking l = {other, ret};

    *ret = (struct sync_view){.have = false};
    return engine_run(en, look_on_engine, &l, e);
}

struct having {
    struct hash *ret;
    size_t count;
};

static err_t
have_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct having *h = ctx;
    int64_t back = 1;
    err_t code = ERR_OK;

    h->ret[h->count++] = en->live.head.id;
    while (h->count < SYNC_HAVE_MAX && back < en->live.head.rev && code == ERR_OK) {
        CLEANUP(xfree_cleanup) struct commit *found = NULL;
        size_t count = 0;

        code = store_commits(en->store, en->live.head.rev - back + 1, 1, &found, &count, e);
        if (code == ERR_OK && count > 0) {
            h->ret[h->count++] = found[0].id;
        }
        back *= 2;
    }
    return code;
}

err_t
sync_have(struct engine *en, struct hash ret[SYNC_HAVE_MAX], size_t *ret_count, struct error *e)
{
    struct having h = {ret, 0};
    err_t code = engine_run(en, have_on_engine, &h, e);

    *ret_count = h.count;
    return code;
}

static int
order_of(const struct commit *own, const struct sync_head *peer)
{
    if (own->rev != peer->rev) {
        return own->rev < peer->rev ? -1 : 1;
    }
    return memcmp(&own->id, &peer->id, sizeof own->id);
}

struct relation_facts
sync_facts(
    const struct commit *own, const struct sync_head *peer, const struct sync_view *seen,
    bool leads)
{
    bool same = hash_equal(&own->id, &peer->id);

    return (struct relation_facts){
        .same_head = same,
        .peer_is_ancestor = seen->leads && !same,
        .self_is_ancestor = leads && !same,
        .same_fp =
            hash_equal(&own->fp, &peer->fp) && own->schema_version == peer->schema_version,
        .newer_schema = peer->schema_version > SCHEMA_VERSION,
        .order = order_of(own, peer),
    };
}

/* ---- taking ---- */

struct taking {
    const struct sync_doc *d;
    const struct sync_origin *origin;
    struct sync_result *ret;
    struct commit head; /* of the document */
    struct commit own;
    struct snapshot *own_shared; /* a reference */
    struct snapshot *shared;     /* what it makes: a reference */
    struct sync_kept found;      /* objects that are kept here */
    const struct lineage_entry *wanted;
    size_t wanted_count;
};

/* Whether the own head is the head of the document or an ancestor of it: through the commits
 * that came along to those that are stored. */
static err_t
leads_here(struct engine *en, const struct taking *t, bool *ret, struct error *e)
{
    const struct lineage *l = &t->d->commits;
    bool *reached;
    err_t code = ERR_OK;

    *ret = false;
    if (sync_doc_commit(t->d, &t->d->head) == NULL) {
        return store_is_ancestor(en->store, &t->own.id, &t->d->head, ret, e);
    }
    reached = xcalloc(l->count + 1, sizeof *reached);
    for (size_t i = l->count; i > 0 && code == ERR_OK && !*ret; i--) {
        const struct commit *c = &l->items[i - 1].commit;

        reached[i - 1] = reached[i - 1] || hash_equal(&c->id, &t->d->head);
        for (size_t k = 0; reached[i - 1] && k < c->parent_count && !*ret && code == ERR_OK;
             k++) {
            const struct lineage_commit *parent = sync_doc_commit(t->d, &c->parents[k]);

            if (hash_equal(&c->parents[k], &t->own.id)) {
                *ret = true;
            } else if (parent != NULL && parent < &l->items[i - 1]) {
                reached[parent - l->items] = true;
            } else {
                code = store_is_ancestor(en->store, &t->own.id, &c->parents[k], ret, e);
                code = code == ERR_NOT_FOUND
                           ? error_set(e, ERR_INVALID, "a commit came without its parent")
                           : code;
            }
        }
    }
    free(reached);
    return code;
}

static err_t
facts_on_engine(
    struct engine *en, const struct taking *t, struct push_facts *ret, struct error *e)
{
    struct sync_head head = {t->head.id, t->head.fp, t->head.rev, t->head.schema_version};
    struct sync_view seen = {.have = false};
    struct relation_facts facts;
    bool leads = false;
    struct looking l = {&t->head.id, &seen};
    err_t code = look_on_engine(en, &l, e);

    if (code == ERR_OK) {
        code = leads_here(en, t, &leads, e);
    }
    facts = sync_facts(&t->own, &head, &seen, leads);
    *ret = (struct push_facts){
        .relation = relation_of(&facts),
        .overwrites = t->d->has_expected,
        .expected = hash_equal(&t->d->expected, &t->own.id),
        .outranks = t->origin->outranks,
    };
    return code;
}

/* What a refusal says to both sides. */
static err_t
refuse(
    struct engine *en, const struct taking *t, enum push_verdict verdict,
    const struct push_facts *facts, struct error *e)
{
    char own[SHA256_HEX + 1], other[SHA256_HEX + 1];

    hash_hex(&t->own.fp, own);
    hash_hex(&t->head.fp, other);
    t->ret->refusal = push_verdict_name(verdict);
    return error_set(
        e, ERR_CONFLICT, "%s (%s): %s stands at revision %lld@%.8s, offered was %lld@%.8s",
        relation_text(facts->relation), t->ret->refusal,
        snapshot_singleton(en->live.local, K_NODE)->name.s, (long long)t->own.rev, own,
        (long long)t->head.rev, other);
}

static err_t
decide_on_engine(struct engine *en, void *ctx, struct error *e)
{
    struct taking *t = ctx;
    const struct lineage_commit *carried = sync_doc_commit(t->d, &t->d->head);
    struct push_facts facts;
    enum push_verdict verdict;
    char hex[SHA256_HEX + 1];
    err_t code = ERR_OK;

    t->own = en->live.head;
    t->own_shared = snapshot_ref(en->live.shared);
    hash_hex(&t->d->head, hex);
    if (t->d->more) {
        return error_set(e, ERR_INVALID, "a piece of a history leads to no head");
    }
    if (carried != NULL) {
        t->head = carried->commit;
    } else {
        code = store_commit_find(en->store, hex, &t->head, e);
        code = code == ERR_NOT_FOUND
                   ? error_set(e, ERR_INVALID, "the commit of \"head\" did not come along")
                   : code;
    }
    if (code == ERR_OK) {
        code = facts_on_engine(en, t, &facts, e);
    }
    if (code != ERR_OK || t->origin->how == SYNC_STORED) {
        return code;
    }
    verdict = push_verdict(&facts);
    if (t->origin->how == SYNC_JOINED && verdict == PUSH_DIVERGED) {
        verdict = PUSH_ADVANCE;
    } else if (t->origin->how == SYNC_JOINED && verdict == PUSH_STALE) {
        verdict = PUSH_SAME; /* the others take over what is newer here */
    }
    switch (verdict) {
    case PUSH_SAME: t->ret->refusal = push_verdict_name(verdict); return ERR_OK;
    case PUSH_ADVANCE:
    case PUSH_ADOPT_EQUAL: return ERR_OK;
    case PUSH_STALE:
    case PUSH_DIVERGED:
    case PUSH_NEWER_RELEASE:
    case PUSH_MOVED:
    case PUSH_OVERWRITE_IN_PROGRESS: break;
    }
    return refuse(en, t, verdict, &facts, e);
}

/* ---- content ---- */

static err_t
find_kept(struct engine *en, void *ctx, struct error *e)
{
    struct taking *t = ctx;

    return store_objects(en->store, t->wanted, t->wanted_count, &t->found.items, e);
}

static err_t
report_missing(struct taking *t, struct error *e)
{
    struct sync_result *ret = t->ret;

    ret->missing = xcalloc(t->wanted_count + 1, sizeof *ret->missing);
    for (size_t i = 0; i < t->wanted_count; i++) {
        if (t->found.items[i] == NULL) {
            ret->missing[ret->missing_count++] = t->wanted[i];
        }
    }
    if (ret->missing_count == 0) {
        free(TAKE(ret->missing));
        return ERR_OK;
    }
    return error_set(
        e, ERR_NOT_FOUND, "%zu object%s did not come along", ret->missing_count,
        PLURAL(ret->missing_count));
}

/* There is always one of each, whatever a commit says. */
static err_t
check_singletons(const struct snapshot *shared, struct error *e)
{
    for (enum kind k = 0; k < KIND_COUNT; k++) {
        const struct schema_kind *kind = schema_kind(k);

        if (kind->singleton && kind->scope == SCOPE_SHARED &&
            snapshot_singleton(shared, k) == NULL) {
            return error_set(e, ERR_INVALID, "%s is missing", kind->name);
        }
    }
    return ERR_OK;
}

static err_t
make_content(struct engine *en, struct taking *t, struct error *e)
{
    struct sync_changes changes = {.items = NULL};
    struct sync_changes absent = {.items = NULL};
    err_t code = sync_changes_of(t->d, &t->own.id, t->own_shared, &changes, e);
    struct hash fp;

    if (code == ERR_OK) {
        sync_changes_absent(&changes, t->d, &absent);
        t->wanted = absent.items;
        t->wanted_count = absent.count;
        code = engine_run(en, find_kept, t, e);
    }
    if (code == ERR_OK) {
        t->found.count = absent.count;
        code = report_missing(t, e);
    }
    if (code == ERR_OK) {
        code = sync_changes_make(&changes, t->d, &t->found, t->own_shared, &t->shared, e);
    }
    if (code == ERR_OK) {
        code = check_singletons(t->shared, e);
    }
    if (code == ERR_OK) {
        fp = snapshot_fp(t->shared, t->head.schema_version);
        if (!hash_equal(&fp, &t->head.fp)) {
            code = error_set(
                e, ERR_INVALID, "the content does not have the fingerprint of its commit");
        }
    }
    free(changes.items);
    free(absent.items);
    return code;
}

/* Before HAProxy is touched: what could not be saved is not activated either. */
static err_t
check_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct taking *t = ctx;

    return commit_adopt_check(en, t->d, t->shared, e);
}

/* ---- the job ---- */

static err_t
store_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct taking *t = ctx;
    struct commit unused;

    return store_adopt(
        en->store,
        &(struct adopt_request){
            .commits = &t->d->commits,
            .bodies = t->d->objects,
            .body_count = t->d->object_count,
            .author = "sync",
            .head = t->d->head,
            .beside = t->shared,
        },
        &unused, e);
}

static err_t
start_job(struct engine *en, struct sync_doc *d, struct taking *t, struct error *e)
{
    struct apply *a = xcalloc(1, sizeof *a);
    CLEANUP(buf_fini) struct buf text;
    err_t code;

    buf_init(&text, COMMIT_TEXT_BYTES);
    buf_printf(&text, "node %s", t->origin->from);
    a->en = en;
    a->mode = APPLY_ADOPT;
    a->author = xstrdup(buf_str(&text));
    a->has_base = true;
    a->base = t->own.id;
    a->adopt = xcalloc(1, sizeof *a->adopt);
    *a->adopt = *d;
    *d = (struct sync_doc){.has_index = false};
    a->adopted = TAKE(t->shared);
    change_set_init(&a->ops);
    a->task = (t->origin->again ? task_begin_again : task_begin)(
        en->tasks, "sync",
        t->origin->how == SYNC_PULLED ? "Take over a newer revision" : "Take a revision over",
        a->author);
    t->ret->task = a->task;
    code = apply_post(a, e);
    return code;
}

static void
taking_fini(struct taking *t)
{
    for (size_t i = 0; i < t->found.count; i++) {
        object_unref(t->found.items[i]);
    }
    free(t->found.items);
    snapshot_unref(t->own_shared);
    snapshot_unref(t->shared);
}

err_t
sync_weigh(
    struct engine *en, const struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct sync_weighed *ret_weighed, struct error *e)
{
    struct taking t = {.d = d, .origin = origin, .ret = ret};
    err_t code;

    *ret = (struct sync_result){.task = 0};
    code = engine_run(en, decide_on_engine, &t, e);
    if (code == ERR_OK && ret->refusal == NULL) {
        code = make_content(en, &t, e);
    }
    if (code == ERR_OK) {
        *ret_weighed = (struct sync_weighed){t.own.id, t.head.fp, t.shared};
        t.shared = NULL;
    }
    taking_fini(&t);
    return code;
}

/* The apply that moved the head here may not have ended: what HAProxy runs since is not noted
 * yet, and the sender would be told of what ran before. */
static void
see_running(struct engine *en)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct engine_status s;

    engine_get_status(en, &s);
    if (!s.running_known || !hash_equal(&s.running_commit, &v->head.id)) {
        watcher_look(en);
    }
}

err_t
sync_take(
    struct engine *en, struct sync_doc *d, const struct sync_origin *origin,
    struct sync_result *ret, struct error *e)
{
    struct taking t = {.d = d, .origin = origin, .ret = ret};
    err_t code;

    *ret = (struct sync_result){.task = 0};
    code = engine_run(en, decide_on_engine, &t, e);
    if (code == ERR_OK && origin->how == SYNC_STORED) {
        /* A node of an older release gives no index of what it takes for a few changes. */
        code = d->has_index ? make_content(en, &t, e) : ERR_OK;
        if (code == ERR_OK) {
            code = engine_run(en, store_on_engine, &t, e);
        }
    } else if (code == ERR_OK && ret->refusal == NULL) {
        code = make_content(en, &t, e);
        if (code == ERR_OK) {
            code = engine_run(en, check_on_engine, &t, e);
        }
        if (code == ERR_OK) {
            code = start_job(en, d, &t, e);
        }
    } else if (code == ERR_OK) {
        see_running(en);
    }
    taking_fini(&t);
    sync_doc_free(d);
    return code;
}

/* ---- overwriting ---- */

struct getting {
    const struct hash *id;
    struct commit *ret;
};

static err_t
get_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct getting *g = ctx;
    char hex[SHA256_HEX + 1];

    hash_hex(g->id, hex);
    return store_commit_find(en->store, hex, g->ret, e);
}

err_t
sync_commit_get(struct engine *en, const struct hash *id, struct commit *ret, struct error *e)
{
    struct getting g = {id, ret};

    return engine_run(en, get_on_engine, &g, e);
}

struct relating {
    const struct commit *other;
    enum relation *ret;
};

static err_t
relate_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct relating *x = ctx;
    const struct commit *own = &en->live.head;
    struct sync_head head = {
        x->other->id, x->other->fp, x->other->rev, x->other->schema_version};
    struct sync_view seen = {.have = false};
    struct looking l = {&x->other->id, &seen};
    struct relation_facts facts;
    bool leads = false;
    err_t code = look_on_engine(en, &l, e);

    if (code == ERR_OK) {
        code = store_is_ancestor(en->store, &own->id, &x->other->id, &leads, e);
    }
    if (code == ERR_OK) {
        facts = sync_facts(own, &head, &seen, leads);
        *x->ret = relation_of(&facts);
    }
    return code;
}

err_t
sync_relate(struct engine *en, const struct commit *other, enum relation *ret, struct error *e)
{
    struct relating x = {other, ret};

    return engine_run(en, relate_on_engine, &x, e);
}

struct replacing {
    const struct commit *own, *c;
    const char *who;
};

static err_t
replace_on_engine(struct engine *en, void *ctx, struct error *e)
{
    const struct replacing *x = ctx;
    struct lineage_commit item = {.commit = *x->c};
    struct sync_doc d = {.head = x->c->id, .commits = {&item, 1}};
    bool is_head = hash_equal(&x->own->id, &en->live.head.id);
    struct sync_view seen = {.have = false};
    struct looking l = {&x->c->id, &seen};
    err_t code = look_on_engine(en, &l, e);

    /* Whoever took it has handed it back already, as any head. */
    if (code != ERR_OK || seen.leads) {
        return code;
    }
    code = commit_adopt(en, &d, is_head ? en->live.shared : NULL, x->who, e);
    if (code == ERR_OK) {
        commit_carry_generation(en, &x->own->id, en->live.local_rev);
    }
    return code;
}

err_t
sync_overwrite(
    struct engine *en, const struct commit *own, const struct commit *c, const char *who,
    struct error *e)
{
    struct replacing x = {own, c, who};

    return engine_run(en, replace_on_engine, &x, e);
}
