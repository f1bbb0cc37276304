/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sync_asked.h"

#include <stdlib.h>

void
sync_asked_free(struct sync_asked *a)
{
    free(a->objects);
    *a = (struct sync_asked){.objects = NULL};
}

static err_t
read_ids(
    const json_t *j, const char *key, size_t max, struct hash *ret, size_t *ret_count,
    struct error *e)
{
    const json_t *list = json_object_get(j, key);
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > max) {
        return error_set(e, ERR_INVALID, "\"%s\" is a list of at most %zu commits", key, max);
    }
    for (size_t i = 0; i < count; i++) {
        const char *hex = json_string_value(json_array_get(list, i));

        if (hex == NULL || !hash_from_hex(hex, &ret[i])) {
            return error_set(e, ERR_INVALID, "\"%s\" holds what is no id of a commit", key);
        }
    }
    *ret_count = count;
    return ERR_OK;
}

err_t
sync_asked_read(const json_t *j, struct sync_asked *ret, struct error *e)
{
    struct sync_wanted *w = &ret->wanted;
    err_t code = read_ids(j, "have", SYNC_HAVE_MAX, ret->have, &w->have_count, e);

    if (code == ERR_OK && json_object_get(j, "stored") != NULL) {
        code = read_ids(j, "stored", SYNC_STORED_MAX, ret->stored, &w->stored_count, e);
    }
    if (code == ERR_OK) {
        code = sync_entries_read(
            json_object_get(j, "objects"), &ret->objects, &w->object_count, e);
    }
    w->have = ret->have;
    w->stored = ret->stored;
    w->objects = ret->objects;
    return code;
}
