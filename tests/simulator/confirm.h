/* SPDX-License-Identifier: Apache-2.0 */
/* Revisions that wait for their confirmation, and who holds the VIP meanwhile. The loop that
 * goes back stands still: the schedule says when each node looks at the time. */
#ifndef LOCKSTEP_SIMULATOR_CONFIRM_H
#define LOCKSTEP_SIMULATOR_CONFIRM_H

#include "tests/simulator/sim.h"

struct sim_trials {
    size_t back, kept,
        moved; /* of all seeds: gone back by itself, confirmed, VIPs that moved */
};

extern struct sim_trials sim_trials;

void sim_trials_cluster(bool vip); /* new nodes; whether they get a VIP group */
void sim_trials_seed(void);
/* A node's way to ask the kernel, which here is the schedule. */
void sim_hold(struct sim_node *n);

/* Applies on node i what has to be confirmed, or confirms what waits there. */
void step_confirm(size_t i);
/* The VIP goes to a node, to two, or to none. */
void step_vip(size_t i);
/* Content of another time or another node comes back by hand, marked or not. */
void sim_by_hand(void);
/* Each node goes back whose turn it is. */
void sim_go_back(void);
/* Whether a revision still waits on a node. */
bool sim_trial_waits(void);
/* One node has the VIP. */
void sim_calm_vip(void);
/* What nobody confirmed is gone from every node. */
void sim_check_trials(void);

/* ---- step.c ---- */

struct engine_lab *sim_lab(size_t i); /* with room for the problems of another call */
/* Somebody was told that it is there: the head of the node, from which the next one follows. */
void sim_ack(size_t i, const char *hex);
void sim_ack_task(size_t i, const json_t *task);

#endif
