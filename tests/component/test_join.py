#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Joining that is interrupted, and keys that are not the right ones. Real nodes on a bridge."""
import hashlib
import json
import unittest

import node
from cluster import TUNABLES, Cluster, head, in_step, join, key_of
from node import Node
from peer import Caller, FakePeer
from test_members import members

# Where the daemon of the one that joins dies: before and after it is known to the node that it joins,
# when all know it, and at the edges of taking the configuration over.
PLACES = ("join_before_introduce", "join_after_introduce", "join_after_all", "store_before_adopt",
          "store_after_adopt")


def print_of(key):
    return hashlib.sha256(key.encode()).hexdigest()[:8]


class Interrupted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.a, _ = cls.lab.set_up().nodes
        cls.a.api.unlock = True  # there is no VIP
        cls.edit(cls.a, "of the cluster")

    @classmethod
    def edit(cls, one, title):
        one.api.patch("/api/v1/haproxy", error_title=title)
        assert one.api.apply()["state"] == "ok"

    def fresh(self, name):
        """Another node in the place of the last one, with a history of its own."""
        former = self.lab.nodes[1]
        former.close()
        one = Node(name, crash_file=True, ns=former.ns, address=former.api.address,
                   tunables=TUNABLES)
        self.lab.nodes[1] = one
        one.set_up()
        one.api.unlock = True
        self.edit(one, "of " + name)
        return one

    def die_and_repeat(self, one, place):
        before, own_key = head(one), one.api.key
        self.assertIsNone(one.dies_at(place, lambda: join(one, self.a)))
        one.wait_ready()
        # Whose configuration it has now says whose keys it takes.
        one.api.key = self.a.api.key if place == "store_after_adopt" else own_key
        self.assertTrue(one.api.get("/api/v1/verify")["ok"])
        self.assertEqual(head(one), head(self.a) if place == "store_after_adopt" else before)
        join(one, self.a)
        in_step([self.a, one])
        self.assertEqual(one.api.get("/api/v1/haproxy")["error_title"], "of the cluster")
        # What it had is in its history, and can be had again.
        one.api.expect(200, "POST", "/api/v1/commits/%s/restore" % before)
        self.assertEqual(one.api.get("/api/v1/haproxy")["error_title"], "of " + one.name)
        one.api.expect(204, "DELETE", "/api/v1/draft")
        self.assertTrue(one.api.get("/api/v1/verify")["ok"])

    def test_it_can_be_repeated_wherever_it_died(self):
        for i, place in enumerate(PLACES):
            with self.subTest(place=place):
                one = self.fresh("x%d" % i)
                self.die_and_repeat(one, place)
                one.stop()
                self.a.api.expect(200, "POST", "/api/v1/cluster/forget", {"node": one.name})


class Keys(unittest.TestCase):
    """Two nodes, and a third that the test plays."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.a, cls.b = cls.lab.set_up().nodes
        join(cls.b, cls.a)
        cls.c = FakePeer("n3", "10.77.0.1")
        cls.addClassCleanup(cls.c.close)
        cls.c.enter(cls.b)

    def verdict(self, one, authorization):
        connection = one.api.open(20)
        try:
            headers = {"Authorization": authorization} if authorization else {}
            connection.request("GET", "/peer/v1/health", None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def test_1_each_kind_of_wrong_key_has_its_verdict(self):
        right = key_of(self.a)["key"]
        self.assertEqual(self.verdict(self.a, "Bearer " + right)[0], 200)
        for sent in (None, "Basic " + right, "Bearer " + "schl\u00fcssel", "Bearer "):
            status, told = self.verdict(self.a, sent)
            self.assertEqual((status, told["code"]), (401, "no_peer_key"), sent)
            # Who presents none learns nothing beyond what any answer has.
            self.assertEqual(set(told), {"type", "title", "status", "code", "detail", "node"})
            for secret in (print_of(right), "0.1.0", "n1"):
                self.assertNotIn(secret, told["detail"])
        for other in ("x" * 43, key_of(self.b)["key"]):
            status, told = self.verdict(self.a, "Bearer " + other)
            self.assertEqual((status, told["code"]), (401, "wrong_peer_key"))
            self.assertIn("fingerprint %s arrived" % print_of(other), told["detail"])
            self.assertIn("node n1 (release 0.1.0) has %s" % print_of(right), told["detail"])
            self.assertNotIn(right, told["detail"])

    def tell(self, by, **fields):
        """by: id of the node that tells n2 of n3."""
        record = {**members(self.b)[self.c.id], **fields}
        answer = Caller(self.b, node_id=by).raw("POST", "/peer/v1/members", {"members": [record]})
        self.assertEqual(answer.status, 200, answer)
        # As it was then: n2 asks n3, which says its own one again.
        return {m["id"]: m for m in answer.json["members"]}[self.c.id]["key"]

    def test_2_a_key_of_another_node_only_fills_a_gap(self):
        self.assertEqual(members(self.b)[self.c.id]["key"], self.c.key)
        self.assertEqual(self.tell(key_of(self.a)["id"], key="wrong"), self.c.key)
        seq = members(self.b)[self.c.id]["seq"] + 1
        self.assertEqual(self.tell(key_of(self.a)["id"], key="wrong", seq=seq), self.c.key)
        # n3 takes any: that it says so itself is what counts.
        self.assertEqual(self.tell(self.c.id, key="its-own-new-one"), "its-own-new-one")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
