#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A draft lives on one node, is seen on all, and can be taken over by another one; what changed
meanwhile below it is a conflict. Real nodes on a bridge."""
import contextlib
import hashlib
import json
import os
import sqlite3
import unittest

import node
from api import Api
from authority import Authority
from cluster import QUICK, Cluster, head, in_step, join, key_of

# What is larger than a question no longer gets through; answers do.
LARGE = "add rule bridge lab forward iifname %s oifname %s meta length > 1000 drop\n"
SERVERS = 60  # more than fit into one packet, when they are named one by one


def rows(one):
    """(kind, name) -> change."""
    return {(c["kind"], c["name"]): c for c in one.api.get("/api/v1/draft")["changes"]}


def drafts(one):
    return {n["node"]: n for n in one.api.get("/api/v1/cluster/drafts")["nodes"]}


def objhash(content):
    if content is None:
        return None
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Drafts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A link that is cut in the middle of an answer is waited for so long.
        cls.lab = Cluster(2, tunables=dict(QUICK, sync_read_ms=3000), crash_file=True)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        cls.authority = Authority(cls.a.root, "authority")
        for name in ("p1", "p2"):
            cls.a.api.create("pools", name=name)
        assert cls.a.api.apply()["state"] == "ok"
        join(cls.b, cls.a)
        cls.first = head(cls.a)

    def setUp(self):
        in_step(self.lab.nodes)

    def tearDown(self):
        self.lab.join_all()
        for one in self.lab.nodes:
            one.wait_ready()
            one.api.expect(204, "DELETE", "/api/v1/draft")
        in_step(self.lab.nodes)
        if head(self.a) != self.first:
            self.a.api.expect(200, "POST", "/api/v1/commits/%s/restore" % self.first, {})
            assert self.a.api.apply()["state"] == "ok", "restored"
            type(self).first = head(self.a)

    def take(self, status=200, **more):
        return self.a.api.expect(status, "POST", "/api/v1/cluster/drafts/take",
                                 {"node": "n2", **more})

    def draft_on_b(self):
        """A new server, a changed pool, a deleted pool, a certificate with its key."""
        chain, key = self.authority.issue("draft.test")
        self.key = key.read_text("ascii")
        self.b.api.create("servers", name="fresh", address="10.77.0.1", port=9)
        self.assertEqual(drafts(self.a)["n2"]["count"], 1)  # as it is now, not as of a round
        self.b.api.create("certificates", name="site", chain=chain.read_text("ascii"),
                          key=self.key)
        self.b.api.patch("/api/v1/pools/p1", balance="source")
        self.b.api.delete("/api/v1/pools/p2")
        self.assertEqual(drafts(self.a)["n2"]["count"], 4)
        return rows(self.b)

    def wait_drafted(self, count):
        node.wait_for(lambda: len(drafts(self.a)["n2"]["changes"] or []) == count, "told")

    # -- seen --------------------------------------------------------------------------------

    def test_seen_on_all_nodes_with_authors_and_names(self):
        self.draft_on_b()
        self.b.api.patch("/api/v1/node", note="a marker of this node")
        node.wait_for(lambda: drafts(self.a)["n2"]["count"] == 5, "all of it")
        for one in self.lab.nodes:
            told = drafts(one)
            self.assertEqual((told["n1"]["count"], told["n1"]["changes"]), (0, []))
            self.assertEqual((told["n2"]["count"], told["n2"]["local"]), (5, 1))
            seen = {(c["kind"], c["name"]): c for c in told["n2"]["changes"]}
            self.assertEqual(seen, {k: v for k, v in rows(self.b).items() if k[0] != "node"})
            self.assertEqual({c["author"] for c in seen.values()}, {"key test"})
            self.assertIsNone(told["n2"]["detail"])
        shown = self.a.cli("drafts").stdout
        self.assertIn("n2: 1 change of this node alone", shown)
        for name in ("fresh", "site", "p1", "p2"):
            self.assertIn(name, shown)

    def test_a_node_that_does_not_answer_is_said_to(self):
        self.draft_on_b()
        self.lab.cut(self.a, self.b)
        node.wait_for(lambda: drafts(self.a)["n2"]["count"] is None, "it is not known")
        self.assertTrue(drafts(self.a)["n2"]["detail"])
        self.assertEqual(drafts(self.a)["n1"]["count"], 0)
        self.assertIn("n2: ", self.take(503)["detail"])
        self.assertEqual(rows(self.a), {})

    def test_the_peer_route_is_for_peers(self):
        self.draft_on_b()
        for path in ("/peer/v1/draft", "/peer/v1/draft?content=1"):
            self.assertIn(self.b.api.raw("GET", path).status, (401, 403))
        api = Api(self.b.api.address, self.b.api.port, key_of(self.b)["key"])
        for taken in ("x", [["pool"]], [["pool", "p1", None]], [["node", "node", None]],
                      [["nothing", "0123456789abcdef", None]], [["pool", 1, "x"]]):
            answer = api.call("POST", "/peer/v1/draft/taken", {"taken": taken})
            self.assertIn(answer.status, (400, 422), answer)
        self.assertEqual(len(rows(self.b)), 4)

    # -- taken over --------------------------------------------------------------------------

    def test_taken_over_with_authors_and_secrets_and_applied(self):
        before = self.draft_on_b()
        self.a.api.create("pools", name="own")
        self.b.api.patch("/api/v1/node", note="stays")
        taken = self.take()
        self.assertEqual((taken["taken"], taken["stored"], taken["left"]), (4, 4, 0), taken)
        self.assertEqual(set(rows(self.b)), {("node", "n2")})
        mine = rows(self.a)
        self.assertEqual(mine.pop(("pool", "own"))["change"], "added")
        self.assertEqual(mine, before)
        self.assertEqual(self.a.api.apply()["state"], "ok")
        in_step(self.lab.nodes)
        for one in self.lab.nodes:
            one.api.expect(404, "GET", "/api/v1/pools/p2")
            self.assertEqual(one.api.get("/api/v1/pools/p1")["balance"], "source")
            # Opens what is sealed, and finds the hash of what was drafted.
            self.assertTrue(one.api.get("/api/v1/verify")["ok"])
            self.assertTrue(one.api.get("/api/v1/certificates/site")["key"]["set"])
        with contextlib.closing(sqlite3.connect(
                "file:%s?mode=ro" % os.path.join(self.a.state, "data", "lockstep.db"),
                uri=True)) as base:
            stored = b"".join(bytes(r[0]) for r in base.execute("SELECT data FROM body"))
        self.assertNotIn(self.key.encode()[40:100], stored)

    def test_nothing_to_take(self):
        taken = self.take()
        self.assertEqual((taken["taken"], taken["stored"], taken["left"]), (0, 0, 0))
        self.assertNotIn("this one", self.take(404, node="n9")["detail"])
        self.assertIn("this one", self.take(404, node="n1")["detail"])
        self.take(422, overlap="mine")

    def test_what_both_drafts_change_is_named_and_nothing_done(self):
        self.draft_on_b()
        self.a.api.patch("/api/v1/pools/p1", balance="leastconn")
        self.a.api.create("servers", name="fresh", address="10.77.0.1", port=10)
        before = rows(self.a), rows(self.b)
        refused = self.take(409)
        self.assertIn("pool p1", refused["detail"])
        self.assertIn("server fresh", refused["detail"])
        self.assertEqual((rows(self.a), rows(self.b)), before)
        # Of this node's drafts it is asked; the rest comes.
        taken = self.take(overlap="ours")
        self.assertEqual((taken["taken"], taken["stored"], taken["left"]), (4, 2, 0), taken)
        self.assertEqual(self.a.api.get("/api/v1/pools/p1")["balance"], "leastconn")
        self.assertEqual(self.a.api.get("/api/v1/servers/fresh")["port"], 10)
        self.assertEqual(rows(self.b), {})

    def test_theirs_takes_the_place_of_ours(self):
        before = self.draft_on_b()
        self.a.api.patch("/api/v1/pools/p1", balance="leastconn")
        self.a.api.create("servers", name="fresh", address="10.77.0.1", port=10)
        taken = self.take(overlap="theirs")
        self.assertEqual((taken["stored"], taken["left"]), (4, 0), taken)
        self.assertEqual(rows(self.a), before)
        self.assertEqual(self.a.api.get("/api/v1/pools/p1")["balance"], "source")
        self.assertEqual(self.a.api.get("/api/v1/servers/fresh")["port"], 9)

    # -- interrupted -------------------------------------------------------------------------

    def assert_whole(self, before):
        """Each change is on one of the nodes, or on both."""
        self.assertEqual({**rows(self.b), **rows(self.a)}, before)

    def test_a_link_cut_in_the_middle(self):
        ops = [{"op": "create", "kind": "server",
                "body": {"name": "s%d" % i, "address": "10.77.0.1", "port": 1000 + i}}
               for i in range(SERVERS)]
        self.b.api.expect(200, "POST", "/api/v1/changes", {"ops": ops})
        self.wait_drafted(SERVERS)
        before = rows(self.b)
        self.lab.filter(LARGE % ("n1", "n2"))
        try:
            taken = self.take()
        finally:
            self.lab.filter("flush chain bridge lab forward\n"
                            "add rule bridge lab forward iifname . oifname @cut drop\n")
        self.assertEqual((taken["taken"], taken["stored"], taken["left"]),
                         (SERVERS, SERVERS, None), taken)
        self.assertTrue(taken["detail"])
        self.assertEqual((rows(self.a), rows(self.b)), (before, before))
        in_step(self.lab.nodes)
        taken = self.take()
        self.assertEqual((taken["taken"], taken["stored"], taken["left"]), (SERVERS, 0, 0), taken)
        self.assertEqual((rows(self.a), rows(self.b)), (before, {}))

    def test_who_dies_in_the_middle_has_lost_nothing(self):
        for who, place in ((self.a, "draft_take_before"), (self.a, "draft_take_after"),
                           (self.b, "draft_hand_before"), (self.b, "draft_hand_after")):
            with self.subTest(place):
                before = self.draft_on_b()
                self.assertEqual(rows(self.a), {})
                who.dies_at(place, lambda: self.a.api.call(
                    "POST", "/api/v1/cluster/drafts/take", {"node": "n2"}))
                who.wait_ready()
                self.assert_whole(before)
                in_step(self.lab.nodes)
                self.assertEqual(self.take()["left"], 0)
                self.assertEqual((rows(self.a), rows(self.b)), (before, {}))
                self.a.api.expect(204, "DELETE", "/api/v1/draft")

    def test_what_was_edited_on_while_it_was_taken_stays_there(self):
        self.draft_on_b()
        peer = Api(self.b.api.address, self.b.api.port, key_of(self.b)["key"])
        read = peer.call("GET", "/peer/v1/draft?content=1").json["rows"]
        self.b.api.patch("/api/v1/pools/p1", balance="leastconn")
        taken = [[r["kind"], r["id"], objhash(r["object"])] for r in read]
        answer = peer.call("POST", "/peer/v1/draft/taken", {"taken": taken})
        self.assertEqual((answer.status, answer.json["left"]), (200, 1), answer)
        self.assertEqual(set(rows(self.b)), {("pool", "p1")})
        self.assertEqual(self.b.api.get("/api/v1/pools/p1")["balance"], "leastconn")

    # -- conflicts ---------------------------------------------------------------------------

    def test_a_base_that_moved_is_a_conflict_and_the_rest_rebases(self):
        self.b.api.patch("/api/v1/pools/p1", balance="source")
        self.b.api.patch("/api/v1/pools/p2", balance="source")
        self.a.api.patch("/api/v1/pools/p1", balance="leastconn")
        self.assertEqual(self.a.api.apply()["state"], "ok")
        in_step(self.lab.nodes)
        told = rows(self.b)
        self.assertTrue(told["pool", "p1"]["conflict"])
        self.assertFalse(told["pool", "p2"]["conflict"])
        refused = self.b.api.call("POST", "/api/v1/config/apply", {})
        self.assertEqual((refused.status, refused.json["code"]), (409, "conflict"), refused)
        self.assertIn("pool p1", refused.json["detail"])
        # It stays one on the node that takes it over.
        self.wait_drafted(2)
        self.take()
        self.assertEqual(rows(self.a), told)
        refused = self.a.api.expect(409, "POST", "/api/v1/config/apply", {})
        self.assertIn("pool p1", refused["detail"])
        task = self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1",
                                 {"only": {"objects": [{"kind": "pool", "name": "p2"}]}})
        self.assertEqual(task["state"], "ok", task)
        self.a.api.expect(204, "DELETE", "/api/v1/draft/pool/p1")
        in_step(self.lab.nodes)
        for one in self.lab.nodes:
            self.assertEqual(one.api.get("/api/v1/pools/p1")["balance"], "leastconn")
            self.assertEqual(one.api.get("/api/v1/pools/p2")["balance"], "source")

    def test_after_a_cut_the_drafts_below_the_heal(self):
        self.lab.cut(self.a, self.b)
        self.b.api.patch("/api/v1/pools/p1", balance="source")
        self.b.api.patch("/api/v1/haproxy", hard_stop_after_s=90)
        self.a.api.patch("/api/v1/pools/p1", balance="random")
        self.assertEqual(self.a.api.apply()["state"], "ok")
        self.lab.join_all()
        in_step(self.lab.nodes)
        told = rows(self.b)
        self.assertEqual([told[k]["conflict"] for k in (("pool", "p1"), ("haproxy", "haproxy"))],
                         [True, False])
        self.assertIn("pool p1", self.b.api.expect(
            409, "POST", "/api/v1/config/apply", {})["detail"])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
