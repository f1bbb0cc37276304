#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes whose name nobody looks up, and nodes that answer nonsense: each is told with its reason
and in time, and what is known of the other nodes stays fresh."""
import contextlib
import json
import os
import time
import unittest

import node
from backend import Backend
from cluster import HUB, Cluster, head, in_step, join, seen
from held import Held
from lab import wait_for
from peer import FakePeer
from resolver import Mute, use_name_servers

ROUND_MS, CALL_MS = 1000, 700
FRESH_S = 2 * ROUND_MS // 1000
SOON_S = 10
# While one name is not answered, libc has a thread wait for it, round after round, until it gives
# up; far fewer than one for each round of the test.
THREADS = 40


class Case(unittest.TestCase):
    @classmethod
    def set_up(cls):
        cls.lab = Cluster(2, tunables={"sync_round_ms": ROUND_MS, "sync_health_ms": CALL_MS})
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes
        join(cls.b, cls.a)
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.a.api.unlock = True  # there is no VIP

    def stays_fresh(self, rounds=2):
        """What a knows of b is never older than two rounds."""
        end = time.monotonic() + rounds * (ROUND_MS + CALL_MS) / 1000
        known = []

        def is_over():
            known.append(seen(self.a, self.b))
            return time.monotonic() > end
        wait_for(is_over, "%d rounds" % rounds)
        self.assertEqual([k for k in known if not k["answers"] or k["age_s"] >= FRESH_S], [])

    def told(self, peer, reason):
        """In the table and as the cause of a condition."""
        def is_so():
            state = self.a.api.get("/api/v1/cluster")
            detail = next(n["detail"] for n in state["nodes"] if n["name"] == peer.name)
            assert reason in detail, detail
            causes = [c["cause"] for c in state["conditions"]]
            return any(reason in cause for cause in causes)
        wait_for(is_so, "told: " + reason, SOON_S)

    def applies_soon(self, name):
        began = time.monotonic()
        self.a.api.expect(200, "POST", "/api/v1/publish?try=0",
                          {"url": "http://%s.test" % name, "to": [self.backend.target]})
        task = self.a.api.apply()
        self.assertEqual(task["state"], "ok", task)
        self.assertLess(time.monotonic() - began, SOON_S)


class Name(Case):
    @classmethod
    def setUpClass(cls):
        use_name_servers(cls, HUB)
        cls.set_up()
        cls.mute = Mute(HUB)
        cls.addClassCleanup(cls.mute.close)

    def test_a_name_that_nobody_looks_up_holds_up_nobody(self):
        peer = FakePeer("named", HUB)
        self.addCleanup(peer.close)
        peer.record["url"] = peer.record["url"].replace(HUB, "named.example.test")
        peer.enter(self.a)
        self.told(peer, "its name did not resolve in time")
        self.assertGreater(self.mute.questions(), 0)
        self.stays_fresh(8)
        self.told(peer, "its name did not resolve in time")
        self.applies_soon("first")
        threads = len(os.listdir("/proc/%d/task" % self.a.pid_of("lockstepd")))
        self.assertLess(threads, THREADS)
        began = time.monotonic()
        self.a.stop()
        self.assertLess(time.monotonic() - began, SOON_S)


def say(request, status, body, **headers):
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def too_much(request):
    say(request, 200, b'{"name":"%s"}' % (b"x" * 65536))


def slowly(request):
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.connection.settimeout(0.05)
    for _ in range(1000):
        request.wfile.write(b" ")
        with contextlib.suppress(TimeoutError):
            if not request.connection.recv(1):
                break


def no_json(request):
    say(request, 200, b"<html>welcome</html>")


def nothing(request):
    request.close_connection = True


class Answers(Case):
    @classmethod
    def setUpClass(cls):
        cls.set_up()
        cls.peer = FakePeer("odd", HUB)
        cls.addClassCleanup(cls.peer.close)
        cls.peer.enter(cls.a)

    def setUp(self):
        self.addCleanup(setattr, self.peer, "spoil", None)
        self.peer.spoil = None
        wait_for(lambda: seen(self.a, self.peer)["answers"], "it answers")

    def test_each_answer_that_is_none_has_its_reason(self):
        for spoil, reason in ((too_much, "the answer is too long"),
                              (slowly, "no answer in time"),
                              (no_json, "the answer (status 200) is no JSON"),
                              (nothing, "closed without an answer")):
            with self.subTest(reason):
                self.peer.spoil = spoil
                self.told(self.peer, reason)
                self.stays_fresh()
                self.applies_soon(spoil.__name__.replace("_", "-"))

    def state_with(self, condition):
        state = self.a.api.get("/api/v1/cluster")
        return state if condition in [c["name"] for c in state["conditions"]] else None

    def test_what_is_no_word_of_a_node_is_not_told_as_one(self):
        """The answers of the API are as documented, and no terminal obeys them."""
        odd = "\n\x1b[31m\u202e\u00e9" + 40 * "\u00e9"

        def mistold(request):
            told = self.peer.reply("GET", "/peer/v1/health", b"")
            say(request, 200, json.dumps({
                **told, "serving": odd, "running": odd, "release": odd, "running_release": odd,
                "refusing": odd, "drafted": 1, "draft_author": odd}).encode())
        self.peer.spoil = mistold
        state = wait_for(lambda: self.state_with("unapplied_draft"), "its draft is told of")
        row = next(n for n in state["nodes"] if n["name"] == self.peer.name)
        self.assertEqual((row["serving"], row["running"], row["release"]),
                         ("unknown", None, "unknown"))
        self.assertNotRegex(json.dumps(state, ensure_ascii=False), "[\x1b\u202e]|u001b")

    def test_a_redirect_is_not_followed(self):
        other = FakePeer("other", HUB)
        self.addCleanup(other.close)
        self.peer.spoil = lambda request: say(
            request, 302, b"", Location=other.record["url"] + "/peer/v1/health")
        self.told(self.peer, "it redirects (status 302), which is not followed")
        self.stays_fresh()
        self.assertEqual(other.requests, [])


class Healing(Case):
    """A node that is behind, and does not get to run what it takes over."""

    @classmethod
    def setUpClass(cls):
        cls.set_up()
        in_step(cls.lab.nodes)

    def test_it_goes_on_hearing_of_the_others(self):
        peer = FakePeer("third", HUB)
        self.addCleanup(peer.close)
        peer.enter(self.b)
        wait_for(lambda: seen(self.b, peer)["answers"], "it answers")
        with Held(self.b, "stage") as held:
            self.lab.cut(self.a, self.b)
            wait_for(lambda: not seen(self.a, self.b)["answers"], "it is away")
            self.applies_soon("missed")
            self.lab.join_all()
            self.assertTrue(held.came.wait(SOON_S), "it takes that over")
            peer.spoil = no_json
            wait_for(lambda: not seen(self.b, peer)["answers"], "it answers no more", SOON_S)
            peer.spoil = None
            wait_for(lambda: seen(self.b, peer)["answers"], "it answers again", SOON_S)
            self.assertFalse(held.released.is_set())
        wait_for(lambda: head(self.a) == head(self.b), "it has caught up")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
