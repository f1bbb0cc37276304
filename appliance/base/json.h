/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON (RFC 8259) on jansson: UTF-8, no duplicate keys, no trailing bytes, a depth
 * limit, integers only within +-(2^53 - 1) (RFC 7493), no NUL in strings. */
#ifndef LOCKSTEP_BASE_JSON_H
#define LOCKSTEP_BASE_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

#define JSON_MAX_DEPTH  32
#define JSON_MAX_VALUES ((size_t)4000000) /* by commas and opening brackets */

/* Parses len bytes. Caller owns *ret. ERR_SYNTAX with line and column. Real numbers are
 * refused (ERR_SYNTAX): no field of ours is one. So are deeper nesting and more values. */
MUST_USE err_t json_parse(const char *text, size_t len, json_t **ret, struct error *e);
/* Canonical bytes: keys sorted by code point, no insignificant space, UTF-8 not escaped but
 * for '"', '\\' and control characters. Appends to out. */
void json_canonical(const json_t *v, struct buf *out);
/* Readable form (2 spaces, keys in insertion order) with a final newline. */
void json_pretty(const json_t *v, struct buf *out);
/* Checked readers: ERR_SYNTAX naming the key when it is missing or of another type, and
 * ERR_INVALID when an integer is outside min to max. The returned string lives as long as
 * obj. */
MUST_USE err_t
json_get_str(const json_t *obj, const char *key, const char **ret, struct error *e);
MUST_USE err_t json_get_int(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret,
    struct error *e);
MUST_USE err_t json_get_bool(const json_t *obj, const char *key, bool *ret, struct error *e);
/* Null-tolerant variants: *ret unchanged when the key is absent or null. */
MUST_USE err_t
json_opt_str(const json_t *obj, const char *key, const char **ret, struct error *e);
MUST_USE err_t json_opt_int(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret,
    struct error *e);
MUST_USE err_t json_opt_bool(const json_t *obj, const char *key, bool *ret, struct error *e);
/* ERR_SYNTAX naming the first key of obj that is not in the NULL-terminated list. */
MUST_USE err_t json_only_keys(const json_t *obj, const char *const *keys, struct error *e);

#endif
