/* SPDX-License-Identifier: Apache-2.0 */
#include "model/probe_text.h"

#include <string.h>

static int
digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at =
        c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);

    return at == NULL ? -1 : (int)(at - digits);
}

/* The byte that the escape at s stands for, and its length; -1: no escape. */
static int
unescape(const char *s, size_t *ret_len)
{
    static const char names[] = "rnt\\";
    static const char bytes[] = "\r\n\t\\";
    const char *at = s[1] == '\0' ? NULL : strchr(names, s[1]);

    *ret_len = 2;
    if (at != NULL) {
        return bytes[at - names];
    }
    if (s[1] != 'x' || digit_of(s[2]) < 0 || digit_of(s[3]) < 0) {
        return -1;
    }
    *ret_len = 4;
    return digit_of(s[2]) * 16 + digit_of(s[3]);
}

err_t
probe_text_check(struct text t, struct error *e)
{
    size_t n;

    for (size_t i = 0; i < t.len; i += n) {
        int byte = 1;

        n = 1;
        if (t.s[i] == '\\') {
            byte = unescape(t.s + i, &n);
        }
        if (byte < 0) {
            return error_set(
                e, ERR_INVALID,
                "behind \"\\\" stands r, n, t, \\ or x and two hexadecimal digits");
        }
        if (byte == 0) {
            return error_set(e, ERR_INVALID, "a byte 0 can only be written in hexadecimal");
        }
    }
    return ERR_OK;
}

err_t
probe_text_check_hex(struct text t, struct error *e)
{
    for (size_t i = 0; i < t.len; i++) {
        if (digit_of(t.s[i]) < 0) {
            return error_set(
                e, ERR_INVALID, "only hexadecimal digits are allowed, without spaces");
        }
    }
    return t.len > 0 && t.len % 2 == 0
               ? ERR_OK
               : error_set(e, ERR_INVALID, "every byte has two hexadecimal digits");
}

void
probe_text_put(struct buf *out, struct text t)
{
    size_t n;

    for (size_t i = 0; i < t.len; i += n) {
        n = 1;
        buf_putc(out, t.s[i] == '\\' ? (char)unescape(t.s + i, &n) : t.s[i]);
    }
}
