/* SPDX-License-Identifier: Apache-2.0 */
/* A line of haproxy.cfg as words, read as HAProxy reads it (configuration manual, section
 * 2.2): quotes, backslashes, comments. */
#ifndef LOCKSTEP_HELPER_WORDS_H
#define LOCKSTEP_HELPER_WORDS_H

#include "base/buf.h"
#include "base/error.h"
#include "haproxy/span.h"

#define WORDS_MAX            64 /* HAProxy takes no more */
#define WORDS_LINE_MAX_BYTES ((size_t)1 << 20)

struct words {
    const char *at[WORDS_MAX];
    size_t count;
    struct buf text; /* what at[] points into */
};

void words_init(struct words *w);
void words_fini(struct words *w); /* also for CLEANUP() */

/* Reads one line (without its newline) into w; no words: an empty line or a comment.
 * ERR_DENIED: control characters, a NUL, an open quote, an environment variable, too many
 * words, or a first word that is empty (HAProxy passes over such a line). */
MUST_USE err_t words_parse(struct words *w, struct span line, struct error *e);

#endif
