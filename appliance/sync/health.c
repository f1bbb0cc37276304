/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes tell each other of themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash_json.h"
#include "base/json.h"
#include "engine/facts.h"
#include "sync/admit.h"
#include "sync/inner.h"

static json_t *
head_json(const struct commit *c)
{
    return json_pack(
        "{s:o, s:o, s:I, s:i}", "id", hash_json(&c->id), "fp", hash_json(&c->fp), "rev",
        (json_int_t)c->rev, "schema_version", c->schema_version);
}

err_t
cluster_health(struct cluster *c, const struct hash *head, json_t **ret, struct error *e)
{
    struct engine *en = c->en;
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    struct sync_view seen = {.have = false};
    struct hash members = members_digest(en);
    struct engine_status s;
    struct member self;
    err_t code = head != NULL ? sync_look(en, head, &seen, e) : ERR_OK;

    if (code != ERR_OK) {
        return code;
    }
    members_self(en, &self);
    engine_get_status(en, &s);
    *ret = json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:b, s:b, s:o, s:s, s:o, s:b}", "id", self.id, "name",
        self.name, "release", self.release, "time_ms", (json_int_t)clock_wall_ms(c->clock),
        "head", head_json(&v->head), "have", seen.have, "leads", seen.leads, "running",
        s.running_known ? hash_json(&s.running_commit) : json_null(), "serving",
        fact_name(s.serving), "members", hash_json(&members), "holds", cluster_holds(c));
    cluster_say(c, v, *ret);
    crypt_wipe(&self, sizeof self);
    return ERR_OK;
}

json_t *
cluster_member_json(const struct member *m)
{
    json_t *record = member_to_json(m);

    if (m->key[0] != '\0') {
        (void)json_object_set_new(record, "key", json_string(m->key));
    }
    return record;
}

json_t *
cluster_members_json(const struct member_list *list)
{
    json_t *j = json_array();

    for (size_t i = 0; i < list->count; i++) {
        (void)json_array_append_new(j, cluster_member_json(&list->items[i]));
    }
    return j;
}

err_t
cluster_read_member(const json_t *j, struct member *ret, struct error *e)
{
    const char *key = NULL;
    err_t code = member_from_json(j, ret, e);

    if (code == ERR_OK) {
        code = json_opt_str(j, "key", &key, e);
    }
    if (code == ERR_OK && key != NULL) {
        if (!member_key_valid(key)) {
            return error_set(e, ERR_INVALID, "the key of %s is no peer key", ret->name);
        }
        memcpy(ret->key, key, strlen(key) + 1);
    }
    return code;
}

err_t
cluster_members_take(
    struct engine *en, const json_t *list, const char *from, enum members_how how,
    struct members_taken *ret, struct error *e)
{
    size_t count = json_array_size(list);
    struct member *offered;
    err_t code = ERR_OK;

    *ret = (struct members_taken){.changed = false};
    if (!json_is_array(list) || count > MEMBERS_MAX) {
        return error_set(e, ERR_INVALID, "members are a list of at most %d", MEMBERS_MAX);
    }
    offered = xcalloc(count + 1, sizeof *offered);
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = cluster_read_member(json_array_get(list, i), &offered[i], e);
    }
    if (code == ERR_OK) {
        code = members_merge(
            en,
            &(struct members_offer){.items = offered, .count = count, .from = from, .how = how},
            ret, e);
    }
    crypt_wipe(offered, (count + 1) * sizeof *offered);
    free(offered);
    return code;
}
