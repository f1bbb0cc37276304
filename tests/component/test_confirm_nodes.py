#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A revision that waits for its confirmation on three nodes: every one of them knows, the one that
has the VIP at the deadline goes back, and a confirmation reaches whoever was away."""
import itertools
import time
import unittest

import node
from cluster import QUICK, Cluster, head, in_step, join, seen
from lab import wait_for

VIP = "10.77.0.201"
CONFIRM_S = 10
PAST_S = 3  # so long after the deadline whoever goes back by mistake would have done so
BACK = "was not confirmed: going back"
TUNABLES = dict(QUICK, status_round_ms=200)


def waiting(one):
    return one.api.get("/api/v1/status")["confirm"]


def revision(one):
    return one.api.get("/api/v1/status")["head"]


def title(one):
    return one.api.get("/api/v1/haproxy")["error_title"]


class Case(unittest.TestCase):
    numbers = itertools.count(1)
    count = 3

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(cls.count, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes[:2]
        cls.c = cls.lab.nodes[-1]
        cls.prepare(cls.a.api)
        assert cls.a.api.apply()["state"] == "ok"
        for other in cls.lab.nodes[1:]:
            join(other, cls.a)

    @classmethod
    def prepare(cls, api):
        api.create("servers", name="s1", address="10.77.0.1", port=9)
        api.create("pools", name="p1", members=[{"server": "s1"}])

    def begin(self):
        """A revision on A that waits, when every node has it. Its deadline, of time.monotonic()."""
        in_step(self.lab.nodes)
        self.logged = {one.name: one.log().count(BACK) for one in self.lab.nodes}
        self.former = title(self.a)
        self.trial = "trial %d" % next(self.numbers)
        self.a.api.patch("/api/v1/haproxy", error_title=self.trial)
        deadline = time.monotonic() + CONFIRM_S
        task = self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1", {"confirm": CONFIRM_S})
        self.assertEqual(task["state"], "ok", task)
        self.rev = task["result"]["rev"]
        for one in self.lab.nodes:
            wait_for(lambda one=one: head(one) == task["result"]["commit"], one.name + " has it")
            told = waiting(one)
            self.assertEqual((told["rev"], told["node"], told["until"]),
                             (self.rev, "n1", task["result"]["confirm_until"]), one.name)
        return deadline

    def went_back(self, one):
        """How often it did, by itself."""
        return one.log().count(BACK) - self.logged[one.name]

    def assert_back(self, by, rev=None):
        """All have what was before, which these nodes did, each once."""
        wait_for(lambda: {title(one) for one in self.lab.nodes} == {self.former}, "all are back",
                 CONFIRM_S + 20)
        in_step(self.lab.nodes)
        self.assertEqual([waiting(one) for one in self.lab.nodes], [None] * self.count)
        self.assertEqual(revision(self.a)["rev"], rev or self.rev + 1)
        for one in self.lab.nodes:
            self.assertEqual(self.went_back(one), one in by, one.name)

    def stays_past(self, deadline, nodes):
        wait_for(lambda: time.monotonic() > deadline + PAST_S or
                 {title(one) for one in nodes} != {self.trial}, "time passes", CONFIRM_S + 20)
        self.assertEqual({title(one) for one in nodes}, {self.trial})


class ByTheHolder(Case):
    @classmethod
    def prepare(cls, api):
        super().prepare(api)
        api.create("vip_groups", name="public", addresses=[VIP + "/24"])

    def setUp(self):
        self.move(self.a)

    def move(self, to):
        self.lab.vip(to, VIP)
        for one in self.lab.nodes:
            if one.pids("lockstepd"):
                edit = "here" if one is to else "elsewhere"
                wait_for(lambda one=one, edit=edit: one.api.get("/api/v1/cluster")["edit"] == edit,
                         "%s: %s" % (one.name, edit))

    def test_1_after_the_one_that_applied_is_gone(self):
        self.begin()
        self.a.take_down("lockstepd")
        self.addCleanup(self.a.put_up)
        self.move(self.b)
        wait_for(lambda: (title(self.b), title(self.c)) == (self.former,) * 2, "back",
                 CONFIRM_S + 20)
        self.assertEqual(revision(self.b)["node"], "n2")
        self.a.put_up()
        self.a.wait(self.a.answers, "it is there again")
        self.assert_back(by=[self.b])

    def test_2_beside_the_one_that_applied(self):
        self.begin()
        self.move(self.b)
        told = [c for c in self.c.api.get("/api/v1/cluster")["conditions"]
                if c["name"] == "unconfirmed"]
        self.assertEqual([c["node"] for c in told], ["n3"])
        self.assertIn("revision %d, applied on n1; it goes back at 20" % self.rev, told[0]["cause"])
        shown = self.c.cli("status").stdout
        self.assertRegex(shown, r"(?m)^confirm .* revision %d from n1; it goes back" % self.rev)
        self.b.api.patch("/api/v1/haproxy", error_title="later")
        self.b.api.expect(409, "POST", "/api/v1/config/apply")
        self.b.api.expect(204, "DELETE", "/api/v1/draft")
        self.assert_back(by=[self.b])

    def test_3_with_what_was_changed_at_once_kept(self):
        self.begin()
        self.move(self.b)
        weight = 30 + next(self.numbers)
        self.b.api.expect(200, "PUT", "/api/v1/servers/s1/state", {"weight": weight})
        wait_for(lambda: len({head(one) for one in self.lab.nodes}) == 1, "all have the weight")
        self.assertEqual([waiting(one)["rev"] for one in self.lab.nodes], [self.rev] * 3)
        self.assert_back(by=[self.b], rev=self.rev + 2)
        for one in self.lab.nodes:
            self.assertEqual(one.api.get("/api/v1/servers/s1/state")["stored"]["weight"], weight, one.name)

    def test_4_confirmed_on_another_node(self):
        deadline = self.begin()
        self.a.take_down("lockstepd")
        self.addCleanup(self.a.put_up)
        self.move(self.b)
        self.c.api.expect(423, "POST", "/api/v1/config/confirm")
        for one in (self.a, self.b):
            self.lab.cut(self.c, one)
        self.addCleanup(self.lab.join_all)
        confirmed = self.b.api.expect(200, "POST", "/api/v1/config/confirm")
        self.assertEqual(confirmed["rev"], self.rev)
        self.assertEqual((waiting(self.b), revision(self.b)["summary"]),
                         (None, "confirmed revision %d" % self.rev))
        self.stays_past(deadline, [self.b, self.c])
        self.assertTrue(waiting(self.c)["failed"], "nobody it knows of goes back")
        self.a.put_up()
        self.a.wait(self.a.answers, "it is there again")
        self.lab.join_all()
        in_step(self.lab.nodes)
        self.move(self.c)
        self.stays_past(time.monotonic(), self.lab.nodes)
        self.assertEqual([self.went_back(one) for one in self.lab.nodes], [0, 0, 0])
        self.assertEqual([waiting(one) for one in self.lab.nodes], [None] * 3)

    def test_5_who_confirmed_may_be_lost_at_once(self):
        self.begin()
        self.a.api.expect(200, "POST", "/api/v1/config/confirm")
        self.a.take_down("lockstepd")
        self.addCleanup(self.a.put_up)
        self.assertEqual([waiting(one) for one in (self.b, self.c)], [None] * 2)
        self.a.put_up()
        self.a.wait(self.a.answers, "it is there again")
        in_step(self.lab.nodes)

    def test_6_two_holders_that_both_go_back_are_in_step_again(self):
        self.begin()
        self.lab.cut(self.a, self.b)
        self.lab.cut(self.c, self.b)
        self.addCleanup(self.lab.join_all)
        self.lab.hold(self.b, VIP)
        self.addCleanup(self.lab.vip, self.a, VIP)
        wait_for(lambda: {title(one) for one in self.lab.nodes} == {self.former}, "all are back",
                 CONFIRM_S + 20)
        self.assertNotEqual(head(self.a), head(self.b))
        self.lab.join_all()
        self.assert_back(by=[self.a, self.b])


class WithoutVip(Case):
    count = 2

    def test_the_one_that_applied_goes_back_when_it_is_there(self):
        self.a.api.unlock = self.b.api.unlock = True
        deadline = self.begin()
        self.a.take_down("lockstepd")
        self.addCleanup(self.a.put_up)
        self.stays_past(deadline, [self.b])
        told = waiting(self.b)
        self.assertEqual((told["failed"], told["retry_at"]), (True, None))
        self.assertIn("does not answer", self.b.cli("status").stdout)
        self.a.put_up()
        self.a.wait(self.a.answers, "it is there again")
        self.assert_back(by=[self.a])
        self.begin()
        self.assert_back(by=[self.a])

    def rename(self, one, name):
        one.api.patch("/api/v1/node", name=name)
        return one.api.call("POST", "/api/v1/config/apply?wait=1", {})

    def test_the_one_that_applied_keeps_its_name_until_then(self):
        self.a.api.unlock = self.b.api.unlock = True
        self.begin()
        refused = self.rename(self.a, "n9")
        self.assertEqual(refused.status, 409, refused)
        self.assertIn("rename then", refused.json["detail"])
        self.a.api.expect(204, "DELETE", "/api/v1/draft")
        self.assert_back(by=[self.a])
        self.assertEqual(self.rename(self.a, "n9").json["state"], "ok")
        self.assertEqual(self.rename(self.a, "n1").json["state"], "ok")
        in_step(self.lab.nodes)

    def test_what_waits_overwrites_nobody(self):
        self.a.api.unlock = self.b.api.unlock = True
        in_step(self.lab.nodes)
        self.lab.cut(self.a, self.b)
        self.addCleanup(self.lab.join_all)
        former = title(self.a)
        self.b.api.patch("/api/v1/haproxy", error_title="apart")
        self.assertEqual(self.b.api.apply()["state"], "ok")
        self.a.api.patch("/api/v1/haproxy", error_title="waits")
        self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1", {"confirm": CONFIRM_S})
        self.lab.join_all()
        wait_for(lambda: seen(self.a, self.b)["relation"] == "diverged", "they diverged")
        for plan in ("?plan=1", ""):
            refused = self.a.api.expect(409, "POST", "/api/v1/cluster/overwrite" + plan, {})
            self.assertIn("waits for its confirmation", refused["detail"])
        wait_for(lambda: title(self.a) == former, "back", CONFIRM_S + 20)
        self.assertEqual(title(self.b), "apart")
        self.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        in_step(self.lab.nodes)
        self.assertEqual(title(self.b), former)

    def test_nobody_waits_for_one_that_diverged(self):
        self.a.api.unlock = self.b.api.unlock = True
        deadline = self.begin()
        self.lab.cut(self.a, self.b)
        self.addCleanup(self.lab.join_all)
        self.a.api.expect(200, "POST", "/api/v1/config/confirm")
        self.b.api.expect(200, "PUT", "/api/v1/servers/s1/state", {"weight": 77})
        self.lab.join_all()
        wait_for(lambda: seen(self.b, self.a)["relation"] == "diverged", "they diverged")
        self.stays_past(deadline, [self.b])
        told = waiting(self.b)
        self.assertEqual((told["failed"], told["going_back"]), (True, False))
        self.b.api.expect(200, "POST", "/api/v1/config/confirm")
        self.b.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        in_step(self.lab.nodes)

    def test_who_does_not_want_to_wait_for_it_confirms(self):
        self.a.api.unlock = self.b.api.unlock = True
        deadline = self.begin()
        self.a.take_down("lockstepd")
        self.addCleanup(self.a.put_up)
        self.stays_past(deadline, [self.b])
        self.b.api.expect(200, "POST", "/api/v1/config/confirm")
        self.a.put_up()
        self.a.wait(self.a.answers, "it is there again")
        in_step(self.lab.nodes)
        self.stays_past(time.monotonic(), self.lab.nodes)
        self.assertEqual([self.went_back(one) for one in self.lab.nodes], [0, 0])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
