#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stick tables that nodes share: what a visitor gets when the VIP moves, who is let in at the
port of the tables, and how often HAProxy is reloaded when nodes come and go."""
import contextlib
import os
import re
import socket
import unittest

import node
from backend import Backend
from cluster import HUB, INSIDE, PREFIX, TUNABLES, Cluster, join, reconciles
from lab import run
from visit import visit

TURN_MS = 2000
VIP = "10.77.0.100"
VISITORS = ["10.77.0.%d" % i for i in range(3, 7)]
LIMIT = 3
HELLO = "HAProxyS 2.1\n%s\nstranger 1 1\n"


def reloads(one):
    """By HAProxy's own count."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.connect(os.path.join(one.run_dir, "master.sock"))
        s.settimeout(5)
        s.sendall(b"show proc\n")
        s.shutdown(socket.SHUT_WR)
        with s.makefile() as answer:
            return int(re.search(r"^\d+ +master +(\d+) ", answer.read(), re.M).group(1))


def started(one):
    """When HAProxy's worker was, in seconds since the machine was."""
    pid = re.search(r"^Pid: (\d+)$", one.admin_socket("show info"), re.M).group(1)
    with open("/proc/%s/stat" % pid, encoding="ascii") as stat:
        return int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def table(one, name):
    return one.admin_socket("show table " + name)


def established(one):
    """The names of the nodes with which HAProxy has a session over which tables go."""
    peers = one.admin_socket("show peers")
    return set(re.findall(r"id=(\S+)\(remote,active\)[^\n]* last_status=ESTA", peers))


def teaches(one):
    """HAProxy hands its tables on when it was taught itself or gave up waiting for that: both
    low bits of the flags are set."""
    return re.search(r"id=lockstep\.tables disabled=0 flags=0x\w*[37bf] ",
                     one.admin_socket("show peers"))


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=dict(TUNABLES, tables_turn_ms=TURN_MS))
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b, cls.c = cls.lab.nodes
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP group
        with cls.lab.client:
            for visitor in VISITORS:
                run("ip", "address", "add", visitor + PREFIX, "dev", INSIDE)
        backends = [Backend(label, HUB) for label in ("one", "two")]
        for backend in backends:
            cls.addClassCleanup(backend.close)
        cls.publish(backends)
        for other in (cls.b, cls.c):
            join(other, cls.a)
        cls.settled(cls.lab.nodes)
        # Two that called each other at the same time hang up and begin again.
        for one in cls.lab.nodes:
            node.wait_for(lambda o=one: teaches(o), one.name + " teaches", 30)
        cls.settled(cls.lab.nodes)
        cls.lab.vip(cls.a, VIP)

    @classmethod
    def publish(cls, backends):
        api = cls.a.api
        api.create("listeners", name="http", port=80)
        for i, backend in enumerate(backends):
            api.create("servers", name="s%d" % i, address=HUB, port=backend.port)
        for name, fields in (("source", {"stick": "source"}), ("plain", {})):
            api.create("pools", name=name, members=[{"server": "s0"}, {"server": "s1"}], **fields)
        api.create("services", name="sticky", listeners=["http"], pool="source",
                   hosts=["sticky.test"])
        api.create("services", name="limited", listeners=["http"], pool="plain",
                   hosts=["limited.test"], rate_limit=LIMIT, rate_limit_period_s=600)
        task = api.apply()
        assert task["state"] == "ok", task

    @classmethod
    def settled(cls, nodes):
        """Each shares its tables with each other."""
        names = {n.name for n in nodes}
        for one in nodes:
            node.wait_for(lambda o=one: established(o) == names - {o.name},
                          "%s shares with %s" % (one.name, names), 30)
            node.wait_for(lambda o=one: o.api.get("/api/v1/status")["started"] and
                          all(t["state"] != "running" for t in reconciles(o)), "at rest")

    def not_at_once(self, nodes):
        """HAProxy was started on each of them, and not on all at once. Who hears of it late, as on
        a machine that has other work, may meet the turn of the next."""
        times = [started(one) for one in nodes]
        self.assertGreater(max(times) - min(times), TURN_MS / 1000 * 0.3, times)

    def visit(self, host, source):
        with self.lab.client:
            return visit(host, to=VIP, source=source)

    def hello(self, place, to, name):
        """The status that HAProxy gives to a peer which calls itself "stranger", "" for none."""
        with place, contextlib.suppress(OSError), \
                socket.create_connection((to.api.address, 8444), 5) as s:
            s.settimeout(5)
            s.sendall((HELLO % name).encode())
            return s.recv(3).decode()
        return ""

    def test_1_a_visitor_keeps_server_and_limit_when_the_vip_moves(self):
        servers = {v: self.visit("sticky.test", v).server for v in VISITORS}
        self.assertEqual(set(servers.values()), {"one", "two"})
        codes = [self.visit("limited.test", VISITORS[0]).status for _ in range(LIMIT + 1)]
        self.assertEqual(codes, [200] * LIMIT + [429])
        for one in (self.b, self.c):
            node.wait_for(lambda o=one: all(v in table(o, "source") for v in VISITORS),
                          one.name + " knows the servers of all visitors", 2)
            node.wait_for(lambda o=one: "=%d" % (LIMIT + 1) in table(o, "lockstep.rate.limited"),
                          one.name + " knows the rate", 2)
        self.lab.vip(self.b, VIP)
        # In turn, the last first: a node that knew nothing would give each another one.
        again = {v: self.visit("sticky.test", v).server for v in reversed(VISITORS)}
        self.assertEqual(again, servers)
        self.assertEqual(self.visit("limited.test", VISITORS[0]).status, 429)
        self.assertEqual(self.visit("limited.test", VISITORS[1]).status, 200)

    def test_2_only_the_other_nodes_are_let_in(self):
        self.assertEqual(self.hello(self.lab.client, self.a, "n1"), "")
        self.assertEqual(self.hello(self.lab.hub, self.a, "n1"), "")
        # One of them is, and is told that its name is none of theirs.
        self.assertEqual(self.hello(self.b.ns, self.a, "n1"), "504")
        # Whoever is on the machine itself gets to the section that is behind it.
        with self.a.ns, socket.create_connection(("127.0.0.1", 8444), 5):
            pass

    def test_3_who_leaves_is_taken_out_with_one_reload_and_no_table_is_lost(self):
        for one in self.lab.nodes:
            node.wait_for(lambda o=one: teaches(o), one.name + " teaches", 30)
        before = {one: reloads(one) for one in (self.a, self.b)}
        self.c.api.expect(200, "POST", "/api/v1/cluster/leave")
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: "peer n3 " not in o.config(), one.name + " forgets it")
        node.wait_for(lambda: "lockstep.tables.in" not in self.c.config(), "it is alone")
        node.wait_for(lambda: not established(self.c), "HAProxy has loaded that")
        self.settled([self.a, self.b])
        for one, count in before.items():
            self.assertEqual(reloads(one), count + 1, reconciles(one))
        self.not_at_once([self.a, self.b])
        for one in self.lab.nodes:
            node.wait_for(lambda o=one: all(v in table(o, "source") for v in VISITORS),
                          one.name + " has kept what it knew")
        self.assertEqual(self.hello(self.c.ns, self.a, "n1"), "")

    def test_4_who_comes_back_is_a_peer_again(self):
        before = {one: reloads(one) for one in (self.a, self.b)}
        join(self.c, self.a)
        self.settled(self.lab.nodes)
        for one, count in before.items():
            self.assertEqual(reloads(one), count + 1, reconciles(one))
        self.not_at_once(self.lab.nodes)

    def test_5_another_name_or_address_of_a_node_is_one_reload_of_each_other(self):
        before = {one: reloads(one) for one in (self.a, self.b)}
        self.c.api.patch("/api/v1/node", name="third")
        self.assertEqual(self.c.api.apply()["state"], "ok")
        self.c.name = "third"
        self.settled(self.lab.nodes)
        for one, count in before.items():
            self.assertEqual(reloads(one), count + 1, reconciles(one))
            self.assertIn("\n    peer third 10.77.0.13:8444\n", one.config())
        self.c.api.patch("/api/v1/node", peers_port=9444)
        self.assertEqual(self.c.api.apply()["state"], "ok")
        for one, count in before.items():
            node.wait_for(lambda o=one: "peer third 10.77.0.13:9444\n" in o.config(), "the port")
        self.settled(self.lab.nodes)
        for one, count in before.items():
            self.assertEqual(reloads(one), count + 2, reconciles(one))

    def test_6_what_is_no_part_of_it_is_no_reload(self):
        before = {one: reloads(one) for one in self.lab.nodes}
        self.c.api.expect(200, "POST", "/api/v1/cluster/key")
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: all(n["answers"] for n in
                                            o.api.get("/api/v1/cluster")["nodes"]), "the key")
        self.a.kill()
        self.a.start()
        self.a.wait_ready()
        self.settled(self.lab.nodes)
        self.assertEqual({one: reloads(one) for one in self.lab.nodes if one is not self.a},
                         {one: n for one, n in before.items() if one is not self.a})

    def test_7_who_is_forgotten_is_taken_out_by_one_node_after_another(self):
        for one in (self.a, self.b):
            node.wait_for(lambda o=one: teaches(o), one.name + " teaches", 30)
            node.wait_for(lambda o=one: all(v in table(o, "source") for v in VISITORS),
                          one.name + " knows all visitors")
        before = {one: reloads(one) for one in (self.a, self.b)}
        self.c.stop()
        self.a.api.expect(200, "POST", "/api/v1/cluster/forget", {"node": self.c.name})
        for one, count in before.items():
            node.wait_for(lambda o=one, n=count: reloads(o) == n + 1, one.name + " reloads")
        self.settled([self.a, self.b])
        for one, count in before.items():
            self.assertEqual(reloads(one), count + 1, reconciles(one))
            node.wait_for(lambda o=one: all(v in table(o, "source") for v in VISITORS),
                          one.name + " has kept what it knew")
        self.not_at_once([self.a, self.b])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
