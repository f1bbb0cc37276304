/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

size_t
utf8_decode(const char *s, size_t bytes, uint32_t *ret_char)
{
    const unsigned char *u = (const unsigned char *)s;
    uint32_t c;
    uint32_t least;
    size_t need;

    if (bytes == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        *ret_char = u[0];
        return 1;
    }
    if (u[0] >= 0xc2 && u[0] <= 0xdf) {
        need = 2;
        least = 0x80;
        c = u[0] & 0x1fu;
    } else if ((u[0] & 0xf0u) == 0xe0u) {
        need = 3;
        least = 0x800;
        c = u[0] & 0x0fu;
    } else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
        need = 4;
        least = 0x10000;
        c = u[0] & 0x07u;
    } else {
        return 0;
    }
    if (bytes < need) {
        return 0;
    }
    for (size_t i = 1; i < need; i++) {
        if ((u[i] & 0xc0u) != 0x80u) {
            return 0;
        }
        c = c << 6 | (u[i] & 0x3fu);
    }
    if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }
    *ret_char = c;
    return need;
}

bool
utf8_valid(const char *s, size_t bytes)
{
    uint32_t c;

    while (bytes > 0) {
        size_t n = utf8_decode(s, bytes, &c);

        if (n == 0) {
            return false;
        }
        s += n;
        bytes -= n;
    }
    return true;
}

bool
utf8_has_control(const char *s, size_t bytes, const char *allowed)
{
    while (bytes > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(s, bytes, &c);

        if (n == 0) {
            n = 1;
        } else if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) {
            /* strchr would find the terminating NUL of allowed. */
            if (c == 0 || c >= 0x80 || strchr(allowed, (int)c) == NULL) {
                return true;
            }
        }
        s += n;
        bytes -= n;
    }
    return false;
}
