/* SPDX-License-Identifier: Apache-2.0 */
/* Names of objects, which also begin the names of their files (schema/types.json, "name"):
 * letters, digits and "_.:-", none of these four first. */
#ifndef LOCKSTEP_HELPER_NAME_H
#define LOCKSTEP_HELPER_NAME_H

#include <stdbool.h>
#include <string.h>

static inline bool
name_is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Whether all of the text is a name; of any length. */
static inline bool
name_is(const char *text)
{
    size_t n = 0;

    while (name_is_alnum(text[n]) ||
           (n > 0 && text[n] != '\0' && strchr("_.:-", text[n]) != NULL)) {
        n++;
    }
    return n > 0 && text[n] == '\0';
}

#endif
