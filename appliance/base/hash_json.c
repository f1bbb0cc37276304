/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash_json.h"

json_t *
hash_json(const struct hash *h)
{
    char hex[SHA256_HEX + 1];

    hash_hex(h, hex);
    return json_string(hex);
}

json_t *
hashes_json(const struct hash *list, size_t count)
{
    json_t *j = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(j, hash_json(&list[i]));
    }
    return j;
}

bool
hash_from_json(const json_t *j, struct hash *ret)
{
    const char *hex = json_string_value(j);

    return hex != NULL && hash_from_hex(hex, ret);
}

err_t
hashes_from_json(
    const json_t *j, const char *key, size_t max, struct hash *ret, size_t *ret_count,
    struct error *e)
{
    size_t count = json_array_size(j);

    if (!json_is_array(j) || count > max) {
        return error_set(e, ERR_INVALID, "\"%s\" is a list of at most %zu commits", key, max);
    }
    for (size_t i = 0; i < count; i++) {
        if (!hash_from_json(json_array_get(j, i), &ret[i])) {
            return error_set(e, ERR_INVALID, "\"%s\" holds what is no id of a commit", key);
        }
    }
    *ret_count = count;
    return ERR_OK;
}
