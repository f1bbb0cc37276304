/* SPDX-License-Identifier: Apache-2.0 */
/* What two nodes are to each other, and what follows from it: the whole decision of how nodes
 * stay in step, as const tables. Total and pure. Ancestry decides: of two isolated nodes that
 * were edited once each, both stand at the same revision. tests/model proves the tables. */
#ifndef LOCKSTEP_ENGINE_RELATION_H
#define LOCKSTEP_ENGINE_RELATION_H

#include <stdbool.h>

/* X(relation, name in the API, text for people); of the peer, seen from this node */
#define RELATIONS(X)                                                                           \
    X(IN_STEP, "in_step", "in step")                                                           \
    X(PEER_BEHIND, "behind", "behind this node")                                               \
    X(SELF_BEHIND, "ahead", "ahead of this node")                                              \
    X(EQUAL_PEER_GREATER, "equal", "same content, and this node adopts the other revision")    \
    X(EQUAL_SELF_GREATER, "equal", "same content, and it adopts this node's revision")         \
    X(DIVERGED, "diverged", "diverged: both were changed since they were last in step")        \
    X(PEER_NEWER_RELEASE, "newer_release", "has a configuration of a newer release")

#define RELATION_ENUM(relation, name, text) REL_##relation,

enum relation { RELATIONS(RELATION_ENUM) };

#undef RELATION_ENUM
#define REL_COUNT (REL_PEER_NEWER_RELEASE + 1)

/* Of one head of the peer and one of this node. What the peer says of itself is only good for
 * the head that it was asked about; before a head is adopted, everything here is worked out
 * again from the commits received and the head stored now. */
struct relation_facts {
    bool same_head;
    bool peer_is_ancestor; /* the peer's head is one of this node's head */
    bool self_is_ancestor; /* this node's head is one of the peer's head */
    bool same_fp;
    bool newer_schema; /* this release does not know the peer's head's schema_version */
    int order;         /* of (rev, id): < 0 this node's is smaller, > 0 the peer's is */
};

/* Facts that contradict each other (either head an ancestor of the other, two heads with the
 * same revision and id) are REL_DIVERGED: nobody takes over anything. */
enum relation relation_of(const struct relation_facts *f);
const char *relation_name(enum relation relation);
const char *relation_text(enum relation relation);

/* What a node does of its own accord. HEAL_ADOPT_EQUAL is a pull, too, that keeps this node's
 * head as a superseded tip. */
#define SYNC_ACTIONS(X) X(NOTHING) X(PULL) X(ADOPT_EQUAL)

#define SYNC_ACTION_ENUM(action) HEAL_##action,

enum sync_action { SYNC_ACTIONS(SYNC_ACTION_ENUM) };

#undef SYNC_ACTION_ENUM
#define HEAL_COUNT (HEAL_ADOPT_EQUAL + 1)

/* Asked twice: of a peer's health answer, whether to pull; of what was pulled, with the
 * relation of then, whether to take it. */
struct heal_facts {
    enum relation relation;
    bool keep_in_step; /* of kind node; off: held */
    bool backing_off;  /* this head was refused here, and its next try is not due yet */
};

enum sync_action heal_action(const struct heal_facts *f);

/* X(verdict, its name: as an error, where it is one) */
#define PUSH_VERDICTS(X)                                                                       \
    X(SAME, "same")                                                                            \
    X(ADVANCE, "advance")                                                                      \
    X(ADOPT_EQUAL, "adopt_equal") /* as HEAL_ADOPT_EQUAL */                                    \
    X(STALE, "stale_push")                                                                     \
    X(DIVERGED, "diverged")                                                                    \
    X(NEWER_RELEASE, "newer_release")                                                          \
    X(MOVED, "moved")                                                                          \
    X(OVERWRITE_IN_PROGRESS, "overwrite_in_progress")

#define PUSH_VERDICT_ENUM(verdict, name) PUSH_##verdict,

/* From PUSH_STALE on each is a refusal (409). */
enum push_verdict { PUSH_VERDICTS(PUSH_VERDICT_ENUM) };

#undef PUSH_VERDICT_ENUM
#define PUSH_COUNT (PUSH_OVERWRITE_IN_PROGRESS + 1)

/* What the receiver of a push sees. An Overwrite is a push with expected_head, whose head has
 * the receiver's among its ancestors as long as that did not move. */
struct push_facts {
    enum relation relation; /* of the pushed head, as if it was the peer's */
    bool overwrites;        /* expected_head is given */
    bool expected;          /* it is this node's head; only read when overwrites */
    bool outranks;          /* this node makes an Overwrite itself and its id is the lower
                             * one; only read when overwrites */
};

enum push_verdict push_verdict(const struct push_facts *f);
const char *push_verdict_name(enum push_verdict verdict);

#endif
