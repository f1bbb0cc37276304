#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a reload must not forget: which servers fail their checks, and what an operator did."""
import contextlib
import threading
import unittest

import node
from backend import Backend
from visit import visit

COUNT = 3


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backends = [Backend("s%d" % n) for n in range(COUNT)]
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.create("monitors", name="leader", type="http", path="/healthz",
                       interval_ms=2000, rise=1, fall=2)
        for n, backend in enumerate(cls.backends):
            cls.api.create("servers", name="s%d" % n, address="127.0.0.1", port=backend.port)
        cls.api.create("pools", name="all", monitor="leader",
                       members=[{"server": "s%d" % n} for n in range(COUNT)])
        cls.api.create("listeners", name="http", port=80)
        cls.api.create("services", name="web", listeners=["http"], pool="all",
                       hosts=["app.test"])
        cls.maxconn = 3000
        cls.apply()

    @classmethod
    def apply(cls):
        task = cls.api.apply()
        assert task["state"] == "ok", task
        return task

    @classmethod
    def reload(cls):
        """Something that concerns no server, and that only a reload brings."""
        cls.maxconn += 1
        cls.api.patch("/api/v1/haproxy", maxconn=cls.maxconn)
        before = cls.worker()
        cls.apply()
        assert cls.worker() != before, "no reload"

    @classmethod
    def worker(cls):
        return cls.node.admin_socket("show info").split("\nPid: ")[1].split()[0]

    def states(self):
        """{server: its words in "show servers state"}"""
        lines = self.node.admin_socket("show servers state").splitlines()[2:]
        return {line.split()[3]: line.split() for line in lines if line}

    def up(self):
        return {name for name, words in self.states().items() if words[5] == "2"}


    @contextlib.contextmanager
    def visits(self, seen):
        """Somebody asks for a page all the time."""
        ended = threading.Event()
        visitor = threading.Thread(target=self.visit, args=(seen, ended))
        visitor.start()
        try:
            yield
        finally:
            ended.set()
            visitor.join(20)

    def go_on(self, seen):
        count = len(seen)
        node.wait_for(lambda: len(seen) > count + 20, "visits go on")

    def visit(self, seen, ended):
        while not ended.is_set():
            answer = visit("app.test")
            seen.append(answer.server if answer.status == 200 else answer.body)
            ended.wait(0.01)


class Leader(Case):
    def test_three_applies_lead_no_request_to_a_failing_server(self):
        for backend in self.backends[1:]:
            backend.server.health = 503
        node.wait_for(lambda: self.up() == {"s0"}, "only the leader is up", 20)
        seen = []
        with self.visits(seen):
            for _ in range(3):
                self.reload()
                self.go_on(seen)
        self.assertEqual(set(seen), {"s0"}, "of %d visits" % len(seen))
        # A failing server is still taken in again when it recovers.
        self.backends[1].server.health = 200
        node.wait_for(lambda: self.up() == {"s0", "s1"}, "the second is up", 20)
        self.assertNotIn("state file", self.node.log())

    def test_without_a_monitor_no_server_stays_down(self):
        for backend in self.backends:
            backend.server.health = 503
        node.wait_for(lambda: not self.up(), "all are down", 20)
        self.api.patch("/api/v1/pools/all", monitor=None)
        self.apply()
        self.assertEqual(self.up(), {"s0", "s1", "s2"})
        for backend in self.backends:
            backend.server.health = 200
        self.api.patch("/api/v1/pools/all", monitor="leader")
        self.apply()


class Operator(Case):
    def test_drain_maintenance_and_weight_survive(self):
        for command in ("set server all/s0 state drain", "set server all/s1 state maint",
                        "set server all/s2 weight 50%"):
            self.assertEqual(self.node.admin_socket(command).strip(), "")
        self.reload()
        states = self.states()
        self.assertEqual([states[s][6] for s in ("s0", "s1", "s2")], ["8", "1", "0"])
        self.assertEqual(states["s2"][7:9], ["50", "100"])
        self.api.patch("/api/v1/servers/s1", port=4321)
        self.reload()
        states = self.states()
        self.assertEqual((states["s1"][6], states["s1"][18]), ("1", "4321"))
        self.assertEqual(states["s0"][6], "8")
        # The configuration's weight wins when it changes.
        self.api.patch("/api/v1/pools/all", members=[
            {"server": "s0"}, {"server": "s1"}, {"server": "s2", "weight": 80}])
        self.reload()
        self.assertEqual(self.states()["s2"][7:9], ["80", "80"])


class Renamed(Case):
    """s0 serves, s1 is in maintenance, s2 fails its checks: under whatever names."""

    def setUp(self):
        self.backends[2].server.health = 503
        self.assertEqual(self.node.admin_socket("set server all/s1 state maint").strip(), "")
        node.wait_for(lambda: self.up() == {"s0"}, "the others are down", 20)

    def tearDown(self):
        self.backends[2].server.health = 200

    def states_are(self, pool, names):
        states = self.states()
        self.assertEqual(set(states), set(names))
        self.assertEqual({words[1] for words in states.values()}, {pool})
        # [5] 0: down; [6] 1: maintenance by somebody.
        self.assertEqual([states[n][5:7] for n in names],
                         [["2", "0"], ["0", "1"], ["0", "0"]])

    def rename(self, kind, names):
        for old, new in names.items():
            self.api.patch("/api/v1/%s/%s" % (kind, old), name=new)

    def test_servers_and_pools_keep_their_states_under_new_names(self):
        seen = []
        with self.visits(seen):
            self.rename("servers", {"s1": "m1", "s2": "d2"})
            self.apply()
            self.states_are("all", ("s0", "m1", "d2"))
            self.go_on(seen)
            self.rename("pools", {"all": "every"})
            self.apply()
            self.states_are("every", ("s0", "m1", "d2"))
            self.go_on(seen)
            # Two change places, and the pool has another name again.
            self.rename("servers", {"s0": "x", "d2": "s0", "x": "d2"})
            self.rename("pools", {"every": "all"})
            self.apply()
            self.states_are("all", ("d2", "m1", "s0"))
            self.go_on(seen)
            # A chain of names.
            self.rename("servers", {"d2": "s0x", "s0": "s2", "m1": "s1"})
            self.rename("servers", {"s0x": "s0"})
            self.apply()
            self.states_are("all", ("s0", "s1", "s2"))
            self.go_on(seen)
        self.assertEqual(set(seen), {"s0"}, "of %d visits" % len(seen))
        self.assertNotIn("state file", self.node.log())


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
