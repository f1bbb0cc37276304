/* SPDX-License-Identifier: Apache-2.0 */
/* <run_dir>/run.sock: the four service calls, for root only. One JSON line each way:
 *   {"verb": "start" | "stop" | "restart", "service": "haproxy"} -> {"ok": true}
 *   {"verb": "status", "service": "haproxy", "output_from": N (optional)} -> {"ok": true,
 *     "state": "stopped" | "starting" | "running" | "waiting", "pid", "on_good",
 *     "generation", "failures", "output", "output_end"}
 *   Any refusal: {"ok": false, "code": name of err_t, "message"}
 * Calls are carried out later; status tells what became of them. output is what HAProxy
 * printed from position output_from on (absent: as far back as is kept). */
#ifndef LOCKSTEP_RUN_CONTROL_H
#define LOCKSTEP_RUN_CONTROL_H

#include <poll.h>

#include "run/service.h"

#define CONTROL_NAME        "run.sock"
#define CONTROL_CONNECTIONS 8
#define CONTROL_POLL_FDS    (CONTROL_CONNECTIONS + 1)

struct connection {
    int fd; /* -1: free */
    int64_t end_ms;
    struct buf request;
};

struct control {
    int listener;
    struct connection connections[CONTROL_CONNECTIONS];
    struct service *service;
    bool closing; /* the program ends: only status is answered */
};

MUST_USE err_t
control_open(struct control *c, const char *run_dir, struct service *s, struct error *e);
void control_close(struct control *c);

/* What to poll; fds has CONTROL_POLL_FDS entries, unused ones get fd -1. */
void control_poll_fds(const struct control *c, struct pollfd *fds);
/* Serves what poll found, and ends connections that are late. True when a call changed what
 * is wanted. */
bool control_tick(struct control *c, const struct pollfd *fds);
int64_t control_deadline_ms(const struct control *c);

/* Answers one request. For tests; control_tick does it by itself. */
void control_answer(struct control *c, const char *request, size_t bytes, struct buf *answer);

#endif
