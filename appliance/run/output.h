/* SPDX-License-Identifier: Apache-2.0 */
/* What HAProxy prints. It comes through a FIFO in the run directory, which outlives this
 * program: HAProxy keeps writing to it (and what nobody takes is lost, it never waits), and
 * the next lockstep-run reads on. */
#ifndef LOCKSTEP_RUN_OUTPUT_H
#define LOCKSTEP_RUN_OUTPUT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define OUTPUT_NAME       "haproxy.out"
#define OUTPUT_KEPT_BYTES 65536

struct output {
    int fd;          /* our end */
    int writer_fd;   /* HAProxy's */
    int64_t end;     /* bytes read so far */
    char *kept;      /* the last OUTPUT_KEPT_BYTES of them, as a ring */
    struct buf line; /* not logged yet */
};

/* Makes the FIFO if there is none. */
MUST_USE err_t output_open(struct output *o, int run_fd, struct error *e);
void output_close(struct output *o);
/* Takes what is there and logs complete lines. */
void output_read(struct output *o);
/* Appends what was printed from position from on, as far as it is kept, as clean text. */
void output_since(const struct output *o, int64_t from, struct buf *out);

#endif
