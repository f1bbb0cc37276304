#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Overwrites of three real nodes: two at once, of which one wins whoever is the lone one; some of
several; and what is said of one that fails."""
import concurrent.futures
import itertools
import socket
import threading
import unittest

import node
from cluster import TUNABLES, Cluster, head, in_step, join, seen
from direct import stopped
from lab import wait_for

PATH = "/api/v1/cluster/overwrite"
VIP = "10.77.0.200"


def publish(one, name):
    one.api.expect(200, "POST", "/api/v1/publish",
                   {"url": "http://%s.test" % name, "to": ["http://10.77.0.1:1"]})
    task = one.api.apply()
    assert task["state"] == "ok", task
    return task["result"]["commit"]


def set_to(one, other, relation):
    wait_for(lambda: seen(one, other)["relation"] == relation,
             "%s sees %s as %s" % (one.name, other.name, relation))


class Three(unittest.TestCase):
    tunables = TUNABLES

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=cls.tunables)
        cls.addClassCleanup(cls.lab.close)
        cls.nodes = cls.lab.set_up().nodes
        for one in cls.nodes:
            one.api.unlock = True  # there is no VIP
        publish(cls.nodes[0], "first")
        for other in cls.nodes[1:]:
            join(other, cls.nodes[0])
        in_step(cls.nodes)


class Duel(Three):
    def split(self, lone, rest, name):
        """Both sides are changed apart; their heads then."""
        for other in rest:
            self.lab.cut(lone, other)
        heads = [publish(lone, name + "lone"), publish(rest[0], name + "rest")]
        in_step(rest)
        self.lab.join_all()
        wait_for(lambda: all(seen(a, b)["relation"] == "diverged" for a, b in
                             [(lone, other) for other in rest] + [(other, lone) for other in rest]),
                 "all have seen that they diverged")
        return heads

    @staticmethod
    def press(both, late):
        """Their answers; the second one presses so many seconds later."""
        barrier = threading.Barrier(2)

        def one(which):
            barrier.wait()
            threading.Event().wait(late * which)
            return both[which].api.call("POST", PATH, {})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, range(2)))

    def duel(self, lone, rival, late, name):
        rest = sorted((n for n in self.nodes if n is not lone), key=lambda n: n is not rival)
        heads = self.split(lone, rest, name)
        both = [lone, rival] if late % 2 == 0 else [rival, lone]
        answers = self.press(both, late * 0.03)
        self.assertEqual(sorted(a.status for a in answers), [200, 409], answers)
        won = next(i for i, a in enumerate(answers) if a.status == 200)
        loser = answers[1 - won].json
        self.assertIn(loser["code"], ("overwrite_in_progress", "moved", "conflict"), loser)
        in_step(self.nodes)
        # What the one had is there, and what the other had is in its history.
        commit = answers[won].json["commit"]
        self.assertEqual(head(lone), commit)
        side = "lone" if both[won] is lone else "rest"
        self.assertEqual(
            [s["name"] for s in lone.api.get("/api/v1/services?limit=1000")["items"]
             if s["name"].startswith(name)], ["%s%s.test" % (name, side)])
        for one in self.nodes:
            for discarded in heads:
                one.api.expect(200, "GET", "/api/v1/commits/" + discarded)

    def test_one_of_two_wins_whoever_is_the_lone_one(self):
        for late in range(3):
            for i, lone in enumerate(self.nodes):
                rival = self.nodes[(i + 1 + late % 2) % 3]
                with self.subTest(lone=lone.name, rival=rival.name, late=late):
                    self.duel(lone, rival, late, "d%d%d" % (late, i))


class Told(Three):
    tunables = dict(TUNABLES, sync_health_ms=3000, sync_read_ms=4000)

    def apart(self, name, nodes):
        """Each of these is changed alone, and all see that."""
        for a, b in itertools.combinations(self.nodes, 2):
            self.lab.cut(a, b)
        heads = {one.name: publish(one, name + one.name) for one in nodes}
        self.lab.join_all()
        for a, b in itertools.permutations(nodes, 2):
            set_to(a, b, "diverged")
        return heads

    def refused(self, one, status, code, body):
        answer = one.api.expect(status, "POST", PATH, body)
        self.assertEqual(answer["code"], code, answer)
        return answer

    def test_1_one_named_node_of_two_that_diverged(self):
        a, b, c = self.nodes
        heads = self.apart("named", self.nodes)
        done = a.api.expect(200, "POST", PATH, {"nodes": [b.name]})
        self.assertEqual([(n["node"], n["discarded"], n["state"]) for n in done["nodes"]],
                         [(b.name, heads[b.name], "ok")])
        self.assertRegex(a.cli("show", done["commit"]).stdout,
                         r"(?m)^discarded +\d+@\w{8} of n2: ")
        in_step([a, b])
        self.assertEqual((head(a), head(c)), (done["commit"], heads[c.name]))
        set_to(a, c, "diverged")
        set_to(b, c, "diverged")
        # Who is in step has nothing that would be discarded.
        self.assertEqual(self.refused(a, 409, "conflict", {"nodes": [b.name]}).get("nodes"), [])
        a.api.expect(200, "POST", PATH, {})
        in_step(self.nodes)

    def test_2_one_that_is_ahead_only_by_its_name(self):
        a, b, _c = self.nodes
        a.api.patch("/api/v1/node", keep_in_step=False)
        self.assertEqual(a.api.apply()["state"], "ok")
        self.lab.cut(a, b)
        self.lab.cut(a, self.nodes[2])
        ahead = publish(b, "ahead")
        self.lab.join_all()
        set_to(a, b, "ahead")
        # An apply would make them diverge, for all to see only when it is done.
        before = head(a)
        a.api.patch("/api/v1/haproxy", maxconn=3777)
        task = a.api.expect(200, "POST", "/api/v1/config/apply?wait=1", {})
        self.assertEqual((task["state"], head(a)), ("failed", before), task)
        self.assertIn((b.name, "ahead"), {(p["node"], p["code"]) for p in task["problems"]})
        a.api.expect(204, "DELETE", "/api/v1/draft")
        self.refused(a, 409, "conflict", {})
        done = a.api.expect(200, "POST", PATH, {"nodes": [b.name]})
        self.assertEqual([(n["node"], n["discarded"], n["state"]) for n in done["nodes"]],
                         [(b.name, ahead, "ok")])
        a.api.patch("/api/v1/node", keep_in_step=True)
        self.assertEqual(a.api.apply()["state"], "ok")
        in_step(self.nodes)
        self.assertEqual(head(a), done["commit"])

    def test_3_content_that_one_of_them_cannot_run_changes_none(self):
        a, b, c = self.nodes
        for one in (b, c):
            self.lab.cut(a, one)
        self.lab.cut(b, c)
        a.api.create("listeners", name="taken", port=8181)
        self.assertEqual(a.api.apply()["state"], "ok")
        for one in (b, c):
            publish(one, "taken" + one.name)
        self.lab.join_all()
        for other in (b, c):
            set_to(a, other, "diverged")
        heads = [head(n) for n in self.nodes]
        with c.ns:
            taker = socket.create_server(("", 8181))
        with taker:
            answer = self.refused(a, 422, "invalid", {})
            self.assertIn("8181", answer["detail"])
            self.assertEqual(
                {n["node"]: (n["state"], n["code"]) for n in answer["nodes"]},
                {b.name: ("skipped", ""), c.name: ("failed", "invalid")})
            errors = next(n for n in answer["nodes"] if n["node"] == c.name)["errors"]
            self.assertEqual([(e["kind"], e["name"], e["node"], e["severity"]) for e in errors],
                             [("listener", "taken", c.name, "error")])
            self.assertEqual([head(n) for n in self.nodes], heads)
            told = a.cli("--unlock", "overwrite", "--yes")
            self.assertEqual(told.returncode, 1, told)
            self.assertIn("%s: failed (invalid): " % c.name, told.stderr)
            self.assertIn("%s: skipped" % b.name, told.stderr)
        a.api.expect(200, "POST", PATH, {})
        in_step(self.nodes)

    def test_4_one_that_does_not_answer_in_time_is_no_conflict(self):
        a, b, _c = self.nodes
        self.apart("late", [a, b])
        before = head(a)
        with stopped(b.pids("lockstepd")[0]):
            answer = a.api.expect(504, "POST", PATH, {"nodes": [b.name]})
        self.assertEqual(answer["code"], "timeout", answer)
        self.assertEqual([(n["node"], n["state"], n["code"]) for n in answer["nodes"]],
                         [(b.name, "failed", "timeout")])
        self.assertEqual(head(a), before)
        wait_for(lambda: seen(a, b)["answers"], "it answers again")
        a.api.expect(200, "POST", PATH, {})
        in_step(self.nodes)

    def test_5_the_runbook_where_the_node_that_is_right_does_not_hold_the_vip(self):
        a, b, _c = self.nodes
        a.api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        self.assertEqual(a.api.apply()["state"], "ok")
        in_step(self.nodes)
        self.lab.vip(a, VIP)
        right = self.apart("right", [a, b])[b.name]
        wait_for(lambda: b.api.get("/api/v1/cluster")["edit"] == "elsewhere", "a holds it")
        self.assertEqual(b.api.call("POST", PATH, {}).status, 423)
        done = a.api.expect(200, "POST", PATH, {})
        name = next(n["discarded_name"] for n in done["nodes"] if n["discarded"] == right)
        for words in (["restore", name], ["apply"]):
            told = a.cli(*words)
            self.assertEqual(told.returncode, 0, told)
        in_step(self.nodes)
        self.assertEqual(
            [s["name"] for s in b.api.get("/api/v1/services?limit=1000")["items"]
             if s["name"].startswith("right")], ["right%s.test" % b.name])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
