/* SPDX-License-Identifier: Apache-2.0 */
/* Joining a cluster, leaving it, forgetting a node that is gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crashpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/problems_json.h"
#include "sync/hand.h"
#include "sync/joining.h"

#define AUDIT_BYTES 400

/* ---- what is replaced ---- */

static json_t *
replaced_json(struct joining *g)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(g->c->en);
    char id[SHA256_HEX + 1];
    json_int_t drafted = (json_int_t)v->entry_count;

    hash_hex(&v->head.id, id);
    return json_pack(
        "{s:I, s:s, s:I, s:I}", "rev", (json_int_t)v->head.rev, "commit", id, "objects",
        (json_int_t)snapshot_count(v->now.shared), "draft", drafted);
}

/* ---- doing it ---- */

/* Whom this node has forgotten may be one of those that it comes to. */
static json_t *
introduction(struct cluster *c)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    json_t *members = json_array();

    for (size_t i = 0; i < list.count; i++) {
        if (!list.items[i].gone) {
            (void)json_array_append_new(members, cluster_member_json(&list.items[i]));
        }
    }
    return json_pack("{s:o}", "members", members);
}

static err_t
introduce(struct joining *g, const struct member *m, struct error *e)
{
    CLEANUP(buf_wipe_fini) struct buf body;
    json_t *own = introduction(g->c);
    struct call call = joining_call(g, m, "POST", "/peer/v1/members");
    json_t *answer = NULL;
    struct members_taken taken;
    err_t code;

    buf_init(&body, MEMBERS_BYTES);
    json_canonical(own, &body);
    json_decref(own);
    call.body = buf_str(&body);
    call.body_len = body.len;
    code = cluster_ask(g->c, &call, &answer, NULL, e);
    if (code == ERR_OK) {
        code = cluster_members_take(
            g->c->en, json_object_get(answer, "members"), m->id, MEMBERS_JOINING, &taken, e);
    }
    json_decref(answer);
    return code;
}

/* Who was forgotten learns from the first answer what it has to outbid; to one that left it is
 * no member before that. */
static err_t
introduce_self(struct joining *g, struct error *e)
{
    err_t code = introduce(g, &g->target, e);
    CLEANUP(member_list_free) struct member_list list = members_get(g->c->en);

    if (code == ERR_OK &&
        (list.items[list.self].seq != g->self.seq || !member_list_has(&list, g->target.id))) {
        code = introduce(g, &g->target, e);
    }
    return code;
}

/* Complete is a join when every member knows the new one. */
static void
introduce_all(struct joining *g)
{
    CLEANUP(member_list_free) struct member_list list = members_get(g->c->en);

    for (size_t i = 0; i < list.count; i++) {
        const struct member *m = &list.items[i];
        struct error error = {.code = ERR_OK};
        bool knows;

        if (i == list.self || m->gone) {
            continue;
        }
        knows = m->key[0] != '\0' && introduce(g, m, &error) == ERR_OK;
        (void)json_array_append_new(
            g->nodes,
            json_pack(
                "{s:s, s:s, s:b, s:o}", "name", m->name, "url", m->url, "knows", knows,
                "detail",
                json_foreign_text(
                    knows ? ""
                          : (error.code != ERR_OK ? error.msg : "its key is not known yet"))));
    }
}

static err_t
do_join(struct joining *g, const char *who, int64_t *ret_task, struct error *e)
{
    const char *id = json_string_value(json_object_get(g->health, "id"));
    char text[AUDIT_BYTES];
    err_t code;

    if (id == NULL || strlen(id) >= sizeof g->target.id) {
        return error_set(e, ERR_INVALID, "the other node does not say who it is");
    }
    memcpy(g->target.id, id, strlen(id) + 1);
    (void)snprintf(
        g->target.name, sizeof g->target.name, "%s",
        json_string_value(json_object_get(g->health, "name")));
    crashpoint("join_before_introduce");
    code = introduce_self(g, e);
    if (code != ERR_OK) {
        return code;
    }
    crashpoint("join_after_introduce");
    introduce_all(g);
    crashpoint("join_after_all");
    (void)snprintf(text, sizeof text, "joined %s at %s", g->target.name, g->target.url);
    members_audit(g->c->en, who, "cluster_join", text);
    return cluster_pull(
        g->c, &g->target, &(struct sync_origin){.how = SYNC_JOINED, .from = g->target.name},
        ret_task, e);
}

static void
joining_fini(struct joining *g)
{
    json_decref(g->health);
    json_decref(g->members);
    json_decref(g->admitted);
    json_decref(g->checks);
    json_decref(g->nodes);
    crypt_wipe(&g->self, sizeof g->self);
    crypt_wipe(&g->target, sizeof g->target);
}

err_t
cluster_join(
    struct cluster *c, const struct cluster_join *j, const char *who, json_t **ret,
    struct error *e)
{
    struct joining g = {.c = c, .j = j, .checks = json_array(), .nodes = json_array()};
    int64_t task = 0;
    err_t code = ERR_OK;

    members_self(c->en, &g.self);
    (void)snprintf(g.target.url, sizeof g.target.url, "%s", j->url);
    (void)snprintf(g.target.key, sizeof g.target.key, "%s", j->key);
    (void)snprintf(g.target.pin, sizeof g.target.pin, "%s", j->pin);
    joining_check(&g);
    if (g.failed) {
        code = error_set(e, ERR_CONFLICT, "a check before joining failed");
    } else if (!j->plan) {
        code = do_join(&g, who, &task, e);
        cluster_wake(c);
    }
    *ret = json_pack(
        "{s:O?, s:O, s:O, s:o, s:o}", "node", json_object_get(g.health, "name"), "checks",
        g.checks, "nodes", g.nodes, "replaces", replaced_json(&g), "task",
        task != 0 ? json_integer(task) : json_null());
    joining_fini(&g);
    return code;
}

/* ---- leaving ---- */

static void
say_goodbye(struct cluster *c, const struct member_list *list)
{
    const struct member *self = &list->items[list->self];
    struct member tombstone = *self;
    json_t *record;
    CLEANUP(buf_wipe_fini) struct buf body;

    tombstone.gone = true;
    tombstone.gone_at_ms = clock_wall_ms(c->clock);
    member_raise(&tombstone, 1);
    record = json_pack("{s:[o]}", "members", member_to_json(&tombstone));
    buf_init(&body, MEMBERS_BYTES);
    json_canonical(record, &body);
    json_decref(record);
    for (size_t i = 0; i < list->count; i++) {
        struct call call = cluster_call_of(c, &list->items[i], self);
        struct error error;

        if (i == list->self || list->items[i].gone || list->items[i].key[0] == '\0') {
            continue;
        }
        call.method = "POST";
        call.path = "/peer/v1/members";
        call.body = buf_str(&body);
        call.body_len = body.len;
        call.answer_max = MEMBERS_BYTES;
        if (cluster_ask(c, &call, NULL, NULL, &error) != ERR_OK) {
            log_info(
                "%s was not told that this node leaves: %s", list->items[i].name, error.msg);
        }
    }
    crypt_wipe(&tombstone, sizeof tombstone);
}

err_t
cluster_leave(struct cluster *c, const char *who, struct error *e)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    err_t code;

    say_goodbye(c, &list);
    code = members_remove(c->en, list.items[list.self].id, e);
    if (code == ERR_OK) {
        members_audit(c->en, who, "cluster_leave", "left the cluster");
        cluster_wake(c);
    }
    return code;
}

err_t
cluster_forget(struct cluster *c, const char *spec, const char *who, struct error *e)
{
    struct member m;
    char text[AUDIT_BYTES];
    err_t code = members_find(c->en, spec, &m, e);

    if (code == ERR_OK) {
        code = members_remove(c->en, m.id, e);
    }
    if (code == ERR_OK) {
        (void)snprintf(text, sizeof text, "forgot %s at %s", m.name, m.url);
        members_audit(c->en, who, "cluster_forget", text);
        cluster_wake(c);
    }
    crypt_wipe(&m, sizeof m);
    return code;
}
