/* SPDX-License-Identifier: Apache-2.0 */
/* Text of other programs on its way into JSON. */
#ifndef LOCKSTEP_HAPROXY_OUTPUT_H
#define LOCKSTEP_HAPROXY_OUTPUT_H

#include <stddef.h>

/* Replaces what is not UTF-8, and control characters but newline and tab, by '?'. */
void output_clean(char *text, size_t bytes);

#endif
