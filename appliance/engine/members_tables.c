/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/inner.h"
#include "engine/members.h"

static void
add_field(struct sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

void
members_tables_get(struct engine *en, struct members_tables *ret)
{
    struct sha256 *h = sha256_new();

    ret->count = ret->rank = 0;
    ret->list = members_get(en);
    members_listens(en, ret->url);
    add_field(h, ret->url);
    for (size_t i = 0; i < ret->list.count; i++) {
        const struct member *m = &ret->list.items[i];
        char port[16];

        ret->rank += i < ret->list.self && !m->gone ? 1 : 0;
        if (i == ret->list.self || m->gone || m->tables_address[0] == '\0') {
            continue;
        }
        ret->peers[ret->count++] =
            (struct render_peer){m->name, m->tables_address, m->tables_port};
        (void)snprintf(port, sizeof port, "%d", m->tables_port);
        add_field(h, m->name);
        add_field(h, m->tables_address);
        add_field(h, port);
    }
    ret->digest = sha256_end(&h);
}

void
members_tables_address(
    const struct members_tables *t, const struct snapshot *local, char ret[MEMBER_IP_BYTES])
{
    const struct object *node = snapshot_singleton(local, K_NODE);
    struct text url = object_text(node, F_NODE_URL);

    *ret = '\0';
    if (t->count > 0) {
        member_tables_address(
            object_text(node, F_NODE_PEERS_ADDRESS).s, url.len > 0 ? url.s : t->url, ret);
    }
}

void
members_tables_fini(struct members_tables *t)
{
    member_list_free(&t->list);
}
