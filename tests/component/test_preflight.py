#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a join looks at before it changes anything: each row says how it is, what was found and what to
do. A real node joins another one, or one that the test plays and that can be wrong in any way."""
import os
import socket
import unittest

import node
from cluster import BRIDGE, HUB, INSIDE, TUNABLES, Cluster, join, key_of
from lab import run
from peer import SCHEMA_VERSION, Caller, FakePeer

ROWS = ["reachable", "another node", "own address", "release", "clocks", "name", "way back",
        "no VIP", "same subnet", "ports"]
APART = "10.78.0.1"  # of no network that a node is in
NOBODY = "10.77.0.250"
VIP = "10.77.0.200"
PORT = 8181


class Preflight(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.a, cls.b = cls.lab.set_up().nodes
        cls.a.api.create("listeners", name="http", port=PORT)
        cls.a.api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        assert cls.a.api.apply()["state"] == "ok"
        with cls.lab.hub:
            run("ip", "address", "add", APART + "/24", "dev", BRIDGE)
        with cls.b.ns:
            run("ip", "route", "add", APART + "/32", "dev", INSIDE)

    def fake(self, address=HUB, name="n9"):
        fake = FakePeer(name, address)
        self.addCleanup(fake.close)
        fake.health = Caller(self.a).get("/peer/v1/health")
        fake.head = fake.health["head"]
        return fake

    @staticmethod
    def key_of_fake(fake):
        return {k: fake.record[k] for k in ("url", "key", "pin")}

    def plan(self, target):
        answer = self.b.api.expect(200, "POST", "/api/v1/cluster/join?plan=1", target)
        return {c["name"]: c for c in answer["checks"]}

    def only(self, target, name, state, found, advice):
        """Of all rows this one alone is not ok, and nothing is changed by it."""
        rows = self.plan(target)
        self.assertEqual({n: r["state"] for n, r in rows.items() if not r["ok"]}, {name: state}, rows)
        self.assertIn(found, rows[name]["detail"])
        self.assertIn(advice, rows[name]["next"])
        if state == "failed":
            refused = self.b.api.expect(409, "POST", "/api/v1/cluster/join", target)
            self.assertIn(name + ": ", refused["detail"])
        self.assertEqual(len(self.b.api.get("/api/v1/cluster")["nodes"]), 1)

    def set_url(self, url):
        self.b.api.patch("/api/v1/node", url=url)
        self.assertEqual(self.b.api.apply()["state"], "ok")

    def test_01_all_is_right(self):
        rows = self.plan(key_of(self.a))
        self.assertEqual(list(rows), ROWS)
        self.assertEqual({(r["state"], r["next"]) for r in rows.values()}, {("ok", None)}, rows)

    def test_02_no_answer(self):
        rows = self.plan(dict(key_of(self.a), url="https://%s:8443" % NOBODY))
        self.assertEqual([(r["name"], r["state"]) for r in rows.values()], [("reachable", "failed")])

    def test_03_another_time(self):
        fake = self.fake()
        fake.ahead_ms = -60000
        self.only(self.key_of_fake(fake), "clocks", "failed", "ms apart", "time server")

    def test_04_a_newer_release(self):
        fake = self.fake()
        fake.head = dict(fake.head, schema_version=SCHEMA_VERSION + 1)
        self.only(self.key_of_fake(fake), "release", "failed", "schema %d" % (SCHEMA_VERSION + 1),
                  "install the newer release")

    def test_05_the_same_name(self):
        self.only(self.key_of_fake(self.fake(name="n2")), "name", "failed", "name of this node, n2",
                  "lockstep set node name=")

    def test_06_another_subnet(self):
        self.only(self.key_of_fake(self.fake(APART)), "same subnet", "warning",
                  "%s is not in the network of %s" % (APART, self.b.api.address), "VIP")

    def test_07_the_port_of_the_tables_is_taken(self):
        with self.b.ns, socket.create_server((self.b.api.address, 8444)):
            self.only(key_of(self.a), "ports", "failed", "%s port 8444" % self.b.api.address,
                      "peers_port")

    def test_08_a_port_of_a_listener_is_taken(self):
        with self.b.ns, socket.create_server(("0.0.0.0", PORT)):
            self.only(key_of(self.a), "ports", "failed", "port %d" % PORT, "listener")

    def test_09_no_way_back(self):
        own = key_of(self.b)["url"]
        self.set_url("https://%s:1" % self.b.api.address)
        try:
            self.only(key_of(self.a), "way back", "failed",
                      "does not reach https://%s:1: no connection" % self.b.api.address, "firewall")
        finally:
            self.set_url(own)

    def test_10_the_way_back_leads_to_another_node(self):
        """Its pin is not that of this one."""
        own = key_of(self.b)["url"]
        fake = self.fake()
        self.set_url(fake.record["url"])
        try:
            rows = self.plan(key_of(self.a))
            self.assertEqual(rows["way back"]["state"], "failed")
            self.assertIn("public key", rows["way back"]["detail"])
        finally:
            self.set_url(own)

    def test_11_a_vip_is_not_joined(self):
        fake = self.fake()
        fake.admitted["vips"] = [VIP, HUB]
        self.only(self.key_of_fake(fake), "no VIP", "failed", HUB + " is a VIP", "lockstep peerkey")

    def test_12_who_has_a_vip_as_its_address_does_not_join(self):
        own = key_of(self.b)["url"]
        self.lab.hold(self.b, VIP)
        self.set_url("https://%s:%d" % (VIP, self.b.api.port))
        try:
            rows = self.plan(key_of(self.a))
            self.assertEqual(rows["no VIP"]["state"], "failed")
            self.assertIn("lockstep set node url=", rows["no VIP"]["next"])
        finally:
            self.set_url(own)
            self.lab.release(self.b, VIP)

    def test_13_the_command_shows_them(self):
        key = key_of(self.a)
        path = os.path.join(self.b.root, "key")
        with open(path, "w", encoding="ascii") as file:
            file.write(key["key"])
        words = ("join", "--plan", "--key-file", path, key["url"], key["pin"])
        shown = self.b.cli(*words)
        self.assertEqual(shown.returncode, 0, shown)
        for name in ROWS:
            self.assertRegex(shown.stdout, r"(?m)^ok +%s " % name)
        with self.b.ns, socket.create_server((self.b.api.address, 8444)):
            shown = self.b.cli(*words)
        self.assertEqual(shown.returncode, 1, shown)
        self.assertRegex(shown.stdout, r"(?m)^failed +ports +.*8444.*\n +.*peers_port")

    def test_14_what_was_planned_is_done(self):
        """The key as it comes from a terminal."""
        key = key_of(self.a)
        for text in (key["key"] + "\n", " " + key["key"], key["key"] + "\r\n"):
            self.assertTrue(all(r["ok"] for r in self.plan(dict(key, key=text)).values()), text)
        self.a.api.unlock = self.b.api.unlock = True
        joined = join(self.b, self.a)
        self.assertEqual({r["name"]: r["state"] for r in joined["checks"]}, dict.fromkeys(ROWS, "ok"))
        self.assertEqual([n["knows"] for n in joined["nodes"]], [True])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
