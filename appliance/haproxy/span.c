/* SPDX-License-Identifier: Apache-2.0 */
#include "haproxy/span.h"

#include <string.h>

struct span
span_of(const char *s)
{
    return (struct span){s, strlen(s)};
}

bool
span_line(struct span *rest, struct span *ret)
{
    const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;

    if (end == NULL) {
        return false;
    }
    *ret = (struct span){rest->p, (size_t)(end - rest->p)};
    rest->n -= ret->n + 1;
    rest->p = end + 1;
    return true;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t';
}

bool
span_word(struct span *rest, struct span *ret)
{
    const char *p = rest->p;
    const char *end = p + rest->n;
    const char *start;

    while (p < end && is_space(*p)) {
        p++;
    }
    start = p;
    while (p < end && !is_space(*p)) {
        p++;
    }
    *rest = (struct span){p, (size_t)(end - p)};
    if (p == start) {
        return false;
    }
    *ret = (struct span){start, (size_t)(p - start)};
    return true;
}

bool
span_is(struct span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool
span_starts(struct span s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool
span_number(struct span s, int64_t max, int64_t *ret)
{
    int64_t v = 0;

    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        int digit = s.p[i] - '0';

        if (digit < 0 || digit > 9 || digit > max || v > (max - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

void
span_copy(struct span s, char *out, size_t out_bytes)
{
    size_t n = s.n < out_bytes ? s.n : out_bytes - 1;

    memcpy(out, s.p, n);
    out[n] = '\0';
}
