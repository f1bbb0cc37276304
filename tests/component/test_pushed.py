#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a node makes of the answers to what it hands on; the other node is played by the test."""
import time
import unittest

import node
from cluster import TUNABLES, seen
from lab import wait_for
from peer import FakePeer

ADDRESS = "127.0.0.1"
OTHER = "ab" * 32


class Pushed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node(tunables=dict(TUNABLES, sync_call_ms=2000)).set_up()
        cls.addClassCleanup(cls.node.close)
        cls.node.api.unlock = True  # there is no VIP
        cls.conns = iter(range(3001, 4000))

    def setUp(self):
        self.peer = FakePeer("fake", ADDRESS)
        self.addCleanup(self.peer.close)
        self.peer.enter(self.node)
        self.addCleanup(self.node.api.expect, 200, "POST", "/api/v1/cluster/forget",
                        {"node": "fake"})
        wait_for(lambda: self.seen()["answers"], "it is asked")

    def seen(self):
        return seen(self.node, self.peer)

    def conditions(self):
        return [c["name"] for c in self.node.api.get("/api/v1/cluster")["conditions"]]

    def push(self):
        """The row of the peer."""
        self.node.api.patch("/api/v1/haproxy", maxconn=next(self.conns))
        task = self.node.api.apply()
        self.assertEqual(task["state"], "ok", task)
        row, = task["result"]["nodes"]
        self.assertEqual(row["node"], "fake")
        self.commit = task["result"]["commit"]
        return row

    def test_who_says_that_it_has_and_runs_it_has_taken_it(self):
        self.assertEqual(self.push()["state"], "ok")
        self.assertEqual(self.seen()["relation"], "in_step")

    def test_who_has_or_runs_something_else_has_not(self):
        for claims, words in (({"running": OTHER}, "runs abababab"),
                              ({"head": OTHER}, "stores abababab"),
                              ({"head": OTHER, "running": OTHER}, "stores abababab and runs abab"),
                              ({"running": None}, "runs what is not known"),
                              ({"head": None}, "stores nothing")):
            with self.subTest(claims):
                self.peer.claims = claims
                row = self.push()
                self.assertEqual((row["state"], row["code"]), ("failed", "not_running"), row)
                self.assertIn("sent commit %.8s" % self.commit, row["detail"])
                self.assertIn(words, row["detail"])
                # What it says by itself is that it stands where it stood.
                wait_for(lambda: self.seen()["relation"] == "behind", "it is behind")

    def refuses(self):
        wait_for(lambda: self.seen()["relation"] == "behind", "it is behind")
        return self.seen()["refused"], "refusing" in self.conditions()

    def test_who_does_not_answer_in_time_refuses_nothing(self):
        self.peer.may_answer.clear()
        self.addCleanup(self.peer.may_answer.set)
        self.peer.claims = {}
        row = self.push()
        self.assertEqual((row["state"], row["code"]), ("failed", "timeout"), row)
        self.assertEqual(self.refuses(), (None, False))

    def test_who_cannot_try_it_refuses_nothing(self):
        self.peer.claims, self.peer.status = {"code": "io", "detail": "the disk is full"}, 503
        row = self.push()
        self.assertEqual((row["state"], row["code"]), ("failed", "io"), row)
        self.assertEqual(self.refuses(), (None, False))

    def test_who_says_that_it_is_wrong_refuses_it(self):
        self.peer.claims, self.peer.status = {"code": "invalid", "detail": "a taken port"}, 422
        row = self.push()
        self.assertEqual((row["state"], row["code"]), ("failed", "invalid"), row)
        self.assertEqual(self.refuses(), ("a taken port", True))


class Seen(unittest.TestCase):
    """Between two rounds."""

    def test_who_refuses_stands_behind_when_the_apply_has_ended(self):
        with node.Node(tunables=dict(TUNABLES, sync_round_ms=30000)) as one:
            one.set_up()
            one.api.unlock = True
            peer = FakePeer("fake", ADDRESS)
            self.addCleanup(peer.close)
            peer.enter(one)
            one.stop()
            one.start()
            one.wait_ready()
            wait_for(lambda: seen(one, peer)["relation"] == "in_step", "it is asked")
            peer.claims, peer.status = {"code": "invalid", "detail": "a taken port"}, 422
            one.api.patch("/api/v1/haproxy", maxconn=3000)
            self.assertEqual(one.api.apply()["state"], "ok")
            told = one.api.get("/api/v1/cluster")
            row, = [n for n in told["nodes"] if n["name"] == "fake"]
            self.assertEqual((row["relation"], row["refused"]), ("behind", "a taken port"), row)
            self.assertIn("refusing", [c["name"] for c in told["conditions"]])


class Held(unittest.TestCase):
    """It hangs when it is handed what nobody reloads for."""

    def test_rounds_go_on_and_a_confirmation_ends(self):
        with node.Node(tunables=dict(TUNABLES, sync_call_ms=60000, sync_read_ms=500)) as one:
            one.set_up()
            one.api.unlock = True
            one.api.create("servers", name="s", address="127.0.0.1", port=9)
            self.assertEqual(one.api.apply()["state"], "ok")
            peer = FakePeer("fake", ADDRESS)
            self.addCleanup(peer.close)
            peer.enter(one)
            wait_for(lambda: seen(one, peer)["answers"], "it is asked")
            one.api.patch("/api/v1/haproxy", maxconn=3000)
            task = one.api.expect(200, "POST", "/api/v1/config/apply?wait=1", {"confirm": 600})
            self.assertEqual(task["state"], "ok", task)
            peer.may_answer.clear()
            self.addCleanup(peer.may_answer.set)
            one.api.expect(200, "PUT", "/api/v1/servers/s/state", {"weight": 40})
            wait_for(lambda: ("PUT", "/peer/v1/config") in peer.requests[-4:], "it is handed that")
            asked = peer.requests.count(("GET", "/peer/v1/health"))
            wait_for(lambda: peer.requests.count(("GET", "/peer/v1/health")) > asked + 3,
                     "rounds go on", 10)
            before = time.monotonic()
            one.api.expect(200, "POST", "/api/v1/config/confirm")
            self.assertLess(time.monotonic() - before, 10)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
