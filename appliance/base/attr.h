/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes used across the project. */
#ifndef LOCKSTEP_BASE_ATTR_H
#define LOCKSTEP_BASE_ATTR_H

#define MUST_USE               __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN               __attribute__((noreturn))
#define CLEANUP(fn)            __attribute__((cleanup(fn)))
/* Moves a pointer out of a variable and clears it, so that its CLEANUP does nothing. */
#define TAKE(ptr)                                                                              \
    __extension__({                                                                            \
        __typeof__(ptr) take_tmp = (ptr);                                                      \
        (ptr) = NULL;                                                                          \
        take_tmp;                                                                              \
    })
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* "change" PLURAL(n): the ending of a regular noun behind a number. */
#define PLURAL(n) ((n) == 1 ? "" : "s")

/* Always compiled in; prints the expression and aborts. For programmer errors only. */
#define ASSERT(x) ((x) ? (void)0 : assert_failed(#x, __FILE__, __LINE__))
NORETURN void assert_failed(const char *expr, const char *file, int line);

#endif
