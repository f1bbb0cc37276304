/* SPDX-License-Identifier: Apache-2.0 */
/* The checks behind value_check_text, one per text type; the text is valid UTF-8 without NUL
 * or, PEM apart, control characters. */
#ifndef LOCKSTEP_MODEL_VALUE_CHECKS_H
#define LOCKSTEP_MODEL_VALUE_CHECKS_H

#include "base/buf.h"

static inline bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool
is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool
starts_with(const char *s, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);

    return len >= n && memcmp(s, prefix, n) == 0;
}

typedef err_t (*value_check_fn)(const char *s, size_t len, struct buf *out, struct error *e);

/* value_net.c */
MUST_USE err_t value_check_host(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_ip(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_machine_ip(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_host_pattern(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_path(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_path_query(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_dns_name(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_header_host(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_url(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_network(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_vip(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_endpoint(const char *s, size_t len, struct buf *out, struct error *e);

/* value_http.c */
MUST_USE err_t value_check_token(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_line(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t value_check_target(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_media_type(const char *s, size_t len, struct buf *out, struct error *e);

MUST_USE err_t
value_check_global_directive(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_defaults_directive(const char *s, size_t len, struct buf *out, struct error *e);
MUST_USE err_t
value_check_listener_directive(const char *s, size_t len, struct buf *out, struct error *e);

#endif
