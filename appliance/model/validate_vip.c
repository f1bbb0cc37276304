/* SPDX-License-Identifier: Apache-2.0 */
/* VIP groups: an address in one group, one primary group. */
#include <stdio.h>
#include <string.h>

#include "model/validate_checks.h"
#include "model/vip.h"

#define POINTER_BYTES 32

/* The group before this one, in the order of names, that has the address; or NULL. */
static const struct object *
other_with(const struct kind_list *groups, size_t before, struct text vip)
{
    uint32_t len = vip_address_len(vip);
    for (size_t i = 0; i < before; i++) {
        const struct value *vips = object_value(groups->items[i], F_VIP_GROUP_ADDRESSES);
        for (uint32_t j = 0; j < vips->count; j++) {
            struct text other = vips->u.items[j].u.text;
            if (vip_address_len(other) == len && memcmp(other.s, vip.s, len) == 0) {
                return groups->items[i];
            }
        }
    }
    return NULL;
}

static void
report_address(
    const struct checks *c, const struct object *o, uint32_t index, const struct object *with)
{
    struct text vip = object_value(o, F_VIP_GROUP_ADDRESSES)->u.items[index].u.text;
    char pointer[POINTER_BYTES];
    (void)snprintf(pointer, sizeof(pointer), "/addresses/%u", index);
    const struct problem where = checks_at(o, pointer);
    problems_add(
        c->p, SEVERITY_ERROR, "vip_twice", &where,
        "The address %.*s stands in the VIP group \"%s\" already: take it out of one of them.",
        (int)vip_address_len(vip), vip.s, with->name.s);
}

static void
check_addresses(const struct checks *c, size_t pos)
{
    const struct kind_list *groups = &c->kinds[K_VIP_GROUP];
    const struct object *o = groups->items[pos];
    const struct value *vips = object_value(o, F_VIP_GROUP_ADDRESSES);
    for (uint32_t i = 0; i < vips->count; i++) {
        struct text vip = vips->u.items[i].u.text;
        const struct object *with = other_with(groups, pos, vip);
        if (with != NULL) {
            report_address(c, o, i, with);
        }
        /* The list is sorted, so that two prefix lengths of one address are neighbours. */
        if (i > 0 && vip_address_len(vips->u.items[i - 1].u.text) == vip_address_len(vip) &&
            memcmp(vips->u.items[i - 1].u.text.s, vip.s, vip_address_len(vip)) == 0) {
            report_address(c, o, i, o);
        }
    }
}

void
check_vip_groups(const struct checks *c)
{
    const struct kind_list *groups = &c->kinds[K_VIP_GROUP];
    const struct object *primary = NULL;
    for (size_t i = 0; i < groups->count; i++) {
        const struct object *o = groups->items[i];
        check_addresses(c, i);
        if (!object_bool(o, F_VIP_GROUP_PRIMARY)) {
            continue;
        }
        if (primary != NULL) {
            bool turn = checks_blame_with(c, o, primary);
            const struct problem where = checks_at(turn ? primary : o, "/primary");
            problems_add(
                c->p, SEVERITY_ERROR, "primary_twice", &where,
                "The VIP group \"%s\" is the primary one already: unmark one of the two.",
                turn ? o->name.s : primary->name.s);
        }
        primary = o;
    }
}
