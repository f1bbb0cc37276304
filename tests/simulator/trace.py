#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""trace.py accept [--first N] [--seeds N] [--seed N] | long SEEDS [FIRST] | mutations | again

accept: runs the simulator and judges each line of its trace (tests/simulator/trace.h): by the
graph of all commits, which is kept here, and the table that relation_table prints. Only what the
table says may have been done. long: the same of many, each processor with its part; FIRST: where a
run that was ended goes on. mutations: of each decision spoilt, the judgement must fall. again: a
seed is a schedule: it gives the same trace twice.
"""
import concurrent.futures
import contextlib
import difflib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
SIMULATE = BUILD / "tests/simulate"
TABLE = BUILD / "tests/relation_table"
# Seeds in which each mutation is to be seen; that two overwrites meet is rare.
MUTATION_SEEDS = 400
SEED_TWICE = 47
DIFFERENCE_LINES = 60
SHARD = 1000  # seeds, whole clusters
LONG_FIRST = 10001  # those of every run come before
WANTED = {"saw", "heal", "read", "take", "head", "commit", "done"}


class Refused(Exception):
    schedule = ""  # of that seed


class Failed(Exception):
    pass


class Table:
    """What relation_table prints: names and rows, indexed as its macros say."""

    def __init__(self):
        text = subprocess.run([TABLE], check=True, capture_output=True, text=True).stdout
        self.number = {name: int(value) for name, value in
                       re.findall(r"^#define ([A-Z_]+) (\d+)$", text, re.MULTILINE)}
        rows = dict(re.findall(r"^hidden byte (\w+)\[\d+\] = \{ (.*) \};$", text, re.MULTILINE))
        self.rows = {name: [int(v) for v in row.split(", ")] for name, row in rows.items()}
        self.names = {}
        for name, value in self.number.items():
            self.names.setdefault(name.split("_")[0], {})[value] = name

    def relation(self, same, peer_ancestor, self_ancestor, same_fp, newer, order):
        return self.rows["relation_table"][
            same + 2 * peer_ancestor + 4 * self_ancestor + 8 * same_fp + 16 * newer
            + 32 * (order + 1)]

    def heal(self, relation, keeps, backs_off):
        return self.rows["heal_table"][4 * relation + keeps + 2 * backs_off]

    def verdict(self, relation, overwrites, expected, outranks):
        return self.rows["verdict_table"][
            8 * relation + overwrites + 2 * expected + 4 * outranks]

    def name(self, prefix, value):
        return self.names[prefix].get(value, str(value))


class Commit:
    def __init__(self, graph, number, commit_id, rev, schema, fp, parents):
        self.number, self.schema = number, schema
        self.order = (rev, commit_id)
        self.fp = (fp, schema)
        self.ancestors = 1 << number  # a set of numbers, its own among them
        for parent in parents:
            self.ancestors |= graph[parent].ancestors
        highest = max((graph[p].order[0] for p in parents), default=0)
        if rev != highest + 1:
            raise Refused("commit %d has revision %d, its parents %d" % (number, rev, highest))

    def has(self, other):
        """Whether the other is an ancestor of it, or it itself."""
        return bool(self.ancestors >> other.number & 1)


class Judge:
    def __init__(self, table):
        self.table = table
        self.schema = 0
        self.seed = None
        self.notes = []  # of this seed
        self.seen = set()
        self.graph = []
        self.heads, self.taken, self.rounds = {}, {}, {}
        self.lines = {name: getattr(self, "on_" + name) for name in (
            "schema", "cluster", "seed", "commit", "head", "round", "done", "saw", "heal", "read",
            "take")}

    def line(self, text):
        name, *fields = text.split()
        if name == "note":
            self.notes.append(text[len("note "):])
            return
        self.seen.add(name)
        self.lines[name](*fields)

    # -- the graph -----------------------------------------------------------------------------

    def on_schema(self, number):
        self.schema = int(number)

    def on_cluster(self, _nodes):
        self.graph = []
        self.heads, self.taken, self.rounds = {}, {}, {}

    def on_seed(self, seed):
        self.seed = seed
        self.notes = []

    def on_commit(self, number, commit_id, rev, schema, fp, *parents):
        if int(number) != len(self.graph):
            raise Refused("commit %s comes out of turn" % number)
        self.graph.append(Commit(self.graph, int(number), commit_id, int(rev), int(schema), fp,
                                 [int(p) for p in parents]))

    def commit(self, number):
        if int(number) >= len(self.graph):
            raise Refused("a commit that nobody has")
        return self.graph[int(number)]

    def relation(self, own, other):
        return self.table.relation(
            own is other, other is not own and own.has(other),
            other is not own and other.has(own), own.fp == other.fp,
            other.schema > self.schema,
            (own.order > other.order) - (own.order < other.order))

    def judge_relation(self, own, other, judged):
        right = self.relation(own, other)
        if judged != right:
            raise Refused("%d was judged %s to %d, and is %s" % (
                other.number, self.table.name("REL", judged), own.number,
                self.table.name("REL", right)))

    # -- what was done -------------------------------------------------------------------------

    def on_head(self, node, number):
        """A head goes on to what follows from it, or to what was rightly taken over."""
        to = self.commit(number)
        former = self.heads.get(node)
        ways = self.taken.pop(node, [])
        if former is not None and not to.has(former) and not any(
                own.has(former) and to.has(taken) for own, taken in ways):
            raise Refused("node %s went from %d to %d" % (node, former.number, to.number))
        self.heads[node] = to

    def on_round(self, node):
        self.rounds[node] = {"saw": set(), "heal": [], "read": False}

    def on_saw(self, node, own, other, relation):
        own, other = self.commit(own), self.commit(other)
        self.judge_relation(own, other, int(relation))
        now = self.rounds[node]
        if now["heal"]:  # after it took something over, it asks again
            self.judge_healing(node)
            self.on_round(node)
            now = self.rounds[node]
        now["saw"].add(int(relation))

    def on_heal(self, node, relation, keeps, backs_off, action):
        now = self.rounds[node]
        relation, action = int(relation), int(action)
        right = self.table.heal(relation, int(keeps), int(backs_off))
        if action != right:
            raise Refused("node %s does %s, and should %s" % (
                node, self.table.name("HEAL", action), self.table.name("HEAL", right)))
        if relation not in now["saw"]:
            raise Refused("node %s acts on what it did not see" % node)
        now["heal"].append((relation, action))

    def on_read(self, node):
        if node in self.rounds:
            self.rounds[node]["read"] = True

    def judge_healing(self, node):
        """It asked for what it lacks when it should, and nothing held it back."""
        now = self.rounds[node]
        nothing = self.table.number["HEAL_NOTHING"]
        held = {relation for relation, action in now["heal"] if action == nothing}
        wanted = {relation for relation, action in now["heal"] if action != nothing} - held
        if wanted and not now["read"]:
            raise Refused("node %s saw %s and asked nobody" % (node, [
                self.table.name("REL", r) for r in wanted]))

    def on_done(self, node):
        self.judge_healing(node)
        del self.rounds[node]

    def on_take(self, node, how, own, offered, expected, outranks, relation, verdict, result):
        own, offered = self.commit(own), self.commit(offered)
        self.judge_relation(own, offered, int(relation))
        right = self.table.verdict(int(relation), expected != "-", expected == str(own.number),
                                   int(outranks))
        if int(verdict) != right:
            raise Refused("node %s says %s to %d, and should %s" % (
                node, self.table.name("PUSH", int(verdict)), offered.number,
                self.table.name("PUSH", right)))
        name = self.table.name("PUSH", right)
        if how == "pulled" and result == "begun" and self.table.heal(
                int(relation), 1, 0) == self.table.number["HEAL_NOTHING"]:
            raise Refused("node %s takes %d over of its own accord" % (node, offered.number))
        allowed = {"PUSH_SAME": {"same"}, "PUSH_ADVANCE": {"begun", "failed"},
                   "PUSH_ADOPT_EQUAL": {"begun", "failed"}}.get(name, {"refused"})
        if how == "joined" and name == "PUSH_DIVERGED":
            allowed = {"begun", "failed"}
        if how == "joined" and name == "PUSH_STALE":
            allowed = {"same"}
        if result not in allowed:
            raise Refused("node %s says %s, and it ends as %s" % (node, name, result))
        if result == "begun":
            self.taken.setdefault(node, []).append((own, offered))


@contextlib.contextmanager
def traced(options):
    """The simulator, the lines of its trace as it writes them, and a file of what it says, which
    nothing keeps it from saying. Its threads take turns, so they do it on one processor, which
    is that of its part where there are several."""
    readable, writable = os.pipe()
    with os.fdopen(readable, encoding="ascii", errors="replace") as lines, \
            tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [SIMULATE, "--trace", "/proc/self/fd/%d" % writable, *options], pass_fds=[writable],
            stdout=said)
        os.close(writable)
        allowed = sorted(os.sched_getaffinity(0))
        part = int(options[options.index("--first") + 1]) // SHARD if "--first" in options else 0
        os.sched_setaffinity(process.pid, {allowed[part % len(allowed)]})
        try:
            yield process, lines, said
        finally:
            process.kill()
            process.wait()


def judge(options):
    """What the simulator said and how it ended; Refused with the seed."""
    judge_of = Judge(Table())
    with traced(options) as (process, lines, said):
        try:
            for text in lines:
                judge_of.line(text)
        except Refused as refused:
            named = Refused("seed %s: %s: \"%s\"" % (judge_of.seed, refused, text.strip()))
            named.schedule = "".join(judge_of.notes)
            raise named from None
        status = process.wait()
        said.seek(0)
        return said.read(), status, judge_of.seen


def accept(options):
    print(accepted(options), end="", flush=True)


def accepted(options):
    try:
        said, status, seen = judge(options)
    except Refused as refused:
        raise Failed("%s%s\nagain: tests/simulator/trace.py accept --seed %s" % (
            refused.schedule, refused, str(refused).split(":")[0][5:])) from None
    if status != 0:
        raise Failed("%ssimulate ended with %d" % (said, status))
    if WANTED - seen and "--seed" not in options:
        raise Failed("these never came up: %s" % (WANTED - seen))
    return said


def long(seeds, first=LONG_FIRST):
    began = time.monotonic()
    firsts = range(first, first + seeds, SHARD)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        parts = [pool.submit(accepted, ["--first", str(part), "--seeds", str(SHARD)])
                 for part in firsts]
        try:
            for part in parts:
                print(part.result(), end="", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    took = time.monotonic() - began
    print("%d seeds held and were accepted, %.1f a second" % (SHARD * len(parts),
                                                              SHARD * len(parts) / took))


def mutations():
    names = subprocess.run([TABLE, "--list"], check=True, capture_output=True, text=True).stdout
    for name in names.split():
        try:
            judge(["--mutate", name, "--seeds", str(MUTATION_SEEDS)])
        except Refused as refused:
            print("%s: %s" % (name, refused), flush=True)
        else:
            raise Failed("%s was not noticed in the trace" % name)


def again():
    traces = []
    for _ in range(2):
        with traced(["--seed", str(SEED_TWICE)]) as (process, lines, said):
            traces.append(lines.read())
            status = process.wait()
            said.seek(0)
            if status != 0:
                raise Failed("%ssimulate ended with %d" % (said.read(), status))
    if traces[0] != traces[1] or not traces[0]:
        differs = difflib.unified_diff(*(t.splitlines() for t in traces), lineterm="", n=8)
        raise Failed("seed %d gave another schedule the second time\n%s" % (
            SEED_TWICE, "\n".join(itertools.islice(differs, DIFFERENCE_LINES))))


def main(argv):
    if argv[:1] == ["accept"]:
        accept(argv[1:])
    elif argv[:1] == ["long"] and len(argv) in (2, 3) and all(a.isdigit() for a in argv[1:]):
        long(*map(int, argv[1:]))
    elif argv == ["mutations"]:
        mutations()
    elif argv == ["again"]:
        again()
    else:
        raise Failed(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failed as failed:
        sys.exit("trace.py: %s" % failed)
