/* SPDX-License-Identifier: Apache-2.0 */
/* The apply machine as a const table: state x event -> next state and the text that people
 * see. Total; pure. AS_* with an action run it on entry and produce an event. */
#ifndef LOCKSTEP_ENGINE_APPLY_FSM_H
#define LOCKSTEP_ENGINE_APPLY_FSM_H

#include <stdbool.h>

/* X(state, name of the step for people, action or none) */
#define APPLY_STATES(X)                                                                        \
    X(PLAN, "Plan", plan) /* candidate from head and draft or ops */                           \
    X(RENDER, "Render", render)                                                                \
    X(CHECK, "Check", check)        /* stage, haproxy -c */                                    \
    X(BIND, "Test addresses", bind) /* bind-test of new or changed ones */                     \
    X(PEERS, "Check on the other nodes", peers)                                                \
    X(TRIAL, "Try on one standby", trial)                                                      \
    X(ACTIVATE, "Activate", activate) /* switch the current generation */                      \
    X(LOAD, "Load into HAProxy", load)                                                         \
    X(VERIFY, "See that it answers", verify)                                                   \
    X(COMMIT, "Save", commit)                                                                  \
    X(SETTLE, "Mark as last good", settle)                                                     \
    X(PUSH, "Hand to the other nodes", push)                                                   \
    X(BACK, "Put back", back) /* switch to the generation before */                            \
    X(BACK_LOAD, "Reload the former", back_load)                                               \
    X(BACK_VERIFY, "See that the former answers", back_verify)                                 \
    X(DONE, "Done", none)                                                                      \
    X(FAILED, "Failed, nothing changed", none)                                                 \
    X(BACKED, "Failed, former revision serves", none)                                          \
    X(BROKEN, "Failed, and the former revision does not serve", none)

#define APPLY_STATE_ENUM(state, text, action) AS_##state,

enum apply_state { APPLY_STATES(APPLY_STATE_ENUM) };

#undef APPLY_STATE_ENUM
#define APPLY_STATE_COUNT (AS_BROKEN + 1)

/* AE_SAME: the rendered files are those that HAProxy runs already: nothing to load.
 * AE_NOTHING: there is nothing to apply, or nobody to ask or to hand it to.
 * AE_TRIED: it is another node's, and serves here until that commits it. */
enum apply_event { AE_OK, AE_FAIL, AE_SAME, AE_NOTHING, AE_TRIED };

#define APPLY_EVENT_COUNT (AE_TRIED + 1)

struct apply_edge {
    bool allowed; /* false: the event cannot happen in this state (asserted) */
    enum apply_state next;
    const char *text; /* "the checker refused it" */
};

const struct apply_edge *apply_next(enum apply_state state, enum apply_event event);
const char *apply_state_text(enum apply_state state);
const char *apply_state_name(enum apply_state state); /* "bind" */
bool apply_state_final(enum apply_state state);

#endif
