#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What each of three nodes knows of the others: keys that are replaced without a gap, nodes that
came while one was away, the way back to each, and nodes that belong no more. Real nodes on a
bridge.

C010 cannot happen: no record, push or setting says whether TLS is checked. Each call is checked
against the pin in the record of the called node, and an address without one is refused.
C011 cannot happen: a node is known by its id. At any address that leads to itself, also the VIP, it
meets its own (test_api.py), and the address that is kept is the one that a node says of itself.
C013 cannot happen: members are kept by the id that a node made itself, and each writes its own
address, so that there is no second entry to correct. Joining at another address of a member meets
the same id.
C017 cannot happen: a node makes its key itself and has stored it before it shows it; nobody types
the key of his own node."""
import threading
import time
import unittest

import node
from api import Api
from cluster import TUNABLES, Cluster, head, in_step, join, key_of, reconciles, seen
from peer import Caller
from test_permission import ROUTES
from traces import traces_of

ROTATING = dict(TUNABLES, former_key_ms=3000)


def members(one):
    """id -> record, as other nodes are told, with the keys."""
    peer = Api(one.api.address, one.api.port, key_of(one)["key"])
    return {m["id"]: m for m in peer.call("GET", "/peer/v1/members").json["members"]}


def agree(nodes):
    known = [members(n) for n in nodes]
    return all(k == known[0] for k in known) and known[0]


def answers(one, key):
    return Api(one.api.address, one.api.port, key).raw("GET", "/peer/v1/health").status


class Watch(threading.Thread):
    """Looks at the conditions of nodes, one look after another, until it is ended."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes
        self.seen = set()
        self.looks = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            for one in self.nodes:
                told = Api(one.api.address, one.api.port, one.api.key).get("/api/v1/cluster")
                self.seen |= {(one.name, c["name"], c["node"]) for c in told["conditions"]}
                self.looks += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        self.ended.set()
        self.join()


class Three(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=ROTATING)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        join(cls.b, cls.a)

    def apply(self, one, maxconn):
        one.api.patch("/api/v1/haproxy", maxconn=maxconn)
        task = one.api.apply()
        self.assertEqual(task["state"], "ok", task)
        return {n["node"]: n["detail"] or n["state"] for n in task["result"]["nodes"]}

    def test_1_a_node_comes_while_another_one_is_away(self):
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.a, self.c)
        node.wait_for(lambda: not seen(self.b, self.a)["answers"], "away")
        joined = join(self.c, self.b)
        self.assertEqual({n["name"]: n["knows"] for n in joined["nodes"]},
                         {"n1": False, "n2": True})
        in_step([self.b, self.c])
        # It is told by the one that it has heard of before, and knows the way to the new one.
        self.lab.join(self.a, self.b)
        node.wait_for(lambda: len(members(self.a)) == 3, "told")
        self.assertEqual(members(self.a)[key_of(self.c)["id"]]["key"], key_of(self.c)["key"])
        self.assertFalse(seen(self.a, self.c)["answers"])
        self.lab.join(self.a, self.c)
        in_step(self.lab.nodes)
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")

    def test_2_each_hands_on_to_all(self):
        for i, one in enumerate(self.lab.nodes):
            others = {n.name: "ok" for n in self.lab.nodes if n is not one}
            self.assertEqual(self.apply(one, 3000 + i), others)
            in_step(self.lab.nodes)

    def test_3_a_key_is_replaced_without_a_gap(self):
        old = key_of(self.a)["key"]
        with Watch(self.lab.nodes) as watch:
            new = self.a.api.expect(200, "POST", "/api/v1/cluster/key")["key"]
            self.assertNotEqual(old, new)
            self.assertEqual((answers(self.a, old), answers(self.a, new)), (200, 200))
            others = {n.name: "ok" for n in self.lab.nodes if n is not self.b}
            self.assertEqual(self.apply(self.b, 3100), others)
            node.wait_for(lambda: agree(self.lab.nodes), "all know the same")
            for one in (self.b, self.c):
                self.assertEqual(members(one)[key_of(self.a)["id"]]["key"], new)
            node.wait_for(lambda: answers(self.a, old) == 401, "the former one has ended")
            before = watch.looks
            node.wait_for(lambda: watch.looks > before + 9, "looked at after that, too")
        # Behind it is until it has what was applied, and a draft is there until then.
        told = {c for c in watch.seen if c[1] not in ("behind", "unapplied_draft", "not_running")}
        self.assertEqual(told, set())
        in_step(self.lab.nodes)

    def test_4_who_was_away_longer_than_the_former_key_is_taken_learns_the_new_one(self):
        self.lab.cut(self.a, self.c)
        self.lab.cut(self.b, self.c)
        node.wait_for(lambda: not seen(self.a, self.c)["answers"], "away")
        old = key_of(self.a)["key"]
        new = self.a.api.expect(200, "POST", "/api/v1/cluster/key")["key"]
        node.wait_for(lambda: answers(self.a, old) == 401, "the former one has ended")
        # Only its own node replaces a key: what the other one says of it is no word of its own.
        self.lab.join(self.b, self.c)
        node.wait_for(lambda: seen(self.b, self.c)["answers"], "back")
        self.lab.join(self.a, self.c)
        node.wait_for(lambda: members(self.c)[key_of(self.a)["id"]]["key"] == new, "learnt")
        in_step(self.lab.nodes)
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")
        self.assertEqual(self.apply(self.c, 3200), {"n1": "ok", "n2": "ok"})

    def test_5_a_key_is_replaced_and_the_node_begins_anew(self):
        """The node tells the others itself."""
        new = self.a.api.expect(200, "POST", "/api/v1/cluster/key")["key"]
        self.a.kill()
        self.a.start()
        self.a.wait_ready()
        self.assertEqual(key_of(self.a)["key"], new)
        in_step(self.lab.nodes)
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")
        self.assertEqual(self.apply(self.b, 3300), {"n1": "ok", "n3": "ok"})

    def test_6_a_node_that_moved_is_found_again(self):
        """The others learn another address from the node itself."""
        self.lab.cut(self.b, self.c)
        node.wait_for(lambda: not seen(self.b, self.c)["answers"], "cut")
        moved = "https://%s:%d" % (self.c.api.address, self.c.api.port)
        self.c.api.patch("/api/v1/node", url="https://n3.invalid:8443")
        self.assertEqual(self.c.api.apply()["state"], "ok")
        node.wait_for(lambda: seen(self.b, self.c)["url"] == "https://n3.invalid:8443",
                      "told by the one between them")
        self.c.api.patch("/api/v1/node", url=moved)
        self.assertEqual(self.c.api.apply()["state"], "ok")
        self.lab.join_all()
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: seen(o, self.c)["url"] == moved, "found")
        in_step(self.lab.nodes)
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")


class Restarted(unittest.TestCase):
    """A node that begins anew while its former key is taken: nobody is locked out by that, and
    the time is the one that was said."""

    FOR_S = 12

    def test_the_former_key_outlives_a_restart_and_not_its_time(self):
        lab = Cluster(2, tunables=dict(TUNABLES, former_key_ms=1000 * self.FOR_S))
        self.addCleanup(lab.close)
        one = lab.set_up().nodes[0]
        old = key_of(one)["key"]
        begun = time.monotonic()
        one.api.expect(200, "POST", "/api/v1/cluster/key")
        made = time.monotonic()
        one.kill()
        one.start()
        one.wait_ready()
        status = answers(one, old)
        self.assertLess(time.monotonic(), begun + self.FOR_S, "too slow to tell")
        self.assertEqual(status, 200)
        node.wait_for(lambda: answers(one, old) == 401, "it has ended")
        self.assertGreater(time.monotonic(), begun + self.FOR_S)
        self.assertLess(time.monotonic(), made + self.FOR_S + 5)
        one.kill()
        one.start()
        one.wait_ready()
        self.assertEqual(answers(one, old), 401)


class Removed(unittest.TestCase):
    """Three nodes of which one was forgotten, or left, while it or another one was away."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP

    def setUp(self):
        self.lab.join_all()
        if len(self.names(self.a)) == 2:
            node.wait_for(lambda: self.names(self.c) == {"n3"}, "it is alone")
        for one in (self.b, self.c):
            if len(self.names(one)) != 3:
                join(one, self.a)
                one.api.key = self.a.api.key
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")
        node.wait_for(lambda: len({head(n) for n in self.lab.nodes}) == 1, "one head")

    @staticmethod
    def names(one):
        return {n["name"] for n in one.api.get("/api/v1/cluster")["nodes"]}

    def away(self, one):
        for other in self.lab.nodes:
            if other is not one:
                self.lab.cut(one, other)
                node.wait_for(lambda o=other: not seen(o, one)["answers"], "away")

    def forget(self):
        """Of n3, which does not hear of it."""
        self.away(self.c)
        before = [(one, len(reconciles(one))) for one in (self.a, self.b)]
        told = self.a.api.expect(200, "POST", "/api/v1/cluster/forget", {"node": "n3"})
        self.assertIn("lockstep peerkey --new", told["notice"])
        node.wait_for(lambda: self.names(self.b) == {"n1", "n2"}, "the other one is told")
        for one, count in before:
            self.followed(one, count)

    def followed(self, one, count):
        """It had its files follow once more than that."""
        node.wait_for(lambda: [t["state"] for t in reconciles(one)[:-count or None]] == ["ok"],
                      one.name + " has its files follow")

    def test_1_what_a_forgotten_node_sends_is_refused_without_a_trace(self):
        self.forget()
        self.c.api.patch("/api/v1/haproxy", maxconn=4001)
        self.assertEqual(self.c.api.apply()["state"], "ok")
        push = Caller(self.c).read([head(self.a)])
        calls = [r for r in ROUTES if r["permission"] == "member"]
        self.assertLess({"peer_config_replace", "peer_check", "peer_trial"}, {r["id"] for r in calls})
        for one in (self.a, self.b):
            before = traces_of(one)
            caller = Caller(one, node_id=key_of(self.c)["id"])
            for route in calls:
                with self.subTest(one=one.name, route=route["id"]):
                    answer = caller.raw(route["method"], route["path"],
                                        push if "request" in route else None)
                    self.assertEqual((answer.status, answer.json["code"]), (403, "forgotten"))
                    self.assertRegex(answer.json["detail"], "^node n3 was forgotten on 2[0-9]{3}-"
                                     "[0-9-]+T[0-9:.]+Z and must join again$")
            told = caller.raw("POST", "/peer/v1/members", {"members": [
                {**members(self.c)[key_of(self.c)["id"]], "url": "https://n9.invalid:8443"}]})
            self.assertEqual(told.status, 200)
            known = {m["id"]: m for m in told.json["members"]}
            self.assertTrue(known[key_of(self.c)["id"]]["gone"])
            for answer in (told.json, caller.get("/peer/v1/members")):
                self.assertEqual([m for m in answer["members"] if "key" in m], [])
            self.assertEqual(traces_of(one), before)
        # The same is taken from a member.
        answer = Caller(self.a, node_id=key_of(self.b)["id"]).put(push)
        self.assertEqual((answer.status, answer.json["state"]), (200, "taken"))

    def test_2_who_changed_while_it_was_forgotten_does_not_come_back_by_that(self):
        self.forget()
        for _ in range(3):
            self.c.api.expect(200, "POST", "/api/v1/cluster/key")
        self.lab.join_all()
        node.wait_for(lambda: self.names(self.c) == {"n3"}, "it learns that it is alone")
        for one in (self.a, self.b):
            self.assertEqual(self.names(one), {"n1", "n2"})
        self.c.api.expect(200, "POST", "/api/v1/cluster/key")
        join(self.c, self.b)
        for one in self.lab.nodes:
            node.wait_for(lambda o=one: len(self.names(o)) == 3, "it is back")
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")

    def test_3_who_left_stays_away_though_one_has_not_heard_of_it(self):
        self.away(self.a)
        count = len(reconciles(self.c))
        told = self.c.api.expect(200, "POST", "/api/v1/cluster/leave")
        self.assertIn("lockstep peerkey --new", told["notice"])
        node.wait_for(lambda: self.names(self.b) == {"n1", "n2"}, "told")
        self.followed(self.c, count)
        before = traces_of(self.c)
        self.a.api.patch("/api/v1/haproxy", maxconn=4003)
        self.assertEqual(self.a.api.apply()["state"], "ok")
        push = Caller(self.a).read([head(self.c)])
        answer = Caller(self.c, node_id=key_of(self.a)["id"]).put(push)
        self.assertEqual((answer.status, answer.json["code"]), (403, "not_member"))
        self.assertEqual(traces_of(self.c), before)
        self.lab.join(self.a, self.c)
        node.wait_for(lambda: self.names(self.a) == {"n1", "n2"}, "it hears of it from who left")
        self.lab.join_all()
        node.wait_for(lambda: seen(self.a, self.b)["answers"], "back")
        self.assertEqual([self.names(n) for n in self.lab.nodes],
                         [{"n1", "n2"}, {"n1", "n2"}, {"n3"}])
        self.assertEqual(traces_of(self.c), before)

    def test_4_who_left_lets_in_who_has_not_heard_of_it_when_that_one_joins(self):
        self.away(self.a)
        self.c.api.expect(200, "POST", "/api/v1/cluster/leave")
        join(self.b, self.c)
        node.wait_for(lambda: agree([self.b, self.c]), "both know the same")

    def test_5_who_forgot_a_node_may_join_that_one(self):
        self.forget()
        self.lab.join_all()
        node.wait_for(lambda: self.names(self.c) == {"n3"}, "it learns that it is alone")
        self.b.api.expect(200, "POST", "/api/v1/cluster/leave")
        node.wait_for(lambda: self.names(self.a) == {"n1"}, "alone, too")
        join(self.b, self.c)
        self.b.api.key = self.c.api.key
        node.wait_for(lambda: agree([self.b, self.c]), "both know the same")
        join(self.a, self.c)
        self.a.api.key = self.c.api.key
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")
        for one in self.lab.nodes:
            self.assertEqual(self.names(one), {"n1", "n2", "n3"})


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
