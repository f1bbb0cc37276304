/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes stay in step, as a model: two or three nodes that edit, push, heal and overwrite,
 * with what may go wrong in between. What a node decides is not written here but read from
 * relation.pml, which relation_table prints from the product's own code.
 *
 * Of a run: NODES; LINE (0: everybody reaches everybody, 1: 0 - 1 - 2); EDITS, OVERWRITES and LATE
 * (messages on their way at a time) bound it; RELEASES lets nodes be upgraded. INVARIANTS is the
 * set of what is asserted:
 *   1  what was ever stored is in a history, as an ancestor of a head or as a tip that was
 *      given up for another head with the same content
 *   2  when all links work and no two nodes are diverged, two rounds bring all nodes to one
 *      head; and one Overwrite does where they are. What a node stores only grows in (rev, id)
 *   3  a head is given up for one that neither has it as an ancestor nor has the same content
 *      only by an Overwrite
 *   4  no node runs what its release does not understand
 *   5  of two nodes that overwrite each other at once, one wins: no two nodes end with the
 *      Overwrite of one and not of the other
 *   6  what was refused, or did not get as far as being stored, leaves no trace
 *
 * A message may be lost, and may arrive whenever its receiver is idle, after any others. So a cut
 * link needs no state of its own: it is one on which nothing is sent or all is lost. Neither does
 * a node that is off: it does nothing. What a crash leaves behind has one: HAProxy runs what
 * the database does not know.
 *
 * A node decides and stores in one step: it has one apply at a time, so nothing that happens
 * elsewhere in between could change its decision. */
#include "relation.pml"

#define COMMITS (2 + EDITS + OVERWRITES) /* what all begin with, and an Overwrite in the end */
#define BIT(x)     (1 << (x))
#define IN(x, set) (((set) >> (x)) & 1)
#define CHECK(number, what) assert(!IN(number, INVARIANTS) || (what))

/* Commits are numbered as they are made; the greater number is the greater id. */
byte commits = 1;
byte ancestors[COMMITS] = BIT(0); /* set of commits, itself among them */
byte rev[COMMITS];
byte content[COMMITS]; /* equal: same fp */
byte newer;            /* set of commits that only an upgraded node understands */

byte head[NODES];        /* stored */
byte running[NODES];     /* other than stored: until it is put back the node is idle */
byte overwriting[NODES]; /* commit of its own Overwrite under way; 0: none */
byte upgraded;           /* set of nodes */

/* Of an Overwrite under way. First each target is asked whether it would take it; when all
 * would, it is handed to them. */
byte asks[NODES];           /* set of targets that are not asked yet */
byte handing;               /* set of nodes that do not ask any more */
byte waits[NODES];          /* set of targets whose answer is not known */
byte accepted;              /* set of nodes whose Overwrite was taken by one at least */
byte expects[NODES * NODES]; /* while it asks: head of each target, and its own, + 1 */
#define EXPECTS(i, j) expects[(i) * NODES + (j)]

/* What is on its way: packed, the greatest first, 0: none. */
short net[LATE];
#define PUSHED    1
#define PULLED    2
#define OVERWRITE 3
#define ACCEPTED  4 /* the answer to an Overwrite */
#define OWN       5 /* no message: what others took is stored here, too */
#define MESSAGE(how, from, to, commit, expected)                                               \
    (((((expected) * COMMITS + (commit)) * NODES + (to)) * NODES + (from)) * 5 + (how))
#define HOW(m)      ((m) % 5)
#define FROM(m)     (((m) / 5) % NODES)
#define TO(m)       (((m) / (5 * NODES)) % NODES)
#define COMMIT(m)   (((m) / (5 * NODES * NODES)) % COMMITS)
#define EXPECTED(m) ((m) / (5 * NODES * NODES * COMMITS))
#define ROOM        (net[LATE - 1] == 0)

byte edits, overwrites;
bit calm; /* all links work, and nobody edits */

/* What was ever a head with its ancestors; what was given up for the same content. */
byte ever, kept;
byte overs;  /* set of commits that Overwrites made */
bit gave_up; /* an Overwrite ended before its answers came */

/* Of one step, 0 between steps. */
byte verdict, made, taken, best, todo, k;
short message, other;

#define IDLE(i)       (running[i] == head[i])
#define SETTLED(i)    (IDLE(i) && overwriting[i] == 0)
#define REACHES(i, j) ((i) != (j) && !(LINE && (i) + (j) == 2))
#define ORDER(a, b)                                                                            \
    (rev[a] != rev[b] -> (rev[a] < rev[b] -> -1 : 1) : ((a) < (b) -> -1 : ((a) > (b) -> 1 : 0)))
/* What commit b is to node i, whose head is a. */
#define RELATED(i, a, b)                                                                       \
    RELATION((a) == (b), IN(b, ancestors[a]), IN(a, ancestors[b]), content[a] == content[b],   \
        (IN(b, newer) && !IN(i, upgraded)), ORDER(a, b))
#define PEER_IS(i, j)    RELATED(i, head[i], head[j])
#define WOULD_HEAL(i, b) HEAL(RELATED(i, head[i], b), 1, 0)

/* Said without the table. */
#define DIFFERENT(i, j) (head[i] != head[j])
#define FORKED(i, j)                                                                           \
    (!IN(head[i], ancestors[head[j]]) && !IN(head[j], ancestors[head[i]]) &&                   \
        content[head[i]] != content[head[j]])
#define ONLY_OVER(i, j) (ancestors[head[i]] & ~ancestors[head[j]] & overs)
#define CROSSED(i, j)   (FORKED(i, j) && ONLY_OVER(i, j) != 0 && ONLY_OVER(j, i) != 0)
#define TOO_NEW(i, j) ((IN(head[j], newer) && !IN(i, upgraded)) ||                             \
    (IN(head[i], newer) && !IN(j, upgraded)))

#if NODES == 2
#define HISTORY     (ancestors[head[0]] | ancestors[head[1]])
#define ALL(p)      (p(0) && p(1))
#define ANY_PAIR(p) p(0, 1)
#define EACH(step)  step(0); step(1)
#define DIVERGED_FROM_SOME(i) (PEER_IS(i, 1 - (i)) == REL_DIVERGED)
#else
#define HISTORY     (ancestors[head[0]] | ancestors[head[1]] | ancestors[head[2]])
#define ALL(p)      (p(0) && p(1) && p(2))
#define ANY_PAIR(p) (p(0, 1) || p(1, 2) || p(0, 2))
#define EACH(step)  step(0); step(1); step(2)
#define DIVERGED_FROM(i, j)   (REACHES(i, j) && PEER_IS(i, j) == REL_DIVERGED)
#define DIVERGED_FROM_SOME(i) (DIVERGED_FROM(i, 0) || DIVERGED_FROM(i, 1) || DIVERGED_FROM(i, 2))
#endif

/* Told when the search ends: which relations, actions of healing, verdicts and steps came up. */
c_decl {
    static unsigned seen[4];
    static int telling;

    static void print_seen(void)
    {
        printf("seen %x %x %x %x\n", seen[0], seen[1], seen[2], seen[3]);
    }

    static void note_seen(int what, int value)
    {
        if (!telling) {
            telling = 1;
            atexit(print_seen);
        }
        seen[what] |= 1U << value;
    }
}
#define SEEN(what)  c_code { note_seen(what, now.verdict); }
#define STEP(value) c_code { note_seen(3, value); }

/* ---- what a node does, each in one step ---- */

/* Lost where the net is full. A message that is on its way already is not sent twice. */
inline send(m)
{
    message = m;
    k = 0;
    do
    :: k < LATE && net[k] > message -> k++
    :: k < LATE && net[k] < message ->
        other = net[k];
        net[k] = message;
        message = other;
        k++
    :: else -> break
    od;
    other = 0;
    message = 0;
    k = 0
}

inline take_off(slot)
{
    message = net[slot];
    k = slot;
    do
    :: k < LATE - 1 ->
        net[k] = net[k + 1];
        k++
    :: else -> break
    od;
    net[LATE - 1] = 0;
    k = 0
}

/* A commit on top of the heads a and b. */
inline make(a, b)
{
    assert(commits < COMMITS); /* only edits and Overwrites make commits */
    made = commits;
    ancestors[made] = ancestors[a] | ancestors[b] | BIT(made);
    rev[made] = (rev[a] > rev[b] -> rev[a] : rev[b]) + 1;
    content[made] = content[a];
    newer = newer | (IN(a, newer) << made);
    commits++
}

inline activate(i, commit)
{
    CHECK(4, !IN(commit, newer) || IN(i, upgraded));
    taken = commit;
    running[i] = commit
}

/* The one transaction. */
inline store(i, how)
{
    CHECK(2, ORDER(head[i], taken) < 0);
    if
    :: IN(head[i], ancestors[taken]) -> skip
    :: else ->
        if
        :: content[head[i]] == content[taken] -> kept = kept | ancestors[head[i]]
        :: else -> CHECK(3, how == OVERWRITE)
        fi
    fi;
    head[i] = taken;
    ever = ever | ancestors[taken];
    CHECK(1, (ever & ~(kept | HISTORY)) == 0)
}

inline end_overwrite(i)
{
    overwriting[i] = 0;
    handing = handing & ~BIT(i);
    accepted = accepted & ~BIT(i);
    asks[i] = 0;
    waits[i] = 0;
    k = 0;
    do
    :: k < NODES ->
        EXPECTS(i, k) = 0;
        k++
    :: else -> break
    od;
    k = 0
}

/* Whoever is asked, or handed one, while it still asks itself gives way, unless it goes
 * first. */
inline give_way(i)
{
    if
    :: verdict == PUSH_ADVANCE && overwriting[i] != 0 && !IN(i, handing) -> end_overwrite(i)
    :: else -> skip
    fi
}

/* A push or an Overwrite has arrived. */
inline answer(i, m)
{
    verdict = RELATED(i, head[i], COMMIT(m));
    SEEN(0);
    verdict =
        VERDICT(verdict, HOW(m) == OVERWRITE, EXPECTED(m) == head[i], IN(i, handing));
    SEEN(2);
    if
    :: HOW(m) == OVERWRITE -> give_way(i)
    :: else -> skip
    fi;
    if
    :: verdict == PUSH_SAME -> skip
    :: verdict == PUSH_ADVANCE -> activate(i, COMMIT(m))
    :: verdict == PUSH_ADOPT_EQUAL -> activate(i, COMMIT(m))
    :: verdict == PUSH_STALE -> skip
    :: verdict == PUSH_DIVERGED -> skip
    :: verdict == PUSH_NEWER_RELEASE -> skip
    :: verdict == PUSH_MOVED -> skip
    :: verdict == PUSH_OVERWRITE_IN_PROGRESS -> skip
    fi;
    CHECK(6, taken != 0 || IDLE(i));
    verdict = 0
}

/* What was pulled has arrived: whether to take it is decided again. */
inline heal(i, b)
{
    verdict = RELATED(i, head[i], b);
    SEEN(0);
    verdict = HEAL(verdict, 1, 0);
    SEEN(1);
    if
    :: verdict == HEAL_NOTHING -> skip
    :: verdict == HEAL_PULL -> activate(i, b)
    :: verdict == HEAL_ADOPT_EQUAL -> activate(i, b)
    :: verdict == HEAL_MERGE -> /* of a spoilt table only */
        make(head[i], b);
        activate(i, made);
        made = 0
    fi;
    verdict = 0
}

/* A peer has taken the Overwrite: now this node does. */
inline conclude(i)
{
    verdict = VERDICT(RELATED(i, head[i], overwriting[i]), 0, 0, 0);
    if
    :: verdict == PUSH_ADVANCE ->
        STEP(5);
        activate(i, overwriting[i])
    :: verdict == PUSH_SAME || verdict == PUSH_STALE -> /* it came by a pull */
        STEP(6);
        end_overwrite(i)
    :: else ->
        STEP(7);
        /* Of three, one that is in step with this one may have changed both. */
        CHECK(5, gave_up || (NODES > 2 &&
            (ancestors[head[i]] & ~ancestors[overwriting[i]] & overs) == 0));
        end_overwrite(i)
    fi;
    verdict = 0
}

#define PUSH_TO(j)                                                                             \
    if                                                                                         \
    :: REACHES(_pid, j) && ROOM -> send(MESSAGE(PUSHED, _pid, j, head[_pid], 0))               \
    :: skip                                                                                    \
    fi

/* An edit is applied: stored here, then pushed. */
inline apply()
{
    d_step {
        STEP(0);
        edits++;
        make(head[_pid], head[_pid])
    };
    if
    :: content[made] = (content[made] + 1) % 3
    :: made > 1 -> content[made] = (content[made] + 2) % 3
    fi;
    if
    :: IN(_pid, upgraded) -> newer = newer | BIT(made)
    :: skip
    fi;
    d_step {
        activate(_pid, made);
        store(_pid, PUSHED);
        made = 0;
        taken = 0
    };
    EACH(PUSH_TO)
}

#define TARGET(j)                                                                              \
    if                                                                                         \
    :: REACHES(_pid, j) && PEER_IS(_pid, j) != REL_PEER_NEWER_RELEASE -> todo = todo | BIT(j)  \
    :: skip                                                                                    \
    fi

#define JOIN(j)                                                                                \
    if                                                                                         \
    :: IN(j, todo) ->                                                                          \
        ancestors[made] = ancestors[made] | ancestors[head[j]];                                \
        rev[made] = (rev[made] > rev[head[j]] -> rev[made] : rev[head[j]] + 1)                 \
    :: else -> skip                                                                            \
    fi

#define EXPECT(j)                                                                              \
    if                                                                                         \
    :: IN(j, todo) || (j) == _pid -> EXPECTS(_pid, j) = head[j] + 1                            \
    :: else -> skip                                                                            \
    fi

/* Overwrite is pressed, for any of the peers. */
inline overwrite()
{
    EACH(TARGET);
    if
    :: todo != 0 ->
        d_step {
            STEP(1);
            overwrites++;
            make(head[_pid], head[_pid]);
            EACH(JOIN);
            EACH(EXPECT);
            overs = overs | BIT(made);
            overwriting[_pid] = made;
            asks[_pid] = todo;
            made = 0;
            todo = 0
        }
    :: else -> skip
    fi
}

/* Whether node j would take it: nothing changes there, but for an Overwrite of its own. One
 * after another. */
inline ask(j)
{
    asks[_pid] = asks[_pid] & ~BIT(j);
    verdict = RELATED(j, head[j], overwriting[_pid]);
    verdict = VERDICT(verdict, 1, EXPECTS(_pid, j) == head[j] + 1,
        IN(j, handing) || (overwriting[j] != 0 && j < _pid));
    give_way(j);
    if
    :: verdict == PUSH_ADVANCE -> skip
    :: else -> end_overwrite(_pid)
    fi;
    verdict = 0
}

#define ASK(j)                                                                                 \
    :: atomic {                                                                                \
        IN(j, asks[_pid]) && (asks[_pid] & (BIT(j) - 1)) == 0 ->                               \
        if                                                                                     \
        :: d_step { STEP(13); ask(j) }                                                         \
        :: d_step { /* it does not answer: it is left out */                                   \
            asks[_pid] = asks[_pid] & ~BIT(j);                                                 \
            EXPECTS(_pid, j) = 0                                                               \
        }                                                                                      \
        fi                                                                                     \
    }

#define REQUEST(j)                                                                             \
    if                                                                                         \
    :: (j) != _pid && EXPECTS(_pid, j) != 0 && ROOM ->                                         \
        send(MESSAGE(OVERWRITE, _pid, j, overwriting[_pid], EXPECTS(_pid, j) - 1));            \
        waits[_pid] = waits[_pid] | BIT(j)                                                     \
    :: else -> skip                                                                            \
    fi;                                                                                        \
    EXPECTS(_pid, j) = 0

/* All were asked. What this node had itself may have moved meanwhile. */
inline hand()
{
    if
    :: EXPECTS(_pid, _pid) == head[_pid] + 1 ->
        STEP(14);
        handing = handing | BIT(_pid);
        EACH(REQUEST)
    :: else -> end_overwrite(_pid)
    fi
}

/* An Overwrite ends without its answers: too late, or by a crash. */
inline give_up(i)
{
    gave_up = gave_up || (IN(i, handing) && (NODES == 2 || OVERWRITES > 1));
    end_overwrite(i)
}

/* Where it was not taken, whoever handed it over may learn that at once, or never. */
inline not_taken(from, commit)
{
    if
    :: overwriting[from] == commit && IN(from, handing) ->
        waits[from] = waits[from] & ~BIT(_pid)
    :: else -> skip
    fi
}

/* Stored and answered; or the node goes back, or dies, between the two. */
inline finish(how, from)
{
    if
    :: taken == 0 -> skip
    :: taken != 0 ->
        d_step {
            store(_pid, how);
            if
            :: how == OWN -> end_overwrite(_pid)
            :: else -> skip
            fi;
            message = 0;
            if
            :: how == OVERWRITE && ROOM -> send(MESSAGE(ACCEPTED, _pid, from, taken, 0))
            :: else -> skip
            fi
        }
    :: taken != 0 ->
        d_step {
            STEP(8);
            give_up(_pid)
        }
    fi;
    taken = 0
}

inline receive(slot)
{
    d_step { take_off(slot) };
    if
    :: skip /* lost */
    :: HOW(message) == OVERWRITE -> /* and known to be */
        d_step { not_taken(FROM(message), COMMIT(message)) }
    :: HOW(message) == PUSHED ->
        d_step {
            STEP(2);
            answer(_pid, message)
        };
        finish(PUSHED, 0)
    :: HOW(message) == PULLED ->
        d_step {
            STEP(3);
            heal(_pid, COMMIT(message))
        };
        finish(PULLED, 0)
    :: HOW(message) == OVERWRITE ->
        d_step {
            STEP(4);
            answer(_pid, message);
            best = FROM(message);
            if
            :: taken == 0 -> not_taken(best, COMMIT(message))
            :: else -> skip
            fi
        };
        finish(OVERWRITE, best);
        best = 0
    :: HOW(message) == ACCEPTED && overwriting[_pid] == COMMIT(message) ->
        d_step {
            waits[_pid] = waits[_pid] & ~BIT(FROM(message));
            accepted = accepted | BIT(_pid)
        }
    fi;
    message = 0
}

#define PULL_FROM(j)                                                                           \
    :: atomic {                                                                                \
        !calm && REACHES(_pid, j) && ROOM && IDLE(_pid) &&                                     \
            WOULD_HEAL(_pid, head[j]) != HEAL_NOTHING ->                                       \
        d_step { send(MESSAGE(PULLED, j, _pid, head[j], 0)) }                                  \
    }

#define RECEIVE(slot)                                                                          \
    :: atomic {                                                                                \
        !calm && net[slot] != 0 && TO(net[slot]) == _pid && IDLE(_pid) -> receive(slot)        \
    }

active [NODES] proctype node()
{
end:
    do
    :: atomic { !calm && SETTLED(_pid) && edits < EDITS -> apply() }
    :: atomic {
        !calm && SETTLED(_pid) && overwrites < OVERWRITES && DIVERGED_FROM_SOME(_pid) ->
        overwrite()
    }
    PULL_FROM(0)
    PULL_FROM(1)
#if NODES > 2
    PULL_FROM(2)
#endif
    RECEIVE(0)
    RECEIVE(1)
#if LATE > 2
    RECEIVE(2)
#endif
    ASK(0)
    ASK(1)
#if NODES > 2
    ASK(2)
#endif
    :: d_step { overwriting[_pid] != 0 && asks[_pid] == 0 && !IN(_pid, handing) -> hand() }
    :: atomic {
        IN(_pid, handing) && waits[_pid] == 0 && IDLE(_pid) ->
        if
        :: IN(_pid, accepted) ->
            d_step { conclude(_pid) };
            finish(OWN, 0)
        :: else -> d_step { end_overwrite(_pid) }
        fi
    }
    :: d_step { overwriting[_pid] != 0 -> give_up(_pid) }
    :: atomic {
        !IDLE(_pid) ->
        STEP(9);
        running[_pid] = head[_pid]
    }
#if RELEASES
    :: atomic {
        !calm && IDLE(_pid) && !IN(_pid, upgraded) ->
        STEP(10);
        upgraded = upgraded | BIT(_pid)
    }
#endif
    od
}

/* ---- all links work, and nobody edits ---- */

/* The newest of the peers that there is a reason to pull from. */
#define CHOOSE(i, j)                                                                           \
    if                                                                                         \
    :: REACHES(i, j) && WOULD_HEAL(i, head[j]) != HEAL_NOTHING ->                              \
        if                                                                                     \
        :: best == NODES -> best = j                                                           \
        :: else ->                                                                             \
            if                                                                                 \
            :: ORDER(head[best], head[j]) < 0 -> best = j                                      \
            :: else -> skip                                                                    \
            fi                                                                                 \
        fi                                                                                     \
    :: else -> skip                                                                            \
    fi

#define SAVE(i, how)                                                                           \
    if                                                                                         \
    :: taken != 0 -> store(i, how)                                                             \
    :: else -> skip                                                                            \
    fi;                                                                                        \
    taken = 0

#define TURN(i)                                                                                \
    :: d_step {                                                                                \
        IN(i, todo) ->                                                                         \
        todo = todo - BIT(i);                                                                  \
        best = NODES;                                                                          \
        CHOOSE_ANY(i);                                                                         \
        if                                                                                     \
        :: best < NODES ->                                                                     \
            STEP(11);                                                                          \
            heal(i, head[best]);                                                               \
            SAVE(i, PULLED)                                                                    \
        :: else -> skip                                                                        \
        fi;                                                                                    \
        best = 0                                                                               \
    }

#if NODES == 2
#define CHOOSE_ANY(i) CHOOSE(i, 1 - (i))
#else
#define CHOOSE_ANY(i) CHOOSE(i, 0); CHOOSE(i, 1); CHOOSE(i, 2)
#endif

/* Every node once, in any order. */
inline round()
{
    todo = BIT(NODES) - 1;
    do
    TURN(0)
    TURN(1)
#if NODES > 2
    TURN(2)
#endif
    :: todo == 0 -> break
    od
}

/* The one that reaches all others, also on the line, overwrites all of them. */
#define MENDER 1
#define JOIN_OTHER(j)                                                                          \
    if                                                                                         \
    :: j != MENDER -> todo = BIT(j); JOIN(j); todo = 0                                         \
    :: else -> skip                                                                            \
    fi

#define GIVE(j)                                                                                \
    if                                                                                         \
    :: j != MENDER ->                                                                          \
        answer(j, MESSAGE(OVERWRITE, MENDER, j, made, head[j]));                               \
        SAVE(j, OVERWRITE)                                                                     \
    :: else -> skip                                                                            \
    fi

active proctype weather()
{
    bit forked;

    d_step {
        net[0] == 0 && ALL(SETTLED) ->
        calm = 1;
        forked = ANY_PAIR(FORKED);
        /* Where only what is past differs, runs go on as one. */
        CHECK(5, gave_up || !ANY_PAIR(CROSSED));
        edits = 0;
        overwrites = 0;
        gave_up = 0;
        overs = 0;
        ever = 0;
        kept = 0
    };
    if
    :: ANY_PAIR(TOO_NEW) -> goto done
    :: else -> skip
    fi;
    atomic {
        round();
        round()
    };
    CHECK(2, forked || !ANY_PAIR(DIFFERENT));
    CHECK(3, !forked || NODES > 2 || DIFFERENT(0, 1));
    if
    :: ANY_PAIR(FORKED) ->
        d_step {
            STEP(12);
            make(head[MENDER], head[MENDER]);
            EACH(JOIN_OTHER);
            overwriting[MENDER] = made;
            EACH(GIVE);
            made = 0;
            conclude(MENDER);
            SAVE(MENDER, PUSHED);
            end_overwrite(MENDER)
        };
        CHECK(2, !ANY_PAIR(DIFFERENT))
    :: else -> skip
    fi;
done:
    skip
}
