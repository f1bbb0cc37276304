/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy as a service: which generation it is started with, whether it serves, the four
 * calls. */
#ifndef LOCKSTEP_RUN_SERVICE_H
#define LOCKSTEP_RUN_SERVICE_H

#include "haproxy/service_state.h"
#include "run/child.h"
#include "run/layout.h"
#include "run/options.h"
#include "run/output.h"
#include "run/record.h"

struct service {
    struct child child;
    struct output output;
    const struct run_options *options;
    const struct layout *layout;
    char master_path[PATH_MAX];
    bool serves;        /* since the last start */
    bool restarting;    /* told to end in order to start again */
    bool failing;       /* ended by itself, and did not serve since */
    bool on_good;       /* the last start used "good" */
    int64_t generation; /* of the last start */
    int64_t failures;   /* how often it ended before it served */
    int in_a_row;       /* the same, since the generation was chosen */
    int64_t look_ms;    /* when to look next whether it serves */
};

MUST_USE err_t service_open(
    struct service *s, const struct run_options *o, const struct layout *l, struct error *e);
void service_close(struct service *s);

/* An HAProxy that a former lockstep-run left keeps running and is taken over. */
void service_adopt(struct service *s, const struct record *r);
/* Starts and looks when that is due. True when the record has to be written anew. */
bool service_tick(struct service *s);
int64_t service_deadline_ms(const struct service *s);
/* HAProxy's master has ended: how is for people, for the log. */
void service_ended(struct service *s, const char *how);

/* ERR_NOT_FOUND: no generation is installed. */
MUST_USE err_t service_start(struct service *s, struct error *e);
MUST_USE err_t service_restart(struct service *s, struct error *e);
void service_stop(struct service *s);
enum service_state service_state(const struct service *s);

#endif
