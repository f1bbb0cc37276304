/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's nodes do to each other besides calls. */
#ifndef LOCKSTEP_SIMULATOR_PEERS_H
#define LOCKSTEP_SIMULATOR_PEERS_H

#include "tests/simulator/sim.h"

/* ---- node.c ---- */

/* A commit of a newer release on the head of the node. */
void sim_make_newer(size_t from, struct commit *c);
void sim_regroup(size_t i, size_t to); /* joins, leaves, forgets, another key */
/* As http/api_peer.c: of the document of a node with that id. */
bool sim_outranks(size_t i, const struct sync_doc *d, const char *id, bool asks);

/* ---- duel.c ---- */

/* Around two overwrites at once; what each of them ended with, and its commit. */
void sim_duel_begin(void);
void sim_duel_note(err_t code, const char *commit);
void sim_duel_end(void);

#endif
