/* SPDX-License-Identifier: Apache-2.0 */
/* A request target (RFC 9112 section 3.2) taken apart, from the raw bytes: percent signs are
 * decoded after the path was split, so that "%2f" is data of its segment. Pure. */
#ifndef LOCKSTEP_HTTP_TARGET_H
#define LOCKSTEP_HTTP_TARGET_H

#include "base/arena.h"
#include "base/error.h"

#define TARGET_MAX_SEGMENTS 8
#define TARGET_MAX_PARAMS   8

struct target_param {
    const char *name;
    const char *value; /* "" when there is no "=" */
};

struct target {
    const char *segments[TARGET_MAX_SEGMENTS]; /* none for "/"; the last is "" after a "/" */
    size_t segment_count;
    struct target_param params[TARGET_MAX_PARAMS];
    size_t param_count;
};

/* Texts go into the arena. ERR_SYNTAX: characters that no target has, a broken escape, "%00",
 * a control character, what is no UTF-8, an empty segment before the last, "." and "..",
 * a parameter twice. ERR_NOT_FOUND: more segments than any route has. */
MUST_USE err_t
target_parse(const char *raw, struct arena *arena, struct target *ret, struct error *e);
/* Value of a query parameter, NULL when it was not given. */
const char *target_param(const struct target *t, const char *name);
/* Appends a text as one segment of a path: what is not unreserved (RFC 3986) becomes %XX. */
struct buf;
void target_put_segment(struct buf *out, const char *text);

#endif
