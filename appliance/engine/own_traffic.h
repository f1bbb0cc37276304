/* SPDX-License-Identifier: Apache-2.0 */
/* What this node itself asked the listeners of HAProxy, to be taken off HAProxy's counters: an
 * apply asks each of them whether it answers, and no visitor was that. Thread-safe. */
#ifndef LOCKSTEP_ENGINE_OWN_TRAFFIC_H
#define LOCKSTEP_ENGINE_OWN_TRAFFIC_H

#include <sys/types.h>

#include "haproxy/stat.h"

struct own_traffic;

struct own_traffic *own_traffic_new(void);
void own_traffic_free(struct own_traffic *t);

/* One more request to the listener of that name, on a connection of its own. pid is that of
 * HAProxy's worker: those of another one are forgotten, for its counters begin anew. */
void own_traffic_add(struct own_traffic *t, pid_t pid, const char *listener);
/* Sessions, requests and answers 2xx of frontends; of another worker's nothing. */
void own_traffic_take_off(struct own_traffic *t, pid_t pid, struct stat_table *stat);

#endif
