#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The lab's own promises about three nodes in one machine: links that are cut and joined,
addresses that move, programs that are down, and nothing that stays."""
import contextlib
import glob
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import node
from backend import Backend
from cluster import HUB, Cluster
from lab import command_line, descendants, wait_for
from visit import serves, visit

VIP = "10.77.0.100"
UP_S = 15
SILENT_S = 0.2
PORT = 7000
PROGRAMS = ("lockstepd", "lockstep-helper", "haproxy")


# A test that ends in the middle of it.
CHILD = """\
import json, signal, unittest, node
from cluster import Cluster

class Ends(unittest.TestCase):
    def test_ends(self):
        made = Cluster(2)
        print(json.dumps([[n.root for n in made.nodes], [p.path for p in made.places]]),
              flush=True)
        with made.client:
            input()
            %s

node.private_network()
unittest.main()
"""


def in_namespaces(inodes):
    found = {}
    for entry in glob.glob("/proc/[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            if os.stat(entry).st_ino in inodes:
                pid = int(entry.split("/")[2])
                found[pid] = command_line(pid)
    return found


@contextlib.contextmanager
def kept(paths):
    """The inodes of these namespaces, which no other one gets meanwhile."""
    with contextlib.ExitStack() as opened:
        fds = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
        for fd in fds:
            opened.callback(os.close, fd)
        yield {os.fstat(fd).st_ino for fd in fds}


def heard(ends):
    """(text, index of the end) of all that comes until nothing comes for a while: on one machine
    nothing is under way."""
    while ready := select.select(ends, [], [], SILENT_S)[0]:
        for end in ready:
            yield end.recv(100).decode(), ends.index(end)


class ClusterLab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        began = time.monotonic()
        cls.cluster = Cluster(3)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.on_all(lambda n: n.set_up())
        cls.cluster.on_all(lambda n: n.wait_ready())
        cls.took_s = time.monotonic() - began
        cls.backend = Backend("sample", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.cluster.on_all(cls.publish)

    @classmethod
    def publish(cls, one):
        one.api.expect(200, "POST", "/api/v1/publish", {
            "url": "http://app.test", "to": [cls.backend.target]})
        task = one.api.apply()
        assert task["state"] == "ok", task

    def setUp(self):
        self.addCleanup(self.cluster.vip, None, VIP)
        self.addCleanup(self.cluster.join_all)

    def await_service(self, one):
        with self.cluster.client:
            wait_for(lambda: serves(to=one.ns.address), one.name + " serves")
        wait_for(one.ready, one.name + " is ready")

    def map(self):
        """Whose datagrams reach whom, as "from>to"."""
        places = self.cluster.places
        with contextlib.ExitStack() as stack:
            ends = []
            for place in places:
                with place:
                    end = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                end.bind((place.address, PORT))
                ends.append(end)
            for (place, end), (_, other) in itertools.permutations(zip(places, ends), 2):
                end.sendto(place.name.encode(), other.getsockname())
            return {"%s>%s" % (sender, places[n].name) for sender, n in heard(ends)}

    def test_they_come_up_soon(self):
        self.assertLess(self.took_s, UP_S)

    def test_each_answers_the_others_and_the_client(self):
        for place in self.cluster.places:
            for one in self.cluster.nodes:
                with place:
                    answer = one.api.get("/api/v1/status")
                self.assertEqual(answer["node"], one.name)

    def test_the_service_answers_at_each_node_and_at_an_address_that_moves(self):
        one, two, _ = self.cluster.nodes
        with self.cluster.client:
            for n in self.cluster.nodes:
                self.assertEqual(visit("app.test", to=n.ns.address).server, "sample")
            self.assertFalse(serves(to=VIP))
        for holder in (one, two, one):
            self.cluster.vip(holder, VIP)
            self.assertEqual(self.cluster.holders(VIP), [holder])
            with self.cluster.client:
                self.assertTrue(serves(to=VIP))
                self.assertEqual(self.who_has(VIP), self.who_has(holder.ns.address))

    @staticmethod
    def who_has(address):
        shown = subprocess.run(["ip", "neighbour", "show", address], check=True,
                               capture_output=True, text=True).stdout
        return shown.split("lladdr ")[1].split()[0]

    def test_a_cut_stops_what_it_says_and_no_more(self):
        one, two, three = self.cluster.nodes
        client = self.cluster.client
        whole = self.map()
        self.assertEqual(len(whole), 12)
        for cut, stops in (((one, two), {"n1>n2", "n2>n1"}),
                           ((one, two, True), {"n1>n2"}),
                           ((two, one, True), {"n2>n1"}),
                           ((client, three), {"client>n3", "n3>client"})):
            self.cluster.cut(*cut)
            self.assertEqual(whole - self.map(), stops)
            self.cluster.join(*cut)
            self.assertEqual(self.map(), whole)
        self.cluster.cut(one, two)
        self.cluster.cut(one, three)
        with one.ns, self.assertRaises(TimeoutError):
            socket.create_connection((two.ns.address, two.api.port), SILENT_S)
        self.cluster.join_all()
        self.assertEqual(self.map(), whole)

    def test_a_program_stays_down_until_it_is_put_up(self):
        one = self.cluster.nodes[0]
        for program in PROGRAMS:
            before = one.pids(program)
            one.take_down(program)
            self.assertEqual(one.pids(program), [])
            one.put_up()
            wait_for(lambda p=program: one.pids(p), program + " is up")
            self.assertFalse(set(before) & set(one.pids(program)))
        self.await_service(one)

    def test_a_node_that_loses_power_takes_nobody_with_it(self):
        one, two, three = self.cluster.nodes
        others = [n.pids(p) for n in (two, three) for p in PROGRAMS]
        one.kill()
        self.assertEqual(in_namespaces({one.ns.inode}), {})
        self.assertEqual([n.pids(p) for n in (two, three) for p in PROGRAMS], others)
        one.start()
        self.await_service(one)


class Leftovers(unittest.TestCase):
    def left(self, roots, inodes):
        return ([r for r in roots if os.path.exists(r)], in_namespaces(inodes))

    def test_close_leaves_nothing_and_a_second_cluster_starts(self):
        for _ in range(2):
            before = socket.if_nameindex()
            with contextlib.ExitStack() as after:
                with Cluster(2) as cluster:
                    roots = [n.root for n in cluster.nodes]
                    inodes = after.enter_context(kept(p.path for p in cluster.places))
                    cluster.on_all(lambda n: n.wait(n.answers, "the API answers"))
                    self.assertTrue(in_namespaces(inodes))
                self.assertEqual(self.left(roots, inodes), ([], {}))
            self.assertEqual(socket.if_nameindex(), before)

    def test_what_stays_behind_is_told_and_ended(self):
        with Cluster(2) as cluster:
            one, other = cluster.nodes
            cluster.on_all(lambda n: n.wait(n.answers, "the API answers"))
            one.stop()
            with one.ns:
                one.process = subprocess.Popen(
                    ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"])
            wait_for(lambda: descendants(one.process.pid), "it has a child")
            with self.assertRaisesRegex(AssertionError, "left running: .*sleep 600"):
                one.stop()
            wait_for(lambda: not in_namespaces({one.ns.inode}), "it is ended")
            with other.ns:
                subprocess.run(["sh", "-c", "sleep 600 &"], check=True)
            other.process.kill()
            other.process.wait()
            self.assertTrue(in_namespaces({other.ns.inode}))
            other.close()
            self.assertEqual(in_namespaces({other.ns.inode}), {})

    def test_sigterm_and_a_failure_leave_nothing(self):
        for end, signals in (("signal.pause()", True), ("raise AssertionError", False)):
            with self.subTest(end=end), tempfile.TemporaryFile() as errors:
                with subprocess.Popen([sys.executable, "-c", CHILD % end], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=errors, text=True) as child:
                    self.addCleanup(child.kill)
                    roots, paths = json.loads(child.stdout.readline())
                    with kept(paths) as inodes:
                        print(file=child.stdin, flush=True)
                        if signals:
                            child.terminate()
                        self.assertNotEqual(child.wait(30), 0)
                        self.assertEqual(self.left(roots, inodes), ([], {}))


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
