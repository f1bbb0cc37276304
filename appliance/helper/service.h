/* SPDX-License-Identifier: Apache-2.0 */
/* The four service calls (start, stop, restart, status), carried out by lockstep-run on
 * <run_dir>/run.sock. Requests are accepted at once; status tells what became of them. */
#ifndef LOCKSTEP_HELPER_SERVICE_H
#define LOCKSTEP_HELPER_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "haproxy/service_state.h"

struct service_status {
    enum service_state state;
    pid_t pid;
    bool on_good;       /* started on the generation "good", not on "current" */
    int64_t generation; /* with which it was started */
    int64_t failures;   /* how often it ended before it served */
    int64_t output_end; /* position behind its last output */
};

/* A position behind all output: none of it. */
#define OUTPUT_NONE ((int64_t)9007199254740991)

enum service_verb { SERVICE_START, SERVICE_STOP, SERVICE_RESTART };

MUST_USE err_t service_call(
    const char *socket_path, enum service_verb verb, int64_t deadline_ms, struct error *e);
/* output (may be NULL) gets what it printed from the position output_from on, as far as it
 * is kept. */
MUST_USE err_t service_status(
    const char *socket_path, int64_t output_from, int64_t deadline_ms,
    struct service_status *ret, struct buf *output, struct error *e);

#endif
