/* SPDX-License-Identifier: Apache-2.0 */
/* As many requests as a server answers, over kept-alive connections to 127.0.0.1. */
#ifndef LOCKSTEP_BENCH_LOAD_H
#define LOCKSTEP_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CONNECTIONS 16

struct load {
    int port;
    bool tls;
    const char *const *requests; /* whole, sent in turn */
    size_t count;
    int64_t ms; /* how long */
};

/* Answers per second. An answer other than 200, or none, ends the program. */
double load_run(const struct load *l);
/* Time of one request and its answer over one connection, microseconds: the median of many. */
double load_latency_us(const struct load *l);

int64_t load_now_us(void);
double load_median(double *values, size_t count); /* sorts them */

#endif
