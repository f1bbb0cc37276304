#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes in step: join, push, heal, refuse, leave; real nodes on a bridge, seen by a client."""
import concurrent.futures
import glob
import itertools
import json
import os
import signal
import tempfile
import unittest

import node
from authority import Authority
from backend import Backend
from cluster import (HUB, PUSHING, QUICK, TUNABLES, Cluster, drained, edges, head, in_step, join,
                     key_of, seen)
from held import Held
from peer import Caller
from visit import serves

def keys(one, certificate):
    """Where HAProxy's files hold that of a certificate."""
    return glob.glob(os.path.join(one.state, "generation", "*", "crt", certificate + ".pem"))


class Three(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=dict(QUICK, former_key_ms=1000))
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        cls.publish(cls.a, "first")
        for other in (cls.b, cls.c):
            joined = join(other, cls.a)
            assert all(n["knows"] for n in joined["nodes"]), joined
        in_step(cls.lab.nodes)

    @classmethod
    def publish(cls, one, name):
        one.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://%s.test" % name, "to": [cls.backend.target]})
        task = one.api.apply()
        assert task["state"] == "ok", task
        return task

    def test_1_joined(self):
        for one in self.lab.nodes:
            nodes = one.api.get("/api/v1/cluster")["nodes"]
            self.assertEqual(sorted(n["name"] for n in nodes), ["n1", "n2", "n3"])
            self.assertTrue(all(n["answers"] for n in nodes), json.dumps(nodes, indent=1))
            with self.lab.client:
                self.assertTrue(serves("first.test", to=one.api.address))

    def test_2_an_apply_reaches_all_before_it_is_answered(self):
        task = self.publish(self.a, "second")
        self.assertEqual({head(n) for n in self.lab.nodes}, {task["result"]["commit"]})

    def test_2_no_node_keeps_the_key_of_a_deleted_certificate(self):
        """C027; the second apply is of the node that has other generations behind it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        chain, key = Authority(folder.name, "authority").issue("keyed.test")
        for one in self.lab.nodes[:2]:
            certificate = one.api.create("certificates", name="keyed.test",
                                         chain=chain.read_text(), key=key.read_text())
            one.api.expect(200, "POST", "/api/v1/publish",
                           {"url": "https://keyed.test", "to": [self.backend.target]})
            self.assertEqual(one.api.apply()["state"], "ok")
            self.assertEqual([len(keys(n, certificate["id"])) > 0 for n in self.lab.nodes],
                             [True] * 3)
            for used in one.api.get("/api/v1/services?certificate=keyed.test")["items"]:
                one.api.delete("/api/v1/services/" + used["name"])
            one.api.delete("/api/v1/certificates/keyed.test")
            self.assertEqual(one.api.apply()["state"], "ok")
            self.assertEqual([keys(n, certificate["id"]) for n in self.lab.nodes], [[]] * 3)

    def test_3_a_node_that_was_cut_off_heals(self):
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.c, self.b)
        self.publish(self.a, "third")
        self.assertNotEqual(head(self.a), head(self.b))
        self.lab.join_all()
        in_step(self.lab.nodes)

    def test_3_a_state_heals_with_a_change_that_needs_a_reload(self):
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.c, self.b)
        self.publish(self.a, "with_state")
        self.a.api.expect(200, "PUT", "/api/v1/servers/first.test.s1/state", {"weight": 40})
        self.lab.join_all()
        in_step(self.lab.nodes)

        def taken():
            state = self.b.api.get("/api/v1/servers/first.test.s1/state")
            self.assertEqual((state["stored"]["weight"], state["running"]), (40, "yes"), state)
            return True
        node.wait_for(taken, "HAProxy has the state")

    def test_3_states_alone_heal_be_they_few_or_many(self):
        names = ["m%02d" % i for i in range(40)]
        ops = [{"op": "create", "kind": "server", "name": name,
                "body": {"name": name, "address": HUB, "port": port}}
               for port, name in enumerate(names, 9001)]
        ops.append({"op": "create", "kind": "pool", "name": "many", "body": {
            "name": "many", "members": [{"server": name} for name in names]}})
        self.a.api.expect(200, "POST", "/api/v1/changes", {"ops": ops})
        self.assertEqual(self.a.api.apply()["state"], "ok")
        for count in (40, 2, 0):
            before = [one.running_digest() for one in self.lab.nodes]
            self.lab.cut(self.a, self.b)
            self.lab.cut(self.c, self.b)
            for i, name in enumerate(names):
                if (i < count) != (name in drained(self.a, "many")):
                    self.a.api.expect(200, "PUT", "/api/v1/servers/%s/state" % name,
                                      {"state": "drain" if i < count else "ready"})
            self.lab.join_all()
            in_step(self.lab.nodes)
            for one in self.lab.nodes:
                node.wait_for(lambda o=one, n=count: drained(o, "many") == set(names[:n]),
                              "%d states in HAProxy of %s" % (count, one.name))
            self.assertEqual([one.running_digest() for one in self.lab.nodes], before)

    def test_4_two_edits_apart_diverge_and_stay(self):
        heads = self.part("left", "right")
        self.assertEqual((head(self.a), head(self.b)), heads)

    def part(self, left, right):
        """b is cut off, edited apart from a, and both see that; -> their heads."""
        shared = seen(self.a, self.a)["stored"]
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.c, self.b)
        self.publish(self.a, left)
        self.publish(self.b, right)
        heads = head(self.a), head(self.b)
        self.lab.join_all()
        for one, other in ((self.a, self.b), (self.b, self.a)):
            node.wait_for(lambda o=one, p=other: seen(o, p)["shared"] == shared, "where they parted")
            self.assertEqual(seen(one, other)["relation"], "diverged")
        self.assertIsNone(seen(self.a, self.c)["shared"])
        return heads

    def test_5_an_overwrite_ends_the_split_and_loses_nothing(self):
        lost = head(self.b)
        plan = self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite?plan=1", {})
        self.assertEqual([(n["node"], n["discarded"]) for n in plan["nodes"]], [("n2", lost)])
        done = self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        self.assertEqual([n["state"] for n in done["nodes"]], ["ok"], done)
        in_step(self.lab.nodes)
        self.assertEqual(head(self.a), done["commit"])
        with self.lab.client:
            self.assertTrue(serves("left.test", to=self.b.api.address))
            self.assertFalse(serves("right.test", to=self.b.api.address))
        for one in (self.a, self.b):
            self.assertTrue(one.api.get("/api/v1/verify")["ok"])
            one.api.expect(200, "GET", "/api/v1/commits/%s" % lost)

    def test_6_pages_of_a_history_with_branches_leave_none_out(self):
        ids, before = [], ""
        while True:
            page = self.a.api.get("/api/v1/commits?limit=1" + before)
            ids += [c["id"] for c in page["items"]]
            if page["next"] is None:
                break
            before = "&before=%d" % page["next"]
        whole = [c["id"] for c in self.a.api.get("/api/v1/commits?limit=1000")["items"]]
        self.assertEqual(ids, whole)

    def test_6_undone_by_restoring_what_was_discarded(self):
        lost = next(c for c in self.a.api.get("/api/v1/commits")["items"] if c["node"] == "n2")
        self.a.api.expect(200, "POST", "/api/v1/commits/%s/restore" % lost["id"], {})
        task = self.a.api.apply()
        self.assertEqual(task["state"], "ok", task)
        in_step(self.lab.nodes)
        with self.lab.client:
            self.assertTrue(serves("right.test", to=self.c.api.address))

    def test_6_when_parted_again_the_overwrite_is_what_was_shared(self):
        for nth in ("once", "twice"):
            self.part("left_" + nth, "right_" + nth)
            done = self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
            in_step(self.lab.nodes)
            self.assertEqual(seen(self.a, self.a)["stored"]["commit"], done["commit"])

    def test_6_keys_that_changed_apart_are_handed_on_by_the_third(self):
        self.lab.cut(self.a, self.b)
        former = {one.name: key_of(one)["key"] for one in (self.a, self.b)}
        for one in (self.a, self.b):
            one.api.expect(200, "POST", "/api/v1/cluster/key")
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: seen(self.c, o)["answers"], "the third knows the key")
            node.wait_for(lambda o=one: Caller(o, former[o.name]).raw(
                "GET", "/peer/v1/health").status == 401, "its former key is over")
        self.lab.join_all()
        in_step(self.lab.nodes)
        for one, other in ((self.a, self.b), (self.b, self.a)):
            node.wait_for(lambda o=one, p=other: seen(o, p)["answers"], "it answers")

    def test_7_a_node_that_leaves_keeps_its_configuration_and_may_come_back(self):
        before = head(self.c)
        self.c.api.expect(200, "POST", "/api/v1/cluster/leave")
        for one, count in ((self.a, 2), (self.b, 2), (self.c, 1)):
            node.wait_for(lambda o=one, n=count: len(o.api.get("/api/v1/cluster")["nodes"]) == n,
                          "%s sees %d" % (one.name, count))
        self.assertEqual(head(self.c), before)
        join(self.c, self.a)
        in_step(self.lab.nodes)
        self.assertEqual(len(self.b.api.get("/api/v1/cluster")["nodes"]), 3)

    def test_8_a_forgotten_node_stays_forgotten(self):
        self.lab.cut(self.a, self.c)
        self.lab.cut(self.b, self.c)
        self.a.api.expect(200, "POST", "/api/v1/cluster/forget", {"node": "n3"})
        node.wait_for(lambda: len(self.b.api.get("/api/v1/cluster")["nodes"]) == 2, "told")
        self.lab.join_all()
        node.wait_for(lambda: len(self.c.api.get("/api/v1/cluster")["nodes"]) == 1,
                      "it learns that it is alone")
        for one in (self.a, self.b):
            self.assertEqual(len(one.api.get("/api/v1/cluster")["nodes"]), 2)
        self.assertIn("forgotten this one", self.c.log())
        self.c.kill()
        self.c.start()
        self.c.wait_ready()
        self.assertEqual(len(self.c.api.get("/api/v1/cluster")["nodes"]), 1)


class Death(unittest.TestCase):
    """Of one of two nodes in an apply that has been made: both end at what it saved."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=QUICK, crash_file=True)
        cls.addClassCleanup(cls.lab.close)
        cls.one, cls.other = cls.lab.set_up().nodes
        cls.one.api.unlock = True
        join(cls.other, cls.one)
        cls.maxconn = itertools.count(3000)

    def walk(self, who, place):
        """Returns what who asked was told."""
        node.wait_for(lambda: seen(self.one, self.other)["relation"] == "in_step", "in step")
        value, before = next(self.maxconn), head(self.one)
        self.one.api.patch("/api/v1/haproxy", maxconn=value)
        task = who.dies_at(place, self.one.api.apply)
        for one in self.lab.nodes:
            one.wait_ready()
        node.wait_for(lambda: head(self.one) == head(self.other) != before, "one head")
        for one in self.lab.nodes:
            self.assertEqual(one.api.get("/api/v1/haproxy")["maxconn"], value)
            self.assertTrue(one.api.get("/api/v1/verify")["ok"])
            node.wait_for(lambda o=one: "maxconn %d\n" % value in o.config(), "it runs that")
        return task

    def test_who_dies_at_the_push_has_committed_and_the_other_heals(self):
        for place in edges(PUSHING):
            with self.subTest(place):
                self.walk(self.one, place)

    def test_who_dies_as_it_takes_over_heals(self):
        for place in ("store_before_adopt", "store_after_adopt"):
            with self.subTest(place):
                task = self.walk(self.other, place)
                self.assertEqual((task["state"], task["result"]["nodes"][0]["state"]),
                                 ("ok", "failed"), task)

    def test_states_come_with_the_load_not_after_it(self):
        self.one.api.expect(200, "POST", "/api/v1/changes?wait=1", {"apply": True, "ops": [
            {"op": "create", "kind": "server", "name": "s",
             "body": {"name": "s", "address": HUB, "port": 9}},
            {"op": "create", "kind": "pool", "name": "p",
             "body": {"name": "p", "members": [{"server": "s"}]}}]})
        in_step(self.lab.nodes)
        self.lab.cut(self.one, self.other)
        self.one.api.patch("/api/v1/haproxy", maxconn=next(self.maxconn))
        self.assertEqual(self.one.api.apply()["state"], "ok")
        self.one.api.expect(200, "PUT", "/api/v1/servers/s/state", {"state": "drain"})
        self.other.arm("apply_commit_before")
        self.other.process.send_signal(signal.SIGSTOP)  # no new lockstepd yet
        self.lab.join_all()
        node.wait_for(lambda: not self.other.pids("lockstepd"), "it dies")
        self.assertEqual(drained(self.other, "p"), {"s"})
        self.other.put_up()
        in_step(self.lab.nodes)


class Twice(unittest.TestCase):
    def test_who_hands_on_what_is_being_taken_over_is_told_that_it_runs(self):
        """The first one's push is stored and not ended; only its end looks at HAProxy here."""
        with Cluster(2, tunables=dict(TUNABLES, status_round_ms=60000)) as lab:
            one, other = lab.set_up().nodes
            one.api.unlock = True
            join(other, one)
            in_step(lab.nodes)
            before = head(other)
            one.api.patch("/api/v1/haproxy", maxconn=3000)
            with concurrent.futures.ThreadPoolExecutor(1) as pool, Held(other, "settle") as held:
                applied = pool.submit(one.api.apply)
                self.assertTrue(held.came.wait(30))
                told = Caller(other).put(Caller(one).read([before]))
                self.assertEqual((told.status, told.json["state"]), (200, "same"), told)
                self.assertNotEqual(told.json["head"], before)
                self.assertEqual(told.json["running"], told.json["head"])
                held.released.set()
                task = applied.result()
            self.assertEqual([n["state"] for n in task["result"]["nodes"]], ["ok"], task)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
