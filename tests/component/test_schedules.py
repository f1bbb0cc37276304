#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Schedules of faults on three real nodes: cuts, deaths of lockstepd, edits, applies, restores,
overwrites, new keys. What the simulator checks in one process is checked from outside here.

A seed is a schedule: which steps, where and in which order; how far each has got when the next
begins is the machine's. Several run one after another on one cluster, each from where the one
before has settled.

  test_schedules.py [--first N] [--count N]
"""
import concurrent.futures
import contextlib
import difflib
import http.client
import itertools
import os
import random
import re
import subprocess
import sys
import unittest

import node
from backend import Backend
from cluster import HUB, Cluster
from visit import serves

TUNABLES = {"sync_round_ms": 100, "sync_health_ms": 500, "sync_again_ms": 500,
            "sync_call_ms": 15000}
COUNT = 12
STEPS = 9
OUT_OF_REACH = (OSError, http.client.HTTPException)


def head(one):
    return one.api.get("/api/v1/status")["head"]["id"]


class Schedule:
    def __init__(self, seed, lab, published):
        """published: the revision since which there is something to visit."""
        self.seed, self.lab, self.published, self.acked = seed, lab, published, []
        self.random = random.Random(seed)
        self.split = False
        self.down = set()
        self.cuts = set()
        self.told = []
        self.steps = [(6, self.apply), (3, self.cut), (2, self.cut_off), (2, self.mend),
                      (2, self.kill), (2, self.take_down), (2, self.kill_in_apply),
                      (2, self.overwrite), (1, self.restore), (1, self.weight),
                      (1, self.new_key)]

    def tell(self, text, *values):
        self.told.append(text % values)

    def one(self):
        return self.random.choice(self.lab.nodes)

    # -- what people do ------------------------------------------------------------------------

    def call(self, one, method, target, body=None):
        """None: nobody answered. What a caller can cause is never answered with 500."""
        try:
            answer = one.api.call(method, target, body)
        except OUT_OF_REACH:
            return None
        assert answer.status != 500, (method, target, answer)
        return answer

    def applied(self, one):
        answer = self.call(one, "POST", "/api/v1/config/apply?wait=1", {})
        if answer is None or answer.status != 200 or answer.json["state"] != "ok":
            return "not applied: %r" % (answer,)
        commit = (answer.json["result"] or {}).get("commit")
        if commit is not None:
            self.acked.append(commit)
        return "applied: %s" % commit

    def edit(self, one):
        value = 1000 + self.random.randrange(1000)
        with contextlib.suppress(*OUT_OF_REACH, AssertionError):
            one.api.patch("/api/v1/haproxy", maxconn=value)
        return value

    def apply(self):
        one = self.one()
        self.tell("%s: maxconn %d", one.name, self.edit(one))
        self.tell(self.applied(one).replace("%", "%%"))

    def restore(self):
        one, which = self.one(), self.random.random()
        answer = self.call(one, "GET", "/api/v1/commits?limit=20")
        if answer is None or answer.status != 200:
            return
        commits = [c for c in answer.json["items"] if c["rev"] >= self.published]
        if not commits:
            return
        commit = commits[int(which * len(commits))]["id"]
        self.tell("%s: restore %s", one.name, commit)
        self.call(one, "POST", "/api/v1/commits/%s/restore" % commit, {})
        self.tell(self.applied(one).replace("%", "%%"))

    def weight(self):
        one, value = self.one(), self.random.randrange(1, 100)
        self.tell("%s: weight %d", one.name, value)
        servers = self.call(one, "GET", "/api/v1/servers")
        if servers is not None and servers.status == 200 and servers.json["items"]:
            self.call(one, "PUT", "/api/v1/servers/%s/state" % servers.json["items"][0]["name"],
                      {"weight": value})

    def overwrite(self):
        one = self.one()
        answer = self.call(one, "POST", "/api/v1/cluster/overwrite", {})
        self.tell("%s: overwrite: %s", one.name, answer)

    def new_key(self):
        one = self.one()
        self.tell("%s: another key", one.name)
        self.call(one, "POST", "/api/v1/cluster/key", {})

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

    def cut_off(self):
        one = self.one()
        self.tell("cut off %s", one.name)
        for other in self.lab.nodes:
            if other is not one:
                self.cut_between(one, other)

    def mend(self):
        self.tell("mend all")
        self.cuts.clear()
        self.lab.join_all()

    def kill(self):
        """lockstep-run starts it again."""
        one = self.one()
        self.tell("%s: killed", one.name)
        for pid in one.pids("lockstepd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)

    def take_down(self):
        one = self.one()
        if one in self.down:
            self.tell("%s: up", one.name)
            self.down.remove(one)
            one.put_up()
        elif one.pids("lockstepd"):
            self.tell("%s: down", one.name)
            self.down.add(one)
            one.take_down("lockstepd")

    def kill_in_apply(self):
        one, polls = self.one(), self.random.randrange(12)
        self.tell("%s: killed in an apply, after %d looks; maxconn %d", one.name, polls,
                  self.edit(one))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.applied, one)
            for _ in range(polls):
                self.call(one, "GET", "/api/v1/status")
            for pid in one.pids("lockstepd"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            self.tell(future.result().replace("%", "%%"))

    # -- all -----------------------------------------------------------------------------------

    def run(self):
        weights, steps = zip(*self.steps)
        for step in self.random.choices(steps, weights, k=STEPS):
            step()
        self.mend()
        for one in self.down:
            one.put_up()
        self.down.clear()
        self.settle()

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
        for one in self.lab.nodes:
            one.wait_ready()
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
        one = self.one()
        self.tell("%s: overwrite in the end", one.name)
        done = one.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
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
        self.check_kept(self.acked)
        for one in self.lab.nodes:
            verified = one.api.get("/api/v1/verify")
            assert verified["ok"], verified
            with self.lab.client:
                node.wait_for(lambda o=one: serves("first.test", to=o.api.address), "a visitor")


    def check_kept(self, commits):
        for commit in commits:
            assert any(one.api.call("GET", "/api/v1/commits/" + commit).status == 200
                       for one in self.lab.nodes), "%s was applied, and is lost" % commit


class Schedules(unittest.TestCase):
    first, count = 1, COUNT

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=TUNABLES)
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
        key = old.api.get("/api/v1/cluster/key")
        for one in cls.lab.nodes[1:]:
            one.api.expect(200, "POST", "/api/v1/cluster/join",
                           {"url": key["url"], "key": key["key"], "pin": key["pin"]})
            one.api.key = old.api.key  # the keys are those of the cluster now

    def test_after_each_schedule_all_are_in_step_and_nothing_is_lost(self):
        acked = []
        for seed in range(self.first, self.first + self.count):
            schedule = Schedule(seed, self.lab, self.published)
            try:
                schedule.run()
            except Exception as error:
                logs = ["%s:\n%s" % (n.name, n.log()[-3000:]) for n in self.lab.nodes]
                raise AssertionError(
                    "seed %d: %s\n%s\n%s\nagain: test_schedules.py --first %d --count 1" % (
                        seed, error, "\n".join(schedule.told), "\n".join(logs), seed)) from error
            acked += schedule.acked
            print("seed %d: %d applied, %s" % (
                seed, len(schedule.acked), "split" if schedule.split else "no split"), flush=True)
        self.assertGreater(len(acked), self.count)
        schedule.check_kept(acked)
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
    unittest.main(verbosity=2)
