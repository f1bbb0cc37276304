/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events to browsers (server-sent events). */
#ifndef LOCKSTEP_HTTP_STREAM_H
#define LOCKSTEP_HTTP_STREAM_H

#include "http/request.h"

#define STREAMS_MAX        64
#define STREAMS_MAX_CALLER 8 /* of one session or key */
#define STREAM_RETRY_MS    2000

void streams_open(struct http *h);
/* Every stream ends soon; there will be no new ones. */
void streams_close(struct http *h);
/* libmicrohttpd has let go of all streams. */
void streams_fini(struct http *h);
/* Before r is freed. */
void stream_detach(struct request *r);
/* Makes pings due. */
void streams_tick(struct http *h);

#endif
