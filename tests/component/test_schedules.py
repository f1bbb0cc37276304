#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Schedules of faults on three real nodes: cuts, deaths of lockstepd, clocks that step, disks that
are full, edits, applies, restores, overwrites, new keys, nodes that leave or are forgotten and join
again. What the simulator checks in one process is checked from outside here.

A seed is a schedule: which steps, where and in which order; how far each has got when the next
begins is the machine's. Several run one after another on one cluster, each from where the one
before has settled. Every answer is one that the schedule explains: only a node that was killed
may not answer, only where a disk is full may that be the reason of a refusal, and what was
answered with success stays in the history of each node that was named.

  test_schedules.py [--first N] [--count N]   (--first N --count 1: seed N alone, once more)
"""
import concurrent.futures
import contextlib
import difflib
import http.client
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import node
from backend import Backend
from cluster import HUB, QUICK, Cluster, head, join
from disk import SmallDisk
from lab import is_alive
from visit import serves

COUNT = 12
STEPS = 10
DISK_BYTES = 512 << 20
HOUR_MS = 3600000
OUT_OF_REACH = (OSError, http.client.HTTPException)


class Schedule:
    def __init__(self, seed, lab, published):
        """published: the revision since which there is something to visit."""
        self.seed, self.lab, self.published = seed, lab, published
        self.kept = {}  # what was answered with success: commit -> where it is stored
        self.random = random.Random(seed)
        self.fresh = itertools.count(seed * 2 * STEPS)  # a step edits twice at most
        self.began = time.monotonic()
        self.split = False
        self.down = set()
        self.shaky = set()  # was killed and was not seen ready since: need not answer
        self.cuts = set()
        self.full = set()
        self.off = set()  # its clock
        self.mover = self.random.choice(lab.nodes)  # who leaves, and comes back
        self.moved = self.away = False  # away: it may be no member
        self.refused = 0  # for a full disk
        self.told = []
        self.steps = [(6, self.apply), (3, self.cut), (2, self.part), (2, self.mend),
                      (2, self.kill), (2, self.take_down), (2, self.kill_in_apply),
                      (2, self.overwrite), (1, self.restore), (2, self.weight),
                      (1, self.new_key), (2, self.clock), (3, self.disk), (3, self.members)]

    def tell(self, text, *values):
        self.told.append("%6.2f %s" % (time.monotonic() - self.began, text % values))

    def up(self):
        """Where people work: one that is not down, unless all are."""
        return self.looked_at(self.random.choice(
            [n for n in self.lab.nodes if n not in self.down] or self.lab.nodes))

    def looked_at(self, one):
        with contextlib.suppress(*OUT_OF_REACH):
            if one in self.shaky and one not in self.down and one.ready():
                self.shaky.remove(one)
        return one

    def all_well(self):
        return not (self.cuts or self.down or self.shaky or self.full or self.away)

    # -- what people do ------------------------------------------------------------------------

    def call(self, one, statuses, method, target, body=None, headers=None):
        """None: nobody answered, or not ready yet, which only one that was killed may do. Any
        other answer is one of the statuses."""
        try:
            answer = one.api.call(method, target, body, headers)
        except OUT_OF_REACH as error:
            assert one in self.shaky, (one.name, method, target, error)
            return None
        if answer.status == 503 and self.is_for_a_full_disk(one, answer.json["detail"]):
            self.tell("%s: %s", one.name, answer.json["detail"])
            self.refused += 1
            return None
        if answer.status == 503 and one in self.shaky:
            assert answer.headers["Retry-After"], answer
            return None
        assert answer.status in statuses, (one.name, method, target, answer)
        return answer

    def is_for_a_full_disk(self, one, reason):
        return one in self.full and (
            "disk is full" in reason or "No space left on device" in reason)

    def keep(self, commit, nodes):
        self.kept.setdefault(commit, set()).update(nodes)

    def named(self, outcomes):
        """The nodes that have taken it."""
        ok = {outcome["node"] for outcome in outcomes if outcome["state"] == "ok"}
        return [one for one in self.lab.nodes if one.name in ok]

    def applied(self, one, edited):
        """edited: what the draft changes, else it may be empty; None: who knows."""
        answer = self.call(one, {200, 409}, "POST", "/api/v1/config/apply?wait=1", {})
        if answer is None:
            self.tell("%s: no answer", one.name)
            return
        task = answer.json
        if answer.status == 409 or (task["state"], task["code"]) == ("failed", "conflict"):
            self.start_again(one, answer)
            return
        if task["state"] == "failed" and any(
                self.is_for_a_full_disk(full, str(task)) for full in self.full):
            self.tell("%s: not applied: %s", one.name, task)
            self.refused += 1
            return
        if task["state"] == "failed" and {p["code"] for p in task["problems"]} == {"ahead"}:
            self.tell("%s: not applied, it lacks what another node has: %s", one.name, task)
            return
        assert task["state"] == "ok", (one.name, task)
        result = task["result"] or {}
        commit = result.get("commit")
        self.tell("%s: applied: %s", one.name, commit)
        assert commit is not None or not edited, task
        if commit is not None:
            self.keep(commit, [one] + self.named(result.get("nodes", [])))
            if edited:
                self.check_changed(one, commit, *edited)

    def start_again(self, one, refused):
        """The head moved under the draft, perhaps while the apply waited, and only then an
        apply is refused."""
        draft = self.call(one, {200}, "GET", "/api/v1/draft")
        self.tell("%s: draft discarded: %s", one.name, refused)
        assert draft is None or any(c["conflict"] for c in draft.json["changes"]), (refused, draft)
        self.call(one, {204}, "DELETE", "/api/v1/draft")

    def check_changed(self, one, commit, field, value):
        diff = self.call(one, {200}, "GET", "/api/v1/commits/%s/diff" % commit)
        if diff is not None:
            assert any(f["field"] == field and f["after"] == value
                       for o in diff.json["objects"] for f in o["fields"]), (field, value, diff)

    def edit(self, one):
        """What is in the draft then; None: nothing, or who knows."""
        value = 1000 + next(self.fresh) % 3000
        self.tell("%s: maxconn %d", one.name, value)
        seen = self.call(one, {200}, "GET", "/api/v1/haproxy")
        if seen is None:
            return None
        done = self.call(one, {200, 412}, "PATCH", "/api/v1/haproxy", {"maxconn": value},
                         {"If-Match": seen.headers["ETag"]})
        if done is not None and done.status == 412:
            now = self.call(one, {200}, "GET", "/api/v1/haproxy")
            assert now is None or now.headers["ETag"] != seen.headers["ETag"], (done, now)
            return None
        return ("maxconn", value) if done is not None else None

    def apply(self):
        one = self.up()
        self.applied(one, self.edit(one))

    def restore(self):
        one, which = self.up(), self.random.random()
        answer = self.call(one, {200}, "GET", "/api/v1/commits?limit=20")
        if answer is None:
            return
        commits = [c for c in answer.json["items"] if c["rev"] >= self.published]
        commit = commits[int(which * len(commits))]["id"]
        drafted = self.call(one, {200}, "GET", "/api/v1/draft")
        if drafted is None:
            return
        self.tell("%s: restore %s", one.name, commit)
        self.call(one, {409 if drafted.json["count"] else 200}, "POST",
                  "/api/v1/commits/%s/restore" % commit, {})
        self.applied(one, None)

    def weight(self):
        """Told in the note, too, so that it is another state each time."""
        one, value = self.up(), self.random.randrange(1, 100)
        note = "weight %d" % next(self.fresh)
        self.tell("%s: weight %d, %s", one.name, value, note)
        servers = self.call(one, {200}, "GET", "/api/v1/servers")
        if servers is None:
            return
        target = "/api/v1/servers/%s/state" % servers.json["items"][0]["name"]
        done = self.call(one, {200}, "PUT", target, {"weight": value, "note": note})
        if done is None:
            return
        stored = done.json["stored"]
        assert (stored["weight"], stored["note"]) == (value, note), done
        newest = self.call(one, {200}, "GET", "/api/v1/commits?limit=20")
        if newest is not None:
            commit = next(c["id"] for c in newest.json["items"] if c["node"] == one.name)
            self.check_changed(one, commit, "note", note)
            self.keep(commit, [one])

    def overwrite(self):
        one = self.up()
        answer = self.call(one, {200, 409} if self.all_well() else {200, 409, 503, 504},
                           "POST", "/api/v1/cluster/overwrite", {})
        self.tell("%s: overwrite: %s", one.name, answer)
        if answer is not None and answer.status == 200:
            self.overwritten(one, answer.json)

    def overwritten(self, one, done):
        """What it discarded is in the history of who did it."""
        self.keep(done["commit"], [one] + self.named(done["nodes"]))
        discarded = {n["discarded"] for n in done["nodes"]} - {None}
        for commit in discarded:
            self.keep(commit, [one])
        stored = self.call(one, {200}, "GET", "/api/v1/commits/" + done["commit"])
        assert stored is None or discarded <= set(stored.json["parents"]), (done, stored)

    def new_key(self):
        one = self.up()
        self.tell("%s: another key", one.name)
        self.call(one, {200}, "POST", "/api/v1/cluster/key")

    # -- who is a member -----------------------------------------------------------------------

    def members(self):
        """One leaves, or is forgotten, and joins again."""
        other = self.random.choice([n for n in self.lab.nodes if n is not self.mover])
        leaves = self.random.random() < 0.5
        if self.away:
            self.join(other)
        elif leaves:
            self.tell("%s: leaves", self.mover.name)
            self.moved = self.away = True
            self.call(self.looked_at(self.mover), {200}, "POST", "/api/v1/cluster/leave")
        else:
            self.tell("%s: forgets %s", other.name, self.mover.name)
            self.moved = self.away = True
            self.call(self.looked_at(other), {200}, "POST", "/api/v1/cluster/forget",
                      {"node": self.mover.name})

    def join(self, other):
        """A list of checks says why not: out of reach, or clocks that are off."""
        key = self.call(self.looked_at(other), {200}, "GET", "/api/v1/cluster/key")
        if key is None:
            return
        answer = self.call(
            self.looked_at(self.mover), {200, 409, 503}, "POST", "/api/v1/cluster/join",
            {name: key.json[name] for name in ("url", "key", "pin")})
        self.tell("%s: joins %s: %s", self.mover.name, other.name, answer)
        self.away = answer is None or answer.status != 200

    def known(self, one, other):
        return any(n["name"] == other.name for n in one.api.get("/api/v1/cluster")["nodes"])

    def is_agreed(self):
        """Whether the one that moved is a member: "in", "out"; None: they do not agree yet."""
        found = {self.known(*pair) for other in self.lab.nodes if other is not self.mover
                 for pair in ((self.mover, other), (other, self.mover))}
        return {(True,): "in", (False,): "out"}.get(tuple(found))

    def come_back(self):
        """All hear who is a member; who is none joins."""
        if node.wait_for(self.is_agreed, "all know whether it is a member") == "out":
            other = self.random.choice([n for n in self.lab.nodes if n is not self.mover])
            self.tell("%s: joins %s in the end", self.mover.name, other.name)
            join(self.mover, other)
            node.wait_for(lambda: self.is_agreed() == "in", "all know that it is a member")
        self.away = False

    # -- what happens --------------------------------------------------------------------------

    def cut(self):
        a, b = self.random.sample(self.lab.nodes, 2)
        one_way = self.random.random() < 0.5
        self.tell("cut %s %s %s", a.name, "->" if one_way else "-", b.name)
        self.cut_between(a, b, one_way)

    def cut_between(self, a, b, one_way=False):
        for way in [(a, b)] if one_way else [(a, b), (b, a)]:
            if way not in self.cuts:
                self.cuts.add(way)
                self.lab.cut(*way, one_way=True)

    def part(self):
        """One is cut off, and so it stays, or both sides are changed and it ends."""
        one, other = self.random.sample(self.lab.nodes, 2)
        changed = self.random.random() < 0.5
        self.tell("cut off %s", one.name)
        for away in self.lab.nodes:
            if away is not one:
                self.cut_between(one, away)
        if changed:
            for side in (self.looked_at(one), self.looked_at(other)):
                self.applied(side, self.edit(side))
            self.mend()

    def mend(self):
        self.tell("mend all")
        self.cuts.clear()
        self.lab.join_all()

    @staticmethod
    def kill_lockstepd(one):
        pids = one.pids("lockstepd")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait_for(lambda: not any(is_alive(pid) for pid in pids), "it is dead")

    def clock(self):
        """It steps to where it was or by hours, of a lockstepd that dies of it."""
        one, hours = self.up(), self.random.choice((-24, -1, 1, 24))
        hours = 0 if one in self.off else hours
        self.tell("%s: clock %+d h off", one.name, hours)
        self.set_clock(one, hours)

    def set_clock(self, one, hours):
        (self.off.add if hours else self.off.discard)(one)
        one.tune(clock_ahead_ms=hours * HOUR_MS)
        self.shaky.add(one)
        self.kill_lockstepd(one)
        if one not in self.down:
            one.wait_ready()

    def disk(self):
        """It is full, and so it stays, or there is room again. It is noticed at once, or by what
        comes."""
        one = self.random.choice(self.lab.nodes)
        leave = self.random.choice((0, 0, 8 << 10, 36 << 10))
        noticed = self.random.random() < 0.7
        if one in self.full:
            self.tell("%s: room again", one.name)
            self.full.remove(one)
            one.free()
        else:
            self.tell("%s: %d bytes left", one.name, leave)
            self.full.add(one)
            one.fill(leave)
            if noticed:
                self.applied(self.looked_at(one), self.edit(one))

    def kill(self):
        """lockstep-run starts it again. What comes next is asked before it is ready, or after."""
        one, waits = self.up(), self.random.random() < 0.5
        self.tell("%s: killed%s", one.name, ", and ready again" if waits else "")
        self.shaky.add(one)
        self.kill_lockstepd(one)
        if waits and one not in self.down:
            one.wait_ready()

    def take_down(self):
        one = self.random.choice(self.lab.nodes)
        if one in self.down:
            self.tell("%s: up", one.name)
            self.down.remove(one)
            one.put_up()
        else:
            self.tell("%s: down", one.name)
            one.pid_of("lockstepd")
            self.down.add(one)
            self.shaky.add(one)
            one.take_down("lockstepd")

    def kill_in_apply(self):
        one, polls, waits = self.up(), self.random.randrange(12), self.random.random() < 0.5
        if one not in self.down:
            one.wait_ready()
        self.tell("%s: to be killed in an apply, after %d looks", one.name, polls)
        self.shaky.add(one)
        edited = self.edit(one)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.applied, one, edited)
            for _ in range(polls):
                self.call(one, {200}, "GET", "/api/v1/status")
            self.kill_lockstepd(one)
            future.result()
        if waits and one not in self.down:
            one.wait_ready()

    # -- all -----------------------------------------------------------------------------------

    def run(self):
        weights, steps = zip(*self.steps)
        for step in self.random.choices(steps, weights, k=STEPS):
            step()
        self.mend()
        for one in self.down:
            one.put_up()
        self.down.clear()
        for one in self.full:
            one.free()
        self.full.clear()
        for one in self.lab.nodes:
            one.wait_ready()
        if self.moved:
            self.right_clocks()  # those that are apart do not join
            self.come_back()
        self.shaky.clear()
        self.settle()
        self.right_clocks()

    def right_clocks(self):
        for one in sorted(self.off, key=lambda n: n.name):
            self.set_clock(one, 0)
        self.shaky.clear()

    def relations(self):
        """Of each pair, when everybody answers."""
        found = {}
        for one in self.lab.nodes:
            for other in one.api.get("/api/v1/cluster")["nodes"]:
                assert other["answers"], (one.name, other)
                if not other["self"]:
                    found[one.name, other["name"]] = other["relation"]
        assert len(found) == 6, found
        return found

    def settled(self):
        relations = self.relations()
        assert set(relations.values()) <= {"in_step", "diverged"}, relations
        heads = [head(n) for n in self.lab.nodes]
        split = {(a.name, b.name) for (a, x), (b, y) in itertools.permutations(
            zip(self.lab.nodes, heads), 2) if x != y}
        assert split == {pair for pair, r in relations.items() if r == "diverged"}, relations
        return heads

    def settle(self):
        heads = node.wait_for(self.settled, "one head, or diverged", 30)
        for one in self.lab.nodes:
            one.api.expect(204, "DELETE", "/api/v1/draft")
        if len(set(heads)) > 1:
            self.end_split(heads)
        self.check()

    def end_split(self, heads):
        self.split = True
        named = [[c for c in one.api.get("/api/v1/cluster")["conditions"]
                  if c["name"] == "diverged"] for one in self.lab.nodes]
        assert all(named), "who is diverged is not told"
        assert node.wait_for(self.settled, "still diverged") == heads, "it ended by itself"
        one = self.up()
        self.tell("%s: overwrite in the end", one.name)
        done = one.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        self.overwritten(one, done)
        assert all(n["state"] == "ok" for n in done["nodes"]), done
        node.wait_for(lambda: set(self.settled()) == {done["commit"]}, "one head", 30)

    def shared_part(self, one):
        """Without what differs by rights: its name, address and folder."""
        text = one.config().replace(one.api.address, "ADDRESS").replace(one.root, "FOLDER")
        text = re.sub(r"\b%s\b" % one.name, "NAME", text)
        return re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", text)

    def check(self):
        configs = {self.shared_part(one) for one in self.lab.nodes}
        assert len(configs) == 1, "haproxy.cfg differs:\n" + "\n".join(
            difflib.unified_diff(*(text.splitlines() for text in sorted(configs)[:2])))
        self.check_kept(self.kept)
        states = [self.state_of_first(one) for one in self.lab.nodes]
        assert all(state == states[0] for state in states), states
        for one in self.lab.nodes:
            verified = one.api.get("/api/v1/verify")
            assert verified["ok"], verified
            with self.lab.client:
                node.wait_for(lambda o=one: serves("first.test", to=o.api.address), "a visitor")

    def state_of_first(self, one):
        """As it is decided, and HAProxy has it so."""
        name = one.api.get("/api/v1/servers")["items"][0]["name"]

        def taken():
            state = one.api.get("/api/v1/servers/%s/state" % name)
            assert state["running"] == "yes", (one.name, state)
            return state["stored"]
        return node.wait_for(taken, "HAProxy has the state")

    @staticmethod
    def check_kept(kept):
        for commit, nodes in kept.items():
            for one in nodes:
                answer = one.api.call("GET", "/api/v1/commits/" + commit)
                assert answer.status == 200, "%s was answered, and %s lost it: %r" % (
                    commit, one.name, answer)


class Schedules(unittest.TestCase):
    first, count = 1, COUNT

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, node_type=SmallDisk, disk_bytes=DISK_BYTES,
                          tunables=dict(QUICK, sync_call_ms=15000))
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        old = cls.lab.nodes[0]
        old.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://first.test", "to": [cls.backend.target]})
        task = old.api.apply()
        assert task["state"] == "ok", task
        cls.published = task["result"]["rev"]
        for one in cls.lab.nodes[1:]:
            join(one, old)

    def test_after_each_schedule_all_are_in_step_and_nothing_is_lost(self):
        kept, splits, moves, refusals = {}, 0, 0, 0
        for seed in range(self.first, self.first + self.count):
            schedule = Schedule(seed, self.lab, self.published)
            try:
                schedule.run()
            except Exception as error:
                logs = ["%s:\n%s" % (n.name, n.log()[-3000:]) for n in self.lab.nodes]
                raise AssertionError(
                    "seed %d: %s\n%s\n%s\nagain: %s --first %d --count 1" % (
                        seed, error, "\n".join(schedule.told), "\n".join(logs), sys.argv[0],
                        seed)) from error
            kept.update(schedule.kept)
            splits += schedule.split
            moves += schedule.moved
            refusals += schedule.refused
            print("seed %d: %.1f s, %d kept, %s, %s, %d refused for a full disk" % (
                seed, time.monotonic() - schedule.began, len(schedule.kept),
                "split" if schedule.split else "no split",
                "one moved" if schedule.moved else "none moved", schedule.refused), flush=True)
        if self.count >= COUNT:
            self.assertGreater(len(kept), 2 * self.count, "these schedules prove too little")
            for found in (splits, moves, refusals):
                self.assertGreater(found, 0, "these schedules prove too little")
        Schedule.check_kept(kept)
        for one in self.lab.nodes:
            one.stop()
            said = subprocess.run(
                [os.path.join(node.BUILD, "lockstepd"), "--state-dir", one.state, "--verify"],
                capture_output=True, text=True, check=False)
            self.assertEqual(said.returncode, 0, said)


def read_options(argv):
    """Ours are taken out; what is left is for unittest."""
    for name in ("first", "count"):
        if "--" + name in argv:
            at = argv.index("--" + name)
            setattr(Schedules, name, int(argv[at + 1]))
            del argv[at:at + 2]


if __name__ == "__main__":
    read_options(sys.argv)
    node.private_network()
    node.private_folders()
    unittest.main(verbosity=2)
