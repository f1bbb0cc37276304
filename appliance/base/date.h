/* SPDX-License-Identifier: Apache-2.0 */
/* Points and lengths of time as text. Pure: the clock is elsewhere. */
#ifndef LOCKSTEP_BASE_DATE_H
#define LOCKSTEP_BASE_DATE_H

#include <stdint.h>

#include "base/buf.h"

#define DATE_TEXT_BYTES 25

/* RFC 3339 in UTC with milliseconds: "2026-11-30T00:21:00.123Z". Before the year 0 and after
 * 9999: the nearest that can be written. out has DATE_TEXT_BYTES. */
void date_format(int64_t wall_ms, char *out);
/* A length in the largest unit that leaves nothing over: 90 -> "90s", 900 -> "15m",
 * 3600 -> "1h". */
void date_put_length(struct buf *out, int64_t seconds);

#endif
