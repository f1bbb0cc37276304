#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a reload must not forget: which servers fail their checks, and what an operator did."""
import http.client
import json
import threading
import unittest

import node
from backend import Backend

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
        lines = self.node.admin_socket("show servers state all").splitlines()[2:]
        return {line.split()[3]: line.split() for line in lines if line}

    def up(self):
        return {name for name, words in self.states().items() if words[5] == "2"}


class Leader(Case):
    def visit(self, seen, ended):
        while not ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=5)
            connection.request("GET", "/", headers={"Host": "app.test"})
            response = connection.getresponse()
            body = response.read()
            seen.append(json.loads(body)["server"] if response.status == 200 else body)
            connection.close()
            ended.wait(0.01)

    def test_three_applies_lead_no_request_to_a_failing_server(self):
        for backend in self.backends[1:]:
            backend.server.health = 503
        node.wait_for(lambda: self.up() == {"s0"}, "only the leader is up", 20)
        seen, ended = [], threading.Event()
        visitor = threading.Thread(target=self.visit, args=(seen, ended))
        visitor.start()
        try:
            for _ in range(3):
                self.reload()
                count = len(seen)
                node.wait_for(lambda c=count: len(seen) > c + 20, "visits go on")
        finally:
            ended.set()
            visitor.join(20)
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


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
