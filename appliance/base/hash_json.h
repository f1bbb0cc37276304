/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes in JSON: a text of SHA256_HEX lower-case hex digits each. */
#ifndef LOCKSTEP_BASE_HASH_JSON_H
#define LOCKSTEP_BASE_HASH_JSON_H

#include <jansson.h>

#include "base/crypt.h"

/* New references. */
json_t *hash_json(const struct hash *h);
json_t *hashes_json(const struct hash *list, size_t count);
/* False: j (may be NULL) is none. */
MUST_USE bool hash_from_json(const json_t *j, struct hash *ret);
/* A list of at most max; key: what it is called, for the error. ERR_INVALID. */
MUST_USE err_t hashes_from_json(
    const json_t *j, const char *key, size_t max, struct hash *ret, size_t *ret_count,
    struct error *e);

#endif
