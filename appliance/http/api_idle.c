/* SPDX-License-Identifier: Apache-2.0 */
/* Pools that have no server for new visitors, though they are on: by what is stored, whatever
 * the health of their servers is. */
#include <string.h>

#include "http/api.h"

#define LISTED_MAX 10

/* Whether the operator lets the member have new visitors. */
static bool
gets_visitors(const struct snapshot *shared, const struct value *member)
{
    const struct value *of = member->u.items;
    const struct object *server =
        snapshot_by_id(shared, K_SERVER, of[F_POOL_MEMBERS_SERVER].u.text.s);
    const struct object *state =
        server != NULL ? snapshot_by_name(shared, K_SERVER_STATE, server->name.s) : NULL;

    return state == NULL ||
           (object_int(state, F_SERVER_STATE_STATE) == V_SERVER_STATE_STATE_READY &&
            object_int(state, F_SERVER_STATE_WEIGHT) > 0);
}

/* One member that gets visitors is enough, and nearly always the first. */
static bool
is_idle(const struct snapshot *shared, const struct object *pool, bool has_states)
{
    const struct value *members = object_value(pool, F_POOL_MEMBERS);

    for (uint32_t i = 0; i < members->count; i++) {
        const struct value *member = &members->u.items[i];

        if (member->u.items[F_POOL_MEMBERS_WEIGHT].u.i > 0 &&
            (!has_states || gets_visitors(shared, member))) {
            return false;
        }
    }
    return object_bool(pool, F_POOL_ENABLED);
}

json_t *
api_idle_pools(const struct view *v)
{
    const struct snapshot *shared = v->now.shared;
    const struct object *const *pools, *const *states;
    size_t pool_count = snapshot_kind(shared, K_POOL, &pools);
    bool has_states = snapshot_kind(shared, K_SERVER_STATE, &states) > 0;
    json_t *first = json_array();
    json_int_t count = 0;

    for (size_t i = 0; i < pool_count; i++) {
        if (!is_idle(shared, pools[i], has_states) || count++ >= LISTED_MAX) {
            continue;
        }
        bool empty = object_value(pools[i], F_POOL_MEMBERS)->count == 0;
        (void)json_array_append_new(
            first, json_pack(
                       "{s:s, s:s}", "pool", pools[i]->name.s, "reason",
                       empty ? "no_servers" : "taken_out"));
    }
    return json_pack("{s:I, s:o}", "count", count, "first", first);
}
