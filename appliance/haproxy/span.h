/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what programs print: lines, words, decimal numbers. No copies, no allocation. */
#ifndef LOCKSTEP_HAPROXY_SPAN_H
#define LOCKSTEP_HAPROXY_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    const char *p;
    size_t n;
};

struct span span_of(const char *s);
/* Takes the next line off *rest, without its newline. False at the end; a last line without
 * a newline was cut and is not taken. */
bool span_line(struct span *rest, struct span *ret);
/* Takes the next word off *rest; words stand between spaces and tabs. False at the end. */
bool span_word(struct span *rest, struct span *ret);
bool span_is(struct span s, const char *text);
bool span_starts(struct span s, const char *prefix);
/* True when all of s is a decimal number (digits only) of at most max. */
bool span_number(struct span s, int64_t max, int64_t *ret);
/* Copies as much as fits, NUL-terminated. */
void span_copy(struct span s, char *out, size_t out_bytes);

#endif
