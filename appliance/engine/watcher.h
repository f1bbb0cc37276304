/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at HAProxy and keeps the status record; only for this folder. */
#ifndef LOCKSTEP_ENGINE_WATCHER_H
#define LOCKSTEP_ENGINE_WATCHER_H

struct engine;

/* The loop, until the engine stops. */
void watcher_run(void *ctx);
/* Measures now. Any thread but the engine's. */
void watcher_look(struct engine *en);

#endif
