#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two nodes that take one name, or each other's: refused where that is known, else told by name, and
whatever they say of themselves after that arrives all the same. Real nodes on a bridge."""
import os
import shutil
import subprocess
import time
import unittest

import node
from cluster import TUNABLES, Cluster, head, in_step, join, key_of
from test_conditions import conditions
from test_members import agree, answers, members

VIP = "10.77.0.200"
ROTATING = dict(TUNABLES, former_key_ms=1000)


class Named(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=ROTATING)
        cls.addClassCleanup(cls.lab.close)
        cls.a, cls.b, cls.c = cls.lab.set_up().nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        for other in (cls.b, cls.c):
            join(other, cls.a)
        cls.ids = [key_of(n)["id"] for n in cls.lab.nodes]

    def rename(self, one, name):
        one.api.patch("/api/v1/node", name=name)
        self.assertEqual(one.api.apply()["state"], "ok")

    def refused(self, one, **fields):
        answer = one.api.expect(422, "PATCH", "/api/v1/node", fields,
                                {"If-Match": one.api.etag("/api/v1/node")})
        problem, = answer["errors"]
        return problem

    def names(self, one):
        known = {n["id"]: n["name"] for n in one.api.get("/api/v1/cluster")["nodes"]}
        return [known[i] for i in self.ids]

    def known(self, *wanted):
        """To all, in the order of the nodes, and whoever answers is in step."""
        for one in self.lab.nodes:
            node.wait_for(lambda o=one: self.names(o) == list(wanted),
                          "%s knows %s" % (one.name, wanted))
        node.wait_for(lambda: agree(self.lab.nodes), "all know the same")

    def clashes(self, one):
        return [c for c in conditions(one).values() if c["name"] == "member_clash"]

    def test_1_a_name_or_address_that_another_node_has_is_refused(self):
        in_step(self.lab.nodes)
        problem = self.refused(self.b, name="n1")
        self.assertEqual((problem["pointer"], problem["code"]), ("/name", "name_taken"))
        self.assertIn(key_of(self.a)["url"], problem["message"])
        problem = self.refused(self.b, url=key_of(self.a)["url"])
        self.assertEqual((problem["pointer"], problem["code"]), ("/url", "address_taken"))
        self.assertIn('"n1"', problem["message"])
        self.assertEqual(self.b.api.get("/api/v1/draft")["count"], 0)

    def test_2_two_swap_names_while_apart(self):
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.b, self.c)
        self.rename(self.a, "x1")
        self.rename(self.b, "x2")
        self.lab.join_all()
        self.known("x1", "x2", "n3")
        # Now each takes the name that the other had, and nobody has any more.
        self.lab.cut(self.a, self.b)
        self.rename(self.a, "n2")
        self.rename(self.b, "n1")
        self.lab.join_all()
        self.known("n2", "n1", "n3")
        self.rename(self.a, "x1")
        self.known("x1", "n1", "n3")
        self.rename(self.b, "n2")
        self.known("x1", "n2", "n3")
        self.rename(self.a, "n1")
        self.known("n1", "n2", "n3")
        in_step(self.lab.nodes)

    def test_3_two_take_one_name_while_apart(self):
        for other in (self.a, self.c):
            self.lab.cut(self.b, other)
        self.rename(self.a, "same")
        self.rename(self.b, "same")
        self.lab.join_all()
        self.known("same", "same", "n3")
        for one in self.lab.nodes:
            told, = self.clashes(one)
            self.assertEqual(told["severity"], "error")
            for id_ in self.ids[:2]:
                self.assertIn(id_[:8], told["cause"])
            self.assertEqual(told["page"], "docs/runbooks/member_clash.md")
        refused = self.c.api.expect(409, "POST", "/api/v1/cluster/forget", {"node": "same"})
        self.assertIn(self.ids[1], refused["detail"])
        refused = self.c.api.expect(422, "POST", "/api/v1/config/apply", {"skip_nodes": ["same"]})
        self.assertEqual(refused["errors"][0]["code"], "two_nodes")

    def test_4_the_next_key_of_one_of_them_arrives(self):
        old = key_of(self.b)["key"]
        new = self.b.api.expect(200, "POST", "/api/v1/cluster/key")["key"]
        node.wait_for(lambda: answers(self.b, old) == 401, "the former one has ended")
        for one in (self.a, self.c):
            node.wait_for(lambda o=one: members(o)[self.ids[1]]["key"] == new, "it has arrived")
        # Both revisions and both ways: a push reaches it, and one of its own goes out.
        for i, one in enumerate((self.a, self.b)):
            one.api.patch("/api/v1/haproxy", maxconn=3000 + i)
            task = one.api.apply()
            self.assertEqual([n["state"] for n in task["result"]["nodes"]], ["ok", "ok"], task)

    def test_5_it_ends_with_another_name(self):
        self.rename(self.b, "n2")
        self.known("same", "n2", "n3")
        for one in self.lab.nodes:
            node.wait_for(lambda o=one: not self.clashes(o), "it has ended")
        self.rename(self.a, "n1")
        in_step(self.lab.nodes)

    def test_6_an_address_that_became_a_vip_while_apart_stops_no_other_change(self):
        own = key_of(self.b)["url"]
        for other in (self.a, self.c):
            self.lab.cut(self.b, other)
        self.b.api.patch("/api/v1/node", url="https://%s:8443" % VIP)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.a.api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        self.assertEqual(self.a.api.apply()["state"], "ok")
        self.lab.join_all()
        node.wait_for(lambda: head(self.b) == head(self.a), "it heals")
        self.b.api.patch("/api/v1/node", note="moves soon")
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.b.api.patch("/api/v1/node", url=own)
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.assertEqual(self.refused(self.b, url="https://%s:8443" % VIP)["code"], "vip")
        in_step(self.lab.nodes)


def twice(one):
    return [c for c in one.api.get("/api/v1/cluster")["conditions"] if c["name"] == "node_twice"]


class Copy(unittest.TestCase):
    """The state directory of a node is started on another machine, too."""

    def test_it_is_told_and_the_others_are_left_in_peace(self):
        lab = Cluster(3, tunables=dict(TUNABLES, twin_again_ms=6000))
        self.addCleanup(lab.close)
        lab.set_up()
        a, b, copy = lab.nodes
        join(b, a)
        in_step([a, b])
        ident = key_of(b)["id"]
        b.stop()
        copy.stop()
        shutil.rmtree(copy.state)
        subprocess.run(["cp", "--archive", b.state, copy.state], check=True)
        # It has the paths of the other one's sockets.
        shutil.rmtree(os.path.join(copy.state, "generation"))
        for one in (b, copy):
            one.start()
            one.wait_ready()
            one.api.key = a.api.key
        for one in lab.nodes:
            told = node.wait_for(lambda o=one: twice(o), "%s tells of it" % one.name)
            self.assertEqual((told[0]["node"], told[0]["severity"]), ("n2", "error"))
            self.assertIn(ident[:8], told[0]["cause"])
        before = members(a)[ident]["seq"]
        began = time.monotonic()
        node.wait_for(lambda: time.monotonic() > began + 6, "60 rounds pass")
        self.assertLess(members(a)[ident]["seq"] - before, 20)
        # Both follow all the same.
        a.api.unlock = True
        a.api.patch("/api/v1/haproxy", maxconn=3000)
        self.assertEqual(a.api.apply()["state"], "ok")
        node.wait_for(lambda: len({head(one) for one in lab.nodes}) == 1, "all have it")
        copy.stop()
        node.wait_for(lambda: members(a)[ident]["url"] == key_of(b)["url"],
                      "the one that stays is known again")
        node.wait_for(lambda: not twice(a) and not twice(b), "it has ended", 30)
        in_step([a, b])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
