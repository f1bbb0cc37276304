/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes decided, line by line, for tests/simulator/trace.py, which has the graph of all
 * commits and judges by that. Commits are numbered as they turn up, nodes from 0 on:
 *
 *   schema N                            newest that this release understands
 *   cluster NODES                       new nodes
 *   seed N
 *   note TEXT                           of the schedule, for people
 *   commit C ID REV SCHEMA FP PARENT... before anything that names C
 *   head NODE C                         where it stands now
 *   round NODE, done NODE
 *   saw NODE OWN C RELATION             of what another node answered
 *   heal NODE RELATION KEEPS BACKS_OFF ACTION
 *   read NODE                           asks another for what it lacks
 *   take NODE HOW OWN C EXPECTED OUTRANKS RELATION VERDICT RESULT
 *
 * Numbers are those of relation_table; "-": none. */
#ifndef LOCKSTEP_SIMULATOR_TRACE_H
#define LOCKSTEP_SIMULATOR_TRACE_H

#include "tests/simulator/sim.h"

/* False: it cannot be written. Without it nothing is traced. */
bool trace_open(const char *path);
void trace_close(void);
void trace_cluster(void);
void trace_seed(uint64_t seed);
void trace_note(const char *text);
/* What node i stands at, which it has told somebody. */
void trace_head(size_t i);
/* Its head, and all that leads to it, is in the trace. */
void trace_commits(size_t i);
void trace_read(size_t i);
/* A round of node i. */
void sim_round(size_t i);

#endif
