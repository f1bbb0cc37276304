/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to "show stat": CSV with a header line (management guide, section 9.1). Columns
 * may stand in any order, unknown ones are passed over. The text is untrusted. */
#ifndef LOCKSTEP_HAPROXY_STAT_H
#define LOCKSTEP_HAPROXY_STAT_H

#include "base/arena.h"
#include "base/error.h"

#define STAT_MAX_ROWS 100000 /* 20,000 pools with four servers each */

/* The column "type". */
enum stat_type { STAT_FRONTEND, STAT_BACKEND, STAT_SERVER, STAT_LISTENER };

/* Numbers by the names of their columns; -1: empty, or no such column. */
#define STAT_NUMBERS(X)                                                                        \
    X(qcur)                                                                                    \
    X(qmax)                                                                                    \
    X(scur)                                                                                    \
    X(smax)                                                                                    \
    X(slim)                                                                                    \
    X(stot)                                                                                    \
    X(bin)                                                                                     \
    X(bout)                                                                                    \
    X(dreq)                                                                                    \
    X(dresp)                                                                                   \
    X(ereq)                                                                                    \
    X(econ)                                                                                    \
    X(eresp)                                                                                   \
    X(wretr)                                                                                   \
    X(wredis)                                                                                  \
    X(weight)                                                                                  \
    X(act)                                                                                     \
    X(bck)                                                                                     \
    X(lastchg)                                                                                 \
    X(downtime)                                                                                \
    X(rate)                                                                                    \
    X(rate_max)                                                                                \
    X(check_code)                                                                              \
    X(check_duration)                                                                          \
    X(hrsp_1xx)                                                                                \
    X(hrsp_2xx)                                                                                \
    X(hrsp_3xx)                                                                                \
    X(hrsp_4xx)                                                                                \
    X(hrsp_5xx)                                                                                \
    X(hrsp_other)                                                                              \
    X(req_tot)                                                                                 \
    X(qtime)                                                                                   \
    X(ctime)                                                                                   \
    X(rtime)                                                                                   \
    X(ttime)

/* Texts are the arena's, never NULL, without control characters, cut at 255 bytes. */
#define STAT_NEEDED(X) X(pxname) X(svname) X(status) /* never empty */
#define STAT_TEXTS(X)  X(check_status) X(last_chk)

struct stat_row {
    enum stat_type type;
#define STAT_TEXT(name)   const char *name;
#define STAT_NUMBER(name) int64_t name;
    STAT_NEEDED(STAT_TEXT)
    STAT_TEXTS(STAT_TEXT)
    STAT_NUMBERS(STAT_NUMBER)
#undef STAT_TEXT
#undef STAT_NUMBER
};

struct stat_table {
    struct stat_row *rows; /* in the order of the answer */
    size_t count;
    size_t parse_errors; /* rows left out: cut, of another length, no number in a number's
                            place, no name or status, over the limits */
};

/* ERR_INVALID when there is no header with the columns pxname, svname, status and type.
 * *ret is the caller's, to be ended by stat_table_fini before the arena. */
MUST_USE err_t stat_parse(
    const char *text, size_t bytes, struct arena *a, struct stat_table *ret, struct error *e);
void stat_table_fini(struct stat_table *t); /* also for CLEANUP() */

#endif
