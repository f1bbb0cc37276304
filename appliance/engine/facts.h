/* SPDX-License-Identifier: Apache-2.0 */
/* The measured facts of the status record as JSON, for GET status and for the event. */
#ifndef LOCKSTEP_ENGINE_FACTS_H
#define LOCKSTEP_ENGINE_FACTS_H

#include <jansson.h>

#include "engine/engine.h"

const char *fact_name(enum fact fact); /* "yes", "no", "unknown" */
/* {"haproxy", "running", "serving", "started", "reason"}; a new reference. */
json_t *facts_json(const struct engine_status *s);

#endif
