#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong between two nodes is told by name, on both; real nodes on a bridge."""
import hashlib
import itertools
import json
import os
import re
import socket
import time
import unittest

import node
from api import Api
from authority import Authority
from backend import Backend
from cluster import HUB, QUICK, Cluster, head, join, key_of, seen
from node import Node
from peer import PARTED, RELEASE, FakePeer

VIP = "10.77.0.200"


def conditions(one):
    """(name, node) -> condition."""
    return {(c["name"], c["node"]): c for c in one.api.get("/api/v1/cluster")["conditions"]}


def revision(one):
    head = one.api.get("/api/v1/status")["head"]
    return "%d@%s" % (head["rev"], head["fp"][:8])


def wait_condition(one, name, about):
    try:
        return node.wait_for(lambda: conditions(one).get((name, about.name)),
                             "%s says %s of %s" % (one.name, name, about.name))
    except AssertionError as error:
        raise AssertionError("%s, but %s" % (error, conditions(one))) from None


def shown_by(one, *words):
    done = one.cli(*words)
    assert done.returncode == 0, done
    return done.stdout


def restart(one, clock_ahead_ms=0):
    """Its daemon begins anew, with this clock."""
    one.stop()
    one.tune(clock_ahead_ms=clock_ahead_ms)
    one.start()
    one.wait_ready()


class Pair(unittest.TestCase):
    """Two nodes in step; one cluster for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=QUICK)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.a, cls.b = cls.lab.nodes
        cls.a.api.unlock = cls.b.api.unlock = True  # there is no VIP
        cls.authority = Authority(cls.a.root, "authority")
        cls.a.api.create("certificates", name="site", **cls.issue("one.test"))
        cls.publish(cls.a, "first")
        cls.enter(cls.b)

    @classmethod
    def issue(cls, name):
        chain, key = cls.authority.issue(name)
        return {"chain": chain.read_text("ascii"), "key": key.read_text("ascii")}

    @classmethod
    def publish(cls, one, name):
        one.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://%s.test" % name, "to": [cls.backend.target]})
        task = one.api.apply()
        assert task["state"] == "ok", task

    @classmethod
    def enter(cls, new):
        join(new, cls.a)

    def quiet(self):
        for one in (self.a, self.b):
            try:
                node.wait_for(lambda o=one: conditions(o) == {}, one.name + " has no condition")
            except AssertionError as error:
                raise AssertionError("%s, but %s" % (error, conditions(one))) from None


class Two(Pair):
    def test_1_none_where_all_is_right(self):
        self.quiet()

    def test_2_a_draft_is_told_of_its_node(self):
        self.b.api.expect(200, "POST", "/api/v1/publish",
                          {"url": "http://draft.test", "to": [self.backend.target]})
        drafted = self.b.api.get("/api/v1/draft")["count"]
        for one in (self.a, self.b):
            told = wait_condition(one, "unapplied_draft", self.b)
            self.assertIn("%d object" % drafted, told["cause"])
            self.assertIn("by key test", told["cause"])
        key = self.b.api.get("/api/v1/cluster/key")["key"]
        answer = Api(self.b.api.address, self.b.api.port, key).raw("GET", "/peer/v1/health")
        self.assertEqual(answer.status, 200)
        self.assertLess(len(answer.body), 670)  # 1 KiB with the longest names and texts
        self.b.api.expect(204, "DELETE", "/api/v1/draft")
        self.quiet()

    def test_3_a_held_node_stays_and_says_so(self):
        self.b.api.patch("/api/v1/node", keep_in_step=False)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        for one in (self.a, self.b):
            told = wait_condition(one, "held", self.b)
            self.assertIn(revision(self.b), told["cause"])
        # What is applied is handed to it all the same.
        self.a.api.patch("/api/v1/haproxy", maxconn=3141)
        self.assertEqual(self.a.api.apply()["state"], "ok")
        self.assertEqual(head(self.b), head(self.a))
        self.b.api.patch("/api/v1/node", keep_in_step=True)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.quiet()

    def test_3_what_runs_is_told_with_the_local_revision(self):
        before = self.b.api.get("/api/v1/status")["local_rev"]
        former = self.b.api.get("/api/v1/node")["peers_port"]
        self.b.api.patch("/api/v1/node", peers_port=20001)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        status = self.b.api.get("/api/v1/status")
        self.assertEqual(status["local_rev"], before + 1)
        wanted = (status["head"]["id"], before + 1, status["release"])
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: self.runs(o, self.b) == wanted, "what runs is told")
        row = next(line for line in shown_by(self.a, "cluster").splitlines()
                   if line.startswith("n2 "))
        self.assertEqual(re.split(" {2,}", row)[3:6],
                         [revision(self.b), "as stored", str(before + 1)])
        self.b.api.patch("/api/v1/node", peers_port=former)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.quiet()

    @staticmethod
    def runs(one, other):
        row = seen(one, other)
        return row["running"], row["running_local_rev"], row["running_release"]

    def test_4_a_cut_node_is_named_and_then_the_split(self):
        self.lab.cut(self.a, self.b)
        told = wait_condition(self.a, "peer_unreachable", self.b)
        self.assertIn(revision(self.b), told["cause"])
        refused = self.a.api.expect(503, "GET", "/api/v1/cluster/compare?node=n2")
        self.assertIn("n2: ", refused["detail"])
        shared = seen(self.a, self.a)["stored"]
        self.assertIsNone(seen(self.a, self.b)["shared"])
        self.publish(self.a, "left")
        renewed = self.issue("two.test")
        self.b.api.patch("/api/v1/certificates/site", **renewed)
        self.b.api.patch("/api/v1/haproxy", hard_stop_after_s=120)
        self.publish(self.b, "right")
        self.lab.join_all()
        for one, other in ((self.a, self.b), (self.b, self.a)):
            told = wait_condition(one, "diverged", other)
            self.assertIn(revision(one), told["cause"])
            self.assertIn(revision(other), told["cause"])
            node.wait_for(lambda o=one, p=other: seen(o, p)["shared"] == shared, "what they shared")
            told = conditions(one)["diverged", other.name]
            self.assertIn("; they last shared " + shared["name"], told["cause"])
            self.assertEqual(told["page"], "docs/runbooks/diverged.md")
            self.assertEqual(set(conditions(one)), {("diverged", other.name)}, conditions(one))

    def test_5_told_by_the_command_line(self):
        shown = shown_by(self.a, "cluster")
        self.assertIn("error: diverged\n", shown)
        self.assertIn(revision(self.b), shown)
        self.assertIn("docs/runbooks/diverged.md", shown)

    def compare(self, one, other):
        answer = one.api.get("/api/v1/cluster/compare?node=" + other.name)
        self.assertEqual((answer["from"], answer["to"]), (revision(one), revision(other)))
        return answer

    def test_5_compared_field_by_field(self):
        before = [head(one) for one in (self.a, self.b)]
        for one, other, here in ((self.a, self.b, "left"), (self.b, self.a, "right")):
            answer = self.compare(one, other)
            self.assertFalse(answer["same"])
            changes = {}
            for o in answer["objects"]:
                changes.setdefault(o["change"], {})[o["kind"], o["name"]] = o["fields"]
            self.assertEqual(set(changes), {"added", "removed", "changed"})
            there = "right" if here == "left" else "left"
            self.assertEqual(len(changes["removed"]), len(changes["added"]))
            for name in changes["removed"]:
                self.assertIn(here, name[1])
            for name in changes["added"]:
                self.assertIn(there, name[1])
            self.assertEqual(set(changes["changed"]),
                             {("certificate", "site"), ("haproxy", "haproxy")})
            values = [(f["field"], f["before"], f["after"])
                      for f in changes["changed"]["haproxy", "haproxy"]]
            order = 1 if one is self.a else -1
            self.assertEqual(values, [("hard_stop_after_s", *[3600, 120][::order])])
            secret = [f for f in changes["changed"]["certificate", "site"] if f["field"] == "key"]
            self.assertEqual([(f["before"], f["after"]) for f in secret],
                             [({"set": True, "changed": True},) * 2])
            self.assertNotIn("PRIVATE", json.dumps(answer))
        self.assertEqual([head(one) for one in (self.a, self.b)], before)
        shown = shown_by(self.a, "compare", "n2")
        self.assertIn("  - service left.test\n", shown)
        self.assertIn("  + service right.test\n", shown)

    def test_5_compare_needs_another_node(self):
        self.a.api.expect(404, "GET", "/api/v1/cluster/compare?node=absent")
        self.a.api.expect(404, "GET", "/api/v1/cluster/compare?node=n1")
        self.a.api.expect(422, "GET", "/api/v1/cluster/compare")

    def test_6_gone_at_once_after_the_repair(self):
        self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        self.assertNotIn(("diverged", "n2"), conditions(self.a))
        self.quiet()
        for one, other in ((self.a, self.b), (self.b, self.a)):
            self.assertEqual(self.compare(one, other)["objects"], [])
            self.assertTrue(self.compare(one, other)["same"])

    def test_7_rejected_keys_are_named_on_both(self):
        self.lab.cut(self.a, self.b)
        for one in (self.a, self.b):
            for _ in range(2):  # the former one is taken for a while
                one.api.expect(200, "POST", "/api/v1/cluster/key")
        self.lab.join_all()
        for one, other in ((self.a, self.b), (self.b, self.a)):
            told = wait_condition(one, "peer_key_rejected", other)
            held = seen(one, other)["key_fingerprint"]
            right = self.fingerprint(other)
            self.assertNotEqual(held, right)
            self.assertIn("fingerprint %s arrived" % held, told["cause"])
            self.assertIn("has %s" % right, told["cause"])
            self.assertRegex(shown_by(one, "cluster"), r"\bn.\b.* %s " % held)
        self.enter(self.b)  # as the page says
        self.quiet()
        for one, other in itertools.product((self.a, self.b), repeat=2):
            self.assertEqual(seen(one, other)["key_fingerprint"], self.fingerprint(other))

    def fingerprint(self, one):
        """Of the right key, as three places show it."""
        told = key_of(one)
        self.assertEqual(told["fingerprint"],
                         hashlib.sha256(told["key"].encode()).hexdigest()[:8])
        self.assertIn(told["fingerprint"], shown_by(one, "peerkey"))
        return told["fingerprint"]

    def test_8_another_node_at_the_address_has_another_pin(self):
        self.b.close()
        self.lab.nodes[1] = other = Node("n2", ns=self.b.ns, address=self.b.api.address,
                                         tunables=QUICK)
        other.set_up()
        wait_condition(self.a, "tls_pin_differs", other)


class Holders(Pair):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a.api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        task = cls.a.api.apply()
        assert task["state"] == "ok", task

    def test_1_nobody_holds_it(self):
        for one in (self.a, self.b):
            told = wait_condition(one, "no_holder", one)
            self.assertIn(VIP + "/24", told["cause"])
            self.assertEqual(told["page"], "docs/runbooks/no_holder.md")
        self.assertIn("error: no_holder\n", shown_by(self.a, "cluster"))
        self.lab.vip(self.a, VIP)
        self.quiet()

    def test_2_two_hold_it(self):
        self.lab.vip(self.a, VIP)
        self.lab.hold(self.b, VIP)
        for one in (self.a, self.b):
            for holder in (self.a, self.b):
                told = wait_condition(one, "two_holders", holder)
                self.assertIn("n1, n2 have " + VIP, told["cause"])
        self.assertIn("error: two_holders\n", shown_by(self.a, "cluster"))
        self.lab.release(self.b, VIP)
        self.quiet()

    def test_3_the_one_that_is_cut_off_does_not_see_the_holder(self):
        self.lab.vip(self.a, VIP)
        self.quiet()
        self.lab.cut(self.a, self.b)
        wait_condition(self.b, "no_holder", self.b)
        self.assertNotIn(("no_holder", "n1"), conditions(self.a))
        self.lab.join_all()
        self.quiet()


class Refusing(Pair):
    def test_1_what_keeps_a_node_behind_is_told_until_it_is_gone(self):
        with self.b.ns, socket.create_server(("0.0.0.0", 8081)):
            self.a.api.expect(200, "POST", "/api/v1/publish",
                              {"url": "http://busy.test:8081", "to": [self.backend.target]})
            task = self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1",
                                     {"skip_nodes": ["n2"]})
            self.assertEqual(task["state"], "ok", task)
            for one in (self.a, self.b):
                told = wait_condition(one, "refusing", self.b)
                self.assertIn("8081", told["cause"])
                told = wait_condition(one, "behind", self.b)
                self.assertIn(revision(self.a), told["cause"])
                self.assertIn(revision(self.b), told["cause"])
            shown = shown_by(self.a, "cluster")
            self.assertIn("error: refusing\n", shown)
            self.assertIn("warning: behind\n", shown)
            self.assertNotEqual(head(self.a), head(self.b))
            self.is_told_once()
        self.quiet()
        self.assertEqual(head(self.a), head(self.b))

    def is_told_once(self):
        """However often it is tried."""
        tried = "node n1: an address cannot be used"
        node.wait_for(lambda: self.b.log().count(tried) >= 5, "tried again")
        from_s = time.monotonic()
        before = self.b.log().count(tried)
        node.wait_for(lambda: self.b.log().count(tried) >= before + 4, "and again")
        # The longest pause; a round takes a fifth of it.
        self.assertGreater(time.monotonic() - from_s, 3 * QUICK["sync_again_ms"] / 1000)
        self.assertEqual(self.b.log().count("warning: revision"), 1, self.b.log())
        self.assertNotIn("warning: node n1", self.b.log())
        failed = [t for t in self.b.api.get("/api/v1/tasks")["items"] if t["state"] == "failed"]
        self.assertLessEqual(len(failed), 2, failed)  # of the push, and of the first try


class Parted(unittest.TestCase):
    """A node that diverged says where; the test is that node."""

    def setUp(self):
        self.one = Node("n1", tunables=QUICK).set_up()
        self.addCleanup(self.one.close)
        self.fake = FakePeer("fake", "127.0.0.1")
        self.addCleanup(self.fake.close)
        self.one.api.unlock = True  # there is no VIP
        self.shared = seen(self.one, self.one)["stored"]
        self.caller = self.fake.enter(self.one)
        self.edit(1000)

    def edit(self, maxconn):
        self.one.api.patch("/api/v1/haproxy", maxconn=maxconn)
        self.assertEqual(self.one.api.apply()["state"], "ok")

    def part(self, rev=3):
        """It stands where nothing leads from or to."""
        self.fake.head = {**self.fake.head, "id": os.urandom(32).hex(), "fp": os.urandom(32).hex(),
                          "rev": rev}

    def told(self, part):
        node.wait_for(lambda: part in conditions(self.one)["diverged", "fake"]["cause"], part)

    def asked(self):
        with self.fake.lock:
            return list(self.fake.asked)

    def rounds(self, count):
        def heard():
            with self.fake.lock:
                return self.fake.requests.count(("GET", "/peer/v1/health"))
        enough = heard() + count
        node.wait_for(lambda: heard() >= enough, "rounds")

    def test_asked_once_for_two_heads(self):
        self.fake.shared = self.shared["commit"]
        self.part()
        wait_condition(self.one, "diverged", self.fake)
        self.told("; they last shared " + self.shared["name"])
        self.assertEqual(seen(self.one, self.fake)["shared"], self.shared)
        self.rounds(5)
        self.assertEqual([q["head"] for q in self.asked()], [self.fake.head["id"]])
        self.assertEqual(self.asked()[0]["among"][:2], [head(self.one), self.shared["commit"]])
        self.part(4)
        node.wait_for(lambda: len(self.asked()) == 2, "asked of the other head")
        self.edit(1001)  # which the other node takes
        self.part(5)
        node.wait_for(lambda: len(self.asked()) == 3, "asked with another head")
        self.assertEqual(self.asked()[2]["among"][0], head(self.one))
        self.rounds(5)
        self.assertEqual(len(self.asked()), 3)

    def test_nothing_is_shared(self):
        self.part()
        wait_condition(self.one, "diverged", self.fake)
        self.told("; they never shared a revision")
        self.assertIsNone(seen(self.one, self.fake)["shared"])
        self.rounds(3)
        self.assertEqual(len(self.asked()), 1)

    def test_what_was_not_named_is_not_believed(self):
        self.fake.shared = "7" * 64
        self.part()
        wait_condition(self.one, "diverged", self.fake)
        node.wait_for(lambda: len(self.asked()) > 1, "asked once more")
        self.told("; what they last shared is not known")


    def test_what_runs_may_be_of_a_former_release(self):
        self.fake.health.update(running_local_rev=7, running_release="0.0.9")
        node.wait_for(lambda: seen(self.one, self.fake)["running_release"] == "0.0.9", "told")
        self.assertEqual(seen(self.one, self.fake)["running_local_rev"], 7)
        self.assertIn("%s, runs 0.0.9 " % RELEASE, shown_by(self.one, "cluster"))
        self.fake.health.update(running_local_rev=None, running_release=None)
        node.wait_for(lambda: seen(self.one, self.fake)["running_release"] is None, "not known")
        self.assertIsNone(seen(self.one, self.fake)["running_local_rev"])

    def test_asked_by_another_node(self):
        own, unknown = head(self.one), "7" * 64
        shared = self.shared["commit"]
        rows = [({"head": own, "among": [unknown, shared]}, 200, shared),
                ({"head": own, "among": [shared, own]}, 200, own),
                ({"head": shared, "among": [own, shared]}, 200, shared),
                ({"head": shared, "among": [own, unknown]}, 200, None),
                ({"head": own, "among": []}, 200, None),
                ({"head": unknown, "among": [own]}, 404, None),
                ({"head": own, "among": [unknown] * 1001}, 422, None),
                ({"head": own, "among": [7]}, 422, None),
                ({"head": own, "among": own}, 422, None),
                ({"head": "7", "among": []}, 422, None),
                ({}, 422, None)]
        for question, status, wanted in rows:
            with self.subTest(question=str(question)[:200]):
                answer = self.caller.raw("POST", PARTED, question)
                self.assertEqual(answer.status, status, answer)
                self.assertEqual(answer.json.get("shared"), wanted)


class Unlike(Pair):
    def test_1_another_time(self):
        restart(self.b, clock_ahead_ms=-7000)
        told = wait_condition(self.a, "clock_skew", self.b)
        self.assertIn("behind that of n1", told["cause"])
        told = wait_condition(self.b, "clock_skew", self.a)
        self.assertIn("ahead of that of n2", told["cause"])
        restart(self.b)
        self.quiet()

    def test_2_another_release(self):
        self.b.build = os.path.join(node.BUILD, "other_release")
        restart(self.b)
        for one, other in ((self.a, self.b), (self.b, self.a)):
            told = wait_condition(one, "releases_differ", other)
            for named in (self.a, self.b):
                release = named.api.get("/api/v1/status")["release"]
                self.assertIn("%s has %s" % (named.name, release), told["cause"])
        for other in (self.a, self.b):
            node.wait_for(lambda o=other: seen(self.a, o)["running_release"]
                          == o.api.get("/api/v1/status")["release"], "made by its program")
        self.b.build = node.BUILD
        restart(self.b)
        self.quiet()


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
