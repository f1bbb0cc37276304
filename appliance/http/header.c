/* SPDX-License-Identifier: Apache-2.0 */
#include "http/header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS 15

static bool
is_token(const char *s)
{
    if (*s == '\0') {
        return false;
    }
    for (; *s != '\0'; s++) {
        bool alnum =
            (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

        if (!alnum && strchr("!#$%&'*+-.^_`|~", *s) == NULL) {
            return false;
        }
    }
    return true;
}

void
header_add(struct header *h, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **place;
    } fields[] = {
        {"Host", &h->host},
        {"Content-Length", &h->content_length},
        {"Transfer-Encoding", &h->transfer_encoding},
        {"Content-Type", &h->content_type},
        {"Authorization", &h->authorization},
        {"Lockstep-CSRF", &h->csrf},
        {"Lockstep-Node-Id", &h->node_id},
        {"Lockstep-Unlock", &h->unlock},
        {"If-Match", &h->if_match},
        {"If-None-Match", &h->if_none_match},
        {"Last-Event-ID", &h->last_event_id},
    };

    if (!is_token(name)) {
        h->bad_name = true;
        return;
    }
    if (strcasecmp(name, "Cookie") == 0) {
        if (h->cookie_count == ARRAY_LEN(h->cookies)) {
            h->twice = "Cookie";
        } else {
            h->cookies[h->cookie_count++] = value;
        }
        return;
    }
    if (strcasecmp(name, "X-Forwarded-For") == 0) {
        h->forwarded_for = value;
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strcasecmp(name, fields[i].name) == 0) {
            if (*fields[i].place != NULL) {
                h->twice = fields[i].name;
            }
            *fields[i].place = value;
            return;
        }
    }
}

static bool
is_length(const char *s)
{
    size_t digits = strspn(s, "0123456789");

    return digits > 0 && digits <= LENGTH_DIGITS && s[digits] == '\0';
}

err_t
header_check(const struct header *h, const char *version, struct error *e)
{
    if (h->bad_name) {
        return error_set(e, ERR_SYNTAX, "the header has a field with a broken name");
    }
    if (h->twice != NULL) {
        return error_set(e, ERR_SYNTAX, "the header has %s more than once", h->twice);
    }
    if (h->host == NULL && strcmp(version, "HTTP/1.0") != 0) {
        return error_set(e, ERR_SYNTAX, "the header has no Host");
    }
    if (h->transfer_encoding != NULL && h->content_length != NULL) {
        return error_set(
            e, ERR_SYNTAX, "the header has both Content-Length and Transfer-Encoding");
    }
    if (h->transfer_encoding != NULL && strcasecmp(h->transfer_encoding, "chunked") != 0) {
        return error_set(e, ERR_SYNTAX, "of Transfer-Encoding only chunked is known");
    }
    if (h->transfer_encoding != NULL && strcmp(version, "HTTP/1.0") == 0) {
        return error_set(e, ERR_SYNTAX, "HTTP/1.0 has no Transfer-Encoding");
    }
    if (h->content_length != NULL && !is_length(h->content_length)) {
        return error_set(e, ERR_SYNTAX, "Content-Length is no number of bytes");
    }
    return ERR_OK;
}

int64_t
header_body_bytes(const struct header *h)
{
    int64_t bytes = 0;

    if (h->transfer_encoding != NULL) {
        return -1;
    }
    for (const char *p = h->content_length; p != NULL && *p != '\0'; p++) {
        bytes = bytes * 10 + (*p - '0');
    }
    return bytes;
}

bool
header_is_json(const struct header *h, bool merge)
{
    static const char *const types[] = {"application/json", "application/merge-patch+json"};

    for (size_t i = 0; h->content_type != NULL && i < (merge ? 2u : 1u); i++) {
        size_t len = strlen(types[i]);
        const char *rest = h->content_type + len;

        if (strncasecmp(h->content_type, types[i], len) == 0) {
            rest += strspn(rest, " \t");
            if (*rest == '\0' || *rest == ';') {
                return true;
            }
        }
    }
    return false;
}

const char *
header_cookie(const struct header *h, const char *name, size_t *ret_len)
{
    size_t name_len = strlen(name);

    for (unsigned i = 0; i < h->cookie_count; i++) {
        const char *at = h->cookies[i];

        while (*at != '\0') {
            size_t len;

            at += strspn(at, " \t;");
            len = strcspn(at, ";");
            if (len > name_len && strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
                *ret_len = len - name_len - 1;
                return at + name_len + 1;
            }
            at += len;
        }
    }
    return NULL;
}

const char *
header_forwarded(const struct header *h, char *out)
{
    const char *last = h->forwarded_for != NULL ? strrchr(h->forwarded_for, ',') : NULL;
    const char *start = last != NULL ? last + 1 : h->forwarded_for;
    struct in6_addr address;
    size_t bytes;

    if (start == NULL) {
        return NULL;
    }
    start += strspn(start, " \t");
    bytes = strcspn(start, " \t");
    if (bytes >= INET6_ADDRSTRLEN || start[bytes + strspn(start + bytes, " \t")] != '\0') {
        return NULL;
    }
    memcpy(out, start, bytes);
    out[bytes] = '\0';
    return inet_pton(AF_INET, out, &address) == 1 || inet_pton(AF_INET6, out, &address) == 1
               ? out
               : NULL;
}

const char *
header_bearer(const struct header *h)
{
    static const char scheme[] = "Bearer ";
    const char *value = h->authorization;

    if (value == NULL || strncasecmp(value, scheme, sizeof scheme - 1) != 0) {
        return NULL;
    }
    value += sizeof scheme - 1;
    return value + strspn(value, " ");
}

bool
header_none_match_has(const struct header *h, const char *etag)
{
    size_t len = strlen(etag);
    const char *at = h->if_none_match;

    while (at != NULL && *at != '\0') {
        at += strspn(at, " \t,");
        if (*at == '*') {
            return true;
        }
        at += strncmp(at, "W/", 2) == 0 ? 2 : 0;
        if (strncmp(at, etag, len) == 0) {
            return true;
        }
        at += strcspn(at, ",");
    }
    return false;
}
