/* SPDX-License-Identifier: Apache-2.0 */
/* Where what all nodes share may be edited: on the node that holds the VIP. */
#include <stdio.h>
#include <string.h>

#include "engine/account.h"
#include "sync/inner.h"

/* The group that is marked, else the first by name; NULL: there is none. */
static const struct object *
primary_group(const struct snapshot *shared)
{
    const struct object *const *groups;
    size_t count = snapshot_kind(shared, K_VIP_GROUP, &groups);

    for (size_t i = 0; i < count; i++) {
        if (object_bool(groups[i], F_VIP_GROUP_PRIMARY)) {
            return groups[i];
        }
    }
    return count > 0 ? groups[0] : NULL;
}

static bool
holds_group(struct cluster *c, const struct object *group)
{
    const struct value *addresses = object_value(group, F_VIP_GROUP_ADDRESSES);

    for (uint32_t i = 0; i < addresses->count; i++) {
        if (!holding_has(c->holding, addresses->u.items[i].u.text.s)) {
            return false;
        }
    }
    return addresses->count > 0;
}

void
cluster_look_at_vip(struct cluster *c, struct cluster_vip *ret)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    const struct object *group = primary_group(v->now.shared);
    const struct value *addresses;
    size_t bytes = 0;

    *ret = (struct cluster_vip){.held = false};
    if (group == NULL) {
        return;
    }
    ret->held = holds_group(c, group);
    addresses = object_value(group, F_VIP_GROUP_ADDRESSES);
    for (uint32_t i = 0; i < addresses->count && bytes < sizeof ret->text; i++) {
        bytes += (size_t)snprintf(
            ret->text + bytes, sizeof ret->text - bytes, "%s%s", i > 0 ? ", " : "",
            addresses->u.items[i].u.text.s);
    }
}

bool
cluster_holds(struct cluster *c)
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    const struct object *group = primary_group(v->now.shared);

    return group != NULL && holds_group(c, group);
}

/* Its name and address; false: none that answers. */
static bool
find_holder(struct cluster *c, struct member *ret)
{
    CLEANUP(member_list_free) struct member_list list = members_get(c->en);
    bool found = false;

    lock_take(&c->lock);
    for (size_t i = 0; i < list.count && !found; i++) {
        const struct peer *p = cluster_peer(c, list.items[i].id);

        if (p != NULL && p->answered && p->holds) {
            *ret = list.items[i];
            found = true;
        }
    }
    lock_give(&c->lock);
    return found;
}

enum right
cluster_right(struct cluster *c, bool unlocked, char message[CLUSTER_MESSAGE_BYTES])
{
    CLEANUP(view_cleanup) struct view *v = engine_view(c->en);
    const struct object *group = primary_group(v->now.shared);
    struct member holder = {.name = ""};
    struct right_facts facts = {
        .peers = members_peers(c->en) > 0, .configured = group != NULL, .unlocked = unlocked};
    enum right right;

    if (facts.peers && facts.configured) {
        facts.self_holds = holds_group(c, group);
        facts.other_holds = !facts.self_holds && find_holder(c, &holder);
    }
    right = right_of(&facts);
    if (right == RIGHT_ELSEWHERE) {
        (void)snprintf(
            message, CLUSTER_MESSAGE_BYTES, "%s holds the VIP: edit there, at %s", holder.name,
            holder.url);
    } else if (right == RIGHT_LOCKED) {
        (void)snprintf(
            message, CLUSTER_MESSAGE_BYTES,
            "%s: edit here anyway with lockstep --unlock, by unlocking this sign-in, or with a "
            "key by the header Lockstep-Unlock: no-holder",
            facts.configured ? "no node that answers holds the VIP"
                             : "there is no VIP yet that says which node is edited");
    }
    crypt_wipe(holder.key, sizeof holder.key);
    return right;
}

void
cluster_end_unlocked(struct cluster *c)
{
    char unused[CLUSTER_MESSAGE_BYTES];

    if (cluster_right(c, false, unused) != RIGHT_LOCKED) {
        account_lock_all(c->en);
    }
}
