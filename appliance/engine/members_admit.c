/* SPDX-License-Identifier: Apache-2.0 */
/* What a node is told that is no member, or not any more. */
#include <string.h>

#include "base/arena.h"
#include "base/date.h"
#include "engine/inner.h"
#include "engine/members_inner.h"

static void
drop_key(struct member *m)
{
    crypt_wipe(m->key, sizeof m->key);
}

struct member_list
members_for(struct engine *en, const char *id, bool late)
{
    struct member_list list = members_get(en);
    size_t at = id != NULL ? members_place(&list, id) : list.count;

    if (late) {
        struct member *self;

        members_keep_self(&list);
        self = &list.items[0];
        self->gone = true;
        self->seq--; /* one that joins again is newer */
        drop_key(self);
    }
    for (size_t i = 0; !late && at < list.count && list.items[at].gone && i < list.count; i++) {
        drop_key(&list.items[i]);
    }
    return list;
}

err_t
members_admit(struct engine *en, const char *id, const char **ret_code, struct error *e)
{
    CLEANUP(member_list_free) struct member_list list = members_get(en);
    size_t at = id != NULL ? members_place(&list, id) : list.self;
    char date[DATE_TEXT_BYTES];

    if (at < list.count && !list.items[at].gone) {
        return ERR_OK;
    }
    if (at == list.count) {
        *ret_code = "not_member";
        return error_set(
            e, ERR_DENIED, "the caller is no member of the cluster of %s: it must join first",
            list.items[list.self].name);
    }
    *ret_code = "forgotten";
    date_format(list.items[at].gone_at_ms, date);
    return error_set(
        e, ERR_DENIED, "node %s was forgotten%s%s and must join again", list.items[at].name,
        list.items[at].gone_at_ms > 0 ? " on " : "", list.items[at].gone_at_ms > 0 ? date : "");
}
