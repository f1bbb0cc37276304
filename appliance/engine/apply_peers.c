/* SPDX-License-Identifier: Apache-2.0 */
/* What an apply has to do with the other nodes: before it, and after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "engine/apply_job.h"
#include "engine/commit.h"

#define NEAR_MS 60000

bool
apply_changes_content(const struct apply *a)
{
    return a->mode == APPLY_DRAFT || a->mode == APPLY_OPS;
}

bool
apply_asks_peers(const struct apply *a)
{
    struct hash before, after;

    if (!apply_changes_content(a) || members_peers(a->en) == 0) {
        return false;
    }
    before = snapshot_fp(a->view->now.shared, SCHEMA_VERSION);
    after = snapshot_fp(a->candidate.shared, SCHEMA_VERSION);
    return !hash_equal(&before, &after);
}

bool
apply_hands_on(const struct apply *a)
{
    return a->mode != APPLY_FOLLOW && a->mode != APPLY_ADOPT && members_peers(a->en) > 0;
}

/* ---- the candidate, as a push would bring it ---- */

struct offering {
    struct lineage_commit *commit;
    struct sync_doc *d;
};

static void
offer_difference(void *ctx, const struct object *before, const struct object *after)
{
    const struct offering *o = ctx;
    const struct object *named = after != NULL ? after : before;
    struct lineage_commit *c = o->commit;
    struct lineage_entry entry = {.kind = named->kind, .has_object = after != NULL};

    memcpy(entry.id, named->id, sizeof entry.id);
    if (after != NULL) {
        entry.objhash = after->objhash;
        o->d->objects =
            xrealloc(o->d->objects, (o->d->object_count + 1) * sizeof(struct object *));
        o->d->objects[o->d->object_count++] = object_ref(after);
    }
    c->entries = xrealloc(c->entries, (c->entry_count + 1) * sizeof *c->entries);
    c->entries[c->entry_count++] = entry;
}

/* Another one for each offer, also where the clock stands or went back a little: a trial that
 * was cancelled is known by the id that follows from it. */
static int64_t
offer_time(struct engine *en)
{
    int64_t now_ms = clock_wall_ms(en->config->clock);
    int64_t ahead_ms = en->offered_ms - now_ms;

    en->offered_ms = ahead_ms >= 0 && ahead_ms < NEAR_MS ? en->offered_ms + 1 : now_ms;
    return en->offered_ms;
}

/* On top of the head, with a commit that is never stored. */
static void
make_offer(struct apply *a)
{
    const struct view *v = a->view;
    struct sync_doc *d = xcalloc(1, sizeof *d);
    struct lineage_commit *c = xcalloc(1, sizeof *c);
    struct offering o = {c, d};
    struct member behind;
    int level = members_level(a->en, &behind);

    /* As apply_commit will write it: all nodes have to understand it. */
    c->commit = (struct commit){
        .rev = v->head.rev + 1,
        .schema_version = level,
        .fp = snapshot_fp(a->candidate.shared, level),
        .parents = {v->head.id},
        .parent_count = 1,
        .at_ms = offer_time(a->en),
    };
    (void)snprintf(
        c->commit.node, sizeof c->commit.node, "%s",
        snapshot_singleton(v->now.local, K_NODE)->name.s);
    (void)snprintf(c->commit.author, sizeof c->commit.author, "%s", a->author);
    commit_summary(&v->now, &a->candidate, c->commit.summary);
    c->commit.id = commit_compute_id(&c->commit);
    snapshot_diff(v->now.shared, a->candidate.shared, offer_difference, &o);
    d->head = c->commit.id;
    d->commits = (struct lineage){c, 1};
    a->offer = d;
}

/* ---- asking ---- */

/* What may keep HAProxy from serving although it is well-formed. */
static const bool tried_kinds[KIND_COUNT] = {
    [K_LISTENER] = true,
    [K_VIP_GROUP] = true,
    [K_HAPROXY] = true,
};

static bool
is_to_be_tried(const struct apply *a)
{
    const struct lineage_commit *c = &a->offer->commits.items[0];
    bool found = false;

    for (size_t i = 0; i < c->entry_count; i++) {
        found = found || tried_kinds[c->entries[i].kind];
    }
    return found;
}

/* NULL: none did. */
static const json_t *
first_refused(const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        if (strcmp(json_string_value(json_object_get(row, "state")), "failed") == 0) {
            return row;
        }
    }
    return NULL;
}

enum apply_event
apply_peers(struct apply *a, struct error *e)
{
    const struct engine_cluster *cluster = engine_cluster_take(a->en);
    const json_t *refused;
    size_t accepted = 0;
    size_t i;
    json_t *row;

    make_offer(a);
    a->checked = cluster == NULL ? json_array()
                                 : cluster->check(
                                       cluster->ctx,
                                       &(struct cluster_candidate){
                                           .doc = a->offer,
                                           .skip = a->skip,
                                           .skip_count = a->skip_count,
                                           .task = a->task},
                                       a->problems);
    if (cluster != NULL) {
        engine_cluster_give(a->en);
    }
    json_array_foreach(a->checked, i, row)
    {
        const char *state = json_string_value(json_object_get(row, "state"));

        accepted += strcmp(state, "ok") == 0 ? 1 : 0;
    }
    refused = first_refused(a->checked);
    if (refused != NULL) {
        (void)error_set(
            e, ERR_INVALID, "%s: %.180s", json_string_value(json_object_get(refused, "node")),
            json_string_value(json_object_get(refused, "detail")));
        return AE_FAIL;
    }
    apply_detail(a, "%zu of %zu accepted it", accepted, json_array_size(a->checked));
    if (a->same) {
        return AE_SAME;
    }
    return accepted > 0 && is_to_be_tried(a) ? AE_OK : AE_NOTHING;
}

/* ---- trying ---- */

enum apply_event
apply_try_standby(struct apply *a, struct error *e)
{
    const struct engine_cluster *cluster = engine_cluster_take(a->en);
    const char *node;

    if (cluster != NULL) {
        a->tried = cluster->trial(
            cluster->ctx,
            &(struct cluster_candidate){
                .doc = a->offer,
                .skip = a->skip,
                .skip_count = a->skip_count,
                .checked = a->checked,
                .task = a->task},
            a->problems);
        engine_cluster_give(a->en);
    }
    if (a->tried == NULL) {
        return AE_NOTHING;
    }
    node = json_string_value(json_object_get(a->tried, "node"));
    if (strcmp(json_string_value(json_object_get(a->tried, "state")), "ok") != 0) {
        (void)error_set(
            e, ERR_INVALID, "%s: %.180s", node,
            json_string_value(json_object_get(a->tried, "detail")));
        return AE_FAIL;
    }
    apply_detail(a, "%s", node);
    return AE_OK;
}

void
apply_end_trial(struct apply *a)
{
    const struct engine_cluster *cluster;

    if (a->tried == NULL) {
        return;
    }
    cluster = engine_cluster_take(a->en);
    if (cluster != NULL) {
        cluster->trial_end(
            cluster->ctx, json_string_value(json_object_get(a->tried, "node")),
            &a->offer->head);
        engine_cluster_give(a->en);
    }
}

/* ---- push ---- */

static const char *
of_row(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static bool
has_taken(const json_t *row)
{
    return strcmp(of_row(row, "state"), "ok") == 0;
}

static bool
have_one_reason(const json_t *a, const json_t *b)
{
    return !has_taken(a) && !has_taken(b) &&
           strcmp(of_row(a, "detail"), of_row(b, "detail")) == 0;
}

/* "n1, n3: no answer in time; n2: ...": the nodes with the reason of row i, when it is the
 * first with it. */
static void
put_reason(struct buf *out, const json_t *rows, size_t i)
{
    const json_t *row = json_array_get(rows, i);

    for (size_t k = 0; k < i; k++) {
        if (have_one_reason(json_array_get(rows, k), row)) {
            return;
        }
    }
    buf_printf(out, "%s%s", out->len > 0 ? "; " : "", of_row(row, "node"));
    for (size_t k = i + 1; k < json_array_size(rows); k++) {
        if (have_one_reason(row, json_array_get(rows, k))) {
            buf_printf(out, ", %s", of_row(json_array_get(rows, k), "node"));
        }
    }
    buf_printf(out, ": %s", of_row(row, "detail"));
}

/* Returns how many nodes have not taken it; *e names them. */
static size_t
name_behind(const json_t *rows, struct error *e)
{
    CLEANUP(buf_fini) struct buf text;
    size_t behind = 0;

    buf_init(&text, (size_t)64 << 10);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (!has_taken(json_array_get(rows, i))) {
            behind++;
            put_reason(&text, rows, i);
        }
    }
    if (behind > 0) {
        (void)error_set(e, ERR_UNAVAILABLE, "%s", buf_str(&text));
    }
    return behind;
}

/* Here it serves and is saved: a node that has not taken it is named, and heals. */
enum apply_event
apply_push(struct apply *a, struct error *e)
{
    const struct engine_cluster *cluster;
    /* Its time runs. */
    const char *first = json_string_value(json_object_get(a->tried, "node"));

    if (!apply_hands_on(a)) {
        return AE_NOTHING;
    }
    cluster = engine_cluster_take(a->en);
    a->pushed = cluster != NULL ? cluster->push(cluster->ctx, a->task, first) : json_array();
    if (cluster != NULL) {
        engine_cluster_give(a->en);
    }
    a->behind = name_behind(a->pushed, e);
    if (a->behind > 0) {
        return AE_FAIL;
    }
    apply_detail(
        a, "%zu other node%s", json_array_size(a->pushed), PLURAL(json_array_size(a->pushed)));
    return AE_OK;
}
