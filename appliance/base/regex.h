/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as HAProxy compiles them: PCRE2, byte by byte. */
#ifndef LOCKSTEP_BASE_REGEX_H
#define LOCKSTEP_BASE_REGEX_H

#include <stddef.h>

#include "base/error.h"

/* ERR_INVALID with the reason and the place (a clause) when HAProxy could not use it. */
MUST_USE err_t regex_check(const char *pattern, size_t len, struct error *e);

#endif
