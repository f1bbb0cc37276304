/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/configured.h"

#include <string.h>

const struct value *
configured_member(const struct object *pool, const char *server_id)
{
    const struct value *members = object_value(pool, F_POOL_MEMBERS);

    for (uint32_t i = 0; i < members->count; i++) {
        const struct value *member = &members->u.items[i];

        if (strcmp(member->u.items[F_POOL_MEMBERS_SERVER].u.text.s, server_id) == 0) {
            return member;
        }
    }
    return NULL;
}

int64_t
configured_weight(const struct value *member)
{
    return member->u.items[F_POOL_MEMBERS_WEIGHT].u.i;
}

void
configured_weights(const struct snapshot *shared, struct server_table *t)
{
    const struct object *pool = NULL;

    for (size_t i = 0; i < t->count; i++) {
        struct server_line *line = &t->lines[i];
        const struct object *server = snapshot_by_name(shared, K_SERVER, line->server);
        const struct value *member;

        if (i == 0 || strcmp(line->backend, t->lines[i - 1].backend) != 0) {
            pool = snapshot_by_name(shared, K_POOL, line->backend);
        }
        member = pool != NULL && server != NULL ? configured_member(pool, server->id) : NULL;
        if (member != NULL) {
            line->configured_weight = configured_weight(member);
        }
    }
}
