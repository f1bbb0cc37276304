/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/admit.h"

#include <stdlib.h>
#include <string.h>

#include "engine/problems_json.h"
#include "model/validate.h"
#include "sync/inner.h"

static err_t
call_back(struct cluster *c, const struct member *m, struct error *e)
{
    struct member self;
    struct call call;
    json_t *health = NULL;
    const char *id;
    err_t code;

    if (!cluster_may_ask(m)) {
        return error_set(e, ERR_UNAVAILABLE, "it has no address");
    }
    members_self(c->en, &self);
    call = cluster_call_of(c, m, &self);
    call.method = "GET";
    call.path = "/peer/v1/health";
    code = cluster_ask(c, &call, &health, NULL, e);
    id = json_string_value(json_object_get(health, "id"));
    if (code == ERR_OK && (id == NULL || strcmp(id, m->id) != 0)) {
        code = error_set(e, ERR_UNAVAILABLE, "another node answers at its address");
    }
    json_decref(health);
    crypt_wipe(&self, sizeof self);
    return code;
}

static json_t *
vips_json(const struct snapshot *shared)
{
    const struct object *const *groups;
    size_t count = snapshot_kind(shared, K_VIP_GROUP, &groups);
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct value *addresses = object_value(groups[i], F_VIP_GROUP_ADDRESSES);

        for (uint32_t k = 0; k < addresses->count; k++) {
            const char *vip = addresses->u.items[k].u.text.s;

            (void)json_array_append_new(list, json_stringn(vip, strcspn(vip, "/")));
        }
    }
    return list;
}

static json_t *
binds_json(const struct snapshot *shared)
{
    struct bind *binds = NULL;
    size_t count = validate_binds(&(struct snapshot_pair){shared, NULL}, NULL, &binds);
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(
            list, json_pack(
                      "{s:s, s:i, s:b}", "address", binds[i].address, "port", binds[i].port,
                      "vip", binds[i].vip));
    }
    free(binds);
    return list;
}

err_t
cluster_admit(struct cluster *c, const json_t *who, json_t **ret, struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    struct member m = {.name = ""};
    struct error why = {.code = ERR_OK};
    err_t code = cluster_read_member(who, &m, e);
    bool reached;

    if (code == ERR_OK) {
        reached = call_back(c, &m, &why) == ERR_OK;
        *ret = json_pack(
            "{s:b, s:o, s:o, s:o}", "reached", reached, "detail",
            json_foreign_text(reached ? "" : why.msg), "vips", vips_json(v->now.shared),
            "binds", binds_json(v->now.shared));
    }
    crypt_wipe(&m, sizeof m);
    return code;
}
