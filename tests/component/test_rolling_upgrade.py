#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three nodes that get the next release one after another, while visitors come and the cluster is
edited: they stay in step, nobody is handed what it does not understand, and no visitor notices more
than the one move of the VIP."""
import collections
import json
import os
import re
import time
import unittest

import node
from backend import Backend
from cluster import HUB, TUNABLES, Cluster, head, join
from lab import run
from load import Load
from peer import FakePeer

NEXT = os.path.join(node.BUILD, "next", "build")  # tests/tools/next_release.py
VIP = "10.77.0.100"
ROUNDS = 10
FAILOVER_S = 7  # a visitor whose answer was under way waits 5 s for it


def came(load, before):
    """Visitors of each kind were served since."""
    return all(load.counts[kind] > count for kind, count in before.items())


class Rolling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.a, cls.b, cls.c = cls.lab.nodes
        cls.a.api.create("servers", name="s1", address=HUB, port=9)
        cls.a.api.create("pools", name="p1", members=[{"server": "s1"}])
        cls.publish(cls.a, "first")
        for other in (cls.b, cls.c):
            join(other, cls.a)
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        cls.release = cls.a.api.get("/api/v1/status")["release"]
        cls.schema = cls.stored(cls.a)["schema_version"]

    @classmethod
    def publish(cls, one, name):
        one.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://%s.test" % name, "to": [cls.backend.target]})
        task = one.api.apply()
        assert task["state"] == "ok", task
        return task

    @staticmethod
    def stored(one):
        return one.api.get("/api/v1/status")["head"]

    @staticmethod
    def table(one):
        return {n["name"]: n for n in one.api.get("/api/v1/cluster")["nodes"]}

    def in_step(self, count=3):
        def all_in_step():
            tables = [self.table(one) for one in self.lab.nodes]
            return all(len(t) == count and all(n["relation"] == "in_step" for n in t.values())
                       for t in tables)
        node.wait_for(all_in_step, "in step")
        self.assertEqual(len({head(one) for one in self.lab.nodes}), 1)

    def upgrade(self, one):
        one.stop()
        one.build = NEXT
        one.start()
        one.wait_ready()
        release = one.api.get("/api/v1/status")["release"]
        self.assertNotEqual(release, self.release)
        node.wait_for(lambda: all(self.table(o)[one.name]["release"] == release
                                  for o in self.lab.nodes), "all see its release")

    def requests(self):
        """How many pieces of data each has sent on each connection to the API of another. Each
        round sends one, unless there is more to tell than how it is."""
        found = {}
        others = {one.ns.address for one in self.lab.nodes}
        for one in self.lab.nodes:
            with one.ns:
                told = run("ss", "-tinHO", "state", "established", "dport", "=", ":8443").stdout
            for local, remote, rest in re.findall(r"(\S+) +(\S+):8443\s(.*)", told):
                sent = re.search(r"\bdata_segs_out:(\d+)", rest)
                if remote in others and sent:
                    found[one.name, remote, local] = int(sent[1])
        return found

    def seen_in_rounds(self):
        """Heads and generations of all while each has asked each of the others so often."""
        counts, last, seen = collections.Counter(), {}, set()

        def done():
            now = self.requests()
            for connection, sent in now.items():
                counts[connection[:2]] += sent - last.get(connection, sent)
            last.clear()
            last.update(now)
            seen.add(tuple((head(one), one.generation()) for one in self.lab.nodes))
            return len(counts) == 6 and min(counts.values()) >= ROUNDS
        node.wait_for(done, "%d rounds" % ROUNDS)
        return seen

    def told(self, names):
        """Each node names these conditions, and no other."""
        def is_so():
            return all({c["name"] for c in one.api.get("/api/v1/cluster")["conditions"]} == names
                       for one in self.lab.nodes)
        node.wait_for(is_so, "conditions are %s" % names)

    @staticmethod
    def set_pool(one, **fields):
        """Not as openapi.json says, which does not know these."""
        tag = one.api.raw("GET", "/api/v1/pools/p1").headers["ETag"]
        return one.api.raw("PATCH", "/api/v1/pools/p1", json.dumps(fields),
                           {"Content-Type": "application/json", "If-Match": tag})

    def set_owner(self, one):
        return self.set_pool(one, owner="shop")

    def set_role(self, one):
        return self.set_pool(one, members=[{"server": "s1", "role": "spare"}])

    def make_zone(self, one):
        return one.api.raw("POST", "/api/v1/zones", json.dumps({"name": "north"}),
                           {"Content-Type": "application/json"})

    # What the former release does not know: how it is set, and what is named then.
    LATER = ((set_owner, "pool", "p1", "/owner"),
             (set_role, "pool", "p1", "/members/0/role"),
             (make_zone, "zone", "north", ""))

    def refuses(self, one, behind):
        named = ["%s (release %s)" % (o.name, self.release) for o in behind]
        for change, *place in self.LATER:
            answer = change(self, one)
            self.assertEqual(answer.status, 422, answer)
            self.assertTrue([n for n in named if n in answer.json["detail"]], answer)
            self.assertEqual([(e["code"], e["kind"], e["name"], e["pointer"])
                              for e in answer.json["errors"]], [("newer_release", *place)])

    def test_1_one_after_another(self):
        self.lab.vip(self.a, VIP)
        with self.lab.client:
            load = Load(VIP, 80, "first.test").start()
        self.addCleanup(load.ended.set)
        order = [self.b, self.c, self.a]
        for done, one in enumerate(order, 1):
            if one is self.a:
                moved = time.time()
                self.lab.vip(self.b, VIP)
                node.wait_for(lambda seen=dict(load.counts): came(load, seen), "all are served")
            before, visits = head(one), dict(load.counts)
            self.upgrade(one)
            self.in_step()
            self.assertTrue(came(load, visits), (load.counts, visits, load.failures))
            # No round makes or moves a revision, or loads one.
            seen = self.seen_in_rounds()
            self.assertEqual(len(seen), 1, seen)
            self.assertEqual({commit for commit, _ in seen.pop()}, {before})
            behind = order[done:]
            self.told({"releases_differ"} if behind else set())
            if not behind:
                break
            self.refuses(one, behind)
            for editor in (one, behind[0]):
                task = self.publish(editor, "on-%s-%d" % (editor.name, done))
                self.assertEqual(task["result"]["commit"], head(self.a))
                self.in_step()
                self.assertEqual(self.stored(self.a)["schema_version"], self.schema)
        load.stop()
        self.check_failures(load.failures, moved)

    def check_failures(self, failures, moved):
        """Who was there when the VIP moved may have lost what was under way, once."""
        for _, at, why in failures:
            self.assertTrue(moved <= at <= moved + FAILOVER_S, (at - moved, why))
        counts = collections.Counter(kind for kind, _, _ in failures)
        self.assertEqual(counts["websocket"], 1, failures)
        self.assertEqual(max(counts.values()), 1, failures)

    def test_2_what_is_new_is_there_for_all_then(self):
        self.assertEqual(self.set_owner(self.b).status, 200)
        self.assertEqual(self.set_role(self.b).status, 200)
        self.assertEqual(self.make_zone(self.b).status, 201)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.in_step()
        self.assertEqual(self.stored(self.c)["schema_version"], self.schema + 1)
        for one in self.lab.nodes:
            pool = one.api.raw("GET", "/api/v1/pools/p1").json
            self.assertEqual((pool["owner"], pool["members"][0]["role"]), ("shop", "spare"))
            self.assertEqual(one.api.raw("GET", "/api/v1/zones/north").status, 200)
            self.assertTrue(one.api.get("/api/v1/verify")["ok"])
        self.told(set())

    def test_3_who_would_not_understand_it_is_handed_nothing(self):
        old = FakePeer("old", HUB, release=self.release, schema_version=self.schema)
        self.addCleanup(old.close)
        old.enter(self.a)
        node.wait_for(lambda: self.table(self.a).get("old", {}).get("answers"), "it is asked")
        task = self.publish(self.a, "last")
        handed = {n["node"]: (n["state"], n["code"]) for n in task["result"]["nodes"]}
        self.assertEqual(handed.pop("old"), ("failed", "newer_release"))
        self.assertEqual({state for state, _ in handed.values()}, {"ok"}, handed)
        node.wait_for(lambda: len({head(one) for one in self.lab.nodes}) == 1, "one head")
        self.assertEqual(old.pushed, [])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
