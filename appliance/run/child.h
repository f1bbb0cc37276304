/* SPDX-License-Identifier: Apache-2.0 */
/* One supervised process: started by us, or adopted from a former lockstep-run. Starts again
 * with a growing delay when it ends by itself. */
#ifndef LOCKSTEP_RUN_CHILD_H
#define LOCKSTEP_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/tunables.h"

#define CHILD_NEVER INT64_MAX

struct child {
    const char *name;
    const struct tunables *tunables;
    bool wanted;      /* to be started when it is down */
    pid_t pid;        /* 0: down */
    int64_t ticks;    /* start time as /proc/PID/stat tells it: pid and ticks never recur */
    int pidfd;        /* of an adopted process, which is no child to wait for; else -1 */
    int64_t start_ms; /* when it was started or adopted */
    int64_t due_ms;   /* when it is to be started, CHILD_NEVER: not by itself */
    int64_t kill_ms;  /* when it is killed, CHILD_NEVER: it was not told to end */
    int64_t delay_ms; /* before the next start */
};

void child_init(struct child *c, const char *name, const struct tunables *t);
void child_fini(struct child *c);

/* output_fd: what takes its output, -1: our standard error. A failure to start counts as an
 * end right after the start. */
MUST_USE err_t
child_start(struct child *c, const char *const *argv, int output_fd, struct error *e);
/* ERR_NOT_FOUND when there is no such process, or another one of this number; ticks 0: any. */
MUST_USE err_t child_adopt(struct child *c, pid_t pid, int64_t ticks, struct error *e);

/* SIGTERM now, SIGKILL to its process group after stop_ms. */
void child_end(struct child *c);
/* Does what is due by itself: the kill. */
void child_tick(struct child *c);
bool child_is_due(const struct child *c);
bool child_is_ending(const struct child *c);
/* Is to be started at the next occasion, without a delay. */
void child_due_now(struct child *c);
/* The next time at which something is due. */
int64_t child_deadline_ms(const struct child *c);
/* It has ended (and, as our child, was reaped): plans the next start if it is wanted.
 * Returns for how long it lived, in milliseconds. */
int64_t child_ended(struct child *c);

/* Start time of a process, as in child.ticks. ERR_NOT_FOUND: none, or ended already. */
MUST_USE err_t process_ticks(pid_t pid, int64_t *ret, struct error *e);

#endif
