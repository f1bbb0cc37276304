/* SPDX-License-Identifier: Apache-2.0 */
/* An executor: a bounded queue of jobs and a fixed number of threads that run them in
 * order of arrival. With one thread it is a single writer (the engine); with several it is
 * the worker pool. */
#ifndef LOCKSTEP_BASE_MAILBOX_H
#define LOCKSTEP_BASE_MAILBOX_H

#include <stddef.h>

#include "base/error.h"

struct mailbox;
typedef void (*mailbox_fn)(void *ctx);

/* name: at most 15 characters, becomes the threads' name. Threads block all signals. */
MUST_USE err_t mailbox_open(
    const char *name, int threads, size_t max_queued, struct mailbox **ret, struct error *e);
/* Runs fn(ctx) on a thread of the mailbox. ERR_BUSY when the queue is full, ERR_UNAVAILABLE
 * after mailbox_stop; then fn will not be called. */
MUST_USE err_t mailbox_post(struct mailbox *m, mailbox_fn fn, void *ctx, struct error *e);
/* As mailbox_post, and waits until fn returned. Never from a thread of the same mailbox
 * (asserted). */
MUST_USE err_t mailbox_call(struct mailbox *m, mailbox_fn fn, void *ctx, struct error *e);
/* Refuses new jobs from now on; the queued ones still run. NULL is allowed. */
void mailbox_stop(struct mailbox *m);
/* As mailbox_stop, runs the queued jobs, joins the threads, frees. NULL is allowed. */
void mailbox_close(struct mailbox *m);

#endif
