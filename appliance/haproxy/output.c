/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/output.h"

#include <stdint.h>

#include "base/utf8.h"

void
output_clean(char *text, size_t bytes)
{
    size_t i = 0;

    while (i < bytes) {
        uint32_t c = 0;
        size_t n = utf8_decode(text + i, bytes - i, &c);
        size_t step = n > 0 ? n : 1;

        if (n == 0 || (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c <= 0x9f)) {
            for (size_t k = 0; k < step; k++) {
                text[i + k] = '?';
            }
        }
        i += step;
    }
}
