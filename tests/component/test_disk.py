#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The disk of the state directory is full, or can only be read: HAProxy serves on, what cannot be
kept is refused with the reason, and nothing has to be repaired when there is room again."""
import json
import subprocess
import unittest

import node
from backend import Backend
from cluster import QUICK, Cluster, in_step, join, key_of, seen
from disk import SmallDisk, SmallRun, mount
from made import Made
from peer import Caller
from visit import serves

JSON = {"Content-Type": "application/json"}


class Case(unittest.TestCase):
    node_type = SmallDisk

    def setUp(self):
        self.backend = Backend("one")
        self.addCleanup(self.backend.close)
        self.node = self.node_type()
        self.addCleanup(self.node.close)
        self.api = self.node.set_up().api
        self.api.expect(200, "POST", "/api/v1/publish",
                        {"url": "http://app.test", "to": [self.backend.target]})
        self.assertEqual(self.api.apply()["state"], "ok")
        self.node.wait_ready()


class Run(Case):
    node_type = SmallRun

    def test_a_full_run_directory_stops_no_reload(self):
        self.node.fill(0)
        for step in range(3):
            self.api.patch("/api/v1/haproxy", maxconn=2000 + step)
            task = self.api.apply()
            self.assertEqual(task["state"], "ok", task)
            self.assertTrue(serves())
        self.assertIn("probers are not told of the reload", self.node.log())


class Disk(Case):
    def test_a_full_disk_refuses_and_loses_nothing(self):
        states = set()
        for step, leave in enumerate((0, 8 << 10, 20 << 10, 36 << 10, 64 << 10, 96 << 10)):
            with self.subTest(leave=leave):
                self.api.patch("/api/v1/haproxy", maxconn=2000 + step)
                head = self.api.get("/api/v1/status")["head"]["id"]
                digest, generation = self.node.running_digest(), self.node.generation()
                self.node.fill(leave)
                made = self.api.raw("POST", "/api/v1/servers", json.dumps(
                    {"name": "s%d" % step, "address": "192.0.2.1", "port": 1}), JSON)
                self.assertIn(made.status, (201, 503), made)
                if made.status == 503:
                    self.assertIn("disk is full", made.json["detail"])
                task = self.api.apply("with %d bytes left" % leave)
                states.add(task["state"])
                moved = self.api.get("/api/v1/status")["head"]["id"] != head
                self.assertEqual(moved, task["state"] == "ok", task)
                if not moved:
                    self.assertEqual((digest, generation),
                                     (self.node.running_digest(), self.node.generation()), task)
                self.assertTrue(serves())
                self.node.free()
                self.assertTrue(self.api.get("/api/v1/verify")["ok"])
                self.assertEqual(self.api.apply("with room again")["state"], "ok")
                self.assertEqual(self.api.get("/api/v1/haproxy")["maxconn"], 2000 + step)
                self.assertEqual(self.api.raw("GET", "/api/v1/servers/s%d" % step).status,
                                 200 if made.status == 201 else 404)
        self.assertIn("failed", states, "no disk was full enough")

    def test_a_push_to_a_full_disk_is_no_fault_of_its_content(self):
        caller = Caller(self.node)
        made = Made(caller)
        self.node.fill(0)
        answer = caller.put(made.child(made.row("haproxy", "haproxy", maxconn=4000)))
        self.assertEqual((answer.status, answer.json["code"]), (503, "io"), answer)
        self.assertEqual(self.api.get("/api/v1/status")["head"]["id"], made.head)
        self.assertTrue(serves())
        self.node.free()
        answer = caller.put(made.child(made.row("haproxy", "haproxy", maxconn=4000)))
        self.assertEqual((answer.status, answer.json["state"]), (200, "taken"), answer)

    def test_a_start_on_a_full_disk(self):
        self.node.fill(0)
        self.node.kill()
        self.node.start()
        self.node.wait_ready()
        self.assertTrue(serves())

    def test_a_start_on_a_disk_that_can_only_be_read(self):
        self.node.kill()
        # The last threads of what was killed may hold files open for a moment.
        node.wait_for(lambda: subprocess.run(
            ["mount", "-o", "remount,ro", self.node.state], check=False).returncode == 0,
            "the disk can only be read")
        self.node.start()
        node.wait_for(serves, "HAProxy serves")
        self.assertIn("Read-only file system", node.wait_for(self.node.tells_why, "told"))
        mount("-o", "remount,rw", self.node.state)
        self.node.wait_ready()
        self.assertTrue(self.api.get("/api/v1/verify")["ok"])


class Apart(unittest.TestCase):
    def test_whose_disk_is_full_is_said(self):
        lab = Cluster(2, node_type=SmallDisk, tunables=QUICK)
        self.addCleanup(lab.close)
        a, b = lab.set_up().nodes
        for one in lab.nodes:
            one.api.unlock = True  # there is no VIP
        join(b, a)
        in_step(lab.nodes)
        lab.cut(a, b)
        for maxconn, one in enumerate(lab.nodes, 3000):
            one.api.patch("/api/v1/haproxy", maxconn=maxconn)
            self.assertEqual(one.api.apply()["state"], "ok")
        lab.join_all()
        node.wait_for(lambda: seen(a, b)["relation"] == "diverged", "they diverged")
        a.fill(0)
        refused = a.api.expect(503, "POST", "/api/v1/cluster/overwrite", {})
        self.assertEqual(refused["detail"],
                         "n2: its history is not stored on n1: the disk is full")
        a.free()
        a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        in_step(lab.nodes)


class Joining(unittest.TestCase):
    def test_however_little_room_there_is_that_is_the_reason(self):
        """Each write of a join comes to be the one that fails."""
        lab = Cluster(2, node_type=SmallDisk, tunables=QUICK)
        self.addCleanup(lab.close)
        a, b = lab.set_up().nodes
        a.api.patch("/api/v1/haproxy", error_title="Of the other one")
        self.assertEqual(a.api.apply()["state"], "ok")
        key = key_of(a)
        asked = {name: key[name] for name in ("url", "key", "pin")}
        answers = []
        for leave in range(0, 1 << 20, 16 << 10):
            b.fill(leave)
            answers.append(b.api.raw("POST", "/api/v1/cluster/join", json.dumps(asked), JSON))
            if answers[-1].status == 200:
                break
        b.api.key = a.api.key
        self.assertEqual(answers.pop().status, 200)
        self.assertNotEqual(answers, [])
        for answer in answers:
            self.assertEqual(answer.status, 503, answer)
            self.assertRegex(answer.json["detail"], "disk is full|No space left")
        in_step(lab.nodes)


if __name__ == "__main__":
    node.private_network()
    node.private_folders()
    unittest.main(verbosity=2)
