/* SPDX-License-Identifier: Apache-2.0 */
/* What lockstep-run says of HAProxy as a service, on its socket. */
#ifndef LOCKSTEP_HAPROXY_SERVICE_STATE_H
#define LOCKSTEP_HAPROXY_SERVICE_STATE_H

#include <stdbool.h>

#include "base/attr.h"

enum service_state {
    SERVICE_STOPPED,  /* not wanted, or no generation to start with */
    SERVICE_STARTING, /* does not serve yet */
    SERVICE_RUNNING,
    SERVICE_WAITING, /* ended by itself, and is started until it serves */
};

const char *service_state_name(enum service_state state);
MUST_USE bool service_state_parse(const char *name, enum service_state *ret);

#endif
