/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_asked.h"

#include <stdlib.h>

#include "base/hash_json.h"

void
sync_asked_free(struct sync_asked *a)
{
    free(a->objects);
    *a = (struct sync_asked){.objects = NULL};
}

err_t
sync_asked_read(const json_t *j, struct sync_asked *ret, struct error *e)
{
    struct sync_wanted *w = &ret->wanted;
    err_t code = hashes_from_json(
        json_object_get(j, "have"), "have", SYNC_HAVE_MAX, ret->have, &w->have_count, e);

    if (code == ERR_OK && json_object_get(j, "stored") != NULL) {
        code = hashes_from_json(
            json_object_get(j, "stored"), "stored", SYNC_STORED_MAX, ret->stored,
            &w->stored_count, e);
    }
    if (code == ERR_OK) {
        code = sync_entries_read(
            json_object_get(j, "objects"), &ret->objects, &w->object_count, e);
    }
    w->index = json_is_true(json_object_get(j, "index"));
    w->have = ret->have;
    w->stored = ret->stored;
    w->objects = ret->objects;
    return code;
}
