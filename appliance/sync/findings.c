/* SPDX-License-Identifier: Apache-2.0 */
/* What this node knows of all nodes, put together for sync/condition.h. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/pages.h"
#include "engine/problems_json.h"
#include "sync/inner.h"

/* ---- what a node says of itself ---- */

static bool
is_held(const struct view *v)
{
    return !object_bool(snapshot_singleton(v->now.local, K_NODE), F_NODE_KEEP_IN_STEP);
}

/* Who changed the draft last. */
static const char *
last_author(const struct view *v)
{
    const struct draft_entry *last = NULL;

    for (size_t i = 0; i < v->entry_count; i++) {
        if (last == NULL || v->entries[i].at_ms > last->at_ms) {
            last = &v->entries[i];
        }
    }
    return last != NULL ? last->author : "";
}

#define MORE "..."

/* Cut, so that a health answer stays under 1 KiB. */
static json_t *
short_text(const char *text)
{
    char cut[SAID_TEXT_BYTES];

    if (snprintf(cut, sizeof cut, "%s", text) >= (int)sizeof cut) {
        memcpy(cut + sizeof cut - sizeof MORE, MORE, sizeof MORE);
    }
    for (char *p = cut; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ' || (unsigned char)*p > '~') {
            *p = '\''; /* which JSON writes as one byte */
        }
    }
    return json_string(cut);
}

void
cluster_put_generation(json_t *to, int64_t local_rev, const char *release)
{
    bool known = release[0] != '\0';

    (void)json_object_set_new(
        to, "running_local_rev", known ? json_integer(local_rev) : json_null());
    (void)json_object_set_new(
        to, "running_release", known ? json_foreign_text(release) : json_null());
}

/* An older release says nothing of it. */
static err_t
hear_generation(struct said *ret, const json_t *health, struct error *e)
{
    const char *release = "";
    err_t code = json_opt_str(health, "running_release", &release, e);

    (void)snprintf(ret->release, sizeof ret->release, "%s", release);
    return code == ERR_OK
               ? json_opt_int(
                     health, "running_local_rev", 0, INT64_MAX >> 11, &ret->local_rev, e)
               : code;
}

void
cluster_say(struct cluster *c, const struct view *v, json_t *health)
{
    char refusing[DETAIL_BYTES];
    struct engine_pages pages;
    struct engine_status s;

    engine_get_pages(c->en, &pages);
    engine_get_status(c->en, &s);
    lock_take(&c->lock);
    memcpy(refusing, c->refusing, sizeof refusing);
    lock_give(&c->lock);
    cluster_put_generation(health, s.running_local_rev, s.running_release);
    (void)json_object_set_new(health, "held", json_boolean(is_held(v)));
    (void)json_object_set_new(health, "pages_lost", json_boolean(pages.reached == FACT_NO));
    (void)json_object_set_new(health, "drafted", json_integer((json_int_t)v->entry_count));
    (void)json_object_set_new(health, "draft_author", short_text(last_author(v)));
    (void)json_object_set_new(health, "refusing", short_text(refusing));
}

err_t
cluster_hear(struct said *ret, const json_t *health, struct error *e)
{
    const char *author = "", *refusing = "";
    err_t code = ERR_OK;

    *ret = (struct said){
        .held = json_is_true(json_object_get(health, "held")),
        .lost = json_is_true(json_object_get(health, "pages_lost")),
    };
    /* An older release says nothing of it. */
    if (json_object_get(health, "drafted") != NULL) {
        code = json_get_int(health, "drafted", 0, INT32_MAX, &ret->drafted, e);
    }
    if (code == ERR_OK) {
        code = hear_generation(ret, health, e);
    }
    if (code == ERR_OK) {
        code = json_opt_str(health, "draft_author", &author, e);
    }
    if (code == ERR_OK) {
        code = json_opt_str(health, "refusing", &refusing, e);
    }
    if (code == ERR_OK) {
        (void)snprintf(ret->author, sizeof ret->author, "%s", author);
        (void)snprintf(ret->refusing, sizeof ret->refusing, "%s", refusing);
    }
    return code;
}

void
cluster_compare_running(
    const struct hash *head, const char *running, int64_t now_ms, int64_t *since_ms)
{
    char hex[SHA256_HEX + 1];

    hash_hex(head, hex);
    if (strcmp(hex, running) == 0) {
        *since_ms = 0;
    } else if (*since_ms == 0) {
        *since_ms = now_ms;
    }
}

/* ---- what is known of all ---- */

struct own {
    struct view *v;
    struct engine_status status;
    struct engine_pages pages;
    char running[SHA256_HEX + 1];
};

static void
look_at_self(struct cluster *c, struct own *ret)
{
    ret->v = engine_view(c->en);
    engine_get_status(c->en, &ret->status);
    engine_get_pages(c->en, &ret->pages);
    ret->running[0] = '\0';
    if (ret->status.running_known) {
        hash_hex(&ret->status.running_commit, ret->running);
    }
}

/* Notes in *since_ms since when not exactly one node holds the VIP. Under the lock. */
static void
count_holders(
    const struct cluster *c, const struct cluster_vip *vip, int64_t now_ms, int64_t *since_ms)
{
    size_t count = vip->held ? 1 : 0;

    for (size_t i = 0; i < c->peer_count; i++) {
        count += c->peers[i].answered && c->peers[i].holds ? 1 : 0;
    }
    if (vip->text[0] == '\0' || count == 1) {
        *since_ms = 0;
    } else if (*since_ms == 0) {
        *since_ms = now_ms;
    }
}

void
cluster_look_at_self(struct cluster *c)
{
    struct cluster_vip vip;
    struct own own;

    cluster_look_at_vip(c, &vip);
    look_at_self(c, &own);
    lock_take(&c->lock);
    count_holders(c, &vip, clock_mono_ms(&clock_system), &c->unheld_since_ms);
    cluster_compare_running(
        &own.v->head.id, own.running, clock_mono_ms(&clock_system), &c->unequal_since_ms);
    lock_give(&c->lock);
    view_unref(own.v);
}

static const char *
twin_of(const struct cluster *c, const struct member *m)
{
    return members_is_twice(c->en, m) ? m->twin.url : "";
}

static struct node_facts
facts_of_self(
    const struct cluster *c, const struct member *m, const struct own *own, bool holds)
{
    const struct commit *head = &own->v->head;
    int64_t now_ms = clock_mono_ms(&clock_system);
    int64_t since_ms = c->unequal_since_ms;

    cluster_compare_running(&head->id, own->running, now_ms, &since_ms);
    return (struct node_facts){
        .id = m->id,
        .name = m->name,
        .url = m->url,
        .release = m->release,
        .silence = ANSWERED,
        .failure = "",
        .ever = true,
        .head = {head->id, head->fp, head->rev, head->schema_version},
        .relation = REL_IN_STEP,
        .refusal = c->refusing,
        .running = own->running,
        .unequal_ms = since_ms > 0 ? now_ms - since_ms : 0,
        .lost = own->pages.reached == FACT_NO ? own->pages.detail : "",
        .held = is_held(own->v),
        .drafted = (int64_t)own->v->entry_count,
        .draft_author = last_author(own->v),
        .holds = holds,
        .twin = twin_of(c, m),
    };
}

/* A member that cannot be asked is as good as one that does not answer. */
static const char *
why_not_asked(const struct member *m)
{
    return m->url[0] == '\0' ? "it has no address that other nodes can use"
                             : "its peer key is not known here";
}

static struct node_facts
facts_of_peer(
    const struct cluster *c, const struct peer *p, const struct member *m,
    const struct commit *head)
{
    bool askable = cluster_may_ask(m);
    enum relation relation = cluster_relation(p, head);

    return (struct node_facts){
        .id = m->id,
        .name = m->name,
        .url = m->url,
        .release = p->ever ? p->release : m->release,
        .silence = askable ? p->silence : UNREACHABLE,
        .failure = askable ? p->failure.msg : why_not_asked(m),
        .ever = p->ever,
        .age_ms = p->ever ? clock_mono_ms(&clock_system) - p->answered_ms : 0,
        .head = p->head,
        .relation = relation,
        .shared = p->shared,
        .skew_ms = p->skew_ms,
        .refusal = relation == REL_IN_STEP       ? ""
                   : p->said.refusing[0] != '\0' ? p->said.refusing
                                                 : p->refused,
        .running = p->running,
        .unequal_ms = p->unequal_since_ms > 0 ? p->answered_ms - p->unequal_since_ms : 0,
        .lost = p->said.lost ? "it says so itself" : "",
        .held = p->said.held,
        .drafted = p->said.drafted,
        .draft_author = p->said.author,
        .holds = p->holds,
        .twin = twin_of(c, m),
    };
}

json_t *
cluster_conditions(
    struct cluster *c, const struct member_list *list, const struct cluster_vip *vip)
{
    static const struct peer none = {.silence = NOT_ASKED};
    struct node_facts *nodes = xcalloc(list->count + 1, sizeof *nodes);
    int64_t now_ms = clock_mono_ms(&clock_system);
    int64_t unheld_since_ms = c->unheld_since_ms;
    struct cluster_facts f = {
        .nodes = nodes, .round_ms = c->tunables->sync_round_ms, .vip = vip->text};
    struct own own;
    json_t *j;

    count_holders(c, vip, now_ms, &unheld_since_ms);
    f.unheld_ms = unheld_since_ms > 0 ? now_ms - unheld_since_ms : 0;
    look_at_self(c, &own);
    f.waiting = own.status.waiting;
    for (size_t i = 0; i < list->count; i++) {
        const struct member *m = &list->items[i];
        const struct peer *p = cluster_peer(c, m->id);

        if (i == list->self) {
            f.self = f.count;
            nodes[f.count++] = facts_of_self(c, m, &own, vip->held);
        } else if (!m->gone) {
            nodes[f.count++] = facts_of_peer(c, p != NULL ? p : &none, m, &own.v->head);
        }
    }
    j = conditions_json(&f);
    free(nodes);
    view_unref(own.v);
    return j;
}
