/* SPDX-License-Identifier: Apache-2.0 */
/* What is not as it should be between the nodes, by name: a const table, and a pure function
 * from what one node knows to the rows that hold. Each row has a page docs/runbooks/NAME.md. */
#ifndef LOCKSTEP_SYNC_CONDITION_H
#define LOCKSTEP_SYNC_CONDITION_H

#include "engine/sync.h"

/* X(condition, name, severity, what it is, next step); in a next step NODE stands for the node
 * that it is about. The order is that of the answer. */
#define CONDITIONS(X)                                                                           \
    X(PEER_UNREACHABLE, "peer_unreachable", "error", "does not answer",                         \
      "See that lockstepd runs on NODE and that this node reaches its address: on NODE, "       \
      "lockstep status.")                                                                       \
    X(PEER_KEY_REJECTED, "peer_key_rejected", "error", "does not take this node's calls",       \
      "Compare the fingerprints, run lockstep peerkey on NODE, and hand its key to this node "  \
      "once more: lockstep join.")                                                              \
    X(TLS_PIN_DIFFERS, "tls_pin_differs", "error",                                              \
      "answers with another public key than the pinned one",                                    \
      "Find out whether NODE was installed anew: if so, lockstep forget NODE, and on NODE "     \
      "lockstep join; if not, somebody else answers at its address.")                           \
    X(MEMBER_CLASH, "member_clash", "error", "has what another node has, too",                  \
      "On one of the two: lockstep set node name=ANOTHER, or url=, then lockstep apply.")       \
    X(NODE_TWICE, "node_twice", "error", "is two machines",                                     \
      "End lockstepd on the one that is a copy; make it a node of its own with an empty state " \
      "directory and lockstep join.")                                                           \
    X(DIVERGED, "diverged", "error", "and this node were both changed apart from each other",   \
      "See what differs with lockstep compare NODE; then, on the node that is right, "          \
      "lockstep overwrite. Where that is refused since another node holds the VIP (423): "      \
      "overwrite on that one, and there lockstep restore the revision that is right; without "  \
      "a holder, --unlock.")                                                                    \
    X(REFUSING, "refusing", "error", "does not take the newer revision over",                   \
      "Remove the cause on NODE; it tries again by itself, every 30 seconds at the latest.")    \
    X(BEHIND, "behind", "warning", "has an older revision",                                     \
      "Wait a few seconds, for NODE catches up by itself. What keeps it from that stands here " \
      "as refusing, held or releases_differ.")                                                  \
    X(RELEASES_DIFFER, "releases_differ", "warning", "runs another release",                    \
      "Bring all nodes to the newer release; lockstep cluster shows the one of each.")          \
    X(CLOCK_SKEW, "clock_skew", "warning", "has another time",                                  \
      "Let NODE and this node take their time from a time server: timedatectl shows it.")       \
    X(NOT_RUNNING, "not_running", "error", "does not run what it stored",                       \
      "See on NODE what keeps HAProxy from running it: lockstep status.")                       \
    X(PAGES_LOST, "pages_lost", "error", "is not reached at the names of its own pages",        \
      "Use the address of NODE itself meanwhile; there, lockstep cluster says what was seen, "  \
      "and lockstep get webui where the pages are to be.")                                      \
    X(HELD, "held", "notice", "does not fetch newer revisions by itself, as it was told",       \
      "When the work on NODE is done, there: lockstep set node keep_in_step=true, then "        \
      "lockstep apply.")                                                                        \
    X(UNAPPLIED_DRAFT, "unapplied_draft", "notice", "has a draft that is not applied",          \
      "On NODE, lockstep apply or lockstep discard --all ends it; on the node that may edit, "  \
      "lockstep drafts shows it and lockstep takeover NODE takes it over.")                     \
    X(UNCONFIRMED, "unconfirmed", "warning", "has a revision that waits for its confirmation",  \
      "If all works, lockstep confirm on the node that may edit keeps it; else the former one " \
      "comes back by itself.")                                                                  \
    X(NO_HOLDER, "no_holder", "error", "sees no node hold the VIP",                             \
      "Bring the node back that held it; to edit meanwhile, on one node only: lockstep "        \
      "--unlock, or sign in there and unlock that.")                                            \
    X(TWO_HOLDERS, "two_holders", "error", "holds the VIP, and so does another node",           \
      "Restore the network between the nodes that hold it; until then edit on one of them.")

#define CONDITION_ENUM(condition, name, severity, text, next) CONDITION_##condition,

enum condition { CONDITIONS(CONDITION_ENUM) };

#undef CONDITION_ENUM

/* Why the last call of another node had no answer. */
enum silence { NOT_ASKED, ANSWERED, UNREACHABLE, KEY_REJECTED, PIN_DIFFERS };

#define CLOCK_SKEW_MAX_MS 5000

enum shared_state { SHARED_SOUGHT, SHARED_FOUND, SHARED_NONE, SHARED_UNKNOWN };

/* The newest commit that is an ancestor of both heads, or one of them. */
struct last_shared {
    struct hash own, other; /* the heads */
    enum shared_state state;
    struct sync_head commit; /* SHARED_FOUND */
    size_t passed;           /* so many of the newest ancestors of own are none */
};

/* What one node knows of another one or, but for silence, failure, relation and skew, of
 * itself. Texts are never NULL. */
struct node_facts {
    const char *id, *name, *url, *release;
    enum silence silence;
    const char *failure; /* of the last call, unless ANSWERED */
    bool ever;           /* it answered once: head was true age_ms ago */
    int64_t age_ms;
    struct sync_head head;
    enum relation relation;
    struct last_shared shared; /* with this node; only read when diverged */
    int64_t skew_ms;           /* of its clock to this node's */
    const char *refusal;       /* why it does not take over what is newer, or "" */
    const char *running;       /* id of the commit that HAProxy runs there; "": not known */
    int64_t unequal_ms;        /* for so long head and running differ; 0: they do not */
    const char *lost;          /* why its own pages are not reached at their names, or "" */
    bool held;
    int64_t drafted; /* objects in its draft */
    const char *draft_author;
    bool holds;       /* the VIP */
    const char *twin; /* where another machine is that says it is this node; "": nowhere */
};

struct cluster_facts {
    const struct node_facts *nodes;
    size_t count, self;            /* self: position of the node that knows all this */
    int64_t round_ms;              /* how often nodes are asked */
    const char *vip;               /* its addresses; "": there is none */
    int64_t unheld_ms;             /* for so long not exactly one node holds it; 0: one does */
    struct engine_waiting waiting; /* on the node that knows all this */
};

/* [{"name", "severity", "node", "cause", "next", "page"}], node after node, each as in the
 * table. New reference. */
json_t *conditions_json(const struct cluster_facts *f);

#endif
