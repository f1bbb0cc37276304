#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the other nodes of a cluster say of an apply before it is made."""
import json
import os
import re
import signal
import socket
import unittest

import node
from checker import Checker
from cluster import ASKING, TUNABLES, Cluster, edges, head, in_step, join, seen
from thief import Thief
from traces import traces_of

JSON = {"Content-Type": "application/json"}
TRIED = ("activate", "load", "verify")  # states of a trial, on the node that is on trial


class Three(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checker = Checker()
        cls.addClassCleanup(cls.checker.close)
        cls.lab = Cluster(3, tunables=TUNABLES, haproxy=cls.checker.path)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
            with open(os.path.join(one.state, "name"), "w", encoding="ascii") as file:
                file.write(one.name)
        for other in (cls.b, cls.c):
            join(other, cls.a)

    def setUp(self):
        self.a.api.expect(204, "DELETE", "/api/v1/draft")
        in_step(self.lab.nodes)

    def checks(self):
        return [self.checker.count(n.name) for n in self.lab.nodes]

    def steps_of(self, task):
        return [s["name"] for s in task["steps"]]

    def apply(self, **body):
        return self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1", body)

    def taken_port(self, one, port):
        with one.ns:
            taken = socket.create_server(("0.0.0.0", port))
        self.addCleanup(taken.close)

    def test_1_each_node_runs_the_checker_once(self):
        before = self.checks()
        self.a.api.patch("/api/v1/haproxy", maxconn=3000)
        task = self.apply()
        self.assertEqual(task["state"], "ok", json.dumps(task, indent=1))
        self.assertEqual({n["node"]: n["state"] for n in task["result"]["checked"]},
                         {"n2": "ok", "n3": "ok"})
        after = self.checks()
        self.assertEqual([y - x for x, y in zip(before, after)], [1, 1, 1])
        self.assertEqual({head(n) for n in self.lab.nodes}, {task["result"]["commit"]})

    def test_2_a_port_taken_on_one_node_stops_it_everywhere(self):
        self.taken_port(self.b, 8099)
        self.a.api.create("listeners", name="extra", port=8099, addresses=["0.0.0.0"])
        before = [traces_of(n) for n in self.lab.nodes]
        task = self.apply()
        self.assertEqual((task["state"], task["code"]), ("failed", "invalid"), task)
        self.assertEqual(self.steps_of(task)[-1], "peers")
        self.assertIn("n2", task["message"])
        problem = task["problems"][0]
        self.assertEqual([problem[k] for k in ("node", "kind", "name", "pointer", "code")],
                         ["n2", "listener", "extra", "/port", "bind"])
        self.assertEqual({n["node"]: n["state"] for n in task["result"]["checked"]},
                         {"n2": "failed", "n3": "ok"})
        for one, was in zip(self.lab.nodes[1:], before[1:]):
            self.assertEqual(traces_of(one), was, one.name)
        # Its own check gave the applying node a generation, as any apply does.
        now = traces_of(self.a)
        del now["rows"], before[0]["rows"]
        self.assertEqual(now, before[0])
        draft = self.a.api.get("/api/v1/draft")
        self.assertEqual([c["name"] for c in draft["changes"]], ["extra"])

    def test_3_the_node_may_be_left_out(self):
        self.taken_port(self.b, 8098)
        self.a.api.create("listeners", name="more", port=8098, addresses=["0.0.0.0"])
        unknown = self.a.api.raw("POST", "/api/v1/config/apply?wait=1",
                                 json.dumps({"skip_nodes": ["n2", "n9"]}), JSON)
        self.assertEqual(unknown.status, 422)
        self.assertEqual([p["pointer"] for p in unknown.json["errors"]], ["/skip_nodes/1"])
        refused = self.a.cli("apply", "--unlock")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("on n2: listener more /port: ", refused.stderr)
        done = self.a.cli("apply", "--unlock", "--skip-node", "n2")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        task = self.a.api.get("/api/v1/tasks")["items"][0]
        self.assertEqual({n["node"]: n["code"] for n in task["result"]["checked"]},
                         {"n2": "skip_nodes", "n3": ""})
        self.assertEqual({n["node"]: n["state"] for n in task["result"]["nodes"]},
                         {"n2": "failed", "n3": "ok"}, task["result"]["nodes"])
        left = next(n for n in task["result"]["nodes"] if n["node"] == "n2")
        self.assertEqual((left["code"], [(e["kind"], e["name"], e["pointer"], e["node"])
                                         for e in left["errors"]]),
                         ("invalid", [("listener", "more", "/port", "n2")]))
        self.assertEqual(head(self.c), head(self.a))
        self.assertNotEqual(head(self.b), head(self.a))
        self.doCleanups()  # it heals when the port is free
        in_step(self.lab.nodes)

    def test_4_what_one_checker_refuses_is_applied_nowhere(self):
        self.a.api.patch("/api/v1/haproxy", maxconn=3100)
        before = [traces_of(n) for n in (self.b, self.c)]
        with self.checker.refusing("n3"):
            task = self.apply()
        self.assertEqual(task["state"], "failed", task)
        problem = task["problems"][0]
        self.assertEqual([problem[k] for k in ("node", "kind", "pointer")],
                         ["n3", "haproxy", "/maxconn"], problem)
        self.assertIn("not on this node", problem["message"])
        self.assertEqual([traces_of(n) for n in (self.b, self.c)], before)

    def test_5_who_does_not_answer_hinders_nothing_and_is_named(self):
        self.addCleanup(self.lab.join_all)
        self.cut_off(self.b)
        self.a.api.patch("/api/v1/haproxy", maxconn=3200)
        task = self.apply()
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual({n["node"]: (n["state"], n["code"]) for n in task["result"]["checked"]},
                         {"n2": ("skipped", "unreachable"), "n3": ("ok", "")})
        self.cut_off(self.c)
        self.a.api.patch("/api/v1/haproxy", maxconn=3201)
        pushed, = [s for s in self.apply()["steps"] if s["name"] == "push"]
        self.assertRegex(pushed["text"], ": (n2, n3|n3, n2): ", pushed)  # ordered by id

    def cut_off(self, other):
        self.lab.cut(self.a, other)
        node.wait_for(lambda: not seen(self.a, other)["answers"], "it sees that")

    def test_6_a_change_at_once_asks_nobody(self):
        before = self.checks()
        self.a.api.create("servers", name="s1", address="10.77.0.1", port=80)
        self.a.api.create("pools", name="p1", members=[{"server": "s1"}])
        self.assertEqual(self.apply()["state"], "ok")
        after = self.checks()
        self.assertEqual([y - x for x, y in zip(before, after)], [1, 1, 1])
        tasks = len(self.a.api.get("/api/v1/tasks")["items"])
        self.a.api.expect(200, "PUT", "/api/v1/servers/s1/state", {"state": "drain"})
        in_step(self.lab.nodes)
        self.assertEqual(self.checks(), after)
        self.assertEqual(len(self.a.api.get("/api/v1/tasks")["items"]), tasks)

    def test_7_what_is_no_document_is_refused(self):
        key = self.b.api.get("/api/v1/cluster/key")["key"]
        before = traces_of(self.b)
        for body, status in (("{", 400), ("{}", 422), ('{"head": 7}', 400),
                             ('{"head": "%s", "commits": [], "objects": []}' % ("0" * 64), 422),
                             ('{"head": "%s", "commits": {}, "objects": []}' % ("0" * 64), 400)):
            with self.subTest(body):
                answer = self.b.api.raw("POST", "/peer/v1/check", body,
                                        dict(JSON, Authorization="Bearer " + key))
                self.assertEqual(answer.status, status, answer.json)
        answer = self.b.api.raw("POST", "/peer/v1/check", "{}", JSON)
        self.assertIn(answer.status, (401, 403))
        self.assertEqual(traces_of(self.b), before)


class Trial(unittest.TestCase):
    """On n2, as n3 is left out."""
    HOLD_MS = 600000  # nothing here waits for it

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=dict(TUNABLES, trial_ms=4000), crash_file=True)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True
        for other in (cls.b, cls.c):
            join(other, cls.a)

    def setUp(self):
        self.a.api.expect(204, "DELETE", "/api/v1/draft")
        in_step(self.lab.nodes)

    def apply(self):
        return self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1",
                                 {"skip_nodes": ["n3"]})

    @staticmethod
    def reloads(one):
        return len(re.findall(r"New worker \(\d+\) forked", one.log()))

    @staticmethod
    def facts(one):
        return head(one), one.running_digest(), one.generation(), one.generation("good")

    def dies_after_the_trial(self):
        """n1 ends with the standby on trial. What the standby was before."""
        before = self.facts(self.b)
        self.a.dies_at("apply_activate_before", self.apply)
        self.assertNotEqual(self.b.running_digest(), before[1])
        self.assertEqual((head(self.b), self.b.generation("good")), (before[0], before[3]))
        return before

    def goes_back(self, before):
        node.wait_for(lambda: self.b.running_digest() == before[1], "n2 runs what it ran", 20)
        node.wait_for(lambda: self.b.api.get("/api/v1/status")["serving"]["state"] == "yes",
                      "n2 serves", 20)
        self.assertEqual(head(self.b), before[0])
        self.a.wait_ready()

    def hold(self, one, hold_ms):
        one.tune(trial_ms=hold_ms)
        self.end(one)

    @staticmethod
    def end(one):
        """By its process id; it is started again."""
        pid = one.pid_of("lockstepd")
        os.kill(pid, signal.SIGKILL)
        node.wait_for(lambda: pid not in one.pids("lockstepd"), "it ended")
        one.wait_ready()

    def test_1_a_standby_serves_it_first_and_loads_it_once(self):
        before = [self.reloads(n) for n in self.lab.nodes]
        self.a.api.create("listeners", name="web", port=8090, addresses=["127.0.0.1"])
        task = self.apply()
        self.assertEqual(task["state"], "ok", json.dumps(task, indent=1))
        steps = [s["name"] for s in task["steps"]]
        self.assertLess(steps.index("peers"), steps.index("trial"))
        self.assertLess(steps.index("trial"), steps.index("activate"))
        self.assertEqual((task["result"]["trial"]["node"], task["result"]["trial"]["state"]),
                         ("n2", "ok"))
        self.assertEqual(task["result"]["nodes"][0]["node"], "n2")
        in_step(self.lab.nodes)
        after = [self.reloads(n) for n in self.lab.nodes]
        self.assertEqual([y - x for x, y in zip(before, after)], [1, 1, 1])

    def test_2_what_does_not_touch_a_listener_is_not_tried(self):
        self.a.api.create("servers", name="s1", address="10.77.0.1", port=80)
        self.a.api.create("pools", name="p1", members=[{"server": "s1"}])
        task = self.apply()
        self.assertEqual(task["state"], "ok", task)
        self.assertNotIn("trial", [s["name"] for s in task["steps"]])

    def test_3_what_a_standby_cannot_bind_is_applied_nowhere(self):
        self.a.api.create("listeners", name="stolen", port=8091, addresses=["127.0.0.1"])
        before = [self.facts(n) for n in self.lab.nodes]
        with self.b.ns:
            thief = Thief(self.b, 8091)
            thief.__enter__()
        try:
            task = self.apply()
        finally:
            thief.__exit__()
        self.assertEqual(task["state"], "failed", task)
        self.assertEqual(task["steps"][-1]["name"], "trial")
        self.assertIn("n2", task["message"])
        problem = next(p for p in task["problems"] if p["severity"] == "error")
        self.assertEqual([problem[k] for k in ("node", "kind", "name")],
                         ["n2", "listener", "stolen"], problem)
        self.assertEqual([self.facts(n) for n in self.lab.nodes], before)
        self.assertEqual([c["name"] for c in self.a.api.get("/api/v1/draft")["changes"]],
                         ["stolen"])

    def test_4_who_asked_dies_and_the_standby_goes_back_by_itself(self):
        self.a.api.create("listeners", name="lost", port=8092, addresses=["127.0.0.1"])
        self.goes_back(self.dies_after_the_trial())
        self.assertEqual([c["name"] for c in self.a.api.get("/api/v1/draft")["changes"]],
                         ["lost"])

    def test_5_a_standby_that_is_restarted_goes_back_at_once(self):
        self.hold(self.b, self.HOLD_MS)
        in_step(self.lab.nodes)
        self.a.api.create("listeners", name="cut", port=8093, addresses=["127.0.0.1"])
        before = self.dies_after_the_trial()
        self.end(self.b)
        self.goes_back(before)

    def test_6_who_fails_itself_ends_the_trial(self):
        self.hold(self.b, self.HOLD_MS)
        in_step(self.lab.nodes)
        self.a.api.create("listeners", name="own", port=8094, addresses=["127.0.0.1"])
        before = self.facts(self.b)
        with self.a.ns:
            thief = Thief(self.a, 8094)
            thief.__enter__()
        try:
            task = self.apply()
        finally:
            thief.__exit__()
        self.assertEqual(task["state"], "failed", task)
        self.assertEqual(task["result"]["trial"]["state"], "ok", task)
        self.goes_back(before)

    def test_7_wherever_who_asked_dies_all_run_their_heads_and_the_draft_is_there(self):
        self.hold(self.b, 4000)
        in_step(self.lab.nodes)
        self.a.api.create("listeners", name="edge", port=8095, addresses=["127.0.0.1"])
        before = [(head(n), n.running_digest()) for n in self.lab.nodes]
        for place in edges(ASKING):
            with self.subTest(place):
                self.a.dies_at(place, self.apply)
                if place == "apply_trial_after":
                    self.assertNotEqual(self.b.running_digest(), before[1][1])
                self.a.wait_ready()
                node.wait_for(lambda: [(head(n), n.running_digest()) for n in self.lab.nodes]
                              == before, "all run their heads after " + place, 20)
                in_step(self.lab.nodes)  # who was not heard yet is not asked
                self.assertEqual([c["name"] for c in self.a.api.get("/api/v1/draft")["changes"]],
                                 ["edge"])
        self.assertEqual(self.apply()["state"], "ok")
        in_step(self.lab.nodes)

    def test_8_wherever_the_standby_dies_on_trial_it_ends_on_its_head(self):
        self.hold(self.b, self.HOLD_MS)
        for port, place in enumerate(edges(TRIED), 8100):
            with self.subTest(place):
                self.setUp()
                self.a.api.create("listeners", name="p%d" % port, port=port,
                                  addresses=["127.0.0.1"])
                before = [self.facts(n) for n in self.lab.nodes]
                task = self.b.dies_at(place, self.apply)
                self.assertEqual((task["state"], task["steps"][-1]["name"]), ("failed", "trial"),
                                 task)
                self.assertIn("n2", task["message"])
                self.b.wait_ready()
                self.goes_back(before[1])
                self.assertEqual([self.facts(n) for n in self.lab.nodes], before)
        self.assertEqual(self.apply()["state"], "ok")
        in_step(self.lab.nodes)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
