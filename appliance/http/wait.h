/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are answered when a task has ended. */
#ifndef LOCKSTEP_HTTP_WAIT_H
#define LOCKSTEP_HTTP_WAIT_H

#include "http/request.h"

/* The last thing that a handler does: answer(r, task, ended) is called when the task has
 * ended, or with ended false when that takes too long or the server is closing. answer takes
 * task over and makes the answer. Any thread. */
void wait_for_task(struct request *r, int64_t task, wait_fn answer);
/* Ends the waits that have lasted too long; all of them when the server is closing. */
void wait_scan(struct http *h, bool all);

#endif
