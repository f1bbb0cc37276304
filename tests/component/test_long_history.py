#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes whose history is longer than one message holds, with the piece size of the product: joined,
also when the new node dies in between, healed, passed over by a push, overwritten, and asked how
they stand."""
import time
import unittest

import node
from cluster import TUNABLES, Cluster, head, join, key_of, lengthen, seen
from peer import Caller

LONG = 12000
PIECE = 5000  # sync_piece_commits


class Long(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES, crash_file=True)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        cls.first = head(cls.a)

    def in_step(self):
        node.wait_for(lambda: head(self.a) == head(self.b), "one head", 60)
        for one in self.lab.nodes:
            self.assertTrue(one.api.get("/api/v1/verify")["ok"])

    def fetched(self):
        """In pieces, each time it did so."""
        words = " revisions of the history of n1 were fetched"
        return [int(line.split(words)[0].split()[-1])
                for line in self.b.log().splitlines() if words in line]

    def edit(self, one, maxconn):
        one.api.patch("/api/v1/haproxy", maxconn=maxconn)
        task = one.api.apply()
        self.assertEqual(task["state"], "ok", task)
        return task

    def test_1_a_join_goes_on_where_it_was_interrupted(self):
        lengthen(self.a, LONG)
        before = head(self.b)
        self.assertIsNone(self.b.dies_at("store_after_adopt", lambda: join(self.b, self.a)))
        self.b.wait_ready()
        self.assertEqual(head(self.b), before)
        self.assertTrue(self.b.api.get("/api/v1/verify")["ok"])
        newest = self.b.api.get("/api/v1/commits?limit=1")["items"][0]
        self.assertEqual(newest["rev"], PIECE)  # stored, of a chain that begins at 1
        join(self.b, self.a)
        self.b.api.key = self.a.api.key
        self.in_step()
        self.assertEqual(self.fetched(), [])  # the rest was one document

    def test_2_a_node_that_was_away_for_long_heals(self):
        self.b.stop()
        lengthen(self.a, LONG)
        self.b.start()
        self.b.wait_ready()
        self.in_step()
        self.assertEqual(self.fetched(), [PIECE])

    def test_3_a_push_passes_over_who_is_far_behind(self):
        self.b.api.patch("/api/v1/node", keep_in_step=False)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        lengthen(self.a, LONG)
        before = head(self.b)
        node.wait_for(lambda: seen(self.a, self.b)["answers"], "n2 answers")
        task = self.edit(self.a, 1001)
        self.assertEqual([(n["state"], n["code"]) for n in task["result"]["nodes"]],
                         [("skipped", "far_behind")])
        self.assertIsNone(seen(self.a, self.b)["refused"])
        self.assertEqual(head(self.b), before)
        self.b.api.patch("/api/v1/node", keep_in_step=True)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.in_step()

    def test_4_an_overwrite_brings_a_long_history(self):
        shared = seen(self.a, self.a)["stored"]
        self.a.stop()
        self.edit(self.b, 1002)
        lost = head(self.b)
        self.b.stop()
        lengthen(self.a, LONG)
        self.b.start()
        self.b.wait_ready()
        for one, other in ((self.a, self.b), (self.b, self.a)):
            node.wait_for(lambda o=one, p=other: seen(o, p)["shared"] == shared, "where they parted")
        done = self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        self.assertEqual([(n["discarded"], n["state"]) for n in done["nodes"]], [(lost, "ok")])
        self.in_step()
        self.assertEqual(head(self.a), done["commit"])
        self.b.api.expect(200, "GET", "/api/v1/commits/%s" % lost)

    def test_5_what_is_looked_at_or_replaced_after_a_long_time_apart_can_be_restored(self):
        """What came before it is not kept any more by the node that fetches it."""
        self.a.stop()
        self.edit(self.b, 1004)
        lost = head(self.b)
        self.b.stop()
        lengthen(self.a, LONG)
        self.edit(self.a, 1003)
        self.b.start()
        self.b.wait_ready()
        node.wait_for(lambda: seen(self.a, self.b)["relation"] == "diverged", "they diverged")
        differs = self.a.api.get("/api/v1/cluster/compare?node=n2")
        self.assertIn("haproxy", [o["kind"] for o in differs["objects"]])
        self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        self.in_step()
        # Not from the other one, which may be gone.
        self.b.stop()
        self.a.api.expect(200, "POST", "/api/v1/commits/%s/restore" % lost, {})
        self.assertEqual(self.a.api.get("/api/v1/haproxy")["maxconn"], 1004)
        self.assertTrue(self.a.api.get("/api/v1/verify")["ok"])
        self.a.api.expect(204, "DELETE", "/api/v1/draft")
        self.b.start()
        self.b.wait_ready()

    def test_6_who_is_far_behind_is_told_so_at_once_when_it_asks_again(self):
        caller = Caller(self.a, node_id=key_of(self.b)["id"])

        def ask():
            began = time.monotonic()
            said = caller.get("/peer/v1/health?head=" + self.first)
            self.assertTrue(said["leads"])
            return time.monotonic() - began

        first = ask()
        self.assertLess(min(ask() for _ in range(5)) * 5, first)
        self.edit(self.a, 1005)
        self.assertLess(min(ask() for _ in range(5)) * 5, first)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
