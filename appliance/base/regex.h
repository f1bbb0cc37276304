/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as HAProxy compiles them: PCRE2, byte by byte. */
#ifndef LOCKSTEP_BASE_REGEX_H
#define LOCKSTEP_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* ERR_INVALID with the reason and the place (a clause) when HAProxy could not use it. */
MUST_USE err_t regex_check(const char *pattern, size_t len, struct error *e);

/* Whether a pattern that passed regex_check is found in a text, as HAProxy looks for it in an
 * answer. False also when the search would take too long. */
bool regex_found(const char *pattern, size_t len, const char *text, size_t text_len);

#endif
