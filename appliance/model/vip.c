/* SPDX-License-Identifier: Apache-2.0 */
#include "model/vip.h"

#include <string.h>

uint32_t
vip_address_len(struct text vip)
{
    const char *slash = memchr(vip.s, '/', vip.len);

    return slash != NULL ? (uint32_t)(slash - vip.s) : vip.len;
}

bool
vip_holds(const struct snapshot *shared, struct text address)
{
    const struct object *const *groups;
    size_t count = snapshot_kind(shared, K_VIP_GROUP, &groups);

    for (size_t i = 0; i < count; i++) {
        const struct value *vips = object_value(groups[i], F_VIP_GROUP_ADDRESSES);

        for (uint32_t j = 0; j < vips->count; j++) {
            struct text vip = vips->u.items[j].u.text;

            if (vip_address_len(vip) == address.len &&
                memcmp(vip.s, address.s, address.len) == 0) {
                return true;
            }
        }
    }
    return false;
}
