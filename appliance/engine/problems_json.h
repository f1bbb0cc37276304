/* SPDX-License-Identifier: Apache-2.0 */
/* Problems, times and foreign text as JSON. */
#ifndef LOCKSTEP_ENGINE_PROBLEMS_JSON_H
#define LOCKSTEP_ENGINE_PROBLEMS_JSON_H

#include <jansson.h>

#include "model/problems.h"

/* [{"severity", "code", "kind", "name", "pointer", "message", "node"}]; kind and name may be
 * null, and node is there where another node found it. */
json_t *problems_json(const struct problems *p);
/* RFC 3339; null for 0. */
json_t *json_time(int64_t wall_ms);
/* A string of text that may come from another program: bytes that are no UTF-8, and
 * characters that a terminal obeys or that change the order of others, become '?'. null for
 * NULL. */
json_t *json_foreign_text(const char *s);
/* The same; null for "". */
json_t *json_foreign_or_null(const char *s);
/* The same as a copy of at most bytes with the NUL, cut at a character. */
void foreign_text_copy(char *out, size_t bytes, const char *s);

#endif
