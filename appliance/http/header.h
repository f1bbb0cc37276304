/* SPDX-License-Identifier: Apache-2.0 */
/* The header fields that this server looks at, and the rules of RFC 9112 for those that say
 * where a message ends. */
#ifndef LOCKSTEP_HTTP_HEADER_H
#define LOCKSTEP_HTTP_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct header {
    const char *host;
    const char *content_length;
    const char *transfer_encoding;
    const char *content_type;
    const char *authorization;
    const char *csrf;
    const char *node_id; /* of a peer, as it says */
    const char *unlock;
    const char *if_match;
    const char *if_none_match;
    const char *last_event_id;
    const char *forwarded_for; /* X-Forwarded-For; of several fields the last */
    const char *cookies[4];    /* field values, each may hold several cookies */
    unsigned cookie_count;
    bool bad_name;     /* a field name that is no token */
    const char *twice; /* a field of the above that was sent more than once */
};

/* One field, in the order of the message. name and value must outlive h. */
void header_add(struct header *h, const char *name, const char *value);
/* ERR_SYNTAX: what makes the message ambiguous. version: "HTTP/1.1". */
MUST_USE err_t header_check(const struct header *h, const char *version, struct error *e);
/* Length of the body that was announced; -1: chunked; 0: none. After header_check. */
int64_t header_body_bytes(const struct header *h);
/* Whether the media type is JSON; merge: a merge patch will do too. */
bool header_is_json(const struct header *h, bool merge);

/* Value of the first cookie of that name, *ret_len bytes; NULL when there is none. */
const char *header_cookie(const struct header *h, const char *name, size_t *ret_len);
/* The address that stands last in X-Forwarded-For, which is what the nearest proxy saw: NULL
 * when there is none, or when it is no address. out: INET6_ADDRSTRLEN bytes. */
const char *header_forwarded(const struct header *h, char *out);
/* What follows "Bearer "; NULL when the field is absent or of another scheme. */
const char *header_bearer(const struct header *h);
/* Whether the list of If-None-Match holds the tag (or "*"), compared weakly. */
bool header_none_match_has(const struct header *h, const char *etag);

#endif
