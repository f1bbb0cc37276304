/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a publish request: what every part of its grammar needs. Only for publish*.c. */
#ifndef LOCKSTEP_MODEL_PUBLISH_TEXT_H
#define LOCKSTEP_MODEL_PUBLISH_TEXT_H

#include "model/publish_parse.h"

struct parser {
    struct arena *arena;
    struct problems *p;
    const char *pointer; /* of what is being read */
    const char *text;    /* that itself, to be quoted; NULL: no text, or it may hold a secret */
};

/* What is read from now on, and where it stands (a text that outlives the parser). */
void parser_at(struct parser *ps, const char *pointer, const json_t *v);
/* Add a problem; return false. detail is appended to the message. */
bool parser_fail(const struct parser *ps, const char *code, const char *message);
bool parser_fail_with(
    const struct parser *ps, const char *code, const char *message, const char *detail);

/* Checks a text as the field of an object that it will become: its normal form in the arena,
 * or NULL after a problem. message leads to the reason. */
const char *parser_check(
    const struct parser *ps, const struct schema_field *field, const char *text,
    const char *code, const char *message);
/* A JSON string without what no URL, target or name has; NULL after a problem. */
const char *parser_text(const struct parser *ps, const json_t *v);
/* Decimal from 1 to 65535, no sign, no leading zero; else -1. */
int parser_port(const char *s, size_t len);

/* HOST [":" PORT], HOST perhaps empty or an IPv6 address in brackets. */
struct authority {
    const char *host; /* in the arena, without brackets */
    bool has_port;
    bool ipv6;
    int port; /* -1: not a port */
};

bool
parser_authority(const struct parser *ps, const char *s, size_t len, struct authority *ret);

/* The targets of the request, after its scheme is known. */
void parse_targets(struct parser *ps, const json_t *request, struct publish_request *r);

#endif
