/* SPDX-License-Identifier: Apache-2.0 */
/* Where handlers run. A connection whose handler is not called inline is suspended until the
 * handler has answered; http_close waits for all of these, since libmicrohttpd must not be
 * stopped while one is suspended. */
#ifndef LOCKSTEP_HTTP_DISPATCH_H
#define LOCKSTEP_HTTP_DISPATCH_H

#include "http/request.h"

/* Thread of the connection; the body is complete. Afterwards the answer is there, or
 * r->suspended is set and the connection will be resumed. */
void dispatch_run(struct request *r);
/* Keeps the connection suspended when the handler returns without an answer. */
void dispatch_hold(struct request *r);
/* The end of a hold. The last one resumes the connection: r is gone then. Any thread. */
void dispatch_release(struct request *r);
/* New requests are refused with 503 from now on. */
void dispatch_close(struct http *h);
/* Waits until every suspended connection is resumed; false after ms. */
bool dispatch_drain(struct http *h, int64_t ms);

#endif
