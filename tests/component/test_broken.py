#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""HAProxy's program is gone, or its admin socket cannot be used: what serves goes on serving, and
status, answer and log say what is wrong."""
import os
import shutil
import unittest

import node
from backend import Backend
from visit import serves


class OwnProgram(node.Node):
    """A node with a copy of HAProxy's program that a test may take away."""

    def command(self):
        copy = os.path.join(self.root, "haproxy")
        if not os.path.exists(copy) and not hasattr(self, "had_program"):
            shutil.copy("/usr/sbin/haproxy", copy)
            self.had_program = True
        return super().command() + ["--haproxy", copy]

    def program(self):
        return os.path.join(self.root, "haproxy")


class Broken(unittest.TestCase):
    def setUp(self):
        self.backend = Backend("one")
        self.addCleanup(self.backend.close)
        self.node = OwnProgram()
        self.addCleanup(self.node.close)
        self.api = self.node.set_up().api
        self.api.expect(200, "POST", "/api/v1/publish",
                        {"url": "http://app.test", "to": [self.backend.target]})
        self.assertEqual(self.api.apply()["state"], "ok")
        self.node.wait_ready()

    def test_without_the_program_an_apply_fails_and_names_it(self):
        os.rename(self.node.program(), self.node.program() + ".away")
        head = self.api.get("/api/v1/status")["head"]["id"]
        config = self.node.config()
        self.api.patch("/api/v1/haproxy", maxconn=3000)
        task = self.api.apply()
        self.assertEqual(task["state"], "failed")
        self.assertIn(self.node.program(), str(task))
        self.assertTrue(serves())
        self.assertEqual(self.api.get("/api/v1/status")["head"]["id"], head)
        self.assertEqual(self.node.config(), config)
        os.rename(self.node.program() + ".away", self.node.program())
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertTrue(serves())

    def test_a_socket_without_permission_is_told_and_taken_up_again(self):
        path = os.path.join(self.node.run_dir, "haproxy.sock")
        mode = os.stat(path).st_mode
        os.chmod(path, 0)
        status = node.wait_for(
            lambda: (s := self.api.get("/api/v1/status"))["haproxy"]["up"] == "no" and s,
            "the status says so")
        self.assertIn("ermission denied", status["haproxy"]["detail"])
        self.assertIn("ermission denied", self.node.log())
        self.assertTrue(serves())
        os.chmod(path, mode)
        node.wait_for(lambda: self.api.get("/api/v1/status")["haproxy"]["up"] == "yes", "back")


if __name__ == "__main__":
    node.private_network()
    unittest.main()
