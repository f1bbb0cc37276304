#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command line against a real node, from setup to restore and verify."""
import json
import os
import subprocess
import unittest

import node
from backend import Backend


class Cli(unittest.TestCase):
    """In the order of their names."""

    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("one")
        cls.node = node.Node()
        cls.addClassCleanup(cls.node.close)
        node.wait_for(cls.node.answers, "the API answers", 30)
        cls.config = os.path.join(cls.node.root, "home", "cli.json")

    def run_cli(self, *arguments, status=0, text=None, config=None):
        done = subprocess.run(
            [os.path.join(node.BUILD, "lockstep"), "--config", config or self.config, *arguments],
            input=text, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def run_json(self, *arguments):
        return json.loads(self.run_cli("--json", *arguments))

    def test_1_setup_prints_a_password_and_keeps_a_key(self):
        password = self.run_cli("setup", "--state-dir", self.node.state, "--url",
                                "https://127.0.0.1:8443", "--name", "admin").strip()
        self.assertGreaterEqual(len(password), 16)
        self.assertEqual(os.stat(self.config).st_mode & 0o777, 0o600)
        admin = node.Api("127.0.0.1", 8443)
        admin.sign_in("admin", password)
        self.assertIn("administrator", self.run_cli(
            "setup", "--state-dir", self.node.state, "--url", "https://127.0.0.1:8443", status=1))

    def test_2_publish_diff_apply_status(self):
        out = self.run_cli("publish", "http://app.test", "--to", self.backend.target,
                           "--check", "http:/healthz")
        self.assertIn("+ service app.test", out)
        diff = self.run_cli("diff")
        self.assertIn("+ pool app.test", diff)
        self.assertIn("+backend app.test", diff)
        self.assertIn("can be applied", self.run_cli("check"))
        out = self.run_cli("apply", "--note", "first")
        self.assertIn("Confirm it serves", out)
        self.node.wait_ready()
        status = self.run_cli("status")
        self.assertRegex(status, r"(?m)^stored +revision 3@[0-9a-f]{8}")
        self.assertRegex(status, r"(?m)^running +revision 3, as stored$")
        self.assertRegex(status, r"(?m)^serving +yes")
        self.assertIn("draft is empty", self.run_cli("diff"))

    def test_3_objects(self):
        self.run_cli("create", "server", "extra", "address=192.0.2.5", "port=81")
        self.assertEqual(self.run_json("get", "server", "extra")["port"], 81)
        self.run_cli("set", "server", "extra", "port=82")
        self.run_cli("set", "server", "extra", "--file", "-", text='{"maxconn": 7}')
        shown = self.run_cli("get", "server", "extra")
        self.assertRegex(shown, r"(?m)^port +82$")
        self.assertRegex(shown, r"(?m)^maxconn +7$")
        self.assertIn("extra", self.run_cli("list", "servers"))
        self.run_cli("set", "haproxy", "maxconn=3456")
        self.run_cli("delete", "server", "extra")
        self.run_cli("publish", "http://gone.test", "--to", self.backend.target)
        self.assertIn("- service gone.test", self.run_cli("unpublish", "gone.test"))
        self.run_cli("apply")
        self.assertIn("maxconn 3456", self.run_cli("config"))

    def test_4_history_show_restore(self):
        history = self.run_cli("history")
        self.assertIn("first", history)
        self.assertIn("maxconn: 4000 -> 3456", self.run_cli("show", "4"))
        self.run_cli("restore", "3", "--apply")
        self.assertIn("maxconn 4000", self.run_cli("config"))
        self.assertIn("hashes", self.run_cli("verify"))
        self.assertIn("ok", self.run_cli("tasks"))

    def test_5_errors_say_what_and_where(self):
        error = self.run_cli("set", "server", "app.test.s1", "port=70000", status=1)
        self.assertIn("/port", error)
        error = self.run_cli("create", "pool", "broken", "ports=1", status=2)
        self.assertIn("members", error)
        self.assertIn("app.test", self.run_cli("delete", "pool", "app.test", status=1))
        self.run_cli("nonsense", status=2)
        self.assertIn("usage", self.run_cli("delete", "server", "x", "y", status=2))
        self.assertIn("UTF-8", self.run_cli("get", "server", b"\xff", status=2))
        self.run_cli("publish", "http://x.test", status=2)
        self.assertIn("/check", self.run_cli("publish", "http://x.test", "--to", "192.0.2.1:80",
                                             "--check", "helth:/x", status=1))

    def test_6_another_key_of_the_server_is_refused_and_no_answer_is_said(self):
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        other = os.path.join(self.node.root, "other.json")
        for change, status, word in (({"pin": "sha256//" + "A" * 43 + "="}, 3, "pinned"),
                                     ({"url": "https://127.0.0.1:1"}, 3, "127.0.0.1"),
                                     ({"key": "lsk_" + "A" * 43}, 1, "key")):
            with open(other, "w", encoding="utf-8") as file:
                json.dump(dict(config, **change), file)
            self.assertIn(word, self.run_cli("status", status=status, config=other))


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
