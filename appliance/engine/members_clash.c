/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/members_clash.h"

#include <stdio.h>
#include <string.h>

#include "engine/inner.h"
#include "engine/members.h"

#define POINTER_BYTES 32
#define MESSAGE_BYTES 480

struct clashing {
    const struct snapshot_pair *before, *after;
    const struct member_list *list;
    const char *listens; /* the URL of this node without one in its settings */
    struct problems *p;
};

static const struct object *
node_of(const struct snapshot_pair *pair)
{
    return snapshot_singleton(pair->local, K_NODE);
}

static bool
is_text(const struct object *o, unsigned field, const char *text)
{
    return strcmp(object_text(o, field).s, text) == 0;
}

static bool
has_changed(const struct clashing *c, unsigned field)
{
    return !is_text(node_of(c->before), field, object_text(node_of(c->after), field).s);
}

static void
refuse_node(
    const struct clashing *c, const char *pointer, const char *code, const char *message)
{
    problems_add(
        c->p, SEVERITY_ERROR, code,
        &(struct problem){
            .kind = "node", .name = node_of(c->after)->name.s, .pointer = pointer},
        "%s", message);
}

/* ---- what another node has ---- */

static void
check_other(const struct clashing *c, const struct member *m)
{
    const struct object *node = node_of(c->after);
    bool named = strcmp(node_of(c->before)->name.s, node->name.s) != 0;
    char text[MESSAGE_BYTES];

    if (named && strcmp(node->name.s, m->name) == 0) {
        (void)snprintf(
            text, sizeof text, "The node at %s is called \"%s\": each node needs its own name.",
            m->url, m->name);
        refuse_node(c, "/name", "name_taken", text);
    }
    if (m->url[0] != '\0' && has_changed(c, F_NODE_URL) && is_text(node, F_NODE_URL, m->url)) {
        (void)snprintf(
            text, sizeof text, "%s is the address of the node \"%s\".", m->url, m->name);
        refuse_node(c, "/url", "address_taken", text);
    }
}

/* ---- what moves from node to node ---- */

/* vip: with its prefix length. */
static bool
is_vip(const char *vip, const char *address)
{
    size_t len = strcspn(vip, "/");

    return strlen(address) == len && memcmp(vip, address, len) == 0;
}

static void
check_member(
    const struct clashing *c, const struct object *group, uint32_t i, const struct member *m)
{
    const char *vip = object_value(group, F_VIP_GROUP_ADDRESSES)->u.items[i].u.text.s;
    char address[MEMBER_IP_BYTES], pointer[POINTER_BYTES];

    member_tables_address("", m->url, address);
    if (m->gone || (!is_vip(vip, address) && !is_vip(vip, m->tables_address))) {
        return;
    }
    (void)snprintf(pointer, sizeof pointer, "/addresses/%u", (unsigned)i);
    problems_add(
        c->p, SEVERITY_ERROR, "address_of_node",
        &(struct problem){.kind = "vip_group", .name = group->name.s, .pointer = pointer},
        "%s is an address of the node \"%s\" itself: a VIP moves from node to node.", vip,
        m->name);
}

static bool
is_same_group(const struct object *group, const struct snapshot *before)
{
    const struct object *former = snapshot_by_id(before, K_VIP_GROUP, group->id);

    return former != NULL && hash_equal(&former->objhash, &group->objhash);
}

static void
check_vip(const struct clashing *c, const char *group, const char *vip)
{
    static const struct {
        unsigned field;
        const char *pointer;
    } fields[] = {{F_NODE_URL, "/url"}, {F_NODE_PEERS_ADDRESS, "/peers_address"}};
    const struct object *node = node_of(c->after);

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const char *value = object_text(node, fields[i].field).s;
        char address[MEMBER_IP_BYTES], text[MESSAGE_BYTES];

        member_tables_address(
            fields[i].field == F_NODE_PEERS_ADDRESS ? value : "", value, address);
        if (has_changed(c, fields[i].field) && is_vip(vip, address)) {
            (void)snprintf(
                text, sizeof text,
                "%s is a VIP, of the group \"%s\", and moves from node to node: this takes an "
                "address that only this node has.",
                address, group);
            refuse_node(c, fields[i].pointer, "vip", text);
        }
    }
}

/* What this node is to say of itself. */
static struct member
own_record(const struct clashing *c)
{
    struct member m = c->list->items[c->list->self];
    const struct object *node = node_of(c->after);
    struct text url = object_text(node, F_NODE_URL);

    crypt_wipe(m.key, sizeof m.key);
    (void)snprintf(m.name, sizeof m.name, "%s", node->name.s);
    (void)snprintf(m.url, sizeof m.url, "%s", url.len > 0 ? url.s : c->listens);
    member_tables_address(object_text(node, F_NODE_PEERS_ADDRESS).s, m.url, m.tables_address);
    return m;
}

static void
check_group(const struct clashing *c, const struct object *group)
{
    const struct value *addresses = object_value(group, F_VIP_GROUP_ADDRESSES);
    const struct member self = own_record(c);

    for (uint32_t i = 0; i < addresses->count; i++) {
        if (is_same_group(group, c->before->shared)) {
            check_vip(c, group->name.s, addresses->u.items[i].u.text.s);
            continue;
        }
        for (size_t k = 0; k < c->list->count; k++) {
            check_member(c, group, i, k == c->list->self ? &self : &c->list->items[k]);
        }
    }
}

err_t
members_check_own(
    struct engine *en, const struct snapshot_pair *before, const struct snapshot_pair *after,
    struct problems *p, struct error *e)
{
    CLEANUP(member_list_free) struct member_list list = members_get(en);
    char listens[MEMBER_URL_BYTES];
    const struct clashing c = {before, after, &list, listens, p};
    const struct object *const *groups;
    size_t count = snapshot_kind(after->shared, K_VIP_GROUP, &groups);
    size_t errors = p->errors;

    members_listens(en, listens);
    for (size_t i = 0; i < list.count; i++) {
        if (i != list.self && !list.items[i].gone) {
            check_other(&c, &list.items[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        check_group(&c, groups[i]);
    }
    return c.p->errors > errors ? error_set(e, ERR_INVALID, "%s", edit_first_error(p)) : ERR_OK;
}
