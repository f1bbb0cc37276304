/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629) checks on text from outside. */
#ifndef LOCKSTEP_BASE_UTF8_H
#define LOCKSTEP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at s: its bytes (1-4), 0 when none is complete and valid there. */
size_t utf8_decode(const char *s, size_t bytes, uint32_t *ret_char);
bool utf8_valid(const char *s, size_t bytes);
/* True when s holds a control character (U+0000-U+001F, U+007F-U+009F) other than those
 * listed in allowed (ASCII, may be ""). */
bool utf8_has_control(const char *s, size_t bytes, const char *allowed);

#endif
