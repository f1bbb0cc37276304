/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/join_binds.h"

#include "engine/generation.h"
#include "engine/members.h"

err_t
join_binds_try(
    struct engine *en, struct bind *binds, size_t count, size_t *ret_count, struct problems *p,
    struct error *e)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(en);
    const struct object *node = snapshot_singleton(v->now.local, K_NODE);
    struct bind *tables = &binds[count];
    struct member self;

    members_self(en, &self);
    crypt_wipe(self.key, sizeof self.key);
    *tables =
        (struct bind){.port = validate_peers_port(v->now.local), .vip = true, .object = node};
    member_tables_address(object_text(node, F_NODE_PEERS_ADDRESS).s, self.url, tables->address);
    count += tables->address[0] != '\0' ? 1 : 0;
    *ret_count = count;
    return generation_try_binds(en, binds, ret_count, &v->now, p, e);
}
