/* SPDX-License-Identifier: Apache-2.0 */
/* What a text type takes, what it makes of it, and what it refuses. */
#ifndef LOCKSTEP_SUPPORT_TEXT_ROWS_H
#define LOCKSTEP_SUPPORT_TEXT_ROWS_H

#include "model/value.h"

/* out NULL: refused, and reason is in the message. */
struct text_row {
    const char *in;
    const char *out;
    const char *reason;
};

#define SAME(text)                                                                             \
    {                                                                                          \
        text, text, NULL                                                                       \
    }
#define BECOMES(in, out)                                                                       \
    {                                                                                          \
        in, out, NULL                                                                          \
    }
#define REFUSED(in, word)                                                                      \
    {                                                                                          \
        in, NULL, word                                                                         \
    }

/* Fails the test, saying what came instead. */
void text_row_check(enum text_type type, const struct text_row *r);

#define CHECK(type, ...)                                                                       \
    do {                                                                                       \
        static const struct text_row rows[] = {__VA_ARGS__};                                   \
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {                                         \
            text_row_check(type, &rows[i]);                                                    \
        }                                                                                      \
    } while (0)

#endif
